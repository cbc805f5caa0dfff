"""Progress on stderr: one live line on a terminal (stage, loss, elapsed), a line now and then in a pipe."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onehidden.run import TraceRecord

EVERY = 5.0  # seconds between lines in a pipe: a log of an hour has 720


@contextmanager
def live(max_seconds: float | None = None, first: str = "starting …", hint: str = "") -> Iterator[Any]:
    """A listener for ``recover(progress=…)`` that keeps one line up to date, on a terminal with a hint."""
    limit = "" if max_seconds is None else f"of at most {max_seconds:g} s"
    with _line(first, "; ".join(filter(None, (limit, hint)))) as say:

        def hear(record: TraceRecord) -> None:
            # A start that was refused has no step and no loss.
            at = f": step {record.step}, loss {record.loss:.2e}" if math.isfinite(record.loss) else ""
            say(f"{record.stage}{at}")

        yield hear


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being worked on and for how long; the text may be changed."""
    with _line(what) as say:
        yield say


@contextmanager
def _line(first: str, beside: str = "") -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        with _now_and_then(first) as say:
            yield say
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if beside:
        columns.append(TextColumn(beside, markup=False))
    # The clock of the line runs by itself: compilation at the start has no step to report.
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)


@contextmanager
def _now_and_then(first: str) -> Iterator[Callable[[str], None]]:
    """The last text every few seconds, by a clock of its own; nothing of what is over sooner."""
    began, said, done = time.monotonic(), [first], threading.Event()

    def work() -> None:
        while not done.wait(EVERY):
            print(f"{time.monotonic() - began:7.0f} s  {said[0]}", file=sys.stderr, flush=True)

    def say(text: str) -> None:
        said[0] = text

    clock = threading.Thread(target=work, daemon=True)
    clock.start()
    try:
        yield say
    finally:
        done.set()
        clock.join()
