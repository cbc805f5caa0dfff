"""Comparisons of an answer with its alternatives: minima, activations, widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import linear_sum_assignment

from onehidden.certify import levels
from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, Status
from onehidden.certify.equivalent import other_orientations
from onehidden.certify.evaluate import certificate_work, certify
from onehidden.certify.moves import Moves
from onehidden.certify.noise_model import OwnLikelihood
from onehidden.certify.rival_laws import compare_activations, compare_mean_laws
from onehidden.certify.units import Cause, named
from onehidden.certify.widths import compare_larger, compare_smaller
from onehidden.checks import About, Check, at_least, at_most
from onehidden.fit.problem import TO_COMPARE, Optimum, Problem, optimise
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import Run

Comparison = Callable[[Certificate, Problem, Run], Certificate]


def compare_with_alternatives(
    certificate: Certificate, problem: Problem, run: Run, other_minima: Sequence[Optimum], errors: str
) -> Certificate:
    """The certificate of the best of an answer, its other orientations and minima, after all comparisons.

    Comparisons are made as long as they can matter; one that is cut short does not count.

    ``other_minima`` are networks of the same form that other starts came to.
    """
    minima = partial(compare_minima, other_minima=other_minima, errors=errors)
    stages: tuple[Comparison, ...] = (
        minima, compare_smaller, compare_larger, compare_activations, compare_mean_laws,
    )  # fmt: skip
    for number, stage in enumerate(stages):
        # The first one may find that moves of its units come back to an answer that one start alone came to.
        alone = number == 0 and certificate.failed(About.SEARCH)
        settled = replace(certificate, comparisons=()) if alone else certificate
        if not _worth_comparing(settled, alone) or not run.within_budget(certificate_work(problem)):
            return certificate
        compared = stage(certificate, problem, run.unseeded().at("comparison", number))
        if run.expired():  # a comparison that is cut short says nothing
            return certificate
        certificate = compared
    return replace(certificate, compared=True)


def _worth_comparing(certificate: Certificate, alone: bool) -> bool:
    """Whether an answer may stand, or some of its units may while others are undetermined.

    One that a start ``alone`` came to is worth it whatever its units.
    """
    prospective = certificate.status_if_comparisons_pass
    if prospective is Status.NOT_IDENTIFIABLE and not certificate.failed(About.COLUMNS):
        return alone or any(unit.cause is None for unit in certificate.unit_verdicts)
    return prospective in (Status.CONSISTENT, Status.APPROXIMATE)


def held_out_by_halves(network: OneHiddenNet, problem: Problem, run: Run) -> float:
    """Refit the network, in x, on each half of the rows: the mean loss of each half under the other's fit.

    The optimiser stops when a step gains less than 1 % of the parameter count in n log(loss).
    """
    halves, enough = problem.halves(run.rng("halves")), max(TO_COMPARE, 0.01 * problem.form.freedom)
    total = 0.0
    for number, rows in enumerate(halves):
        fitted = optimise(network, problem.take(rows), run.at("half", number), tolerance=enough).network
        total += float(problem.row_losses(fitted)[halves[1 - number]].sum())
    return total / problem.n_values


def with_comparisons_on_a_sample(own: Certificate, sample: Certificate, rows: int) -> Certificate:
    """The certificate of all rows of a stream with the comparisons that only a sample of them allows.

    An exact fit of all rows needs none of them.
    """
    if own.exact:
        return own
    if sample.exact:
        advice = (
            f"a sample of {rows} rows is reproduced to rounding but other rows are not: some follow "
            "another law; look for them with the residuals of this network"
        )
        of_all, of_sample = np.sqrt([own.mean_square, sample.mean_square])
        own = own.with_checks(at_most("rows beyond the sample", of_all, of_sample, advice, About.FIT))
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
        undetected=sample.undetected,
        remarks=tuple(f"{prefix} {remark}" for remark in sample.remarks),
    )


def compare_minima(
    certificate: Certificate,
    problem: Problem,
    run: Run,
    other_minima: Sequence[Optimum],
    errors: str,
    met: Sequence[tuple[AlternativeKind, Optimum]] = (),
    rounds: int = 3,
) -> Certificate:
    """Compare an answer with minima that its moves lead to, and with others; the most likely is the answer.

    ``other_minima`` of starts are added to the set, which does not depend on them. Where a move leads to a
    better minimum the moves of that one are made, too, besides those ``met`` before, in at most so many
    ``rounds``. A lower loss alone decides nothing: overfits have it, too.
    """
    own = Optimum(certificate.network, certificate.mean_square)
    reached = _reached(own.network, problem, run)
    if run.expired():
        return certificate
    starts = [(AlternativeKind.MINIMUM, one) for one in (own, *other_minima)]
    known = _distinct([*starts, *met, *reached], problem, run)
    best = _most_likely(known, problem)

    def differing(network: OneHiddenNet, other: OneHiddenNet) -> tuple[int, ...]:
        return differing_units(network, other, problem, best.optimum.mean_square)

    if best.optimum is not own:  # what others came to may still be on its way
        better = optimise(best.optimum.network, problem, run.at("best"), warm=True).network
        moved, kept = bool(differing(better, own.network)), certificate.comparisons
        if moved:  # starts that came to the old answer say nothing of another one
            kept = (agreement(1 + sum(not differing(better, one.network) for one in other_minima)),)
        certificate = replace(certify(better, problem, run, errors), comparisons=kept)
        if moved and rounds > 1:
            others, here = [*starts[:1], *met, *reached], run.at("better")
            return compare_minima(certificate, problem, here, other_minima, errors, others, rounds - 1)
    # Units that were taken away and came back are a start that came to this answer.
    minima = [one.network for kind, one in reached if kind is AlternativeKind.MINIMUM]
    if any(not differing(certificate.network, one) for one in minima):
        starts = (int(check.value) for check in certificate.comparisons if check.about is About.SEARCH)
        certificate = replace(certificate, comparisons=tuple(agreement(1 + one) for one in starts))
    found, likelihood, form = list[Alternative](), best.likelihood, problem.form
    certificate = replace(certificate, likelihood=likelihood)
    for one in known:
        units = differing(certificate.network, one.optimum.network)
        # With the weights of their own noise both may be one network.
        mine, its = likelihood.network or certificate.network, one.likelihood.network or one.optimum.network
        if units and differing(mine, its):
            where = "reversed" if one.kind is AlternativeKind.ORIENTATION else "elsewhere"
            behind, label = likelihood.ahead(one.likelihood), f"{named(units)} {where}"
            # Where both share units the noise that these fit is in both likelihoods.
            shared = likelihood.parameters - int(len(units) * form.unit_freedom)
            needed = likelihood.ruled_out_at(levels.RIVAL.value, shared)
            found.append(Alternative(one.kind, label, behind, one.optimum.network, units, needed))
    checks = [all_worse(found, AlternativeKind.MINIMUM)]
    reversal = problem.activation.reversal
    if reversal is not None and reversal.degree > 0:
        checks.append(all_worse(found, AlternativeKind.ORIENTATION))
    why = "the data do not rule out another network, with {} ({})"
    close = [(i, why.format(one.label, one.distance)) for one in found if one.close for i in one.units]
    reasons = {i: (Cause.RIVAL, reason) for i, reason in close}
    return certificate.with_comparisons(checks, found).with_undetermined(reasons)


class _Minimum(NamedTuple):
    """A minimum that differs from the others by some unit."""

    kind: AlternativeKind
    optimum: Optimum
    likelihood: OwnLikelihood


def _most_likely(known: Sequence[_Minimum], problem: Problem) -> _Minimum:
    """The most likely minimum among those whose loss is not clearly above the lowest.

    A spike through two rows leaves no residual there, and a likelihood with tails forgives it all others.
    """
    lowest = min(one.optimum.mean_square for one in known)

    def near(one: _Minimum) -> bool:
        return problem.excess_deviance(lowest, one.optimum.mean_square) <= one.likelihood.needed

    return max(filter(near, known), key=lambda one: one.likelihood.twice)


def _distinct(
    minima: Sequence[tuple[AlternativeKind, Optimum]], problem: Problem, run: Run
) -> list[_Minimum]:
    """The most likely of the minima that share their units.

    Kinked units have many small minima next to each other: with the same units they are one answer.
    """
    found, lowest = list[_Minimum](), min(one.mean_square for _, one in minima)
    for kind, one in sorted(minima, key=lambda one: one[1].mean_square):
        same = [
            number
            for number, old in enumerate(found)
            if not differing_units(old.optimum.network, one.network, problem, lowest)
        ]
        near = [found[number].optimum.mean_square for number in same[:1]]
        if near and abs(problem.excess_deviance(one.mean_square, near[0])) < 0.01:
            continue
        new = _Minimum(kind, one, OwnLikelihood.of(problem, one.network, run))
        if not same:
            found.append(new)
        elif new.likelihood.twice > found[same[0]].likelihood.twice:
            found[same[0]] = new
    return found


def _reached(
    network: OneHiddenNet, problem: Problem, run: Run, most_orientations: int = 8
) -> list[tuple[AlternativeKind, Optimum]]:
    """Minima that moves of a network lead to: of its units, and of their orientations."""
    found = [(AlternativeKind.MINIMUM, one) for one in Moves().minima(network, problem, run)]
    for number, net in enumerate(other_orientations(problem.at(network), network, most_orientations, run)):
        if run.expired():
            break
        found.append((AlternativeKind.ORIENTATION, optimise(net, problem, run.at("turn", number))))
    return found


def all_worse(alternatives: Sequence[Alternative], kind: AlternativeKind) -> Check:
    """The check that every alternative of one kind is ruled out; it passes where there is none."""
    what, about = "the next best network with other units", About.UNITS
    if kind is AlternativeKind.ORIENTATION:
        what = "the next best choice of orientations"
    if kind is AlternativeKind.SELECTED_ACTIVATION:
        what, about = "the runner-up among activations, by held-out likelihood,", About.NOTE
    mine = [one for one in alternatives if one.kind is kind]
    closest = min(mine, key=lambda one: one.behind - one.needed, default=Alternative(kind, "", np.inf))
    name = f"closest: {closest.label}" if mine else "there is none"
    advice = (
        f"twice the log likelihood by which {what} is behind; below the bound the data do not rule it out "
        f"({name})"
    )
    return at_least(kind.value, closest.behind, closest.needed, advice, about)


def agreement(starts: int) -> Check:
    """The check that more than one start came to an answer."""
    advice = (
        "starts that came to this answer, moves of its units counted as one; with noise a single one may be "
        "a local minimum"
    )
    return at_least("agreement", starts, 2.0, advice, About.SEARCH)


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
    bound = levels.SAME_UNIT.value * (problem.form.inputs + 1 + problem.form.q) * mean_square * share
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
