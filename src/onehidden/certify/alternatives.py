"""Comparisons of an answer with its alternatives: minima, activations, widths, halves of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from onehidden import activations
from onehidden.certify import levels
from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, Status
from onehidden.certify.equivalent import other_orientations, undetected_reversals
from onehidden.certify.evaluate import certify
from onehidden.certify.local_fit import local_fit
from onehidden.certify.mean_law import compare_mean_laws
from onehidden.certify.moves import Moves
from onehidden.certify.noise_model import OwnLikelihood
from onehidden.certify.units import Cause, named
from onehidden.certify.widths import compare_larger, compare_smaller, score_test_cost
from onehidden.checks import About, Check, at_least, at_most, not_evaluated
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import TO_COMPARE, Optimum, Problem, optimise
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import descent_work

Comparison = Callable[[Certificate, Problem, Run], Certificate]


def compare_with_alternatives(
    certificate: Certificate, problem: Problem, run: Run, other_minima: Sequence[Optimum], errors: str
) -> Certificate:
    """The certificate of the best of an answer, its other orientations and minima, after all comparisons.

    Comparisons are made as long as they can matter; one that is cut short does not count.

    ``other_minima`` are networks of the same form that other starts came to.
    """

    def minima(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
        return compare_minima(certificate, problem, run, other_minima, errors)

    stages: tuple[Comparison, ...] = (
        minima, compare_smaller, compare_larger, compare_activations, compare_mean_laws, compare_halves,
    )  # fmt: skip
    for number, stage in enumerate(stages):
        if not _worth_comparing(certificate) or not run.within_budget(score_test_cost(problem)):
            return certificate
        compared = stage(certificate, problem, run.unseeded().at("comparison", number))
        if run.expired():  # a comparison that is cut short says nothing
            return certificate
        certificate = compared
    return replace(certificate, compared=True)


def _worth_comparing(certificate: Certificate) -> bool:
    """Whether an answer may stand, or some of its units may while others are undetermined."""
    prospective = certificate.status_if_comparisons_pass
    if prospective is Status.NOT_IDENTIFIABLE and not certificate.failed(About.COLUMNS):
        return any(unit.cause is None for unit in certificate.unit_verdicts)
    return prospective in (Status.CONSISTENT, Status.APPROXIMATE)


def fit_halves(network: OneHiddenNet, problem: Problem, run: Run) -> tuple[float, float]:
    """Refit the network, in x, on each half of the rows.

    The optimiser stops when a step gains less than 1 % of the parameter count in n log(loss); the check
    allows 4. At d = k = 20 the fits differ by 1 to 3 % less than after full descents, in half the time.

    Returns the mean squared difference between the predictions of the two fits, as a share of var(y), and the
    mean loss of each half under the fit of the other, a mean deviance where y has a family.
    """
    halves, seen = problem.halves(run.rng("halves")), problem.at(network)
    X, root = seen.samples.X, roots(seen.samples.weight, seen.n)
    enough = max(TO_COMPARE, 0.01 * problem.form.freedom)
    values, losses = [], []
    for number, rows in enumerate(halves):
        fitted = optimise(network, problem.take(rows), run.at("half", number), tolerance=enough).network
        losses.append(problem.row_losses(fitted))
        values.append(weighed(root, seen.fit_coordinates.divided(fitted.predict(X))))
    held_out = float(losses[0][halves[1]].sum() + losses[1][halves[0]].sum()) / problem.n_values
    return float(np.mean((values[0] - values[1]) ** 2)), held_out


def half_sample_check(half_distance: float, variance: float, freedom: int, n: int) -> Check:
    """Whether two halves agree, against what p parameters cost.

    Half-sample fits differ by 4 p/n of the noise, to first order; with s samples per parameter in a half it
    grows by about s/(s - 1).
    """
    share = 2 * freedom / n
    return at_most(
        "half-sample agreement",
        half_distance / (2 * variance * share / max(1 - share, 0.1)),
        levels.HALVES.value,
        "squared distance between the fits of two halves of the sample, against what noise explains; "
        "above, the answer depends on few samples",
    )


def compare_halves(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Fit each half of the sample again: an approximation must come out the same."""
    half_distance, _ = fit_halves(certificate.network, problem, run)
    variance = local_fit(certificate.network, problem.at(certificate.network)).residual_variance
    check = half_sample_check(half_distance, variance, certificate.n_parameters, problem.n_values)
    return replace(certificate.with_comparisons([check]), halves_agree=check.passed)


