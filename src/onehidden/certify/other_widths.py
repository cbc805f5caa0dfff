"""Fewer units, none, or one more: how many the data ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Kind, asks_for_all, asks_for_no_more, not_compared
from onehidden.certify.further_unit import EFFORT, FurtherUnit, further_unit, work
from onehidden.certify.row_losses import RowLosses, linear_fit
from onehidden.certify.status import Status
from onehidden.certify.tangent import RowsOfJacobian
from onehidden.certify.units import Cause
from onehidden.checks import About, Check
from onehidden.fit.form import roots, weighed
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.linear_part import linear_network
from onehidden.fit.polish import ROUGHLY, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, search_form
from onehidden.starts.repair import units_by_cost, with_one_fewer, with_one_more

# Times log(n) a parameter that a larger network must gain: to be kept, and to be asked for. At 1.0 the
# criterion alone asks for a unit in 13 % of pure noise; better row by row as well, it did in 1 of 190.
_TO_KEEP, _TO_ASK = 1.0, 1.5
# Share of the way to where it would matter that each of two steps in a row of a smaller network must go: at
# d = k = 20, n = 10 000, noise .3 one unit fewer is 1100 of n log(loss) behind that, and took 20 steps of one
# to ten each for 40 in all.
_HOPELESS = 0.01


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
        seen = problem.at(certificate.network)
        net = seen.begin.inward(certificate.network)
        start = Candidate(net, certificate.mean_square, "answer", net.weights, net.bias)
        dropped = int(units_by_cost(seen, search_form(seen), net.weights, net.bias)[0])
        fewer = problem.with_width(problem.k - 1)
        found = with_one_fewer(seen, start, run.at("fewer"))
        enough = _worth(problem, certificate.mean_square, found.loss)
        rest = seen.begin.outward(found.network)
        rest = polish(rest, fewer, run.at("fewer", "finish"), enough=enough).network
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
    seen = problem.at(certificate.network)
    net = seen.begin.inward(certificate.network)
    start = Candidate(net, certificate.mean_square, "answer", net.weights, net.bias)
    wider = problem.with_width(problem.k + 1)
    grown = with_one_more(seen, start, run.at("more"))
    check = asks_for_no_more(found.p_value, found.detectable)
    # The form of the search is the richer one: what does not gain enough there will not after the finish.
    gain = problem.behind(grown.loss, certificate.mean_square)
    if check.passed and (problem.family is not None or gain > _charge(problem, 1, passed=False)):
        more = polish(
            seen.begin.outward(grown.network), wider, run.at("more", "finish"), enough=ROUGHLY
        ).network
        larger, here = RowLosses.of(wider, more), RowLosses.of(problem, certificate.network)
        clearly = _clearly_better(larger, here, problem, 1, Kind.MORE, passed=False)
        check = check if clearly is None else clearly
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
    gain, charge = own.gain(rival), _charge(problem, units, passed)
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


def _charge(problem: Problem, units: int, passed: bool) -> float:
    """n log(loss) that so many further units must gain, to be kept or to be asked for."""
    shared = replace(problem.form, k=0).freedom
    each = (problem.form.freedom - shared) / problem.k * float(np.log(problem.n))
    return (_TO_KEEP if passed else _TO_ASK) * units * each


def _worth(problem: Problem, own: float, smaller: float) -> float:
    """n log(loss) worth another step of a smaller network: little, or a share of the way to where it matters.

    The losses of a family and of its rows as seen from the answer do not compare.
    """
    if problem.family is not None:
        return ROUGHLY
    return max(ROUGHLY, _HOPELESS * (problem.behind(own, smaller) - _charge(problem, 1, passed=True)))


def question_work(problem: Problem) -> float:
    """Operations of asking for one unit more than a network, or than a linear function, has."""
    return work(problem.numbers, problem.form.size, problem.d)


def _asked_for_more(problem: Problem, network: OneHiddenNet, run: Run) -> FurtherUnit:
    """One unit more than a network at its minimum."""
    seen = problem.at(network)
    fit, theta = seen.sums, seen.theta(network)
    assert isinstance(fit, NetworkFit)
    jacobian = long_rows(lambda rows: fit.jacobian(theta, rows), seen.form.q)
    Z = seen.end.inputs(seen.samples.X)
    root = roots(seen.samples.weight, seen.n)
    return _in_each_output(jacobian, fit.residuals(theta), Z, root, seen, run.seed_of("further unit"))


def beyond_linear(problem: Problem, run: Run) -> FurtherUnit:
    """One unit instead of a linear function."""
    design, left = linear_fit(problem)
    seen, q = problem.at(linear_network(problem)), problem.form.q
    Z, seed = seen.begin.inputs(seen.samples.X), run.seed_of("instead of a linear function")

    def jacobian(rows: slice | np.ndarray) -> Float[np.ndarray, "m p"]:
        return np.kron(design[rows], np.eye(q))

    root = seen.weighted(np.ones(seen.n))
    return _in_each_output(long_rows(jacobian, q), left.ravel(), Z, root, seen, seed)


def _in_each_output(
    jacobian: RowsOfJacobian,
    residual: Float[np.ndarray, " N"],
    Z: Float[np.ndarray, "n d"],
    root: Float[np.ndarray, "n ..."],
    problem: Problem,
    seed: int,
) -> FurtherUnit:
    """A further unit looked for in one output after another: the clearest, charged for their number."""
    q, found = problem.form.q, []
    for o in range(q):
        own = weighed(root, np.repeat(np.eye(q)[o][None], problem.n, axis=0)).ravel()
        found.append(
            further_unit(
                jacobian,
                residual,
                np.repeat(Z, q, axis=0),
                problem.activation,
                problem.form.bias,
                (seed, o) if q > 1 else seed,
                root=own,
                variance=1.0,
                effort=EFFORT / q,
            )
        )
    # Asked of all outputs or of none: what was looked for in some may be in the others.
    best = min(found, key=lambda one: one.p_value if one.asked else -np.inf)
    return best if q == 1 or not best.asked else replace(best, p_value=min(1.0, q * best.p_value))


def long_rows(jacobian: RowsOfJacobian, q: int) -> RowsOfJacobian:
    """Derivatives by numbers of the target, where ``jacobian`` gives the q of each row next to each other."""
    if q == 1:
        return jacobian

    def of_numbers(numbers: slice | np.ndarray) -> Float[np.ndarray, "m p"]:
        if isinstance(numbers, slice):
            first, last = numbers.start or 0, numbers.stop
            found = jacobian(slice(first // q, -(-last // q)))
            return found[first - q * (first // q) :][: last - first]
        rows, place = np.unique(numbers // q, return_inverse=True)
        return jacobian(rows)[place * q + numbers % q]

    return of_numbers
