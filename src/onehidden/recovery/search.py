"""Search at a given width: coordinates, the race of starts, the finish in all parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from onehidden.checks import at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.fit import NetworkFit
from onehidden.objectives.residuals import Form
from onehidden.recovery.certificate import Certificate, doubted, with_check
from onehidden.recovery.clock import Clock
from onehidden.recovery.coordinates import Coordinates, WhitenedScore
from onehidden.recovery.halves import fit_halves, half_sample_checks
from onehidden.recovery.input_model import InputModel
from onehidden.recovery.race import Scouting, candidates
from onehidden.recovery.rivals import rival_check
from onehidden.recovery.sample_certificate import Choices, certify
from onehidden.recovery.samples import Samples
from onehidden.solvers import LevenbergMarquardt
from onehidden.starts.candidate import Candidate, Task, complete, refine, search_form
from onehidden.starts.repair import repaired, with_one_fewer, with_one_more
from onehidden.starts.turns import other_orientations

_TURNS = 8  # other orientations finished and compared
_STUDENTS = ("wide-and-prune", "thinning")
_OFTEN = 8  # starts that may share a lowest loss which students missed before that is called the lowest
_RIVALS = 1500  # weights up to which rival activations are tried


@dataclass(frozen=True)
class Effort:
    """How to search: which starts, which seed, how long, under which input law.

    ``score`` is "auto", "gaussian", or a score of x; ``tries`` bounds the candidates looked at.
    """

    start: str
    seed: int
    clock: Clock
    score: Any = "auto"
    tries: int | None = None
    errors: str = "auto"


@dataclass(frozen=True)
class Found:
    """The answer of a search: its certificate, the start it came from, the input model and its z-values.

    ``turn`` counts the candidates of a race: one and its repaired form have the same.
    """

    certificate: Certificate
    origin: str
    scouting: Scouting
    turn: int = 0


def search(samples: Samples, form: Form, around: Coordinates, effort: Effort) -> Found:
    """Race the starts for a given width; the first certified answer, else the best."""
    clock, n = effort.clock, len(samples)
    begin, end, centred = _coordinates(samples, form, around)
    Z = begin.inputs(samples.X)
    task = Task(
        Z, begin.target(samples.y), form.activation, form.k, form.bias or not centred, effort.seed,
        clock.expired, clock.report, samples.weight, clock.memo,
    )  # fmt: skip
    given = effort.score if isinstance(effort.score, str) else WhitenedScore(effort.score, begin)
    scouting = Scouting(InputModel(Z, given, effort.seed, begin))
    tried: list[Found] = []
    for turn, candidate in enumerate(islice(candidates(task, effort.start, scouting), effort.tries)):
        for attempt in _with_repair(task, candidate):
            certificate = _finish(samples, form, begin, end, attempt, effort)
            tried.append(Found(certificate, attempt.origin, scouting, turn))
            if certificate.clear or clock.expired():
                break
        # A fit to rounding cannot be bettered, even where it is not unique; with noise, two starts that
        # come to the same answer end the search.
        clear = [found for found in _agreeing(tried, n) if found.certificate.clear]
        if tried[-1].certificate.final or _starts(clear) > 1 or _no_better(tried, n):
            break
        if clock.expired():
            break
    if not tried:
        raise ValueError(
            f"the start {effort.start!r} found nothing to begin from: no score moment of order 3 or 4 "
            "carries signal here; use start='auto'"
        )
    examinations: list[Callable[[Found], Found]] = [
        lambda found: _with_orientations(samples, form, begin, end, task, found, effort),
        lambda found: _with_neighbours(task, begin, found),
        lambda found: _with_halves(samples, form, end, found, effort),
    ]
    found = _with_agreement(tried, n)
    for left, examine in zip(range(len(examinations), 0, -1), examinations, strict=True):
        if found.certificate.status != "consistent":
            break
        examined = found if clock.expired() else examine(found)
        if clock.expired():  # a comparison cut short says nothing
            return in_time(found, clock, left)
        found = examined
    return found


def in_time(found: Found, clock: Clock, left: int = 1) -> Found:
    """A consistent answer with ``left`` comparisons to be made when the time ran out is a doubtful one."""
    if found.certificate.status != "consistent" or not clock.expired():
        return found
    check = at_most(
        "checks left out",
        float(left),
        0.0,
        "comparisons with other widths, orientations, activations and half-samples that the time did not "
        "suffice for: allow more time",
    )
    return replace(found, certificate=with_check(found.certificate, check))


def _coordinates(samples: Samples, form: Form, around: Coordinates) -> tuple[Coordinates, Coordinates, bool]:
    """Where to search, where to finish, and whether the sample is centred at the origin of the former."""
    # Without biases the origin of x means something: keep it unless the sample is centred there anyway.
    offset = around.shift @ around.whiten
    centred = len(samples) * float(offset @ offset) <= around.rank + 5 * np.sqrt(2 * around.rank)
    origin = np.zeros(len(around.shift))
    begin = around if form.bias or not centred else around.moved(origin, around.level)
    return begin, finishing(form, around), centred


def finishing(form: Form, around: Coordinates) -> Coordinates:
    """Where the free parameters in z are those in x: no shift without biases, no level without intercept."""
    shift = around.shift if form.bias else np.zeros(len(around.shift))
    return around.moved(shift, around.level if form.intercept else 0.0)


def _with_orientations(
    samples: Samples,
    form: Form,
    begin: Coordinates,
    end: Coordinates,
    task: Task,
    found: Found,
    effort: Effort,
) -> Found:
    """A consistent answer is held against other turns of its units, each finished; the best is kept."""
    finished = [found.certificate]
    for net in other_orientations(task, begin.inward(found.certificate.network), _TURNS):
        if effort.clock.expired():
            return found
        candidate = Candidate(net, float("nan"), found.origin, net.weights, net.bias)
        rival = _finish(samples, form, begin, end, candidate, effort)
        if not any(_same_units(rival.network, other.network) for other in finished):
            finished.append(rival)
    finished.sort(key=lambda certificate: certificate.loss)
    best = finished[0]
    # Every start that came to these hyperplanes came to their turns: the agreement is that of the units.
    known = {check.name for check in best.checks}
    for check in found.certificate.checks:
        best = best if check.name in known else with_check(best, check)
    behind = [len(samples) * float(np.log(other.loss / best.loss)) for other in finished[1:]]
    check = at_least(
        "orientation",
        min(behind, default=float("inf")),
        6.0,
        "n log(loss) by which the next best choice of which side each unit is on falls behind; below 6 the "
        "data do not tell the side",
    )
    return replace(found, certificate=with_check(best, check))


def _same_units(a: OneHiddenNet, b: OneHiddenNet) -> bool:
    return bool(np.allclose(a.weights, b.weights, atol=1e-4) and np.allclose(a.bias, b.bias, atol=1e-4))


def _with_halves(samples: Samples, form: Form, end: Coordinates, found: Found, effort: Effort) -> Found:
    """A consistent answer is fitted again on each half of the sample."""
    certificate = found.certificate
    halves = fit_halves(certificate.network, form, end, samples, effort.seed, effort.clock.expired)
    variance = certificate.noise_variance / end.scale**2
    for check in half_sample_checks(halves, variance, certificate.freedom, len(samples)):
        certificate = with_check(certificate, check)
    return replace(found, certificate=certificate)


def _with_neighbours(task: Task, begin: Coordinates, found: Found) -> Found:
    """A consistent answer is held against one unit more and one fewer, by the information criterion."""
    net = begin.inward(found.certificate.network)
    form = search_form(task.activation, task.d, task.k, task.bias)
    here = refine(task, form, complete(task, form, net.weights, net.bias), "neighbours")
    n, each = len(task.y), task.d + 1 + task.bias - (task.activation.homogeneity is not None)
    penalty = each * float(np.log(n))
    more = n * float(np.log(here.loss / with_one_more(task, here).loss)) - penalty
    check = at_most(
        "one unit more",
        more,
        0.0,
        "gain of one more unit in n log(loss), less log(n) for each of its parameters; above 0 the data ask "
        "for more units",
    )
    certificate = with_check(found.certificate, check)
    if task.k > 1:
        fewer = n * float(np.log(with_one_fewer(task, here).loss / here.loss)) - penalty
        check = at_least(
            "one unit fewer",
            fewer,
            0.0,
            "loss of one unit less on the same scale; below 0 the data do not ask for all of these units",
        )
        certificate = with_check(certificate, check)
    if certificate.status == "consistent" and net.weights.size <= _RIVALS and not task.stop():
        rival, ties = rival_check(task, net)
        certificate = certificate if rival is None else with_check(certificate, rival)
        if ties and certificate.status == "consistent":
            tie = f"; they do not tell {task.activation.name} from {' or '.join(ties)}"
            certificate = replace(certificate, message=certificate.message + tie)
    return replace(found, certificate=certificate)


def _with_repair(task: Task, candidate: Candidate) -> Iterator[Candidate]:
    """The candidate, and if that does not settle the matter, its repaired form."""
    yield candidate
    small = task.k * (task.d + 1) <= 600
    better = repaired(task, candidate, rounds=3 * task.k if small else 6)
    if better.loss < candidate.loss:
        yield better


def _no_better(tried: list[Found], n: int) -> bool:
    """Whether no start will do better than one lowest loss to which many came.

    Three starts are many with a wide student among them; else more, after a student did worse. Such an answer
    may still miss something (its checks say so): then the model is wrong, not the search.
    """
    lowest = _lowest(tried, n)
    if not any(found.origin in _STUDENTS for found in tried):
        return False
    return _starts(lowest) > (2 if any(found.origin in _STUDENTS for found in lowest) else _OFTEN)


def _starts(found: list[Found]) -> int:
    """How many starts these answers come from."""
    return len({one.turn for one in found})


def _lowest(tried: list[Found], n: int) -> list[Found]:
    """The answers that share the lowest loss, to half a unit of n log(loss)."""
    best = min(found.certificate.loss for found in tried)
    return [found for found in tried if n * (found.certificate.loss - best) <= 0.5 * best]


def _agreeing(tried: list[Found], n: int) -> list[Found]:
    """The certified answers among those of lowest loss."""
    return [found for found in _lowest(tried, n) if found.certificate.settled]


def _with_agreement(tried: list[Found], n: int) -> Found:
    """The best answer; with noise, checked for having been reached more than once."""
    best = min(tried, key=lambda found: found.certificate.loss)
    if best.certificate.final:
        return best
    reached = _starts(_agreeing(tried, n))
    check = at_least(
        "agreement",
        float(reached),
        2.0,
        "starts that came to this answer; with noise a single one may be a local minimum: allow more time",
    )
    certificate = with_check(best.certificate, check)
    if _starts(_lowest(tried, n)) < 2:
        certificate = doubted(certificate)
    return replace(best, certificate=certificate)


def _finish(
    samples: Samples, form: Form, begin: Coordinates, end: Coordinates, candidate: Candidate, effort: Effort
) -> Certificate:
    """Levenberg–Marquardt in all parameters to the end, in well-conditioned coordinates; then certify."""
    clock = effort.clock
    net = end.inward(begin.outward(candidate.network))
    fit = NetworkFit(form, end.inputs(samples.X), end.target(samples.y), samples.weight)
    theta = form.pack(net.weights, net.output, net.bias, None, net.intercept)
    solver = LevenbergMarquardt(300, 1e-29 * fit.n, damping=1e-3, patience=20, enough=1e-4 / fit.n)
    solution = solver.solve(
        fit, theta, clock.expired, lambda s, f: clock.report("finish", s, f / fit.n), clock.memo
    )
    weights, output, hidden_bias, _, constant = form.unpack(solution.theta)
    found = OneHiddenNet(weights, output, hidden_bias, float(constant), form.activation)
    choices = Choices(effort.errors, effort.seed)
    certificate = certify(without_held(end.outward(found), form), form, end, samples, choices)
    clock.report(f"certified {certificate.status}", 0, certificate.loss / end.scale**2)
    return certificate


def without_held(net: OneHiddenNet, form: Form) -> OneHiddenNet:
    """Rounding must not leave a bias or an intercept where none was free."""
    return OneHiddenNet(
        net.weights,
        net.output,
        net.bias if form.bias else np.zeros(form.k),
        net.intercept if form.intercept else 0.0,
        net.activation,
    )
