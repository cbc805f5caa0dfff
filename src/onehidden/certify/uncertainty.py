"""How far the parameters of an answer are known: standard errors, the covariance of bands, their freedom."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from onehidden.certify import levels
from onehidden.certify.errors import ParameterRecord, covariance_in_x, outward_map, standard_errors
from onehidden.certify.groups import (
    GroupedFreedom,
    correlation_by_chance,
    correlation_within,
    independent_rows,
)
from onehidden.certify.local_fit import LocalFit
from onehidden.certify.residuals import spread_check
from onehidden.checks import About, Check, at_least, at_most
from onehidden.network import facing


class Uncertainty(NamedTuple):
    """What is known of the errors of the parameters, in x."""

    errors: ParameterRecord
    bands: Float[np.ndarray, "P P"] | None  # covariance; None of too many parameters
    checks: list[Check]  # whether they hold; none where the fit is exact
    freedom: ParameterRecord | None = None  # degrees of freedom of errors by group
    by_group: GroupedFreedom | None = None  # that of the mean, likewise
    kind: str = ""  # of the covariance


def uncertainty(
    local: LocalFit, errors: str, equal_p: float | None, off: bool, most_parameters: int = 1000
) -> Uncertainty:
    """The standard errors of a fit: classical, by the sandwich, or by group.

    Parameters
    ----------
    local : LocalFit
        The fit.
    errors : str
        "classical", "robust", or "auto": robust unless a family says what the spread of y is, and it is.
    equal_p : float or None
        p-value of equal spread; None where y has a family, which says what its spread is.
    off : bool
        Whether the spread was found not to be that of the family.
    most_parameters : int
        Parameters up to which their covariance is kept for confidence bands, and up to which "auto" is robust
        where the spread looks equal, too.
    """
    exact, few = local.exact, local.problem.form.size <= most_parameters
    # Of 55 to 1000 rows with equal, unequal or t3 noise robust intervals cover .93 to .98, classical ones .88
    # to .98, and the larger of both .94 to .99.
    unequal = off or (equal_p is not None and (few or equal_p < levels.EQUAL_VARIANCE.value))
    robust = not exact and (errors == "robust" or (errors == "auto" and unequal))
    grouped = None if exact or errors == "classical" else local.grouped
    covariance = local.covariance(robust, grouped is not None)
    form, coordinates = local.problem.form, local.problem.fit_coordinates
    found = standard_errors(covariance, local.curvature.undetermined, form, coordinates)
    kept = local.problem.form.plain.size <= most_parameters
    bands = covariance_in_x(covariance, form, coordinates) if kept else None
    if exact:
        return Uncertainty(found, bands, [])
    checks = _group_checks(local)
    if equal_p is not None:
        checks.append(spread_check(equal_p, errors, robust or grouped is not None))
    if bands is not None:
        found, of_side = _with_orientations(local, bands, found)
        checks += of_side
    if grouped is None:
        return Uncertainty(found, bands, checks, kind="robust (HC3)" if robust else "classical")
    outward, there = outward_map(form, coordinates), replace(form.plain, d=len(coordinates.shift))
    own = ParameterRecord.in_x(there, grouped.freedom.of(outward.toarray()))
    return Uncertainty(found, bands, checks, own, grouped.freedom.moved(outward), "by group (CR2)")


def _group_checks(local: LocalFit) -> list[Check]:
    """How much of the noise rows of a group share, and whether there are enough groups."""
    count, k = local.problem.rows.n_groups, local.problem.k
    if not count:
        return []
    correlation, size = correlation_within(local.problem.marginal, local.theta)
    by_chance = correlation_by_chance(local.n, count, size, levels.GROUPS.value)
    shared = (
        "share of the noise that rows of a group have in common, against what chance shows; standard errors, "
        f"tests and rows left out are by group: {local.n} rows in {count} groups say as much as "
        f"{independent_rows(local.n, correlation, size):.0f} independent ones"
    )
    advice = "groups beyond one for each unit; with fewer the errors by group are not known"
    enough = at_least("number of groups", float(count), k + 2.0, advice, About.DATA)
    few = f"{count} groups give no standard errors of {k} units: {k + 2} are needed"
    return [at_most("groups", correlation, by_chance, shared), replace(enough, clause=few)]


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
