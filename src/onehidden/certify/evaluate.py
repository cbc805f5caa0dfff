"""Evaluate the checks of a network by itself, for rows in memory and streams alike: its certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import fdtri, ncfdtrinc

from onehidden.certify import levels
from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, certificate_of
from onehidden.certify.dependence import order_checks
from onehidden.certify.equivalent import EXACT, equivalent_sets
from onehidden.certify.errors import ParameterRecord, covariance_in_x, freedom_of_errors
from onehidden.certify.groups import (
    GroupedCovariance,
    correlation_by_chance,
    independent_rows,
    residual_correlation,
)
from onehidden.certify.local_fit import LocalFit, local_fit
from onehidden.certify.mean_law import mean_law_checks
from onehidden.certify.replicates import (
    count_distinct,
    different,
    lack_of_fit,
    lack_of_fit_check,
    repeated_rows,
)
from onehidden.certify.residuals import (
    Adequacy,
    adequacy,
    adequacy_work,
    equal_spread,
    family_checks,
    spread_check,
    spread_sums,
)
from onehidden.certify.units import (
    ActivePatterns,
    Cause,
    Undetermined,
    UnitStatus,
    in_errors,
    lattice_check,
    named,
    pattern_sums,
    undetermined_units,
)
from onehidden.checks import About, Check, at_least, at_most, not_evaluated
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet, facing
from onehidden.run import Run


def certify(
    network: OneHiddenNet,
    problem: Problem,
    run: Run,
    errors: str = "auto",
    noun: str = "sample",
    nothing: float = 1e-7,
    most_parameters: int = 1000,
) -> Certificate:
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
        "classical", "robust", or "auto": robust where the spread of the residuals is unequal.
    noun : str
        What a row is called.
    nothing : float
        Share of std(y) below which a unit of an exact fit adds nothing.
    most_parameters : int
        Parameters up to which their covariance is kept for confidence bands, and up to which "auto" takes the
        larger of both errors where the spread looks equal.

    Returns
    -------
    Certificate
        Checks, standard errors and units; not yet compared with alternatives.
    """
    if not run.last().within_budget(certificate_work(problem)):
        return _not_evaluated(network, problem, noun)
    given, problem = problem, problem.at(network)
    local = local_fit(network, problem)
    exact, few = local.exact, problem.form.size <= most_parameters
    sums = problem.sums(_row_sums, local.inner)
    patterns = ActivePatterns.of(local.inner, *sums[:4])
    equal_p = 1.0 if exact or given.family is not None else equal_spread(*sums[4:])
    of_family = [] if exact else family_checks(local, given, errors)
    missed = None if exact else _adequacy(local, run)
    uneven = equal_p < levels.EQUAL_VARIANCE.value or any(
        check.evaluated and not check.passed for check in of_family
    )
    robust = not exact and (errors == "robust" or (errors == "auto" and uneven))
    grouped = None if exact or errors == "classical" else local.grouped
    covariance = local.covariance(robust) if grouped is None else grouped.covariance
    deviations = local.errors(covariance)
    # A family says what its spread is, and the test of it found nothing: the larger of both would cover 97 %.
    if errors == "auto" and not (robust or exact) and few and grouped is None and given.family is None:
        deviations = deviations.at_least(local.errors(local.covariance(True)))
    with_groups = _group_checks(local) if not exact else []
    bands = _covariance_of_bands(covariance, local, deviations) if few else None
    of_replicates = None if exact or given.family is not None else lack_of_fit(local)
    checks = [*_fit_checks(local, missed, of_replicates), *with_groups]
    checks += _local_checks(local, patterns, deviations, nothing)
    if bands is not None and not exact:
        deviations, of_side = _with_orientations(local, bands, deviations)
        checks += of_side
    if not exact:
        sandwich = robust or grouped is not None
        of_spread = [] if given.family is not None else [spread_check(equal_p, errors, sandwich)]
        checks += [*repeated_rows(local, given), *of_spread, *of_family, *order_checks(local, given)]
        checks += mean_law_checks(local, given)
    rows, rounding = problem.rows, problem.rows.rounding
    theta = local.theta if given is problem else given.theta(local.network)
    loss = given.least_squares.loss(theta) / given.n_values
    noise_variance = local.residual_variance * problem.fit_coordinates.variance
    undetermined = undetermined_units(
        local.network, local.inner, patterns, deviations, local.undetermined, exact, noun, nothing
    )
    certificate = certificate_of(
        local.network,
        [*checks, *_column_checks(problem)],
        loss=loss * given.fit_coordinates.variance,
        noise_variance=noise_variance / rows.unit if isinstance(rows, Samples) else noise_variance,
        mean_square=loss,
        errors=deviations,
        shares=patterns.spread**2,
        undetermined=undetermined,
        exact=exact,
        n=local.n,
        n_parameters=local.freedom,
        noun=noun,
        output_precision=rounding.precision if rounding.below_double else 0.0,
        missed_share=0.0 if missed is None else missed.missed_share,
        covariance=bands,
        freedom=None
        if grouped is None
        else freedom_of_errors(grouped, problem.form, problem.fit_coordinates),
        band_freedom=float("nan") if grouped is None else _band_freedom(local, grouped),
    ).with_sides(patterns.side)
    if not exact:
        spread = [one for one in of_family if given.family is not None and one.evaluated and not one.passed]
        return certificate.with_remark(spread[0].advice) if spread else certificate
    certificate = certificate.with_undetermined(_steps(local)).with_checks(*_lattice_checks(local))
    return with_equivalent_sets(certificate, problem)


