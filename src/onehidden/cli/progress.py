"""Progress on stderr: one live line on a terminal (stage, loss, elapsed, left), nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onehidden.run import TraceRecord


@contextmanager
def live(max_seconds: float | None = None, first: str = "starting …") -> Iterator[Any]:
    """A listener for ``recover(progress=…)`` that keeps one line up to date; False off a terminal."""
    with _line(first, max_seconds) as say:
        if say is None:
            yield False
            return

        def hear(record: TraceRecord) -> None:
            say(f"{record.stage}: step {record.step}, loss {record.loss:.2e}")

        yield hear


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A line that says what is being worked on and for how long."""
    with _line(what, None):
        yield


@contextmanager
def _line(first: str, max_seconds: float | None) -> Iterator[Callable[[str], None] | None]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()]
    if max_seconds is not None:
        columns.append(TextColumn(f"of at most {max_seconds:g} s"))
    # The clock of the line runs by itself: compilation at the start has no step to report.
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(first, total=None)
        yield lambda text: bar.update(task, description=text)
