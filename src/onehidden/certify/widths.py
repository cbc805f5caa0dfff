"""Fewer units, none, or one more: how many units the data ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.certify import levels
from onehidden.certify.certificate import AlternativeKind, Certificate, Status
from onehidden.certify.local_fit import detectable_share, linear_problem, local_fit
from onehidden.certify.noise_model import OwnLikelihood
from onehidden.certify.residuals import Adequacy, adequacy
from onehidden.certify.units import Cause, Undetermined, plural
from onehidden.checks import About, Check, at_least, at_most, not_evaluated
from onehidden.families import Bernoulli
from onehidden.fit.problem import TO_COMPARE, Problem, linear_network, optimise
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import completed_loss, refine
from onehidden.starts.repair import units_by_cost, with_best_addition, with_one_fewer


def compare_smaller(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare with a linear function and with the network without one of its units.

    Either the answer is clearly better, by its likelihood; or the smaller model leaves something, by the test
    of adequacy. Where a model is far off, its residuals are no noise and that test has little power.
    """
    without = linear_problem(problem)
    if problem.form.structure is not None and without.form.freedom > problem.form.freedom:  # no smaller model
        return certificate
    own = OwnLikelihood.of_answer(certificate, problem, run)
    what = AlternativeKind.LINEAR, "a linear function"
    linear = _ruled_out(without, linear_network(without), own, problem, what, run)
    if not linear.passed:
        reason = Cause.SPARE, "these rows do not exclude a linear function"
        every: Undetermined = dict.fromkeys(range(problem.k), reason)
        return certificate.with_comparisons([linear]).with_undetermined(every)
    if problem.k == 1 or problem.form.labelled:
        return certificate.with_comparisons([linear])
    seen = problem.at(certificate.network)
    start = seen.search_coordinates.inward(certificate.network)
    dropped = int(units_by_cost(seen, start.weights, start.bias)[0])
    fewer = problem.with_width(problem.k - 1)
    found = with_one_fewer(seen, start, run.at("fewer"))
    enough = max(TO_COMPARE, 0.01 * problem.form.freedom)  # as for halves of the rows
    begin = seen.search_coordinates.outward(found.network)
    rest = optimise(begin, fewer, run.at("fewer", "finish"), tolerance=enough).network
    what = AlternativeKind.FEWER, f"the network without unit {dropped + 1}"
    check = _ruled_out(fewer, rest, own, problem, what, run)
    spare = {dropped: (Cause.SPARE, f"the data do not ask for unit {dropped + 1}")}
    return certificate.with_comparisons([linear, check]).with_undetermined({} if check.passed else spare)


