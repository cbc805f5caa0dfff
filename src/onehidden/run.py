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
from onehidden.streams import derived_seed, stream

Progress = Callable[["TraceRecord"], object]

# Operations a second by which a step is begun or not: one core does 1.5e10 to 4e10 in matrix products of the
# sizes met here.
_RATE = 2e10
# Seconds after the budget in which an answer may still be examined: a budget is kept to a tenth and 2 s.
_GRACE = 1.0


@dataclass(frozen=True)
class TraceRecord:
    """One line of the story: which stage, which step, what loss (relative to var y), after how long."""

    stage: str
    step: int
    loss: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """The context of a computation.

    Attributes
    ----------
    seed : of all its random streams.
    max_seconds : time budget, None for none.
    listener : hears every ``TraceRecord``; True prints lines to stderr.
    journal : what it remembers if it is killed.
    path : names of the steps that lead here.
    trace : all records so far, of the whole run.
    whole : the budget that ``max_seconds`` is a share of; None where it is all of it.
    """

    seed: int = 0
    max_seconds: float | None = None
    listener: bool | Progress = False
    journal: Journal = field(default=FORGETFUL, repr=False)
    path: tuple[str | int, ...] = ()
    trace: list[TraceRecord] = field(default_factory=list, repr=False)
    began: float = field(default_factory=time.perf_counter, repr=False)
    whole: float | None = None

    def rng(self, *name: str | int) -> np.random.Generator:
        """The random stream of this name; the same wherever in the run it is asked for."""
        return stream(self.seed, "solver", *name)

    def seed_of(self, *name: str | int) -> int:
        """A whole number of this name, for libraries that take a seed of their own."""
        return derived_seed(self.seed, "solver", *name)

    def at(self, *name: str | int) -> Run:
        """The run at a step of this name below the present one."""
        return replace(self, path=(*self.path, *name))

    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def expired(self) -> bool:
        """Whether the time is up, or somebody has asked to stop."""
        return self.left() <= 0.0

    def left(self) -> float:
        """Seconds that remain; infinite without a budget, none once somebody has asked to stop."""
        if any(stop.is_set() for stop in _STOPS):
            return 0.0
        return float("inf") if self.max_seconds is None else max(self.max_seconds - self.seconds(), 0.0)

    def within(self, share: float) -> Run:
        """The same run with so much of its time."""
        if self.max_seconds is None:
            return self
        whole = self.max_seconds if self.whole is None else self.whole
        return replace(self, max_seconds=share * self.max_seconds, whole=whole)

    def last(self) -> Run:
        """The same run with all that is left of the whole budget, and a second: for the end of an answer."""
        if self.max_seconds is None:
            return self
        whole = self.max_seconds if self.whole is None else self.whole
        return replace(self, max_seconds=whole + _GRACE, whole=whole)

    def affords(self, operations: float) -> bool:
        """Whether work of so many operations ends before the time is up; always without a budget."""
        return operations <= _RATE * self.left()

    def affords_in_all(self, operations: float) -> bool:
        """The same of the whole budget: an answer that does not hang on the clock."""
        return self.max_seconds is None or operations <= _RATE * self.max_seconds

    def report(self, stage: str, step: int, loss: float) -> None:
        """Add a record to the trace and tell the listener."""
        record = TraceRecord(stage, step, float(loss), self.seconds())
        self.trace.append(record)
        if self.listener is True:
            print_line(record)
        elif callable(self.listener):
            self.listener(record)

    def recall(self) -> Values | None:
        """What the journal has of the present step."""
        return self.journal.recall(self._step)

    def keep(self, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        """Remember the present step, or with ``passing`` a state on the way through it."""
        self.journal.keep(self._step, values, passing)

    def remembered(self, compute: Callable[[], Mapping[str, npt.ArrayLike]]) -> Values:
        """The result of the present step: read back, or computed and kept unless the clock cut it short."""
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
    """A scope with an event that, once set, ends every run of the process as a spent budget does.

    Of all threads: an interrupt is one of the process, and says nothing of threads.
    """
    stop = threading.Event()
    _STOPS.append(stop)
    try:
        yield stop
    finally:
        _STOPS.remove(stop)


def print_line(record: TraceRecord) -> None:
    """A record as a line on stderr."""
    line = f"{record.seconds:7.1f} s  {record.stage:<18} step {record.step:<6} loss {record.loss:.3e}"
    print(line, file=sys.stderr)
