"""Which units do two networks of the same size share? Told by what the units do on the rows."""

from __future__ import annotations

import numpy as np

from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet

_TRACE = 1e-8  # of a unit's own sum of squares: descents that ended at rounding differ by less
_ROWS = 4000  # rows that tell units apart
_SPREAD = 8.0  # times what the d + 2 parameters of a unit move it by on average: two fits differ by 2 of it


def differing_units(
    network: OneHiddenNet, other: OneHiddenNet, problem: Problem, mean_square: float
) -> tuple[int, ...]:
    """Units of ``network`` that ``other`` does not have, units paired so that they differ least.

    Two units are one if sum_n (w g - w' g')² over the rows is within what noise of this mean square, in units
    of var(y), moves a unit of d + 2 parameters by.
    """
    from scipy.optimize import linear_sum_assignment

    X = problem.samples.X[np.linspace(0, problem.n - 1, min(problem.n, _ROWS)).astype(int)]
    here, there = (_units(net, X) / problem.end.scale for net in (network, other))
    # Constants are the intercept's.
    here, there = here - here.mean(axis=0), there - there.mean(axis=0)
    apart = np.sum(here**2, axis=0)[:, None] + np.sum(there**2, axis=0) - 2 * here.T @ there
    mine, theirs = linear_sum_assignment(apart)
    share = len(X) / problem.n
    bound = _SPREAD * (problem.d + 2) * mean_square * share
    # What descents leave open of a unit where there is hardly any noise.
    bounds = np.maximum(bound, _TRACE * np.sum(here**2, axis=0))
    return tuple(int(i) for i, j in zip(mine, theirs, strict=True) if apart[i, j] > bounds[i])


def _units(net: OneHiddenNet, X: np.ndarray) -> np.ndarray:
    return net.activation(X @ net.weights.T + net.bias) * net.output


def named(units: tuple[int, ...]) -> str:
    """Units in words."""
    numbers = [str(i + 1) for i in units]
    if len(numbers) == 1:
        return f"unit {numbers[0]}"
    return f"units {', '.join(numbers[:-1])} and {numbers[-1]}"
