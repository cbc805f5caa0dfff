"""Progress on stderr, one live line on a terminal and a line now and then in a pipe; Ctrl-C ends a search."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from onehidden.run import TraceRecord


@contextmanager
def live(
    max_seconds: float | None = None, first: str = "starting …", hint: str = "", every: float = 5.0
) -> Iterator[Any]:
    """A listener for ``recover(progress=…)`` that keeps one line up to date, on a terminal with a hint.

    In a pipe there is a line ``every`` so many seconds.
    """
    limit = "" if max_seconds is None else f"of at most {max_seconds:g} s"
    with waiting(first, "; ".join(filter(None, (limit, hint))), every) as say:

        def listener(record: TraceRecord) -> None:
            # A start that was refused has no step and no loss.
            at = f": step {record.step}, loss {record.loss:.2e}" if math.isfinite(record.loss) else ""
            say(f"{record.stage}{at}")

        yield listener


@contextmanager
def waiting(first: str, hint: str = "", every: float = 5.0) -> Iterator[Callable[[str], None]]:
    """A line that says what is being worked on; in a pipe its latest text every few seconds."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if console.is_terminal:
        columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
        columns += [TextColumn(hint, markup=False)] if hint else []
        # The clock of the line runs by itself: compilation at the start has no step to report.
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(first, total=None)
            yield lambda text: bar.update(task, description=text)
        return
    began = said = time.monotonic()

    def say(text: str) -> None:
        nonlocal said
        if time.monotonic() - said >= every:
            said = time.monotonic()
            print(f"{said - began:7.0f} s  {text}", file=sys.stderr, flush=True)

    yield say


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """A scope in which the first Ctrl-C sets the event and ends runs with their best answer so far."""
    from onehidden.run import stoppable

    with stoppable() as stop:
        if threading.current_thread() is not threading.main_thread():
            yield stop
            return

        def handle(number: int, frame: FrameType | None) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            stop.set()
            click.echo(
                "\nstopping: the best answer so far is being finished (Ctrl-C again leaves at once)", err=True
            )

        before = signal.signal(signal.SIGINT, handle)
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, before)
