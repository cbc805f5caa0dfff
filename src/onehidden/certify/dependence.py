"""Whether the order of the rows matters: residuals of neighbouring rows compared with those of permuted rows.

Neighbours that are alike (repeated measurements, a drift, a time series) are not independent evidence. For
each lag l the sum of r_t r_(t+l) is divided by the root of the sum of r_t² r_(t+l)², and the squares of the
positive ones are added up. Only residuals that agree with their neighbours make standard errors too small; a
fit leaves residuals of neighbours in x that disagree, so that the negative ones mean nothing where a table is
sorted by a column. The law of the sum is that of the same residuals in a random order: exact for residuals
that are exchangeable, however few, skewed or rare.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from onehidden.certify import levels
from onehidden.certify.groups import Groups, sums_by_group
from onehidden.certify.local_fit import LocalFit
from onehidden.checks import About, Check, at_least, not_evaluated
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Inputs, Samples, Target, Weight
from onehidden.network import OneHiddenNet
from onehidden.run import stream


def order_checks(
    local: LocalFit, given: Problem, by_group: bool, fewest: int = 10, most_rows: int = 20_000
) -> list[Check]:
    """Whether residuals depend on those of the rows before, in the order in which the caller gave the rows.

    ``given`` has the target as it was given, ``local`` the weighted residuals; the order of fewer than
    ``fewest`` rows says nothing. Rows of a group may be alike: there groups are compared with those before,
    unless what they share was taken out and the errors are not ``by_group``.
    """
    name, level = "independent rows", levels.DEPENDENCE.value
    if isinstance(given.rows, Samples):
        rows = given.rows
        order = np.arange(rows.n) if rows.place is None else np.argsort(rows.place, kind="stable")
        residuals, y = local.residuals[order], rows.y.reshape(rows.n, -1)[order]
        if rows.groups is not None and (by_group or rows.shared is None):
            residuals, y = (_by_group(one, rows.groups[order]) for one in (residuals, y))
    elif given.rows.n_groups:
        known = _values_of_groups, local.inner, given.rows.n_groups
        size, sums = given.sums(*known, by_group=True)  # groups of a stream are in the order of first rows
        residuals, y = np.split(sums / np.sqrt(size)[:, None], 2, axis=1)
    else:
        found = given.sums(rows_in_order, local.inner, given.n, most_rows)
        numbers, residuals, y = (np.concatenate(parts) for parts in found)
        residuals, y = (one[np.argsort(numbers, kind="stable")] for one in (residuals, y))
    if len(residuals) < fewest:
        return [not_evaluated(name, level, f"the order of fewer than {fewest} rows says nothing")]
    each = [dependence_p_value(r) for r, t in zip(residuals.T, y.T, strict=True) if not is_sorted(t)]
    if not each:
        return [not_evaluated(name, level, "the order of rows that are sorted by y says nothing")]
    p_value = min(1.0, len(each) * min(each))  # the smallest of several outputs' (Bonferroni)
    advice = (
        "p-value, by permutation, of residuals that are no more like those of the rows before than in a "
        "random order; below the bound neighbouring rows are not independent evidence and the standard "
        "errors are too small: name what the rows share (groups), or add the column that orders them"
    )
    return [at_least(name, p_value, level, advice, About.ERRORS)]


def _by_group(values: Float[np.ndarray, "n q"], groups: Groups) -> Float[np.ndarray, "G q"]:
    """Sums over rows of each group by the root of their number, groups in the order of first rows."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    size, sums, _ = sums_by_group(len(first), values, number)
    return (sums / np.sqrt(size)[:, None])[np.argsort(first)]


def _values_of_groups(
    network: OneHiddenNet, count: int, Z: Inputs, y: Target, weight: Weight, group: Groups
) -> list[np.ndarray]:
    """Rows of each group, and their summed residuals and targets."""
    left, y = (one.reshape(len(Z), -1) for one in (network.predict(Z) - y, y))
    values = [weighed(roots(weight, len(Z)), left), y]
    return sums_by_group(count, np.column_stack(values), group)[:2]


def dependence_p_value(
    residual: Float[np.ndarray, " n"],
    lags: int = 5,
    most_draws: int = 1999,
    exceedances: int = 20,
    most_rows: int = 20_000,
) -> float:
    """The p-value of residuals that are no more alike their neighbours than in a random order.

    Permutations are drawn until ``exceedances`` of them reach the statistic (Besag and Clifford 1991) or
    ``most_draws`` are made. They have a stream of their own: no seed and no value of the data moves them.
    Of more than ``most_rows`` rows runs of 1000, evenly spread, are compared.
    """
    n = len(residual)
    r = residual[_in_runs(np.arange(n), n, most_rows)]
    n = len(r)
    lags = max(1, min(lags, n // 4))
    own, draw = _alike(r[None], lags)[0], stream(0, "rows in random order")
    found = drawn = 0
    while drawn < most_draws:
        batch = min(most_draws - drawn, max(1, min(max(exceedances, drawn), 1_000_000 // n)))
        reached = _alike(draw.permuted(np.tile(r, (batch, 1)), axis=1), lags) >= own * (1 - 1e-9)
        if found + reached.sum() >= exceedances:
            last = int(np.flatnonzero(np.cumsum(reached) == exceedances - found)[0])
            return exceedances / (drawn + last + 1)
        found, drawn = found + int(reached.sum()), drawn + batch
    return (found + 1) / (drawn + 1)


def _alike(r: Float[np.ndarray, "m n"], lags: int) -> Float[np.ndarray, " m"]:
    """The sum over lags of the squared standardised sums of products, where these are positive."""
    total = np.zeros(len(r))
    for lag in range(1, lags + 1):
        product = r[:, lag:] * r[:, :-lag]
        size = np.sqrt(np.einsum("mn,mn->m", product, product))
        total += np.maximum(product.sum(axis=1) / np.maximum(size, np.finfo(float).tiny), 0.0) ** 2
    return total


def is_sorted(y: Float[np.ndarray, " n"], enough: float = 0.98) -> bool:
    """Whether rows are sorted by y, up or down: then residuals of neighbours are alike whatever made them."""
    rank = rankdata(y)
    up = np.sort(rank)
    if up[0] == up[-1]:
        return True
    return bool(max(np.corrcoef(rank, up)[0, 1], np.corrcoef(rank, up[::-1])[0, 1]) > enough)


def _in_runs(row: np.ndarray, n: int, most: int, run: int = 1000) -> np.ndarray:
    """Whether rows, by number, are in a run of neighbours that is kept: about ``most`` of n."""
    return (row // run) % max(1, -(-n // most)) == 0


def rows_in_order(
    network: OneHiddenNet, n: int, most: int, Z: Inputs, y: Target, weight: Weight, row: np.ndarray
) -> list[Any]:
    """Numbers, weighted residuals and target of rows in runs of neighbours, about ``most`` of n in all.

    Lists of parts are joined. Numbers say the order; those of a source with several files have gaps.
    """
    kept, left = _in_runs(row, n, most), weighed(roots(weight, len(Z)), network.predict(Z) - y)
    return [[row[kept]], *([one.reshape(len(Z), -1)[kept]] for one in (left, y))]
