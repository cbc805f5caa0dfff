"""The alternatives an answer with noise is held against, each fitted before it is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden import activations
from onehidden.certify.certificate import Certificate, certify
from onehidden.certify.compare import (
    Alternative,
    Kind,
    agreement,
    asks_for_all,
    asks_for_no_more,
    behind,
    falls_behind,
    not_compared,
)
from onehidden.certify.further_unit import FurtherUnit, further_unit
from onehidden.certify.halves import fit_halves, half_sample_checks
from onehidden.certify.local_fit import local_fit
from onehidden.certify.shared_units import differing_units, named
from onehidden.certify.status import Status
from onehidden.certify.turns import other_sides, unseen_turns
from onehidden.certify.units import Cause
from onehidden.certify.vuong import freedom_trace, vuong
from onehidden.checks import About, Check, at_most, not_asked
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.polish import Polished, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, search_form
from onehidden.starts.repair import units_by_cost, with_one_fewer, with_one_more
from onehidden.starts.start import descent_work

# Times log(n) a parameter that a larger network must gain: to be kept, and to be asked for. At 1.0 the
# criterion alone asks for a unit in 13 % of pure noise; better row by row as well, it did in 1 of 190.
_TO_KEEP, _TO_ASK = 1.0, 1.5
_TURNS = 8  # other orientations finished and compared
# Operations of a descent (n = 10 000 and 110 parameters take 1.5e10, a few seconds) up to which relatives of
# the activation are fitted, for their own sake and as a detour.
_WORTH = 2e10

# Activations that noise can hide behind one another; the first fits the data of the others best.
NEAR = {
    "relu": ("leaky_relu", "softplus", "gelu"),
    "leaky_relu": ("relu", "softplus", "gelu"),
    "softplus": ("gelu", "relu"),
    "gelu": ("softplus", "relu", "squared_relu"),
    "tanh": ("erf",),
    "sigmoid": ("erf",),
    "erf": ("tanh",),
    "squared_relu": ("cubed_relu", "gelu", "softplus"),
    "cubed_relu": ("squared_relu",),
}

RowLosses = tuple[Float[np.ndarray, " n"], float]
Stage = Callable[[Certificate, Problem, Run], Certificate]


def held_against_all(
    certificate: Certificate, problem: Problem, run: Run, met: Sequence[Polished], errors: str
) -> Certificate:
    """The certificate of the best of an answer, its other sides and the other minima met, all compared.

    Comparisons are made as long as they can matter; one that time cut short is not counted as made.

    Parameters
    ----------
    met : networks of the same form that other starts came to.
    errors : kind of standard errors.
    """

    def with_sides(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
        return _with_sides(certificate, problem, run, met, errors)

    stages: tuple[Stage, ...] = (with_sides, _with_smaller, _with_larger, _with_activations, _with_halves)
    for number, stage in enumerate(stages):
        if not _worth_comparing(certificate) or run.expired():
            return certificate
        examined = stage(certificate, problem, run.at("comparison", number))
        if run.expired():  # a comparison cut short says nothing
            return certificate
        certificate = examined
    return certificate.completed()


def _worth_comparing(certificate: Certificate) -> bool:
    """Whether an answer may stand, or some of its units beside others that the rows leave open."""
    prospect = certificate.prospect
    if prospect is Status.NOT_IDENTIFIABLE and not certificate.failed(About.COLUMNS):
        return any(unit.cause is None for unit in certificate.open_units)
    return prospect in (Status.CONSISTENT, Status.APPROXIMATE)


def _with_sides(
    certificate: Certificate, problem: Problem, run: Run, met: Sequence[Polished], errors: str
) -> Certificate:
    """Held against other turns of the units, each finished, and other minima; the best is the answer."""
    own = Polished(certificate.network, certificate.mean_square)
    turned = other_sides(problem, certificate.network, _TURNS, run)
    others = [(Kind.MINIMUM, one) for one in [*met, *_by_detours(certificate.network, problem, run)]]
    for number, net in enumerate(turned):
        if run.expired():
            return certificate
        others.append((Kind.SIDES, polish(net, problem, run.at("turn", number))))
    # Far behind is out of the question: only what is near is told from the answer by its units.
    near = [(kind, one) for kind, one in others if behind(own.mean_square, one.mean_square, problem.n) < 30]
    best = min((own, *(one for _, one in near)), key=lambda one: one.mean_square)
    if best is not own:
        # Starts that came to the old answer say nothing of another one.
        same = [one for one in met if not _differ(best, one, problem)]
        kept = (agreement(1 + len(same)),) if _differ(best, own, problem) else certificate.compared
        certificate = replace(certify(best.network, problem, run, errors), compared=kept)
    found: list[Alternative] = []
    for kind, other in [(Kind.MINIMUM, own), *near]:
        # Kinked units have many small minima next to each other: with the same units they are one answer.
        units = differing_units(certificate.network, other.network, problem, best.mean_square)
        if units and not any(_alike(one, other, problem, best.mean_square) for one in found):
            gap = behind(best.mean_square, other.mean_square, problem.n)
            where = "on their other side" if kind is Kind.SIDES else "elsewhere"
            found.append(Alternative(kind, f"{named(units)} {where}", gap, other.network, units))
    reflection = problem.activation.reflection
    sided = reflection is not None and reflection.degree > 0
    local = local_fit(certificate.network, problem)
    turns = unseen_turns(local, local.covariance(True)) if sided else []
    for units, net in turns or []:
        if differing_units(certificate.network, net, problem, best.mean_square):
            found.append(Alternative(Kind.SIDES, f"{named(units)} on their other side", 0.0, net, units))
    checks = [falls_behind(found, Kind.MINIMUM)]
    if sided and turns is None:
        checks.append(not_compared(Kind.SIDES, "too many parameters for all turns of powers of ReLU"))
    elif sided:
        checks.append(falls_behind(found, Kind.SIDES))
    reasons = {}
    for one in found:
        if one.close:
            why = f"another network with {one.label} fits as well ({one.behind:.2g} of n log(loss) behind)"
            reasons |= {i: (Cause.RIVAL, why) for i in one.units}
    return certificate.held(checks, found).with_open(reasons)


def _by_detours(network: OneHiddenNet, problem: Problem, run: Run) -> list[Polished]:
    """Minima reached by way of near relatives of the activation: a smooth loss has fewer minima.

    Measured where two starts had agreed on a wrong minimum (ReLU, ten rows a parameter, noise of half the
    signal): the detour by softplus or GELU found the better one in three of four.
    """
    smooth = [name for name in NEAR.get(problem.activation.name, ()) if not activations.get(name).kinked][:1]
    found = []
    for name in smooth if descent_work(problem) <= _WORTH else ():
        if run.expired():
            break
        relative = problem.with_activation(activations.get(name))
        away = polish(_in_words_of(network, relative), relative, run.at("detour", name), rough=True).network
        found.append(polish(_in_words_of(away, problem), problem, run.at("back", name)))
    return found


def _differ(best: Polished, other: Polished, problem: Problem) -> bool:
    return bool(differing_units(best.network, other.network, problem, best.mean_square))


def _alike(one: Alternative, other: Polished, problem: Problem, mean_square: float) -> bool:
    """Whether an alternative has the units of another network."""
    assert one.network is not None
    return not differing_units(one.network, other.network, problem, mean_square)


def _asked_for_more(problem: Problem, network: OneHiddenNet, run: Run) -> FurtherUnit:
    """One unit more than a network at its minimum."""
    fit, theta = problem.sums, problem.theta(network)
    assert isinstance(fit, NetworkFit)
    return further_unit(
        lambda rows: fit.jacobian(theta, rows), fit.residuals(theta), problem.end.inputs(problem.samples.X),
        problem.activation, problem.form.bias, run.seed_of("further unit"), variance=1.0,
    )  # fmt: skip


def _with_larger(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Held against one unit more; an answer known to miss something need not be.

    As with smaller models, either random signs tell, or the larger network, fitted, is clearly better.
    """
    if certificate.prospect is Status.APPROXIMATE:
        return certificate
    found = _asked_for_more(problem, certificate.network, run)
    if not found.asked:
        return certificate.held([not_compared(Kind.MORE, found.reason)], [])
    net = problem.begin.inward(certificate.network)
    start = Candidate(net, certificate.mean_square, "answer", net.weights, net.bias)
    wider = problem.with_width(problem.k + 1)
    more = problem.begin.outward(with_one_more(problem, start, run.at("more")).network)
    more = polish(more, wider, run.at("more", "finish"), rough=True).network
    check = asks_for_no_more(found.p_value, found.detectable)
    larger, here = _row_losses(wider, more), _row_losses(problem, certificate.network)
    clearly = _clearly_better(larger, here, problem, 1, Kind.MORE, passed=False)
    check = check if clearly is None or not check.passed else clearly
    units = "unit" if problem.k == 1 else "units"
    seen = (
        f"at least {problem.k} {units}: a further one weaker than {found.detectable:.2g} of the variance of "
        "y would not have been seen"
    )
    return certificate.held([check], []).remarked(seen)


