"""Fewer units, none, or one more: how many the data ask for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Kind, asks_for_all, asks_for_no_more, not_compared
from onehidden.certify.further_unit import FurtherUnit, further_unit, work
from onehidden.certify.row_losses import RowLosses, linear_fit
from onehidden.certify.status import Status
from onehidden.certify.units import Cause
from onehidden.checks import About, Check
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.polish import polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, search_form
from onehidden.starts.repair import units_by_cost, with_one_fewer, with_one_more

# Times log(n) a parameter that a larger network must gain: to be kept, and to be asked for. At 1.0 the
# criterion alone asks for a unit in 13 % of pure noise; better row by row as well, it did in 1 of 190.
_TO_KEEP, _TO_ASK = 1.0, 1.5


def with_smaller(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Held against a linear function, and against one unit fewer.

    Either the answer is clearly better; or the smaller model leaves something for a unit to explain, tested
    with random signs, which takes longer: where a model is far off, what it leaves is no noise, and random
    signs have little power.
    """
    own = RowLosses.of(problem, certificate.network)

    def smaller(
        ask: Callable[[], FurtherUnit], rival: RowLosses, units: int, kind: Kind, dropped: int | None
    ) -> Check:
        clearly = _clearly_better(own, rival, problem, units, kind, passed=True)
        if clearly is not None:
            return clearly
        asked = ask()
        if not asked.asked:
            return not_compared(kind, asked.reason)
        return asks_for_all(asked.p_value, kind, dropped)

    linear = RowLosses.linear(problem)
    checks = [smaller(lambda: beyond_linear(problem, run), linear, problem.k, Kind.LINEAR, None)]
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
        rival = RowLosses.of(fewer, rest)
        checks.append(smaller(lambda: _asked_for_more(fewer, rest, run), rival, 1, Kind.FEWER, dropped))
        if not checks[1].passed:
            open_ = {dropped: (Cause.SPARE, f"the data do not ask for unit {dropped + 1}")}
    return certificate.held(checks, []).with_open(open_)


def with_larger(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
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
    larger, here = RowLosses.of(wider, more), RowLosses.of(problem, certificate.network)
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
    each = (problem.form.freedom - problem.form.intercept) / problem.k * float(np.log(problem.n))
    gain, charge = own.gain(rival), (_TO_KEEP if passed else _TO_ASK) * units * each
    if gain <= charge or own.against(rival).verdict != "first":
        return None
    advice = (
        "gain of the larger network in n log(loss), against log(n) for each further parameter and more; "
        "it is better row by row, too"
    )
    about = About.UNITS if passed else About.FIT
    return Check(
        kind.value, gain, charge, passed, advice if passed else f"{advice}: ask for more units", about
    )


def question_work(problem: Problem) -> float:
    """Operations of asking for one unit more than a network, or than a linear function, has."""
    return work(problem.n, problem.form.size, problem.d)


def _asked_for_more(problem: Problem, network: OneHiddenNet, run: Run) -> FurtherUnit:
    """One unit more than a network at its minimum."""
    fit, theta = problem.sums, problem.theta(network)
    assert isinstance(fit, NetworkFit)
    return further_unit(
        lambda rows: fit.jacobian(theta, rows), fit.residuals(theta), problem.end.inputs(problem.samples.X),
        problem.activation, problem.form.bias, run.seed_of("further unit"), root=_root(problem), variance=1.0,
    )  # fmt: skip


def beyond_linear(problem: Problem, run: Run) -> FurtherUnit:
    """One unit instead of a linear function."""
    design, left = linear_fit(problem)
    return further_unit(
        design, left, problem.begin.inputs(problem.samples.X), problem.activation, problem.form.bias,
        run.seed_of("instead of a linear function"), root=_root(problem), variance=1.0,
    )  # fmt: skip


def _root(problem: Problem) -> Float[np.ndarray, " n"] | None:
    return None if problem.weight is None else np.sqrt(problem.weight)
