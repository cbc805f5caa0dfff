"""One run: its random streams, its clock, its progress, its journal; the one context that numerics are given.

The one place of the numerics that reads the clock. Everything is asked by name: ``run.rng("restart", 3)`` is
a random stream, ``run.at("random", 3)`` the same run at a step of that name.

A random stream is hashed from a seed and the words that say what it is for: what draws for one purpose never
shares numbers with what draws for another.

The journal keeps results of finished steps on disk, so that a killed run goes on where it was. The samples,
the options and the version are pinned in ``checkpoint.json`` when its folder is opened; together with them
the name of a step determines what it computes. Results are written whole or not at all. All else is computed
again, with the same numbers: the answer is that of a run that was never killed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onehidden.atomic import write_atomically
from onehidden.machine import rate

FORMAT_VERSION = 6  # of journals

Progress = Callable[["TraceRecord"], object]
Seed = int | Sequence[int]
Values = dict[str, np.ndarray]


def stream(seed: Seed, *name: str | int) -> np.random.Generator:
    """The generator of this seed and name: ``stream(0, "restart", 3)``; the same words, the same numbers.

    At least one word is needed: a stream without a name is one that somebody else draws from, too.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(_entropy(seed, name))))


def derived_seed(seed: Seed, *name: str | int) -> int:
    """A whole number below 2^31 of this seed and name, for libraries that take a seed of their own."""
    return int(np.random.SeedSequence(_entropy(seed, name)).generate_state(1, np.uint32)[0] >> 1)


def _entropy(seed: Seed, name: tuple[str | int, ...]) -> list[int]:
    if not name:
        raise ValueError("a random stream needs a name that says what it is for")
    words = hashlib.sha256("/".join(f"{type(word).__name__}:{word}" for word in name).encode()).digest()[:16]
    numbers = [int(s) for s in seed] if isinstance(seed, Sequence) else [int(seed)]
    # The length keeps (1, 2) + name apart from (1,) + another name that begins with the same word.
    return [len(numbers), *numbers, *np.frombuffer(words, np.uint32).tolist()]


def fingerprint(*values: np.ndarray | str | int | float | None) -> str:
    """A hash of arrays, text and numbers."""
    state = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            state.update(f"array{value.dtype}{value.shape}".encode())
            state.update(np.ascontiguousarray(value).data)
        else:
            state.update(f"{type(value).__name__}:{value!r};".encode())
    return state.hexdigest()


class Journal:
    """A folder of step results, named arrays each, that belong to one set of samples and options."""

    def __init__(self, folder: Path, pause: float = 2.0) -> None:
        self.folder, self.pause, self._written = folder, pause, 0.0
        self._recalled: set[str] = set()

    def recall(self, step: str) -> Values | None:
        """Return the result of a step, None where none is kept."""
        if step in self._recalled:  # they would read each other's results
            raise ValueError(
                f"two steps of this run are called {step!r}: give each a name of its own, run.at('trial', i)"
            )
        self._recalled.add(step)
        path = self._path(step)
        if not path.is_file():
            return None
        content = path.read_bytes()
        digest, archive = content[:32], content[32:]
        if hashlib.sha256(archive).digest() != digest:
            raise ValueError(f"{path} is damaged: delete it and start again")
        with np.load(io.BytesIO(archive), allow_pickle=False) as values:
            return dict(values)

    def keep(self, step: str, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        """Keep the result of a step, or with ``passing`` a state on the way, one in ``pause`` seconds."""
        if passing and time.monotonic() - self._written < self.pause:
            return
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{name: np.asarray(value) for name, value in values.items()})
        archive = buffer.getvalue()
        write_atomically(self._path(step), hashlib.sha256(archive).digest() + archive)
        self._written = time.monotonic()

    def _path(self, step: str) -> Path:
        return self.folder / (re.sub(r"[^A-Za-z0-9_./-]", "-", step) + ".step")


def open_journal(folder: object, samples: str, options: Mapping[str, object], version: str) -> Journal | None:
    """The journal of these samples and options: a new one, or one that was kept for the same.

    ``samples`` is the fingerprint of the data, ``options`` everything else that the answer depends on, as
    plain values; a time budget is left out. Without a folder there is no journal.
    """
    if folder is None:
        return None
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"checkpoint must be the path of a folder, got {type(folder).__name__}")
    path = Path(folder)
    own = {name: value for name, value in options.items() if name != "max_seconds"}
    card = json.loads(json.dumps({"version": [FORMAT_VERSION, version], "data": samples, **own}))
    try:
        path.mkdir(parents=True, exist_ok=True)
        file = path / "checkpoint.json"
        if not file.exists():
            if any(path.glob("**/*.step")):
                raise ValueError(f"{path} holds results but no checkpoint.json: name an empty folder")
            write_atomically(file, json.dumps(card, indent=1).encode())
        kept = dict(json.loads(file.read_text()))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ValueError(f"cannot use the checkpoint {path}: {why}") from None
    changed = [name for name in card | kept if kept.get(name) != card.get(name)]
    if changed:
        raise ValueError(
            f"the checkpoint {path} was made with another {' and '.join(changed)}: use the same, delete it "
            "or name another folder"
        )
    return Journal(path)


@dataclass(frozen=True)
class TraceRecord:
    """Which stage, which step, what loss (relative to var y), after how long."""

    stage: str
    step: int
    loss: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """The context of a computation."""

    seed: int = 0  # of all its random streams
    max_seconds: float | None = None  # time budget
    listener: bool | Progress = False  # called with every ``TraceRecord``; True prints lines to stderr
    journal: Journal | None = field(default=None, repr=False)  # what it remembers if it is killed
    path: tuple[str | int, ...] = ()  # names of the steps that lead here
    trace: list[TraceRecord] = field(default_factory=list, repr=False)  # all so far, of the whole run
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)
    began: float = field(default_factory=time.perf_counter, repr=False)  # by its clock
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
        return self.clock() - self.began

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
        return replace(self, max_seconds=share * self.max_seconds, whole=self.whole or self.max_seconds)

    def last(self) -> Run:
        """Return the same run with the rest of the whole budget and a second, for the end of an answer."""
        if self.max_seconds is None:
            return self
        whole = self.whole or self.max_seconds
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
            where = f"{record.seconds:7.1f} s  {stage:<18} step {step:<6} loss {record.loss:.3e}"
            print(where, file=sys.stderr)
        elif callable(self.listener):
            self.listener(record)

    def recall(self) -> Values | None:
        """Return what the journal has of the present step."""
        return None if self.journal is None else self.journal.recall(self._step)

    def keep(self, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        """Remember the present step, or with ``passing`` a state on the way through it."""
        if self.journal is not None:
            self.journal.keep(self._step, values, passing)

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