def _clearly_better(
    own: RowLosses, rival: RowLosses, problem: Problem, units: int, kind: Kind, passed: bool
) -> Check | None:
    """The check of a network clearly better than one with so many units fewer; None where it is not.

    Row by row (Vuong), and by more than log(n) for each parameter of its further units.
    """
    n = problem.n
    each = (problem.form.freedom - problem.form.intercept) / problem.k * float(np.log(n))
    gain, charge = (
        n * float(np.log(np.sum(rival[0] ** 2) / np.sum(own[0] ** 2))),
        (_TO_KEEP if passed else _TO_ASK) * units * each,
    )
    if gain <= charge or vuong(*_pair(own, rival)).verdict != "first":
        return None
    advice = (
        "gain of the larger network in n log(loss), against log(n) for each further parameter and more; "
        "it is better row by row, too"
    )
    about = About.UNITS if passed else About.FIT
    return Check(
        kind.value, gain, charge, passed, advice if passed else f"{advice}: ask for more units", about
    )


def _linear_fit(problem: Problem) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, " n"]]:
    """The weighted columns of a linear function, and what its least-squares fit leaves."""
    samples = problem.samples
    Z, y = problem.begin.inputs(samples.X), problem.begin.target(samples.y)
    design, target = problem.weighted(np.column_stack([np.ones(len(Z)), Z])), problem.weighted(y)
    return design, design @ np.linalg.lstsq(design, target, rcond=None)[0] - target


