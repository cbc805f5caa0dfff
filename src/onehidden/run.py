"""One run: its random streams, its clock, its progress, its journal; the one context that numerics are given.

The one place of the numerics that reads the clock. Everything is asked by name: ``run.rng("restart", 3)`` is
a random stream, ``run.at("random", 3)`` the same run at a step of that name.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from onehidden.journal import FORGETFUL, Journal, Values
from onehidden.machine import rate
from onehidden.streams import derived_seed, stream

Progress = Callable[["TraceRecord"], object]


@dataclass(frozen=True)
class TraceRecord:
    """One line of the story: which stage, which step, what loss (relative to var y), after how long."""

    stage: str
    step: int
    loss: float
    seconds: float


class Clock:
    """Seconds since it was made, as ``read`` counts them: by default those on the wall."""

    def __init__(self, read: Callable[[], float] = time.perf_counter) -> None:
        self._read, self._began = read, read()

    def seconds(self) -> float:
        """Seconds since the clock was made."""
        return self._read() - self._began


@dataclass(frozen=True)
class Run:
    """The context of a computation."""

    seed: int = 0  # of all its random streams
    max_seconds: float | None = None  # time budget
    listener: bool | Progress = False  # called with every ``TraceRecord``; True prints lines to stderr
    journal: Journal = field(default=FORGETFUL, repr=False)  # what it remembers if it is killed
    path: tuple[str | int, ...] = ()  # names of the steps that lead here
    trace: list[TraceRecord] = field(default_factory=list, repr=False)  # all so far, of the whole run
    clock: Clock = field(default_factory=Clock, repr=False)  # a benchmark hands in one of processor time
    whole: float | None = None  # the budget that ``max_seconds`` is a share of; None where it is all of it

    def rng(self, *name: str | int) -> np.random.Generator:
        """Return the random stream of this name, the same at every step of the run."""
        return stream(self.seed, "solver", *name)

    def seed_of(self, *name: str | int) -> int:
        """Return a seed of this name, for libraries that take one."""
        return derived_seed(self.seed, "solver", *name)

    def at(self, *name: str | int) -> Run:
        """Return the run at a step of this name below the present one."""
        return replace(self, path=(*self.path, *name))

    def unseeded(self) -> Run:
        """Return the same run with random streams that no seed moves: a verdict is one of the data alone."""
        return replace(self, seed=0)

    def seconds(self) -> float:
        """Seconds since the run began, by its clock."""
        return self.clock.seconds()

    def expired(self) -> bool:
        """Whether the time is up, or somebody has asked to stop."""
        return self.left() <= 0.0

    def left(self) -> float:
        """Seconds that remain; infinite without a budget, none once somebody has asked to stop."""
        if any(stop.is_set() for stop in _STOPS):
            return 0.0
        return float("inf") if self.max_seconds is None else max(self.max_seconds - self.seconds(), 0.0)

    def within(self, share: float) -> Run:
        """Return the same run with a share of its time."""
        if self.max_seconds is None:
            return self
        whole = self.max_seconds if self.whole is None else self.whole
        return replace(self, max_seconds=share * self.max_seconds, whole=whole)

    def last(self) -> Run:
        """Return the same run with the rest of the whole budget and a second, for the end of an answer."""
        if self.max_seconds is None:
            return self
        whole = self.max_seconds if self.whole is None else self.whole
        return replace(self, max_seconds=whole + 1.0, whole=whole)

    def within_budget(self, operations: float) -> bool:
        """Whether work of so many operations ends before the time is up; always without a budget."""
        left = self.left()
        return left == float("inf") or operations <= rate() * left

    def within_whole_budget(self, operations: float) -> bool:
        """Whether the whole budget allows so many operations, whatever time was taken so far."""
        return self.max_seconds is None or operations <= rate() * self.max_seconds

    def report(self, stage: str, step: int, loss: float) -> None:
        """Add a record to the trace and tell the listener."""
        record = TraceRecord(stage, step, float(loss), self.seconds())
        self.trace.append(record)
        if self.listener is True:
            print_line(record)
        elif callable(self.listener):
            self.listener(record)

    def recall(self) -> Values | None:
        """Return what the journal has of the present step."""
        return self.journal.recall(self._step)

    def keep(self, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        """Remember the present step, or with ``passing`` a state on the way through it."""
        self.journal.keep(self._step, values, passing)

    def remembered(self, compute: Callable[[], Mapping[str, npt.ArrayLike]]) -> Values:
        """Return the result of the present step: from the journal, or computed and kept if completed."""
        kept = self.recall()
        if kept is None:
            kept = {name: np.asarray(value) for name, value in compute().items()}
            if not self.expired():
                self.keep(kept)
        return kept

    @property
    def _step(self) -> str:
        return "/".join(str(word) for word in self.path) or "whole"


_STOPS: list[threading.Event] = []


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Open a scope with an event that, once set, ends every run of the process as a exhausted budget does.

    Of all threads: an interrupt is one of the process, and says nothing of threads.
    """
    stop = threading.Event()
    _STOPS.append(stop)
    try:
        yield stop
    finally:
        _STOPS.remove(stop)


def print_line(record: TraceRecord) -> None:
    """Print a record as a line on stderr."""
    line = f"{record.seconds:7.1f} s  {record.stage:<18} step {record.step:<6} loss {record.loss:.3e}"
    print(line, file=sys.stderr)