def certificate_work(problem: Problem) -> float:
    """Operations of a certificate: J'J and the sandwich n p², eigenvalues and inverse 10 p³.

    d = k = 50, n = 16 384 (2600 parameters) take 14 s by this count; measured on one busy thread, 21 s.
    """
    p = problem.form.size
    return p**2 * (problem.n + 10.0 * p)


def _not_evaluated(network: OneHiddenNet, problem: Problem, noun: str) -> Certificate:
    """What is known of a network, in x, without its Jacobian: loss and shares. Errors are infinite."""
    network, form = network.canonical(), problem.form
    numbers = problem.n_values
    mean_square = problem.least_squares.loss(problem.theta(network)) / numbers
    seen = problem.at(network)
    inner = seen.fit_coordinates.inward(network)
    patterns = ActivePatterns.of(inner, *seen.sums(pattern_sums, inner))
    loss = mean_square * problem.fit_coordinates.variance
    why = "the time was up before any check of the answer could be evaluated: allow more time"
    return certificate_of(
        network,
        [not_evaluated("examined", 1.0, why, About.SEARCH), *_column_checks(problem)],
        loss=loss,
        noise_variance=loss * numbers / max(numbers - form.freedom, 1),
        mean_square=mean_square,
        shares=patterns.spread**2,
        unit_status=UnitStatus.DOUBTFUL,
        exact=problem.rows.rounding.reproduces(mean_square),
        n=problem.n,
        n_parameters=form.freedom,
        noun=noun,
    )


def _row_sums(inner: OneHiddenNet, *rows: Any) -> list[np.ndarray]:
    return [*pattern_sums(inner, *rows), *spread_sums(inner, *rows)]


def _adequacy(local: LocalFit, run: Run) -> Adequacy:
    problem = local.problem
    if not run.within_budget(adequacy_work(local.n_values, problem.form.size)):
        return Adequacy(False, reason="the time was up: allow more")
    mean = (problem.whitening.shift - problem.fit_coordinates.shift) @ problem.fit_coordinates.whiten
    seed = run.unseeded().seed_of("looks at the residuals")
    groups = problem.rows.groups if isinstance(problem.rows, Samples) else None
    each, hessian = problem.marginal, local.hessian  # features are those of single rows
    if each is not problem:
        hessian = each.least_squares.normal_equations(local.theta)[0]
    return adequacy(problem.fold, problem.form, local.theta, hessian, local.n_values, seed, mean, groups)


def _fit_checks(local: LocalFit, missed: Adequacy | None, of_replicates: float | None) -> list[Check]:
    """Whether something is missed: by further functions of the inputs, and by rows with equal inputs.

    Few rows leave no room for further functions; where some repeat, these answer the question.
    """
    by_rows = [] if of_replicates is None else [lack_of_fit_check(of_replicates)]
    if by_rows and missed is not None and not missed.evaluated:
        return by_rows
    return [_fit_check(local, missed), *by_rows]


def _fit_check(local: LocalFit, missed: Adequacy | None) -> Check:
    level = levels.RESIDUALS.value
    if missed is None:
        bound, rms = local.problem.rows.rounding.exact, float(np.sqrt(local.mean_square))
        return at_most("fit", rms, bound, "the network reproduces y to rounding", About.FIT)
    if not missed.evaluated:
        reason = f"whether something is missed could not be evaluated: {missed.reason}"
        return not_evaluated("fit", level, reason, About.FIT)
    advice = (
        "p-value of noise as the only thing left in the residuals; below the bound the network misses "
        "something: more units, another activation, biases, or another start"
    )
    return at_least("fit", missed.p_value, level, advice, About.FIT)