def with_comparisons_on_a_sample(own: Certificate, sample: Certificate, rows: int) -> Certificate:
    """The certificate of all rows of a stream with the comparisons that only a sample of them allows.

    An exact fit of all rows needs none of them.
    """
    if own.exact:
        return own
    if sample.exact:
        own = own.with_checks(
            at_most(
                "rows beyond the sample",
                float(np.sqrt(own.mean_square)),
                float(np.sqrt(sample.mean_square)),
                f"a sample of {rows} rows is reproduced to rounding but other rows are not: some follow "
                "another law; look for them with the residuals of this network",
                About.FIT,
            )
        )
    place = match(own.network, sample.network).permutation  # units as all rows number them
    undetermined = {
        int(place[unit.index]): (unit.cause, unit.reason)
        for unit in sample.unit_verdicts
        if unit.cause in (Cause.RIVAL, Cause.SPARE)
    }
    prefix = f"on a sample of {rows} rows"
    return replace(
        own.with_undetermined(undetermined),
        comparisons=tuple(replace(check, advice=f"{prefix}: {check.advice}") for check in sample.comparisons),
        alternatives=sample.alternatives,
        compared=sample.compared,
        halves_agree=sample.halves_agree,
        undetected=sample.undetected,
        remarks=tuple(f"{prefix} {remark}" for remark in sample.remarks),
    )


def compare_minima(
    certificate: Certificate,
    problem: Problem,
    run: Run,
    other_minima: Sequence[Optimum],
    errors: str,
    rounds: int = 3,
) -> Certificate:
    """Compare an answer with minima that its moves lead to, and with others; the most likely is the answer.

    ``other_minima`` are added to the set, which does not depend on them. Where a move leads to a better
    minimum the moves of that one are made, too, at most ``rounds`` times. A lower loss alone decides
    nothing: overfits have it, too.
    """
    own = Optimum(certificate.network, certificate.mean_square)
    others = [(AlternativeKind.MINIMUM, one) for one in (own, *other_minima)]
    known: list[_Minimum] = []
    best, reached = own, others[:0]
    for number in range(rounds):
        reached = _reached(best.network, problem, run.at("round", number))
        if run.expired():
            return certificate
        others += reached
        known = _distinct(others, problem, known, run)
        before, best = best, _most_likely(known, problem).optimum
        if best is before or not differing_units(best.network, before.network, problem, best.mean_square):
            break
    likelihood = _most_likely(known, problem).likelihood
    if best is not own:  # what others came to may still be on its way
        best = optimise(best.network, problem, run.at("best"), warm=True)

    def differing(network: OneHiddenNet) -> tuple[int, ...]:
        return differing_units(best.network, network, problem, best.mean_square)

    # Units that were taken away and came back are a start that came to this answer.
    minima = [one for kind, one in reached if kind is AlternativeKind.MINIMUM]
    returned = any(not differing(one.network) for one in minima)
    if best is not own:
        # Starts that came to the old answer say nothing of another one.
        same = [one for one in other_minima if not differing(one.network)]
        kept = (agreement(1 + len(same)),) if differing(own.network) else certificate.comparisons
        certificate = replace(certify(best.network, problem, run, errors), comparisons=kept)
    if returned:
        certificate = replace(certificate, comparisons=tuple(map(_once_more, certificate.comparisons)))
    found: list[Alternative] = []
    for one in known:
        units = differing_units(certificate.network, one.optimum.network, problem, best.mean_square)
        # With the weights of their own noise both may be one network.
        mine, its = likelihood.network or certificate.network, one.likelihood.network or one.optimum.network
        if units and differing_units(mine, its, problem, best.mean_square):
            where = "reversed" if one.kind is AlternativeKind.ORIENTATION else "elsewhere"
            behind, label = likelihood.ahead(one.likelihood), f"{named(units)} {where}"
            found.append(Alternative(one.kind, label, behind, one.optimum.network, units, likelihood.needed))
    checks = [all_worse(found, AlternativeKind.MINIMUM, likelihood.needed)]
    reversal = problem.activation.reversal
    reversals: list[tuple[tuple[int, ...], OneHiddenNet]] | None = []
    if reversal is not None and reversal.degree > 1:  # those of degree one are fitted above
        local = local_fit(certificate.network, problem.at(certificate.network))
        reversals = undetected_reversals(local, local.covariance(True))
    for units, net in reversals or []:
        if differing(net):
            label = f"{named(units)} reversed"
            found.append(Alternative(AlternativeKind.ORIENTATION, label, 0.0, net, units, likelihood.needed))
    if reversals is None:
        reason = "could not be evaluated: too many parameters for all orientations of powers of ReLU"
        checks.append(not_evaluated(AlternativeKind.ORIENTATION.value, np.nan, reason, About.UNITS))
    elif reversal is not None and reversal.degree > 0:
        checks.append(all_worse(found, AlternativeKind.ORIENTATION, likelihood.needed))
    reasons = {
        i: (
            Cause.RIVAL,
            f"the data do not rule out another network with {one.label} ({one.distance})",
        )
        for one in found
        if one.close
        for i in one.units
    }
    return certificate.with_comparisons(checks, found).with_undetermined(reasons)