def beyond_linear(problem: Problem, run: Run) -> FurtherUnit:
    """One unit instead of a linear function."""
    design, left = _linear_fit(problem)
    return further_unit(
        design, left, problem.begin.inputs(problem.samples.X), problem.activation, problem.form.bias,
        run.seed_of("instead of a linear function"), variance=1.0,
    )  # fmt: skip


def _with_smaller(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Held against a linear function, and against one unit fewer.

    Either the smaller model leaves something for a unit to explain, tested with random signs; or the answer
    is clearly better: where a model is far off, what it leaves is no noise, and its random signs have little
    power.
    """
    own = _row_losses(problem, certificate.network)

    def smaller(asked: FurtherUnit, rival: RowLosses, units: int, kind: Kind, dropped: int | None) -> Check:
        check = not_compared(kind, asked.reason)
        if asked.asked:
            check = asks_for_all(asked.p_value, kind, dropped)
        clearly = None if check.passed else _clearly_better(own, rival, problem, units, kind, passed=True)
        return check if clearly is None else clearly

    design, left = _linear_fit(problem)
    linear = left, freedom_trace(design, left)
    checks = [smaller(beyond_linear(problem, run), linear, problem.k, Kind.LINEAR, None)]
    open_: dict[int, tuple[Cause, str]] = {}
    if not checks[0].passed:
        why = "these rows do not rule out a linear function"
        open_ = {i: (Cause.SPARE, why) for i in range(problem.k)}
    elif problem.k > 1:
        net = problem.begin.inward(certificate.network)
        start = Candidate(net, certificate.mean_square, "answer", net.weights, net.bias)
        dropped = int(units_by_cost(problem, search_form(problem), net.weights, net.bias)[0])
        fewer = problem.with_width(problem.k - 1)
        rest = problem.begin.outward(with_one_fewer(problem, start, run.at("fewer")).network)
        rest = polish(rest, fewer, run.at("fewer", "finish")).network
        asked = _asked_for_more(fewer, rest, run)
        checks.append(smaller(asked, _row_losses(fewer, rest), 1, Kind.FEWER, dropped))
        if not checks[1].passed:
            open_ = {dropped: (Cause.SPARE, f"the data do not ask for unit {dropped + 1}")}
    return certificate.held(checks, []).with_open(open_)


def _with_activations(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Held against other activations, each fitted from the units found; ties are told.

    Losses are compared row by row (Vuong), each charged its freedom, so that unequal noise does not decide.
    """
    if certificate.prospect is Status.APPROXIMATE:
        return certificate
    g, work = problem.activation, descent_work(problem)
    if work > _WORTH:
        untried = "other activations were not fitted: each would take as long as the answer itself"
        return certificate.held([not_asked(Kind.ACTIVATION.value, 0.0, untried)], [])
    every = [name for name in activations.names() if not activations.get(name).polynomial]
    names = every if problem.k == 1 else NEAR.get(g.name, ())  # one unit is easily taken for another
    if not names:
        untried = f"no relatives of {g.name} are known that noise could hide behind it"
        return certificate.held([not_asked(Kind.ACTIVATION.value, 0.0, untried)], [])
    same = {g.name, *({"sigmoid", "tanh"} if g.name in ("sigmoid", "tanh") else ())}
    own = _row_losses(problem, certificate.network)
    ties, found, ahead = [], [], []
    for name in names:
        if name in same or (name == "sigmoid" and "tanh" in names):
            continue
        if run.expired():
            return certificate
        rival = problem.with_activation(activations.get(name))
        start = _in_words_of(certificate.network, rival)
        other = polish(start, rival, run.at(name), rough=True)
        judged = vuong(*_pair(own, _row_losses(rival, other.network)))
        if judged.verdict == "first":
            continue
        gap = behind(certificate.mean_square, other.mean_square, problem.n)
        found.append(Alternative(Kind.ACTIVATION, name, gap, other.network, tuple(range(problem.k))))
        (ahead if judged.verdict == "second" else ties).append(name)
    advice = "activations that explain these rows better than the one assumed, row by row at level .01"
    better = f"{advice}: {', '.join(ahead)}" if ahead else advice
    check = at_most(Kind.ACTIVATION.value, float(len(ahead)), 0.0, better, About.FIT)
    held = certificate.held([check], found)
    return held.remarked(f"they do not tell {g.name} from {' or '.join(ties)}") if ties else held


def _row_losses(problem: Problem, network: OneHiddenNet) -> RowLosses:
    """Residuals at a fitted network and its freedom by Takeuchi's trace."""
    fit, theta = problem.sums, problem.theta(network)
    assert isinstance(fit, NetworkFit)
    residual = fit.residuals(theta)
    return residual, freedom_trace(fit.jacobian(theta, slice(0, fit.n)), residual)


def _pair(a: RowLosses, b: RowLosses) -> tuple[np.ndarray, np.ndarray, float, float]:
    return a[0], b[0], a[1], b[1]


def _in_words_of(network: OneHiddenNet, rival: Problem) -> OneHiddenNet:
    """The units of a network under another activation, outputs by least squares."""
    samples = rival.samples
    columns = rival.activation(samples.X @ network.weights.T + network.bias)
    design = rival.weighted(np.column_stack([columns, np.ones(len(columns))]))
    solved = np.linalg.lstsq(design, rival.weighted(samples.y), rcond=1e-10)[0]
    return OneHiddenNet(network.weights, solved[:-1], network.bias, float(solved[-1]), rival.activation)


def _with_halves(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Fitted again on each half of the sample: an approximation must come out the same."""
    halves = fit_halves(certificate.network, problem, run)
    variance = certificate.noise_variance / problem.end.scale**2
    agreement, outside = half_sample_checks(halves, variance, certificate.freedom, problem.n)
    stable = agreement.passed
    return replace(certificate.held([replace(agreement, about=About.NOTE), outside], []), stable=stable)
