"""Rows with equal inputs: replicates, whose spread is pure error, copies, which are no evidence; lattices.

With levels j of m_j rows, residual means r_j and variances s_j² within the level, and h_j the leverage of a
level's mean, sum m_j r_j² has the mean sum (1 - h_j) sigma_j² where the network misses nothing. Its ratio to
sum (1 - h_j) s_j² is the F statistic of lack of fit against pure error, in the form of Brown and Forsythe
(1974), which holds for unequal variances too; of equal ones and equal m_j it is the classical one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int, UInt64
from scipy.special import fdtrc
from scipy.stats import poisson

from onehidden.certify import levels
from onehidden.certify.local_fit import LocalFit, local_fit
from onehidden.certify.units import ActivePatterns, on_kink, pattern_sums, rows_needed
from onehidden.checks import About, Check, at_least, at_most
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import Problem
from onehidden.fit.rounding import decimal_step
from onehidden.fit.samples import Samples


def levels_of(X: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """The number of each row's inputs among those that differ."""
    return np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)


def lack_of_fit(local: LocalFit, fewest: int = 4) -> float | None:
    """p-value of the network at rows that repeat; None where there are too few of them.

    There must be more levels than free parameters, and ``fewest`` rows beyond one a level. Normal noise of
    one output, in rows in memory without weights or groups.
    """
    problem, rows = local.problem, local.problem.rows
    if not isinstance(rows, Samples) or rows.weight is not None or rows.groups is not None or rows.y.ndim > 1:
        return None
    level = levels_of(rows.X)
    count = np.bincount(level)
    spare = len(count) - local.freedom
    if spare < 1 or local.n - len(count) < fewest:
        return None
    residual = local.residuals[:, 0]
    mean = np.bincount(level, residual) / count
    within = np.bincount(level, (residual - mean[level]) ** 2)
    pooled = float(within.sum()) / (local.n - len(count))
    if not pooled > 0:
        return None
    several = count > 1
    variance = np.where(several, within / np.maximum(count - 1, 1), pooled)
    fit = problem.least_squares
    assert isinstance(fit, InMemoryLeastSquares)
    J = fit.jacobian(local.theta, np.unique(level, return_index=True)[1])
    left = 1 - np.minimum(count * np.einsum("jp,pq,jq->j", J, local.curvature.covariance, J), 1.0)
    expected, pure = left * variance, local.n - len(count)
    total = float(expected.sum())
    # Of a variance with m degrees of freedom the square has the mean (1 + 2 / m) sigma^4: Welch (1947) for
    # the denominator, and likewise the numerator, by its variance for normal noise.
    own = np.where(several, count + 1, pure + 2)
    single = float(expected[~several].sum()) ** 2 / (pure + 2)
    below = total**2 / (float(np.sum(expected[several] ** 2 / own[several])) + single) - 2
    above = total**2 / max(float(np.sum(expected**2 * (own - 2) / own)), np.finfo(float).tiny)
    return float(fdtrc(min(above, spare), min(max(below, 1.0), pure), float(count @ mean**2) / total))


def repeated_rows(local: LocalFit, given: Problem) -> list[Check]:
    """Whether whole rows in memory, noise and all, are copies of another.

    Replicates agree by chance where y has few digits; what that explains is no copy.
    """
    if not isinstance(given.rows, Samples):
        return []
    rows = given.rows
    copies = len(rows) - different(np.column_stack([rows.X, rows.y]).T)
    if copies:
        eta = local.network.predict(rows.X) + given.offsets
        mean = eta if given.family is None else given.family.mean(eta)
        copies = max(0, copies - _by_chance(rows, np.sqrt(np.mean((rows.y - mean) ** 2, axis=0))))
    # A share of copies makes the errors too small by half of it; few rows do not know them so well.
    unknown = float(1 / np.sqrt(2 * max(local.n_values - local.freedom, 1)))
    advice = (
        "share of rows that are copies of another, noise and all, beyond what replicates in few digits "
        "explain; copies are no evidence: if rows were measured once and written down twice, drop the copies"
    )
    bound = max(levels.REPEATED_ROWS.value, unknown)
    check = at_most("repeated rows", copies / len(rows), bound, advice, About.DATA)
    return [replace(check, clause=f"{copies} of {len(rows)} rows are copies of another, noise and all")]