def compare_larger(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare with one unit more, unless the answer is known to miss something."""
    if problem.form.labelled or certificate.status_if_comparisons_pass is Status.APPROXIMATE:
        return certificate
    local, name = local_fit(certificate.network, problem.at(certificate.network)), AlternativeKind.MORE.value
    share = detectable_share(local)
    if share is None:
        # So few rows come here only if they repeat: their spread has answered whether something is missed.
        reason = "could not be evaluated: the rows leave too few numbers beyond the parameters"
        return certificate.with_comparisons([not_evaluated(name, np.nan, reason)])
    seen = problem.at(certificate.network)
    start = seen.search_coordinates.inward(certificate.network)
    wider = problem.with_width(problem.k + 1)
    needed, here = 1.5 * _charge(problem, 1), run.at("more")
    planes = with_best_addition(seen, start.weights, start.bias, here.rng("one unit more", problem.k))
    # The search form is the richer one: what gains too little there does so after the final optimisation. Of
    # the directions proposed one gains an eighth, as it is, of what the best would.
    gain = problem.excess_deviance(completed_loss(seen, *planes), certificate.mean_square)
    if problem.family is not None or gain > needed / 8:
        grown = refine(seen, *planes, here, "one unit more")
        gain = problem.excess_deviance(grown.loss, certificate.mean_square)
        if problem.family is not None or gain > needed:
            begin = seen.search_coordinates.outward(grown.network)
            more = optimise(begin, wider, run.at("more", "finish"), tolerance=TO_COMPARE).network
            larger = OwnLikelihood.of(wider, more, run)
            own = OwnLikelihood.of_answer(certificate, problem, run)
            gain, needed = larger.ahead(own), max(needed, larger.needed)
    advice = (
        "twice the log likelihood by which a network with one unit more is ahead, against what rules this "
        f"one out: above, ask for more units (one weaker than {share:.2g} of the variance of y may have been "
        "overlooked)"
    )
    units = "unit" if problem.k == 1 else "units"
    spread = seen.fit_coordinates.scale
    spread = np.sqrt(np.sum(spread**2, axis=0)) if seen.fit_coordinates.several else spread
    undetected = float(np.sqrt(share)) * spread
    remark = (
        f"at least {problem.k} {units}: {problem.n} {plural(certificate.noun)} show a further one only if it "
        f"moves the fit by {float(np.max(undetected)):.2g} (standard deviation)"
    )
    check = at_most(name, gain, needed, advice, About.FIT)
    return replace(certificate, undetected=undetected).with_comparisons([check]).with_remark(remark)


def _ruled_out(
    smaller: Problem,
    network: OneHiddenNet,
    own: OwnLikelihood,
    problem: Problem,
    what: tuple[AlternativeKind, str],
    run: Run,
) -> Check:
    """The check that rows rule out a smaller model, fitted: by its likelihood, or by what it leaves.

    By likelihood it is ruled out as any rival is, and by log(n) for each parameter of the additional units.
    Of 0/1 labels, of which the test of adequacy sees little, it is by the chi-square law of the additional
    parameters at ``levels.LINEAR``: a network holds a smaller one as a case, a kink beyond the rows. A linear
    function without a slope leaves the direction of a unit open, too: there all parameters count.
    """
    its, (kind, name) = OwnLikelihood.of(smaller, network, run), what
    gain, charge = own.ahead(its), max(_charge(problem, problem.k - smaller.k), own.needed)
    if isinstance(problem.family, Bernoulli):
        nested = kind is AlternativeKind.FEWER or its.ahead(OwnLikelihood.constant(problem)) >= (
            its.ruled_out_at(levels.LINEAR.value, 1)
        )
        charge = own.ruled_out_at(levels.LINEAR.value, its.parameters if nested else 0)
    if gain >= charge:
        advice = (
            "twice the log likelihood by which the larger network is ahead, each under its own noise model, "
            "against what rules the smaller one out"
        )
        return at_least(kind.value, gain, charge, advice, About.UNITS)
    found = _adequacy_of(smaller, network, run)
    if not found.evaluated:
        reason = f"could not be evaluated: {found.reason}"
        return not_evaluated(kind.value, np.nan, reason, About.UNITS)
    level = levels.LINEAR if kind is AlternativeKind.LINEAR else levels.SMALLER_MODEL
    advice = (
        f"p-value of what {name}, fitted again, leaves unexplained; above the bound these rows "
        f"do not exclude {name}"
    )
    return at_most(kind.value, found.p_value, level.value, advice, About.UNITS)


def _charge(problem: Problem, units: int) -> float:
    """n log(loss) that so many more units must gain to be kept; to be asked for, half as much again.

    At log(n) a parameter the criterion alone asks for a unit in 13 % of pure noise; with the test row by row
    it did in 1 of 190.
    """
    shared = replace(problem.form, k=0).freedom
    return units * (problem.form.freedom - shared) / problem.k * float(np.log(problem.n))


def beyond_linear(problem: Problem, run: Run) -> Adequacy:
    """The test of adequacy of the best linear function."""
    without = linear_problem(problem)
    return _adequacy_of(without, linear_network(without), run)


def _adequacy_of(problem: Problem, network: OneHiddenNet, run: Run) -> Adequacy:
    seen = problem.at(network)
    return adequacy(seen, seen.theta(network), run)
