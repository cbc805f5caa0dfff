"""The plan: which starts, in which order, as a table of legs with the measurement behind each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.fit.rounding import decimal_step
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.bred import FAMILIES
from onehidden.starts.candidate import Candidate, lift, search_form
from onehidden.starts.linear import Linear
from onehidden.starts.moment_starts import Landscape, Localised, Tensor, input_model, span
from onehidden.starts.population import PATIENT, QUICK, Population
from onehidden.starts.reflections import Reflections, kinked, step_work
from onehidden.starts.repair import rounds
from onehidden.starts.restarts import Random
from onehidden.starts.start import Start, descent_work
from onehidden.starts.thinning import Thinned
from onehidden.starts.wide import Wide

NAMES = (
    "auto", "random", "linear", "tensor", "localised", "landscape", "reflections", "wide", "thinned",
    "population",
)  # fmt: skip
_LINEAR = 2  # units up to which the least-squares direction is looked along first
_CHEAP = 450  # parameters up to which random restarts come first: 50–100 ms each, one to five suffice (k = 5)
_FEW = 5  # samples a parameter below which only thinned students keep the units (d = k = 50, n = 8192) ...
_TOO_FEW = 3.75  # ... and below which those have to see all rows at every step (n = 10 000 is 3.9)
# parameters and units from which random restarts then come last (d = k = 20, n = 1000).
_SCARCE, _MANY = 300, 8
_SPARSE = 2.25  # samples a weight below which a population comes before students: those find equal outputs
_CPU_WORK = 3e13  # operations of a round worth waiting for on a CPU: some minutes on two cores
_GPU_WORK = 3e15  # the same on an accelerator (d = k = 20 at 1.5 samples a weight, 3e13, took 13 s there)
# Steps of reflections: of d = k = 50 with both signs at 3.3 samples a weight all units are there after 2000,
# of d = k = 20 with equal outputs at 2.0 after 5000 to 15 000. And operations of them on a CPU, 20 s on two
# cores, and on an accelerator: with 5e13 they took 90 s there beside six other processes (d = k = 50).
_REFLECTED, _REFLECTED_MOST = 2000, 20_000
_CPU_REFLECTED, _GPU_REFLECTED = 1e12, 1e13
# Times that work where they found nothing: wine with k = 10 (1.16 samples a parameter) takes minutes on two
# cores. Two legs, so that a budget which does not afford the second still has the first in its place.
_LONGER = 3, 10
_WRITTEN = 1e-3  # standard deviations of y: steps of decimals that are those of measurements (here .01 to .1)
_LONG = 300_000  # steps of them at most, each of these times: what wine is given; less is more than enough
_STUDENTS = 3  # of the widest on an accelerator, one after another
_BATCH = 1024  # rows a step of a thinned student for which all rows cost more
_RESTARTS, _CHEAP_RESTARTS = 4, 8  # random restarts in their turn, and where one takes a tenth of a second
_MORE, _MORE_WORK = 60, 1e9  # further restarts at the end: many units in few dimensions need one in fifty
_CHEAP_WORK = 3e8  # operations of such a descent
# Operations of descents in the time of one of a student. With noise, starts that differ are worth more than
# students: of 1010 rows, 8 inputs and 10 softplus units four students took 31 s of 48, restarts 1.6 s each.
_AS_LONG = 4
_HOPELESS = 0.1  # share of var(y) which, left over by the best start, more of them will hardly explain
# Starts that gain from looking in the span alone.
_INSIDE = ("random", "reflections", "wide", "thinned", "population")
_COPIES = 40  # perturbed copies of a start that was asked for by name


@dataclass(frozen=True)
class Leg:
    """One line of the plan.

    Attributes
    ----------
    start : what is tried.
    inside : look in the span of the units where the second moment shows it.
    if_span : only where there is such a span.
    hope : only while the best candidate so far leaves at most this share of var(y).
    """

    start: Start
    inside: bool = False
    if_span: bool = False
    hope: float = float("inf")


def plan(
    problem: Problem, start: str | Start | Sequence[str | Start], inner: Problem | None = None
) -> list[Leg]:
    """The legs of a start given by name, as an object, or as a list of either; "auto" is the whole race.

    ``inner`` is the problem inside the span of the units, where that is known.
    """
    inner = problem if inner is None else inner
    if isinstance(start, (list, tuple)):
        return [leg for one in start for leg in plan(problem, one, inner)]
    if isinstance(start, Start):
        return [Leg(start)]
    named: dict[str, list[Leg]] = {
        "random": [Leg(Random(_RESTARTS), inside=True)],
        "linear": [Leg(Linear())],
        "tensor": [Leg(Tensor(_COPIES))],
        "localised": [Leg(Localised(clusters=False, copies=_COPIES))],
        "landscape": [Leg(Landscape())],
        "wide": [Leg(one, inside=True) for one in students(inner)],
        "thinned": [Leg(Thinned(), inside=True)],
        "population": [Leg(Population(), inside=True)],
        "reflections": [Leg(Reflections(), inside=True)],
    }
    return _race(problem, inner) if start == "auto" else named[str(start)]


def _race(problem: Problem, inner: Problem) -> list[Leg]:
    """Cheapest first. Gaussian inputs refuse the localised start at no cost, others at that of a mixture.

    Where there are clusters it sees more than the tensors of the whole law, the average of its own. A
    population comes before students where those find nothing: iris with k = 10 (3 samples a weight, of which
    there are 50) takes its quick manner seconds, breast-cancer with k = 10 (1.8 of 310) minutes on two cores.
    Its patient manner follows the first student there: the others take as long each, and with outputs of both
    signs it is the one that finds them (d = k = 20 at 1.5 samples a weight). Longer reflections come before
    all these on a CPU, which is slow at them; an accelerator's first student takes half a minute, and finds
    what reflections do not (d = k = 50 at 2.0 samples a weight).
    """
    count = _CHEAP_RESTARTS if descent_work(inner) <= _CHEAP_WORK else _RESTARTS
    random = [Leg(Random(count), inside=True)]
    localised, tensor = [Leg(Localised())], [Leg(Tensor())]
    wide = _with_restarts(inner, students(inner), count)
    bound = _SCARCE if few_samples(inner) and inner.k >= _MANY else _CHEAP
    cheap = inner.k * (inner.d + 1) <= bound
    reflected, longer = _reflections(inner)
    first, patient, last = _populations(inner, cheap)
    if jax.default_backend() == "cpu":
        first, wide = [*longer, *first], [*wide[:1], *patient, *wide[1:]]
    else:
        wide = [*wide[:1], *patient, *longer, *wide[1:]]
    linear = [Leg(Linear())] if problem.k <= _LINEAR else []
    if cheap:
        order = [random, reflected, localised, tensor, first, wide]
    else:
        order = [reflected, localised, first, wide, random, tensor]
    whole = [Leg(one, if_span=True) for one in students(problem)]  # the span itself may have been wrong
    drawn = count + sum(leg.start.restarts for leg in wide if isinstance(leg.start, Random))
    further = [Leg(Random(further_restarts(problem), drawn), hope=_HOPELESS)]
    return [leg for legs in [linear, *order, whole, last, further] for leg in legs]


def _with_restarts(problem: Problem, ladder: Sequence[Start], first: int) -> list[Leg]:
    """The students, and before each but the first as many further restarts as take the time that it does.

    None where samples are few, since restarts find nothing there, nor on an accelerator, made for students.
    """
    between = not few_samples(problem) and jax.default_backend() == "cpu"
    legs: list[Leg] = []
    for number, student in enumerate(ladder):
        most = int(_AS_LONG * student.work(problem) / _restart_work(problem))
        more = min(most, _CHEAP_RESTARTS) if number and between else 0
        if more:
            legs.append(Leg(Random(more, first), inside=True))
            first += more
        legs.append(Leg(student, inside=True))
    return legs


def _restart_work(problem: Problem) -> float:
    """Operations of a random restart with its repairs."""
    return descent_work(problem) * (1 + rounds(problem))


def _reflections(problem: Problem) -> tuple[list[Leg], list[Leg]]:
    """Reflections where samples are few and, below ``_SPARSE`` a weight, longer ones.

    Those only where y may be a network's: a measured one, of few digits, leaves no fit to rounding to find.

    Before everything that descends: at 2.0 samples a weight they find twenty units of equal outputs in some
    seconds, and breast-cancer with k = 10 in 1 to 4 s; a population took minutes.
    """
    if not (kinked(search_form(problem)) and few_samples(problem)) or problem.rows.rounding.noisy:
        return [], []
    budget = _CPU_REFLECTED if jax.default_backend() == "cpu" else _GPU_REFLECTED
    most = budget / (Reflections().size(problem) * step_work(problem))
    if most < _REFLECTED:
        return [], []
    quick = Leg(Reflections(min(int(most), _REFLECTED_MOST)), inside=True)
    longer = [
        Leg(Reflections(int(times * min(most, _LONG)), first=1 + i), inside=True, hope=_HOPELESS)
        for i, times in enumerate(_LONGER)
    ]
    y = problem.samples.y
    written = decimal_step(y) > _WRITTEN * np.std(y)
    return [quick], longer if samples_a_weight(problem) < _SPARSE and not written else []


def _populations(problem: Problem, cheap: bool) -> tuple[list[Leg], list[Leg], list[Leg]]:
    """Populations before the students, after the first of them, and at the end; none that take too long.

    Where it comes first only its quick manner does; the patient one, which takes most of the time, waits for
    the first student.
    """
    starts = (Population(manners=(manner,)) for manner in (QUICK, PATIENT))
    legs = [Leg(one, inside=True, hope=_HOPELESS) for one in starts if affordable(one, problem)]
    sparse = cheap or samples_a_weight(problem) < _SPARSE
    if legs and few_samples(problem) and sparse:
        return [replace(legs[0], hope=float("inf"))], legs[1:], []
    return [], [], legs


def few_samples(problem: Problem) -> bool:
    """Whether thinned students come first; smooth units are found by random restarts from as few samples."""
    return problem.activation.homogeneity is not None and samples_a_weight(problem) < _FEW


def samples_a_weight(problem: Problem) -> float:
    """Numbers of the target for each weight of the units, into them and out of them."""
    return problem.numbers / (problem.k * (problem.d + problem.form.q))


def affordable(start: Start, problem: Problem, on_cpu: bool | None = None) -> bool:
    """Whether this machine does the work of a start in some minutes."""
    on_cpu = jax.default_backend() == "cpu" if on_cpu is None else on_cpu
    return start.work(problem) <= (_CPU_WORK if on_cpu else _GPU_WORK)


def further_restarts(problem: Problem) -> int:
    """How many random restarts are worth trying when all else failed: many where a step costs little."""
    step = problem.n * (problem.k * (problem.d + 1)) ** 2
    return min(_MORE, int(_MORE_WORK / (step * (1 + rounds(problem)))))


def students(problem: Problem, on_cpu: bool | None = None) -> list[Wide | Thinned]:
    """Students from cheap to thorough: with few samples a parameter only thinned ones succeed.

    d = k = 50 ReLU, n = 16 384: width 400 on batches of 512 keeps every unit. n = 10 000: width 800 on
    batches, thinned out, keeps all after one round or two. n = 8192: width 3200 on all rows keeps most of
    them, narrower ones or batches few. d = k = 20, n = 1000: width 1280 on all rows keeps three, thinned
    out all. Equal outputs ask for the widest: of d = k = 20, n = 800 and d = k = 50, n = 7000 students of 32
    units for each one sought keep none, those of 128 all after two or three rounds, for two teachers of three
    and for one of one; a round that kept none is seldom mended by further ones, so a new student begins.
    """
    on_cpu = jax.default_backend() == "cpu" if on_cpu is None else on_cpu
    base = max(8 * problem.k, 64)
    quick: list[Wide | Thinned] = [
        Wide(base),
        Wide(2 * base, steps=24_000, rate=5e-3),
        Wide(2 * base, steps=24_000, rate=5e-3, decay=1e-4),
        Wide(4 * base, steps=40_000, rate=5e-3, decay=2e-3),
    ]
    if on_cpu:
        thorough: list[Wide | Thinned] = [Thinned(4 * base), Thinned(8 * base, 16_000, 8000)]
        # Batches blur the minimiser; rounds make up for that where samples are not too few.
        enough = samples_a_weight(problem) >= _TOO_FEW
        if few_samples(problem) and enough and thorough[0].work(problem) > _CPU_WORK:
            thorough = [Thinned(2 * base, batch=_BATCH)]
        thorough = [one for one in thorough if affordable(one, problem, on_cpu)]
    else:
        thorough = [Thinned(4 * base, 30_000), *_widest(16 * base)]
    if few_samples(problem):
        return [*thorough, *quick]
    return [*quick, *thorough] if on_cpu else [quick[0], *thorough]


def _widest(width: int) -> list[Thinned]:
    """Students of so many units, none of which begins as another one does."""
    one = Thinned(width, 60_000, 8000)
    return [replace(one, first=number * one.rounds) for number in range(_STUDENTS)]


def proposals(problem: Problem, start: str | Start | Sequence[str | Start], run: Run) -> Iterator[Candidate]:
    """Candidates of all legs, lazily, so that a certified one ends the work.

    A start of the race that cannot begin here is passed over; one that was asked for is refused aloud.
    """
    basis = _span(problem, start)
    inside = problem if basis is None else problem.within(basis)
    legs = list(enumerate(plan(problem, start, inside)))
    if start == "auto":
        legs = _in_time(legs, problem, inside, run)
    met: list[tuple[Problem, Candidate]] = []
    lowest, refusal = np.inf, None
    for number, leg in legs:
        if met and run.expired():  # however short the time, something is tried
            return
        if (leg.if_span and basis is None) or lowest > leg.hope:
            continue
        inner = inside if leg.inside else problem
        start = leg.start
        if isinstance(start, Population):  # what its family found so far has units, too
            family = met[len(met) % FAMILIES :: FAMILIES]
            start = replace(start, guests=(*start.guests, *(one for where, one in family if where is inner)))
        try:
            for candidate in start.propose(inner, run.at(f"{number}-{start.name}")):
                met.append((inner, candidate))
                lowest = min(lowest, candidate.loss)
                yield candidate if inner is problem or basis is None else lift(candidate, basis)
        except Refused as reason:  # no usable order, no span, no clusters: the others may do
            refusal = reason
            run.report(f"{start.name} start refused", 0, float("nan"))
    if not met and refusal is not None:
        raise refusal


def _in_time(
    legs: list[tuple[int, Leg]], problem: Problem, inside: Problem, run: Run
) -> list[tuple[int, Leg]]:
    """The legs that the whole budget affords first, at least one random restart.

    The budget, not what is left of it, so that the order does not hang on the clock.
    """
    if run.max_seconds is None or jax.default_backend() != "cpu":
        return legs
    fits = [run.affords_in_all(leg.start.work(inside if leg.inside else problem)) for _, leg in legs]
    first = [one for one, fit in zip(legs, fits, strict=True) if fit]
    last = [one for one, fit in zip(legs, fits, strict=True) if not fit]
    sure = any(isinstance(leg.start, Random) for _, leg in first)  # others may refuse
    drawn = max(
        (leg.start.first + leg.start.restarts for _, leg in legs if isinstance(leg.start, Random)), default=0
    )
    return [*first, *([] if sure else [(len(legs), Leg(Random(1, drawn), inside=True))]), *last]


def _span(problem: Problem, start: str | Start | Sequence[str | Start]) -> Float[np.ndarray, "d k"] | None:
    """The span of the units where T_2 shows it; the race does not choose an input model for this alone."""
    inputs = input_model(problem)
    asked = list(start) if isinstance(start, (list, tuple)) else [start]
    inside = any(isinstance(one, str) and one in _INSIDE for one in asked)
    if inside or ("auto" in asked and (inputs.gaussian or inputs.given)):
        return span(problem)
    return None
