"""Evaluate the checks of a network by itself, for rows in memory and streams alike: its certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onehidden.certify import levels
from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, certificate_of
from onehidden.certify.dependence import order_checks
from onehidden.certify.equivalent import EXACT, equivalent_sets, orientation_check
from onehidden.certify.local_fit import LocalFit, detectable_share, local_fit
from onehidden.certify.mean_law import mean_law_checks
from onehidden.certify.replicates import count_distinct, lack_of_fit, lattice_checks, repeated_rows
from onehidden.certify.residuals import Adequacy, adequacy, equal_spread, family_checks, spread_sums
from onehidden.certify.uncertainty import uncertainty
from onehidden.certify.units import (
    ActivePatterns,
    Cause,
    Undetermined,
    UnitStatus,
    named,
    pattern_sums,
    undetermined_units,
)
from onehidden.checks import About, Check, at_least, at_most, not_evaluated
from onehidden.fit.problem import Problem
from onehidden.fit.rounding import DEPENDENT
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.run import Run


def certify(network: OneHiddenNet, problem: Problem, run: Run, errors: str = "auto") -> Certificate:
    """The certificate of a network, in x, as far as the network by itself allows.

    Where the time left does not allow it, the certificate says that nothing was evaluated.

    Parameters
    ----------
    network : OneHiddenNet
        The network, in x.
    problem : Problem
        Its rows.
    run : Run
        The run, whose time is kept.
    errors : str
        "classical", "robust", or "auto", see ``uncertainty``.

    Returns
    -------
    Certificate
        Checks, standard errors and units; not yet compared with alternatives.
    """
    if not run.last().within_budget(certificate_work(problem)):
        return _not_evaluated(network, problem)
    given, problem = problem, problem.at(network).at_free_parameters(network)
    local, normal = local_fit(network, problem), given.family is None
    exact = local.exact
    sums = problem.sums(_row_sums, local.inner)
    patterns = ActivePatterns.of(local.inner, *sums[:4])
    of_family = [] if exact else family_checks(local, given, errors)
    off = [one for one in of_family if one.evaluated and not one.passed]
    known = uncertainty(local, errors, equal_spread(*sums[4:]) if normal else None, bool(off))
    missed = None if exact else adequacy(problem, local.theta, run, local.hessian)
    repeat = lack_of_fit(local) if normal and not exact else None
    share = None if exact else detectable_share(local)
    # Few rows tell noise from a wrong network if they repeat, or would show a unit like the weakest found.
    enough = repeat is not None or (share is not None and share <= np.min(patterns.spread**2, initial=1.0))
    checks = [*_fit_checks(local, missed, repeat), *_local_checks(local, share, enough)]
    checks += _column_checks(problem)
    checks += _bound_checks(local, given)
    if not exact:
        checks += [*repeated_rows(local, given), *known.checks, *of_family]
        checks += [*order_checks(local, given, known.by_group is not None), *mean_law_checks(local, given)]
    rows, rounding = problem.rows, problem.rows.rounding
    unit = rows.unit if isinstance(rows, Samples) else 1.0
    mean_square = local.mean_square
    if not normal:  # the mean deviance: local squares are those of the working rows
        mean_square = given.least_squares.loss(given.theta(local.network)) / given.n_values
    certificate = certificate_of(
        local.network,
        checks,
        loss=mean_square * given.fit_coordinates.variance,
        noise_variance=local.residual_variance * problem.fit_coordinates.variance / unit,
        mean_square=mean_square,
        errors=known.errors,
        shares=patterns.spread**2,
        sides=patterns.side,
        undetermined=undetermined_units(local, patterns, known.errors),
        exact=exact,
        n=local.n,
        n_parameters=local.freedom,
        output_precision=rounding.precision if rounding.below_double else 0.0,
        missed_share=0.0 if missed is None else missed.missed_share,
        covariance=known.bands,
        freedom=known.freedom,
        by_group=known.by_group,
        covariance_type=known.kind,
        remarks=() if normal else tuple(one.advice for one in off[:1]),
    )
    if not exact:
        return certificate
    certificate = certificate.with_undetermined(_steps(local)).with_checks(*lattice_checks(local))
    return with_equivalent_sets(certificate, problem)


def certificate_work(problem: Problem) -> float:
    """Operations of a certificate: J'J and the sandwich n p², eigenvalues and inverse 10 p³.

    d = k = 50, n = 16 384 (2600 parameters) take 14 s by this count; measured on one busy thread, 21 s.
    """
    p = problem.form.size
    return p**2 * (problem.n + 10.0 * p)


def _not_evaluated(network: OneHiddenNet, problem: Problem) -> Certificate:
    """What is known of a network, in x, without its Jacobian: loss and shares. Errors are infinite."""
    network, form, numbers = problem.canonical(network), problem.form, problem.n_values
    seen = problem.at(network)
    inner = seen.fit_coordinates.inward(network)
    mean_square = problem.least_squares.loss(problem.theta(network)) / numbers
    loss = mean_square * problem.fit_coordinates.variance
    why = "the time was up before any check of the answer could be evaluated: allow more time"
    return certificate_of(
        network,
        [not_evaluated("examined", 1.0, why, About.SEARCH), *_column_checks(problem)],
        loss=loss,
        noise_variance=loss * numbers / max(numbers - form.freedom, 1),
        mean_square=mean_square,
        shares=ActivePatterns.of(inner, *seen.sums(pattern_sums, inner)).spread ** 2,
        unit_status=UnitStatus.DOUBTFUL,
        exact=problem.rows.rounding.reproduces(mean_square),
        n=problem.n,
        n_parameters=form.freedom,
    )


def _row_sums(inner: OneHiddenNet, *rows: Any) -> list[np.ndarray]:
    return [*pattern_sums(inner, *rows), *spread_sums(inner, *rows)]


def _fit_checks(local: LocalFit, missed: Adequacy | None, of_replicates: float | None) -> list[Check]:
    """Whether something is missed: by further functions of the inputs, and by rows with equal inputs.

    Few rows leave no room for further functions; where some repeat, these answer the question.
    """
    if missed is None:
        bound, rms = local.problem.rows.rounding.exact, float(np.sqrt(local.mean_square))
        return [at_most("fit", rms, bound, "the network reproduces y to rounding", About.FIT)]
    of_rows = (
        "p-value of a network that goes through the means of rows with equal inputs, whose spread is pure "
        "error; below the bound it misses something: more units, another activation, or another start"
    )
    by_rows = []
    if of_replicates is not None:
        by_rows = [at_least("lack of fit", of_replicates, levels.LACK_OF_FIT.value, of_rows, About.FIT)]
    level = levels.FIT.value
    if not missed.evaluated:
        reason = f"whether something is missed could not be evaluated: {missed.reason}"
        return by_rows or [not_evaluated("fit", level, reason, About.FIT)]
    advice = (
        "p-value of noise as the only thing left in the residuals; below the bound the network misses "
        "something: more units, another activation, biases, or another start"
    )
    return [at_least("fit", missed.p_value, level, advice, About.FIT), *by_rows]


def _local_checks(local: LocalFit, share: float | None, enough: bool) -> list[Check]:
    """Checks of the optimum, its curvature and the number of samples, which may be ``enough`` if few."""
    curvature, form = local.curvature, local.problem.form
    # A share of a standard error; at a kink the gradient jumps by whole rows, about 1/n each, and those of
    # heavy tails count for more: of over-dispersed counts 7 % of the right answers had larger gradients.
    gradient = levels.GRADIENT.value / np.sqrt(local.n)
    if form.activation.kinked:
        in_memory = isinstance(local.problem.rows, Samples) and not local.exact
        largest = np.max(np.abs(local.residuals)) / np.sqrt(local.mean_square) if in_memory else 0.0
        gradient = max(gradient, 20 / local.n * max(1.0, float(largest) / 3))
    of_gradient = (
        "largest cosine between the residuals and a column of the Jacobian, against "
        f"{levels.GRADIENT.value:g} of a standard error; if above, the descent has not ended"
    )
    of_curvature = (
        f"directions in which the loss is curved, {DEPENDENT:g} of the steepest or more, against the number "
        "of free parameters; a gap means that different networks fit these rows equally well"
    )
    of_numbers = (
        "no more samples than parameters cannot tell networks apart, and copies of a row are one; with "
        f"noise, fewer than {levels.SAMPLES.value:g} each do only if rows repeat or would show one more unit "
        "as strong as the weakest found"
    )
    if local.exact:  # as many as parameters fit noise to rounding
        numbers, least, clause = count_distinct(local.problem) * form.q, 1.0 + 1 / curvature.freedom, ""
    else:
        numbers, clause = local.effective_numbers, _power_in_words(local, share)
        least = 1.0 + 1 / curvature.freedom if enough else levels.SAMPLES.value
    curved = float(np.sum(curvature.values > DEPENDENT * curvature.values[-1]))
    of_data = at_least("samples per parameter", numbers / curvature.freedom, least, of_numbers, About.DATA)
    return [
        at_most("gradient", local.cosine, gradient, of_gradient, About.SEARCH),
        at_least("identifiability", curved, float(curvature.freedom), of_curvature, About.UNITS),
        replace(of_data, clause=clause),
    ]


def _power_in_words(local: LocalFit, share: float | None) -> str:
    """What so many rows can show, by the power of the F test of one more unit."""
    what = f"{local.n} rows for {local.freedom} parameters"
    if share is None:
        return f"{what} cannot show one more unit, however strong"
    moved = float(np.sqrt(share * local.problem.fit_coordinates.variance))
    return f"{what} show one more unit only if it moves the fit by {moved:.2g} (standard deviation)"


def _column_checks(problem: Problem) -> list[Check]:
    """Whether the columns of X are independent, evaluated where they are not."""
    coordinates, names = problem.fit_coordinates, problem.rows.names
    rank, columns = coordinates.rank, int(np.sum(np.any(coordinates.unwhiten, axis=0)))
    if rank == columns:  # a constant column has no weight, which is no doubt about the others
        return []
    size = np.abs(coordinates.null).max(axis=1) * coordinates.unwhiten.std(axis=0)
    involved = np.flatnonzero(size > 1e-6 * size.max())
    some = ", ".join(names[j] for j in involved[:4]) + (" and others" if len(involved) > 4 else "")
    advice = (
        f"the columns {some} are linearly dependent: their weights cannot be distinguished; leave one out"
    )
    return [at_least("independent columns", float(rank), float(columns), advice, About.COLUMNS)]


def _bound_checks(local: LocalFit, given: Problem, most: int = 6) -> list[Check]:
    """Which weights and outputs are at the bound of a structure: none of these has an error."""
    free, form = given.form.free, local.problem.form
    if free is None or free.bounded is None:
        return []
    at_bound = form.free is not None and free.size - form.free.size
    where = free.matrix @ free.at_bound(given.theta(local.network)).astype(float)
    weights, output, _, _, _ = form.plain.unpack(where)
    names = given.rows.names or tuple(map(str, range(form.d)))
    found = [f"unit {i + 1} on {names[j]}" for i, j in np.argwhere(weights)]
    found += [f"the output of unit {row[0] + 1}" for row in np.argwhere(output)]
    what = f": {', '.join(found[:most])}{' and others' if len(found) > most else ''}" if found else ""
    advice = f"free parameters at the bound of the structure, where they are fixed and have no error{what}"
    return [at_most("at a bound", at_bound, free.size, advice)]


def _steps(local: LocalFit) -> Undetermined:
    """Units of an exact fit that are steps on these rows: steeper ones reproduce them as well.

    The Jacobian of a saturated unit is small but, each column brought to its own scale, of full rank.
    """
    form, problem = local.problem.form, local.problem
    if form.activation.homogeneity is not None:
        return {}
    weights, output, bias, beta, constant = form.unpack(local.theta)
    found: Undetermined = {}
    for i in range(form.k):
        scale = np.where(np.arange(form.k) == i, 2.0, 1.0)
        steeper = form.pack(weights * scale[:, None], output, bias * scale, beta, constant)
        if problem.rows.rounding.reproduces(problem.least_squares.loss(steeper) / local.n_values):
            found[i] = Cause.BLIND, f"unit {i + 1} is a step on these rows: steeper ones fit as well"
    return found


def with_equivalent_sets(certificate: Certificate, problem: Problem) -> Certificate:
    """Compare with every other choice of orientations: all sets of units that can be reversed together.

    No Jacobian shows them; an exact fit is unique only if there are none.
    """
    around, form, name = problem.whitening, problem.form, AlternativeKind.ORIENTATION
    found = equivalent_sets(
        certificate.network,
        centre=around.shift,
        spread=around.unwhiten.T,
        intercept=form.intercept,
        linear=form.skip,
        tolerance=100 * problem.rows.rounding.exact if certificate.output_precision else EXACT,
    )
    alternatives, undetermined = [], {}
    for units, other in zip(found.sets, found.networks, strict=True):
        label = f"{named(units)} reversed"
        alternatives.append(Alternative(name, label, 0.0, other, units))
        reason = Cause.EQUIVALENT, f"the network with {label} computes the same function"
        undetermined |= dict.fromkeys(units, reason)
    check = orientation_check(found, name.value)
    return certificate.with_comparisons([check], alternatives).with_undetermined(undetermined)
