"""Fewer units, none, or one more: how many units the data ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify import levels
from onehidden.certify.certificate import AlternativeKind, Certificate, Status
from onehidden.certify.local_fit import RowsOfJacobian, linear_fit, local_fit
from onehidden.certify.noise_model import OwnLikelihood
from onehidden.certify.replicates import lack_of_fit
from onehidden.certify.score_test import ScoreTest, score_test, score_test_work
from onehidden.certify.units import Cause, Undetermined, plural
from onehidden.checks import About, Check, at_least, at_most, not_evaluated
from onehidden.families import Bernoulli
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import TO_COMPARE, Problem, linear_network, optimise
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.repair import units_by_cost, with_one_fewer, with_one_more


def compare_smaller(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare with a linear function and with the network without one of its units.

    Either the answer is clearly better, by a likelihood test; or the smaller model leaves something that a
    unit explains, by a score test with random signs. That takes longer, and where a model is far off, its
    residuals are no noise and random signs have little power.
    """
    own = OwnLikelihood.of(problem, certificate.network, run)
    linear = _clearly_better(own, OwnLikelihood.linear(problem), problem, problem.k, AlternativeKind.LINEAR)
    if linear is None:
        linear = _needs_every_unit(beyond_linear(problem, run), AlternativeKind.LINEAR, "a linear function")
    if not linear.passed:
        reason = Cause.SPARE, "these rows do not exclude a linear function"
        return certificate.with_comparisons([linear]).with_undetermined(
            dict.fromkeys(range(problem.k), reason)
        )
    if problem.k == 1:
        return certificate.with_comparisons([linear])
    seen, start = _searched(certificate, problem)
    dropped = int(units_by_cost(seen, start.weights, start.bias)[0])
    fewer = problem.with_width(problem.k - 1)
    found = with_one_fewer(seen, start, run.at("fewer"))
    enough = _worth(problem, certificate.mean_square, found.loss)
    rest = optimise(
        seen.search_coordinates.outward(found.network), fewer, run.at("fewer", "finish"), tolerance=enough
    ).network
    check = _clearly_better(own, OwnLikelihood.of(fewer, rest, run), problem, 1, AlternativeKind.FEWER)
    if check is None:
        smaller = f"the network without unit {dropped + 1}"
        check = _needs_every_unit(_score_test_at(fewer, rest, run), AlternativeKind.FEWER, smaller)
    spare: Undetermined = {}
    if not check.passed:
        spare = {dropped: (Cause.SPARE, f"the data do not ask for unit {dropped + 1}")}
    return certificate.with_comparisons([linear, check]).with_undetermined(spare)


