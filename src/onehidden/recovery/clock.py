"""The time budget of a recovery and its trace; the one place of the numerics that reads the clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from onehidden.memo import FORGETFUL, Memo

Progress = Callable[["TraceRecord"], None]


@dataclass(frozen=True)
class TraceRecord:
    """One line of the story: which stage, which step, what loss (relative to var y), after how long."""

    stage: str
    step: int
    loss: float
    seconds: float


class Clock:
    """Counts seconds, keeps the trace, tells the listener; carries what a checkpoint remembers."""

    def __init__(self, max_seconds: float | None, progress: bool | Progress, memo: Memo = FORGETFUL) -> None:
        self.memo = memo
        self._start, self.limit = time.perf_counter(), max_seconds
        self._listener: Progress | None = _print_line if progress is True else progress or None
        self.trace: list[TraceRecord] = []

    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def expired(self) -> bool:
        return self.limit is not None and self.seconds() > self.limit

    def report(self, stage: str, step: int, loss: float) -> None:
        record = TraceRecord(stage, step, float(loss), self.seconds())
        self.trace.append(record)
        if self._listener is not None:
            self._listener(record)


def _print_line(record: TraceRecord) -> None:
    line = f"{record.seconds:7.1f} s  {record.stage:<18} step {record.step:<6} loss {record.loss:.3e}"
    print(line, file=sys.stderr)
