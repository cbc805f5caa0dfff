"""The race of starts: cheapest first, each finished in all parameters, stopped by the first certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from onehidden.moments import score_moments
from onehidden.starts.candidate import Candidate, Task, lift
from onehidden.starts.restarts import random_start
from onehidden.starts.score_start import affordable, high_moments, score_start, span_of_units, standard_law
from onehidden.starts.wide import WideAndPrune, wide_start

STARTS = ("auto", "random", "moments", "wide")
_CHEAP = 450  # parameters up to which random restarts are tried before anything else


@dataclass
class Scouting:
    """What the score moments said, filled in as the race asks for them."""

    signal: dict[int, float] = field(default_factory=dict)


def candidates(task: Task, start: str, scouting: Scouting) -> Iterator[Candidate]:
    """Candidates in order of cost; lazily, so that a certified one ends the work."""
    basis = None
    if task.k < task.d:
        low = score_moments(task.Z, task.y, standard_law(task.d), orders=(1, 2))
        scouting.signal.update({m: low.signal(m) for m in low.orders})
        basis = span_of_units(task, low)
    inner = task if basis is None else task.within(basis)

    def outward(candidate: Candidate) -> Candidate:
        return candidate if basis is None else lift(candidate, basis)

    runs: dict[str, Callable[[], Iterator[Candidate]]] = {
        "random": lambda: _restarts(inner),
        "moments": lambda: _from_moments(inner, scouting),
        "wide": lambda: _wide(inner),
    }
    if start != "auto":
        order = [start]
    elif inner.k * (inner.d + 1) <= _CHEAP:
        order = ["random", "moments", "wide"]
    else:
        order = ["wide", "moments", "random"]
    for name in order:
        if name != order[0] and task.stop():
            return
        for candidate in runs[name]():
            yield outward(candidate)
    if basis is not None and not task.stop():  # the subspace itself may have been wrong
        for candidate in _wide(task):
            yield candidate


def _restarts(task: Task, count: int = 4) -> Iterator[Candidate]:
    for attempt in range(count):
        if attempt and task.stop():
            return
        yield random_start(task, attempt)


def _from_moments(task: Task, scouting: Scouting) -> Iterator[Candidate]:
    if not affordable(task):
        return
    moments = high_moments(task)
    scouting.signal.update({m: moments.signal(m) for m in moments.orders})
    candidate = score_start(task, moments)
    if candidate is not None:
        yield candidate


def _wide(task: Task) -> Iterator[Candidate]:
    base = max(8 * task.k, 64)
    ladder = (
        WideAndPrune(base),
        WideAndPrune(2 * base, steps=24_000, rate=5e-3),
        WideAndPrune(2 * base, steps=24_000, rate=5e-3, decay=1e-4),
        WideAndPrune(4 * base, steps=40_000, rate=5e-3, decay=2e-3),
    )
    for i, settings in enumerate(ladder):
        if i and task.stop():
            return
        yield wide_start(task, settings)