@dataclass(frozen=True)
class _Minimum:
    """A minimum that differs from the others by some unit."""

    kind: AlternativeKind
    optimum: Optimum
    likelihood: OwnLikelihood


def _most_likely(known: Sequence[_Minimum], problem: Problem) -> _Minimum:
    """The most likely minimum among those whose loss is not clearly above the lowest.

    A spike through two rows leaves no residual there, and a likelihood with tails forgives it all others.
    """
    lowest = min(one.optimum.mean_square for one in known)
    near = [
        one
        for one in known
        if problem.excess_deviance(lowest, one.optimum.mean_square) <= one.likelihood.needed
    ]
    return max(near, key=lambda one: one.likelihood.twice)


def _distinct(
    minima: Sequence[tuple[AlternativeKind, Optimum]], problem: Problem, known: Sequence[_Minimum], run: Run
) -> list[_Minimum]:
    """The most likely of the minima that share their units; the likelihoods of those ``known`` are kept.

    Kinked units have many small minima next to each other: with the same units they are one answer.
    """
    found, before = list(known), [one.optimum for one in known]
    lowest = min(one.mean_square for _, one in minima)
    for kind, one in sorted(minima, key=lambda one: one[1].mean_square):
        near = [
            old for old in before if abs(problem.excess_deviance(one.mean_square, old.mean_square)) < 0.01
        ]
        if any(not differing_units(old.network, one.network, problem, lowest) for old in near):
            continue
        before.append(one)
        new = _Minimum(kind, one, OwnLikelihood.of(problem, one.network, run))
        same = [
            number
            for number, old in enumerate(found)
            if not differing_units(old.optimum.network, one.network, problem, lowest)
        ]
        if not same:
            found.append(new)
        elif new.likelihood.twice > found[same[0]].likelihood.twice:
            found[same[0]] = new
    return found


