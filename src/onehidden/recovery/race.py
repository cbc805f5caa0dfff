"""The race of starts: cheapest first, each finished in all parameters, stopped by the first certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import jax
import numpy as np

from onehidden.laws import standard_normal as standard_law
from onehidden.moments import ScoreMoments, score_moments
from onehidden.recovery.input_model import InputModel
from onehidden.starts.candidate import Candidate, Task, lift, refine_in_two, search_form
from onehidden.starts.landscape import landscape_start
from onehidden.starts.localised import localised_tensors, ranked_units
from onehidden.starts.localised_moments import LARGEST_SIDE
from onehidden.starts.restarts import random_start
from onehidden.starts.span import span_of_units
from onehidden.starts.tensor import tensor_starts
from onehidden.starts.thinning import Thinning, thinned_start
from onehidden.starts.wide import WideAndPrune, wide_start

STARTS = ("auto", "random", "tensor", "localised", "landscape", "wide")
_CHEAP = 450  # parameters up to which random restarts are tried before anything else
_FEW = 5  # samples a parameter below which only thinned students keep the units ...
_TOO_FEW = 3.75  # ... and below which those have to see all rows at every step
_SCARCE, _MANY = 300, 8  # parameters and units from which random restarts then come last
_CPU_WORK = 3e13  # operations of a round worth waiting for on a CPU: some minutes on two cores
_BATCH = 1024  # rows a step of a thinned student for which all rows cost more
_RESTARTS = 4  # random restarts in their turn
_MORE, _MORE_WORK = 60, 1e9  # further random restarts at the end; multiply-adds of a step of all descents
_HOPELESS = 0.1  # share of var(y) which, left over by the best start, more of them will hardly explain
_COPIES = 40  # perturbed copies of a start that was asked for by name
_LARGEST_FOURTH = 64  # coordinates beyond which T_4 is not formed


@dataclass
class Scouting:
    """The input model and what its score moments said, filled in as the race asks for them."""

    model: InputModel
    signal: dict[int, float] = field(default_factory=dict)

    def hear(self, moments: ScoreMoments) -> ScoreMoments:
        self.signal.update({m: moments.signal(m) for m in moments.orders})
        return moments


def candidates(task: Task, start: str, scouting: Scouting) -> Iterator[Candidate]:
    """Candidates in order of cost; lazily, so that a certified one ends the work."""
    basis = None if start == "localised" else _span(task, start, scouting)
    inner = task if basis is None else task.within(basis)

    def outward(found: Iterator[Candidate]) -> Iterator[Candidate]:
        return found if basis is None else (lift(candidate, basis) for candidate in found)

    runs: dict[str, Callable[[], Iterator[Candidate]]] = {
        "random": lambda: outward(_restarts(inner, 0, _RESTARTS)),
        "tensor": lambda: _tensor(task, _COPIES if start == "tensor" else 4, scouting),
        "localised": lambda: _localised(task, scouting, distinct=start != "localised"),
        "landscape": lambda: _landscape(task, basis, scouting),
        "wide": lambda: outward(_wide(inner)),
    }
    if start != "auto":
        yield from runs[start]()
        return
    cheap = inner.k * (inner.d + 1) <= (_SCARCE if _few(inner) and inner.k >= _MANY else _CHEAP)
    # Gaussian inputs refuse the localised start at no cost, others at that of fitting a mixture to some rows;
    # where there are clusters it sees more than the tensors of the whole law, the average of its own.
    order = ("random", "localised", "tensor", "wide") if cheap else ("localised", "wide", "random", "tensor")
    begun, lowest = False, np.inf  # however short the time, something is tried
    for name in order:
        if begun and task.stop():
            return
        try:
            for candidate in runs[name]():
                begun, lowest = True, min(lowest, candidate.loss)
                yield candidate
        except ValueError:  # this start cannot begin here (no usable order, no span); the others may
            task.report(f"{name} start refused", 0, float("nan"))
    if basis is not None and not task.stop():  # the subspace itself may have been wrong
        for candidate in _wide(task):
            lowest = min(lowest, candidate.loss)
            yield candidate
    # Nothing was certified. Many units in few dimensions are found by one restart in fifty.
    if lowest < _HOPELESS:
        yield from _restarts(task, _RESTARTS, further_restarts(task))


def _span(task: Task, start: str, scouting: Scouting) -> np.ndarray | None:
    """The span of the units where T_2 shows it; the race does not choose an input model for this alone."""
    if start == "auto" and not scouting.model.gaussian and not scouting.model.given:
        return None
    law = scouting.model.score() or standard_law(task.d)
    return span_of_units(task, scouting.hear(score_moments(task.Z, task.y, law, orders=(1, 2))))


def _restarts(task: Task, first: int, count: int) -> Iterator[Candidate]:
    for attempt in range(first, first + count):
        if attempt and task.stop():
            return
        yield random_start(task, attempt)


def further_restarts(task: Task) -> int:
    """How many random restarts are worth trying when all else failed: many where a step costs little."""
    step = len(task.y) * (task.k * (task.d + 1)) ** 2
    return min(_MORE, int(_MORE_WORK / (step * (1 + 3 * task.k))))  # three repairs a unit


def _tensor(task: Task, count: int, scouting: Scouting) -> Iterator[Candidate]:
    nets = tensor_starts(
        task.Z, task.y, task.k, count=count, activation=task.activation, score=scouting.model.score(),
        bias=task.bias, seed=task.seed,
    )  # fmt: skip
    for i, net in enumerate(nets):
        if i and task.stop():
            return
        yield _refined(task, net.weights, net.bias, "tensor")


def _localised(task: Task, scouting: Scouting, distinct: bool) -> Iterator[Candidate]:
    """The moments of each component; ``distinct`` asks for clusters, else any fitted mixture will do."""
    if task.k > min(task.d, LARGEST_SIDE):
        raise ValueError(f"the localised start finds at most {min(task.d, LARGEST_SIDE)} units, got {task.k}")
    law = scouting.model.clusters(distinct)
    if law is None:
        raise ValueError(
            "the inputs form one Gaussian component or no clear clusters: the localised start needs several, "
            "use start='tensor'"
        )
    tensors = localised_tensors(task.Z, task.y, task.k, law=law, weight=task.weight, seed=task.seed)
    for (_, m), z in tensors.signals.items():
        scouting.signal[m] = max(z, scouting.signal.get(m, z))
    copies = 0 if distinct else _COPIES
    for i, (weights, bias) in enumerate(ranked_units(task, tensors, copies)):
        if i and task.stop():
            return
        yield _refined(task, weights, bias, "localised")


def _landscape(task: Task, basis: np.ndarray | None, scouting: Scouting) -> Iterator[Candidate]:
    if basis is None and task.d > _LARGEST_FOURTH:
        raise ValueError(
            f"the landscape start forms T_4 in at most {_LARGEST_FOURTH} coordinates, got {task.d} and no "
            "clear span of the units: use start='tensor' or start='wide'"
        )
    law = scouting.model.score() or standard_law(task.d)
    moments = scouting.hear(score_moments(task.Z, task.y, law, orders=(2, 4), subspace=basis))
    for attempt in range(3):
        if attempt and task.stop():
            return
        found = landscape_start(moments, task.k, seed=task.seed + attempt)
        rows = found.directions if basis is None else found.directions @ basis.T
        yield _refined(task, rows, np.zeros(task.k), "landscape")


def _refined(task: Task, weights: np.ndarray, bias: np.ndarray, origin: str) -> Candidate:
    form = search_form(task.activation, task.d, task.k, task.bias)
    return refine_in_two(task, form, weights, bias, origin)


def _wide(task: Task) -> Iterator[Candidate]:
    for i, settings in enumerate(ladder(task, jax.default_backend() == "cpu")):
        if i and task.stop():
            return
        thin = isinstance(settings, Thinning)
        yield thinned_start(task, settings) if thin else wide_start(task, settings)


def _few(task: Task) -> bool:
    """Whether thinned students come first; smooth units are found by random restarts from as few samples."""
    return task.activation.homogeneity is not None and len(task.y) < _FEW * task.k * (task.d + 1)


def _affordable(task: Task, settings: Thinning) -> bool:
    return settings.work(len(task.y), task.d, task.k) <= _CPU_WORK


def ladder(task: Task, on_cpu: bool) -> list[WideAndPrune | Thinning]:
    """Students from cheap to thorough: with few samples a parameter only thinned ones succeed.

    d = k = 50 ReLU, n = 16 384: width 400 on batches of 512 keeps every unit. n = 10 000: width 800 on
    batches, thinned out, keeps all after one round or two. n = 8192: width 3200 on all rows keeps most of
    them, narrower ones or batches few. d = k = 20, n = 1000: width 1280 on all rows keeps three, thinned
    out all.
    """
    base = max(8 * task.k, 64)
    quick = [
        WideAndPrune(base),
        WideAndPrune(2 * base, steps=24_000, rate=5e-3),
        WideAndPrune(2 * base, steps=24_000, rate=5e-3, decay=1e-4),
        WideAndPrune(4 * base, steps=40_000, rate=5e-3, decay=2e-3),
    ]
    if on_cpu:
        thorough = [Thinning(4 * base), Thinning(8 * base, steps=16_000, stage_steps=8000)]
        # Batches blur the minimiser; rounds make up for that where samples are not too few.
        enough = len(task.y) >= _TOO_FEW * task.k * (task.d + 1)
        if _few(task) and enough and not _affordable(task, thorough[0]):
            thorough = [Thinning(2 * base, batch=_BATCH)]
        thorough = [settings for settings in thorough if _affordable(task, settings)]
    else:
        thorough = [
            Thinning(4 * base, steps=30_000, rounds=12),
            Thinning(8 * base, steps=60_000, stage_steps=8000, rounds=12),
        ]
    if not _few(task):
        return [*quick, *thorough] if on_cpu else [quick[0], *thorough]
    return [*thorough, *quick]