def _local_checks(
    local: LocalFit, patterns: ActivePatterns, errors: ParameterRecord, nothing: float
) -> list[Check]:
    """Checks of the optimum, its curvature, its units and the number of samples."""
    bend, exact, form = local.bend, local.exact, local.problem.form
    # A share of a standard error; at a kink the gradient jumps by whole rows, about 1/n each, and those of
    # heavy tails count for more: of over-dispersed counts 7 % of the right answers had larger gradients.
    gradient = levels.GRADIENT.value / np.sqrt(local.n)
    if form.activation.kinked:
        gradient = max(gradient, 20 / local.n * max(1.0, local.largest_residual / 3))
    if exact:
        clear, least = patterns.spread, nothing
    else:
        clear, least = in_errors(local.network.output, errors.output), levels.OUTPUT.value
    found = [
        at_most(
            "gradient",
            local.cosine,
            gradient,
            "largest cosine between the residuals and a column of the Jacobian, against "
            f"{levels.GRADIENT.value:g} of a standard error; if above, the descent has not ended",
            About.SEARCH,
        ),
        at_least(
            "identifiability",
            float(np.sum(bend.values > 1e-10 * bend.values[-1])),
            float(bend.freedom),
            "directions in which the loss is curved, 1e-10 of the steepest or more, against the number of "
            "free parameters; a gap means that different networks fit these rows equally well",
            About.UNITS,
        ),
        at_least(
            "weakest unit",
            float(np.min(clear)),
            least,
            "a unit that adds nothing to y has no direction to speak of",
            About.UNITS,
        ),
    ]
    if form.activation.homogeneity is not None:
        found.append(
            at_least(
                "switched units",
                float(np.min(patterns.beyond)),
                1.0,
                "fewest rows on the lesser side of a unit; with none it acts as a polynomial and could be "
                "another unit, or none",
                About.UNITS,
            )
        )
    numbers = count_distinct(local.problem) * form.q if exact else local.effective_numbers
    found.append(
        at_least(
            "samples per parameter",
            numbers / bend.freedom,
            1.0 + 1 / bend.freedom
            if exact
            else levels.SAMPLES.value,  # as many as parameters fit noise to rounding
            "no more samples than parameters cannot tell networks apart, and copies of a row are one; with "
            f"noise, fewer than {levels.SAMPLES.value:g} each cannot tell noise from a wrong network",
            About.DATA,
        )
    )
    if not exact:
        found[-1] = replace(found[-1], clause=_power_in_words(local))
    return found


def _power_in_words(local: LocalFit) -> str:
    """What so many rows can show, by the power of the F test of one more unit."""
    form, coordinates = local.problem.form, local.problem.fit_coordinates
    unit = form.freedom - replace(form, k=form.k - 1).freedom
    spare = local.n_values - local.freedom - unit
    what = f"{local.n} rows for {local.freedom} parameters"
    if spare < 2:
        return f"{what} cannot show a further unit, however strong"
    bound = fdtri(unit, spare, 1 - levels.LARGER_MODEL.value)
    shift = ncfdtrinc(unit, spare, 1 - levels.LARGER_MODEL_POWER.value, bound) / local.n_values
    moved = float(np.sqrt(shift * local.variance * coordinates.variance))
    return f"{what} show a further unit only if it moves the fit by {moved:.2g} (standard deviation)"


def _group_checks(local: LocalFit) -> list[Check]:
    """How much of the noise rows of a group share, and whether there are enough groups."""
    rows = local.problem.rows
    if not isinstance(rows, Samples) or rows.groups is None:
        return []
    each = local.problem.marginal.least_squares
    assert isinstance(each, InMemoryLeastSquares)
    residuals = each.residuals(local.theta).reshape(local.n, -1)
    correlation, size = residual_correlation(residuals, rows.groups)
    count, k = int(rows.groups.max()) + 1, local.problem.k
    by_chance = correlation_by_chance(local.n, count, size, levels.GROUPS.value)
    shared = (
        "share of the noise that rows of a group have in common, against what chance shows; standard errors, "
        f"tests and rows left out are by group: {local.n} rows in {count} groups say as much as "
        f"{independent_rows(local.n, correlation, size):.0f} independent ones"
    )
    enough = "groups beyond one for each unit; with fewer the errors by group are not known"
    return [
        at_most("groups", correlation, by_chance, shared),
        at_least("number of groups", float(count), k + 2.0, enough, About.ERRORS),
    ]


def _band_freedom(local: LocalFit, grouped: GroupedCovariance, most: int = 50) -> float:
    """Degrees of freedom of the mean at the rows: the median over at most so many of them."""
    fit, n = local.problem.marginal.least_squares, local.n_values
    assert isinstance(fit, InMemoryLeastSquares)
    rows = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
    return float(np.median(grouped.freedom(fit.jacobian(local.theta, rows))))


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