def _reached(
    network: OneHiddenNet, problem: Problem, run: Run, most_orientations: int = 8
) -> list[tuple[AlternativeKind, Optimum]]:
    """Minima that moves of a network lead to: of its units, through a smooth relative, of orientations."""
    minima = [*Moves().minima(network, problem, run), *_by_continuation(network, problem, run)]
    found = [(AlternativeKind.MINIMUM, one) for one in minima]
    for number, net in enumerate(other_orientations(problem.at(network), network, most_orientations, run)):
        if run.expired():
            break
        found.append((AlternativeKind.ORIENTATION, optimise(net, problem, run.at("turn", number))))
    return found


def _by_continuation(network: OneHiddenNet, problem: Problem, run: Run) -> list[Optimum]:
    """Minima reached by continuation through a smooth relative of the activation: it has fewer minima.

    Measured where two starts agreed on a wrong minimum (ReLU, ten rows per parameter, noise of half the
    signal): continuation through softplus or GELU found the better one in three of four.
    """
    smooth, found = problem.activation.smooth_relative, []
    for name in [smooth] if smooth and refit_worth_its_time(problem) else []:
        if run.expired():
            break
        relative, here = problem.with_activation(activations.get(name)), run.at("relative", name)
        away = optimise(with_other_units(network, relative), relative, here, tolerance=TO_COMPARE).network
        found.append(optimise(with_other_units(away, problem), problem, run.at("back", name)))
    return found


def all_worse(
    alternatives: Sequence[Alternative], kind: AlternativeKind, needed: float = levels.LIKELIHOOD.value
) -> Check:
    """The check that every alternative of one kind is ruled out; it passes where there is none."""
    what, about = "the next best network with other units", About.UNITS
    if kind is AlternativeKind.ORIENTATION:
        what = "the next best choice of orientations"
    if kind is AlternativeKind.SELECTED_ACTIVATION:
        what, about = "the runner-up among activations, by held-out likelihood,", About.NOTE
    mine = [one for one in alternatives if one.kind is kind]
    closest = min(mine, key=lambda one: one.behind, default=None)
    name = "there is none" if closest is None else f"closest: {closest.label}"
    advice = (
        f"twice the log likelihood by which {what} is behind; below the bound the data do not rule it out "
        f"({name})"
    )
    return at_least(kind.value, np.inf if closest is None else closest.behind, needed, advice, about)


def agreement(starts: int) -> Check:
    """The check that more than one start came to an answer."""
    return at_least(
        "agreement",
        float(starts),
        2.0,
        "starts that came to this answer, moves of its units counted as one; with noise a single one may be "
        "a local minimum",
        About.SEARCH,
    )


def _once_more(check: Check) -> Check:
    """The check of agreement, the one about the search, with one start more; any other check as it is."""
    return agreement(int(check.value) + 1) if check.about is About.SEARCH else check


def differing_units(
    network: OneHiddenNet, other: OneHiddenNet, problem: Problem, mean_square: float, rows: int = 4000
) -> tuple[int, ...]:
    """Units of ``network`` that ``other`` does not have, units paired so that they differ least.

    Two units are one if sum_n (w g - w' g')² over at most ``rows`` rows and the outputs is within what noise
    of this mean square, in units of var(y), moves a unit of d + 2 parameters by. The noise of a family is
    that of a step of Fisher scoring. With a linear part units are compared but for what that can take up.
    """
    X = problem.samples.X[np.linspace(0, problem.n - 1, min(problem.n, rows)).astype(int)]
    seen = problem.at(network)  # whose scale of y is that of ``mean_square``
    here, there = (_contributions(net, X, seen) for net in (network, other))
    apart = np.sum(here**2, axis=0)[:, None] + np.sum(there**2, axis=0) - 2 * here.T @ there
    mine, theirs = linear_sum_assignment(apart)
    if problem.family is not None:
        mean_square = seen.least_squares.loss(seen.theta(network)) / seen.n_values
    share = len(X) / problem.n
    bound = levels.SAME_UNIT.value * (problem.d + 1 + problem.form.q) * mean_square * share
    # Descents that end at rounding differ by up to sqrt(eps) of a unit's sum of squares.
    bounds = np.maximum(bound, np.sqrt(np.finfo(float).eps) * np.sum(here**2, axis=0))
    return tuple(int(i) for i, j in zip(mine, theirs, strict=True) if apart[i, j] > bounds[i])