def _by_chance(rows: Samples, noise: Float[np.ndarray, " q"], rare: float = 1e-3) -> int:
    """Rows that agree by chance with others of equal inputs: so many are met once in a thousand times.

    Two normal numbers of deviation s, rounded to multiples of a step, agree with probability step / (2 s
    sqrt(pi)), if that is small. Where all rows of a level agree, s is that of the noise.
    """
    level = levels_of(rows.X)
    count, y = np.bincount(level), rows.y.reshape(len(rows), -1)
    if count.max() < 2:
        return 0
    agree = np.ones(len(count))
    for values, deviation in zip(y.T, np.atleast_1d(noise), strict=True):
        mean = np.bincount(level, values) / count
        within = np.bincount(level, (values - mean[level]) ** 2)
        spread = np.where(within > 0, np.sqrt(within / np.maximum(count - 1, 1)), deviation)
        step = decimal_step(values)
        agree *= np.minimum(1.0, step / np.maximum(2 * np.sqrt(np.pi) * spread, np.finfo(float).tiny))
    # Of m rows the i-th agrees with one before it with at most i times that probability.
    expected = sum(float(np.sum(np.minimum(1.0, i * agree[count > i]))) for i in range(1, int(count.max())))
    return int(poisson.isf(rare, expected)) if expected > 0 else 0


def lattice_checks(local: LocalFit, most_parameters: int = 1000) -> list[Check]:
    """Whether distinct rows hold the kinks of piecewise linear units: on a lattice these can lie elsewhere.

    Where a unit is off on the rows of one facet only (or on one row), it acts on all others as a linear
    function: the units absorb a linear part on the samples, other units can be reversed against it, and kinks
    move, though the Jacobian at the network found has full rank. Two counts on the distinct rows tell such
    networks from determined ones: the rank of the Jacobian with a linear part added, and the rows on which
    two units differ. Rows on a kink are left out: a descent along a free direction ends where a row touches a
    kink, and there J has full rank.

    Evidence, not proof: all k patterns that hyperplanes cut were tried against random teachers of full rank
    (ReLU, 1 to 3 units; integer lines, grids, corners of cubes). With a linear part absorbed another network
    fits exactly for 69 % of 459 teachers on lines and 6 % of 214 on grids; with none absorbed for 4 of 5918,
    all with two units apart on fewer than d + 3 rows; with both counts for 0 of 4371.

    Asked of rows in memory of which a column has half as many values or fewer; for more than
    ``most_parameters`` only where whole rows stand at least twice on average.
    """
    problem, rows, network = local.problem, local.problem.rows, local.network
    kinked = network.activation.kinked and network.activation.homogeneity
    if not isinstance(rows, Samples) or not kinked:
        return []
    parts = [rows.X.T, *([column] for column in rows.X.T if problem.form.size <= most_parameters)]
    if all(different(columns) > len(rows) / 2 for columns in parts):
        return []
    t = rows.X @ network.weights.T + network.bias
    clear = np.all(np.abs(t) > on_kink(t), axis=1)
    first = np.unique(rows.X, axis=0, return_index=True)[1]
    some, value = problem.take(first[clear[first]]), 0
    if some.n:
        found = local_fit(network, replace(some, form=replace(problem.form, skip=True))).curvature
        inner = some.fit_coordinates.inward(network)
        closest = ActivePatterns.of(inner, *some.sums(pattern_sums, inner)).closest()[0]
        value = found.rank - found.freedom or closest
    advice = (
        "fewest distinct rows that tell two units apart, or less the directions in which units imitate a "
        "linear function; below the bound kinks can lie elsewhere in the gaps of a lattice"
    )
    needed = rows_needed(problem.form.inputs + problem.form.bias - 1)
    return [at_least("kinks held by distinct rows", value, needed, advice, About.UNITS)]


def count_distinct(problem: Problem) -> int:
    """Rows of inputs that differ by more than 1e-9 of the spread; all where they are not in memory.

    Where units have no biases and are odd or even, a row and its negative are one.
    """
    if not isinstance(problem.rows, Samples):
        return problem.n
    X = problem.rows.X
    spread = X.std(axis=0)
    step = 1e-9 * np.where(spread > 0, spread, 1.0)
    sign = np.ones(len(X))
    if problem.activation.sign_free and not problem.form.bias:
        sign = np.zeros(len(X))
        for column, size in zip(X.T, step, strict=True):
            sign = np.where(sign == 0, np.sign(np.round(column / size)), sign)
    return different(np.round(sign * column / size) for column, size in zip(X.T, step, strict=True))


def different(columns: Iterable[Float[np.ndarray, " n"]]) -> int:
    """How many rows of these columns differ."""
    return len(np.unique(row_keys(columns)))


def row_keys(columns: Iterable[Float[np.ndarray, " n"]]) -> UInt64[np.ndarray, " n"]:
    """A hash of each row of these columns: no copy of them is made."""
    odd, keys = np.uint64(0x9E3779B97F4A7C15), np.zeros(1, np.uint64)  # 2^64 over the golden ratio
    for column in columns:
        # Each step is one to one in the key and in the column: equal rows, and by chance 2^-64 others, agree.
        keys = (keys ^ np.ascontiguousarray(column + 0.0).view(np.uint64)) * odd
        keys ^= keys >> np.uint64(32)
    return keys