def _covariance_of_bands(
    covariance: Float[np.ndarray, "p p"], local: LocalFit, reported: ParameterRecord
) -> Float[np.ndarray, "P P"]:
    """The covariance of the parameters in x, as large as the reported standard errors."""
    form, coordinates = local.problem.form, local.problem.fit_coordinates
    found = covariance_in_x(covariance, form, coordinates)
    there = replace(form, d=len(coordinates.shift))
    errors = there.pack(reported.weights, reported.output, reported.bias, reported.linear, reported.intercept)
    own = np.sqrt(np.maximum(np.diag(found), 0))
    # A parameter that the data leave open has an infinite error, and moves no prediction.
    larger = np.where((own > 0) & np.isfinite(errors), errors / np.where(own > 0, own, 1.0), 1.0)
    return found * np.outer(larger, larger)


def _with_orientations(
    local: LocalFit, covariance: Float[np.ndarray, "P P"], errors: ParameterRecord
) -> tuple[ParameterRecord, list[Check]]:
    """Errors of a linear part that cover the other orientation of units whose orientation noise may decide.

    Beside a linear part the sign of ``facing`` orients a unit; where that is not clear of zero, the other
    sign moves v by 2 h_1 w a and the intercept by 2 h_1 w b, h_1 the slope that a reversal changes.
    """
    net, part = local.network, local.network.activation.orientation_part
    if errors.linear is None or len(part) != 2:
        return errors, []
    (k, d), coefficients = net.weights.shape, facing(np.eye(net.n_inputs))
    blocks = [covariance[i * d : (i + 1) * d, i * d : (i + 1) * d] for i in range(k)]
    deviation = np.sqrt([max(coefficients @ block @ coefficients, np.finfo(float).tiny) for block in blocks])
    clear = np.abs(facing(net.weights)) / deviation
    level, output = levels.FACING.value, 2 * np.abs(part[1] * net.output.reshape(k, -1))
    output = output * (clear < level)[:, None]
    linear, intercept = np.abs(net.weights).T @ output, np.abs(net.bias) @ output
    advice = (
        "standard errors by which the least clear unit keeps its orientation, a convention beside a linear "
        "part; below the bound the errors of the linear part cover the other orientation, too: read the mean "
        "slopes, which no orientation changes"
    )
    check = at_least("orientation beside a linear part", float(clear.min()), level, advice)
    errors = replace(
        errors,
        linear=errors.linear + linear.reshape(errors.linear.shape),
        intercept=errors.intercept + intercept.reshape(np.shape(errors.intercept))[()],
    )
    return errors, [check]


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


def _lattice_checks(local: LocalFit, most_parameters: int = 1000) -> list[Check]:
    """Whether the rows hold the kinks, for rows in memory of which a column has half as many values or fewer.

    For more than ``most_parameters`` only where whole rows stand at least twice on average.
    """
    rows, form = local.problem.rows, local.problem.form
    if not isinstance(rows, Samples) or not (form.activation.kinked and form.activation.homogeneity):
        return []
    parts = [rows.X.T, *([column] for column in rows.X.T if form.size <= most_parameters)]
    if all(different(columns) > len(rows) / 2 for columns in parts):
        return []
    return [lattice_check(local.network, rows.X, bias=form.bias, intercept=form.intercept)]


def with_equivalent_sets(certificate: Certificate, problem: Problem) -> Certificate:
    """Compare with every other choice of orientations: all sets of units that can be reversed together.

    No Jacobian shows them; an exact fit is unique only if there are none.
    """
    network, around, form = certificate.network, problem.whitening, problem.form
    name = AlternativeKind.ORIENTATION
    found = equivalent_sets(
        network,
        centre=around.shift,
        spread=around.unwhiten.T,
        intercept=form.intercept,
        linear=form.skip,
        tolerance=100 * problem.rows.rounding.exact if certificate.output_precision else EXACT,
    )
    if not found.complete and not found.sets:
        return certificate.with_comparisons([not_evaluated(name.value, 0.0, found.reason, About.UNITS)])
    alternatives, undetermined = [], {}
    for units, other in zip(found.sets, found.networks, strict=True):
        label = f"{named(units)} reversed"
        alternatives.append(Alternative(name, label, 0.0, other, units))
        reason = Cause.EQUIVALENT, f"the network with {label} computes the same function"
        undetermined |= dict.fromkeys(units, reason)
    advice = "sets of units that can be reversed together without changing the function"
    check = at_most(name.value, float(len(found.sets)), 0.0, f"{advice}: {found.reason}", About.UNITS)
    return certificate.with_comparisons([check], alternatives).with_undetermined(undetermined)