def _contributions(net: OneHiddenNet, X: np.ndarray, problem: Problem) -> Float[np.ndarray, "N k"]:
    """What each unit adds to the outputs at these rows, less what intercept and linear part can take up."""
    values = net.activation(X @ net.weights.T + net.bias)
    values = values - values.mean(axis=0)
    if problem.form.skip:
        design = np.column_stack([np.ones(len(X)), X])
        values = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    output = problem.fit_coordinates.divided(net.output)
    return (values[:, None, :] * output.reshape(net.n_hidden, -1).T).reshape(-1, net.n_hidden)


def refit_worth_its_time(problem: Problem, operations: float = 2e10) -> bool:
    """Whether a descent under another activation is worth its time.

    n = 10 000 and 110 parameters take 1.5e10 operations, a few seconds.
    """
    return descent_work(problem) <= operations


def compare_activations(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare with other activations, each fitted from the units found; ties are reported.

    One is better where it would rule the assumed activation out.
    """
    if certificate.status_if_comparisons_pass is Status.APPROXIMATE:
        return certificate
    name, g = AlternativeKind.SIMILAR_ACTIVATION.value, problem.activation
    if not refit_worth_its_time(problem):
        reason = "other activations were not fitted: each would take as long as the answer itself"
        return certificate.with_comparisons([not_evaluated(name, 0.0, reason)])
    every = [name for name in activations.names(compared=True) if not activations.get(name).polynomial]
    names = every if problem.k == 1 else g.relatives  # one unit is easily taken for another
    if not names:
        reason = f"no relatives of {g.name} are known that noise could hide behind it"
        return certificate.with_comparisons([not_evaluated(name, 0.0, reason)])
    own = OwnLikelihood.of(problem, certificate.network, run)
    ties, found, ahead = [], [], []
    for other in names:
        if other in (g.name, g.equivalent) or (other == "sigmoid" and "tanh" in names):
            continue
        if run.expired():
            return certificate
        rival = problem.with_activation(activations.get(other))
        start = with_other_units(certificate.network, rival)
        fitted = optimise(start, rival, run.at(other), tolerance=TO_COMPARE)
        its = OwnLikelihood.of(rival, fitted.network, run)
        one = Alternative(
            AlternativeKind.SIMILAR_ACTIVATION,
            other,
            own.ahead(its),
            fitted.network,
            tuple(range(problem.k)),
            own.needed,
        )
        if one.close:
            found.append(one)
            (ahead if its.ahead(own) >= its.needed else ties).append(other)
    advice = "activations that would rule the assumed one out on these rows"
    advice += f": {', '.join(ahead)}" if ahead else ""
    certificate = certificate.with_comparisons(
        [at_most(name, float(len(ahead)), 0.0, advice, About.FIT)], found
    )
    remark = f"they do not tell {g.name} from {' or '.join(ties)}"
    return certificate.with_remark(remark) if ties else certificate


def with_other_units(network: OneHiddenNet, rival: Problem) -> OneHiddenNet:
    """The units of a network under another activation, outputs by least squares."""
    seen = rival.at(network)
    columns = [rival.activation(seen.samples.X @ network.weights.T + network.bias)]
    if rival.form.skip:
        columns.append(seen.samples.X)
    design = seen.weighted(np.column_stack([*columns, np.ones(seen.n)]))
    solved, k = np.linalg.lstsq(design, seen.weighted(seen.samples.y), rcond=1e-10)[0], network.n_hidden
    linear = solved[k:-1] if rival.form.skip else None
    return OneHiddenNet(network.weights, solved[:k], network.bias, solved[-1], rival.activation, linear)