def compare_larger(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare with one unit more, unless the answer is known to miss something.

    As for smaller models, either the score test or the fitted larger network shows that a unit is missing.
    """
    if certificate.status_if_comparisons_pass is Status.APPROXIMATE:
        return certificate
    found = _score_test_at(problem, certificate.network, run)
    name = AlternativeKind.MORE.value
    if not found.evaluated:
        # Rows that repeat have answered by their spread whether something is missed.
        answered = lack_of_fit(local_fit(certificate.network, problem.at(certificate.network))) is not None
        about = About.NOTE if answered and problem.family is None else About.FIT
        reason = f"could not be evaluated: {found.reason}"
        return certificate.with_comparisons([not_evaluated(name, np.nan, reason, about)])
    check = at_least(
        name,
        found.p_value,
        levels.LARGER_MODEL.value,
        "p-value of an additional unit that explains so much of the residuals by chance; below the bound the "
        f"data ask for more units (one weaker than {found.detectable:.2g} of the variance of y would not "
        "have been detected)",
        About.FIT,
    )
    seen, start = _searched(certificate, problem)
    wider = problem.with_width(problem.k + 1)
    grown = with_one_more(seen, start, run.at("more"))
    # The search form is the richer one: what gains too little there does so after the final optimisation.
    gain = problem.excess_deviance(grown.loss, certificate.mean_square)
    if check.passed and (problem.family is not None or gain > _charge(problem, 1, more=True)):
        begin = seen.search_coordinates.outward(grown.network)
        more = optimise(begin, wider, run.at("more", "finish"), tolerance=TO_COMPARE).network
        larger, here = (
            OwnLikelihood.of(*one, run) for one in ((wider, more), (problem, certificate.network))
        )
        check = _clearly_better(larger, here, problem, 1, AlternativeKind.MORE) or check
    units = "unit" if problem.k == 1 else "units"
    spread = seen.fit_coordinates.scale
    spread = np.sqrt(np.sum(spread**2, axis=0)) if seen.fit_coordinates.several else spread
    undetected = float(np.sqrt(found.remaining)) * spread
    remark = (
        f"at least {problem.k} {units}: {problem.n} {plural(certificate.noun)} show a further one only if it "
        f"moves the fit by {float(np.max(undetected)):.2g} (standard deviation)"
    )
    certificate = replace(certificate, undetected=undetected)
    return certificate.with_comparisons([check]).with_remark(remark)


def _searched(certificate: Certificate, problem: Problem) -> tuple[Problem, OneHiddenNet]:
    """The problem at an answer, and the answer in its search coordinates."""
    seen = problem.at(certificate.network)
    return seen, seen.search_coordinates.inward(certificate.network)


def _needs_every_unit(found: ScoreTest, kind: AlternativeKind, smaller: str) -> Check:
    """The check that a smaller model leaves something that a unit explains."""
    if not found.evaluated:
        reason = f"could not be evaluated: {found.reason}"
        return not_evaluated(kind.value, np.nan, reason, About.UNITS)
    level = levels.LINEAR if kind is AlternativeKind.LINEAR else levels.SMALLER_MODEL
    return at_most(
        kind.value,
        found.p_value,
        level.value,
        f"p-value of what {smaller}, fitted again, leaves for a unit to explain; above the bound these rows "
        f"do not exclude {smaller}",
        About.UNITS,
    )


def _clearly_better(
    larger: OwnLikelihood, smaller: OwnLikelihood, problem: Problem, units: int, kind: AlternativeKind
) -> Check | None:
    """The likelihood test of a network with so many units more; None where it is not clearly better.

    The smaller one is ruled out as any rival is, and by log(n) for each parameter of the additional units. A
    linear function of 0/1 labels, of which the score test sees little where they are rare, is ruled out by
    the chi-square law of all parameters at ``levels.LINEAR``: a unit holds it as a case, its kink beyond the
    rows. Where it has a slope, one parameter is more; without one the direction is chosen, too.
    """
    more = kind is AlternativeKind.MORE
    gain, charge = larger.ahead(smaller), max(_charge(problem, units, more), larger.needed)
    if kind is AlternativeKind.LINEAR and isinstance(problem.family, Bernoulli):
        charge = larger.ruled_out_at(levels.LINEAR.value)
    if gain < charge:
        return None
    advice = (
        "twice the log likelihood by which the larger network is ahead, each under its own noise model, "
        "against what rules the smaller one out" + (": ask for more units" if more else "")
    )
    return Check(kind.value, gain, charge, not more, advice, About.FIT if more else About.UNITS)


def _charge(problem: Problem, units: int, more: bool) -> float:
    """n log(loss) that so many more units must gain to be kept or, half as much again, to be asked for.

    At log(n) a parameter the criterion alone asks for a unit in 13 % of pure noise; with the test row by row
    it did in 1 of 190.
    """
    shared = replace(problem.form, k=0).freedom
    each = (problem.form.freedom - shared) / problem.k * float(np.log(problem.n))
    return (1.5 if more else 1.0) * units * each


def _worth(problem: Problem, own: float, smaller: float) -> float:
    """n log(loss) that another step of a smaller network must gain: 1 % of the way to where it would matter.

    At d = k = 20, n = 10 000, noise .3 the smaller network has a deviance difference of 1100, and took 20
    steps of one to ten each for 40 in all. The losses of a family and of its rows as seen from the answer do
    not compare.
    """
    if problem.family is not None:
        return TO_COMPARE
    return max(TO_COMPARE, 0.01 * (problem.excess_deviance(own, smaller) - _charge(problem, 1, more=False)))


def score_test_cost(problem: Problem) -> float:
    """Operations of testing for one unit more than a network, or than a linear function, has."""
    return score_test_work(problem.n_values, problem.form.size, problem.d)


def _score_test_at(problem: Problem, network: OneHiddenNet, run: Run) -> ScoreTest:
    """The score test for one unit more than a network at its minimum."""
    seen = problem.marginal.at(network)
    fit, theta = seen.least_squares, seen.theta(network)
    assert isinstance(fit, InMemoryLeastSquares)
    jacobian = _each_output(lambda rows: fit.jacobian(theta, rows), seen.form.q)
    Z, root = seen.fit_coordinates.inputs(seen.samples.X), roots(seen.samples.weight, seen.n)
    seed = run.seed_of("further unit")
    return _within_groups(jacobian, fit.residuals(theta), Z, root, problem, seed) or _over_outputs(
        jacobian, fit.residuals(theta), Z, root, seen, seed
    )


def beyond_linear(problem: Problem, run: Run) -> ScoreTest:
    """The score test for one unit beyond a linear function."""
    each = problem.marginal
    design, left = linear_fit(each)
    seen, q = each.at(linear_network(each)), problem.form.q
    Z, seed = seen.search_coordinates.inputs(seen.samples.X), run.seed_of("instead of a linear function")
    jacobian = _each_output(lambda rows: np.kron(design[rows], np.eye(q)), q)
    root = seen.weighted(np.ones(seen.n))
    return _within_groups(jacobian, left.ravel(), Z, root, problem, seed) or _over_outputs(
        jacobian, left.ravel(), Z, root, seen, seed
    )


def _within_groups(
    jacobian: RowsOfJacobian,
    residual: Float[np.ndarray, " n"],
    Z: Float[np.ndarray, "n d"],
    root: Float[np.ndarray, " n"],
    problem: Problem,
    seed: int,
    most: int = 1 << 24,
) -> ScoreTest | None:
    """The score test beside an intercept for each group, where these were estimated: rows are independent.

    None where there are none, where units differ between groups only, or beyond ``most`` numbers.
    """
    shared = problem.samples.shared
    if shared is None or problem.n * (len(shared.mass) + problem.form.size) > most:
        return None
    of_groups = root[:, None] * (shared.groups[:, None] == np.arange(len(shared.mass)))
    beside = np.column_stack([jacobian(slice(0, problem.n)), of_groups])
    rest = residual - beside @ np.linalg.lstsq(beside, residual, rcond=None)[0]
    found = score_test(beside, rest, Z, problem.activation, problem.form.bias, seed, root=root, variance=1.0)
    return found if found.evaluated else None


def _over_outputs(
    jacobian: RowsOfJacobian,
    residual: Float[np.ndarray, " N"],
    Z: Float[np.ndarray, "n d"],
    root: Float[np.ndarray, "n ..."],
    problem: Problem,
    seed: int,
) -> ScoreTest:
    """Score tests for a unit in each output: the clearest, charged for their number (Bonferroni)."""
    q, found = problem.form.q, []
    groups = None if problem.samples.groups is None else np.repeat(problem.samples.groups, q)
    for o in range(q):
        own = weighed(root, np.repeat(np.eye(q)[o][None], problem.n, axis=0)).ravel()
        found.append(
            score_test(
                jacobian,
                residual,
                np.repeat(Z, q, axis=0),
                problem.activation,
                problem.form.bias,
                (seed, o) if q > 1 else seed,
                root=own,
                groups=groups,
                variance=1.0,
                effort=1e11 / q,
            )
        )
    # Evaluated in all outputs or in none: a unit missed in one may be in another.
    best = min(found, key=lambda one: one.p_value if one.evaluated else -np.inf)
    return best if q == 1 or not best.evaluated else replace(best, p_value=min(1.0, q * best.p_value))


def _each_output(jacobian: RowsOfJacobian, q: int) -> RowsOfJacobian:
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
