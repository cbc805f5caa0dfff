"""Progress of a recovery on stderr: one live line on a terminal, nothing otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def live(max_seconds: float | None = None) -> Iterator[Any]:
    """A listener for ``recover(progress=…)`` that keeps one line up to date."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    with console.status("starting …") as status:

        def hear(record: Any) -> None:
            left = "" if max_seconds is None else f", {max(0.0, max_seconds - record.seconds):.0f} s left"
            status.update(
                f"{record.stage}: step {record.step}, loss {record.loss:.2e}, {record.seconds:.0f} s{left}"
            )

        yield hear
