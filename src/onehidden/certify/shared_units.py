"""Which units do two networks of the same size share? Told by what the units do on the rows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet

_TRACE = 1e-8  # of a unit's own sum of squares: descents that ended at rounding differ by less
_ROWS = 4000  # rows that tell units apart
_SPREAD = 8.0  # times what the d + 2 parameters of a unit move it by on average: two fits differ by 2 of it


def differing_units(
    network: OneHiddenNet, other: OneHiddenNet, problem: Problem, mean_square: float
) -> tuple[int, ...]:
    """Units of ``network`` that ``other`` does not have, units paired so that they differ least.

    Two units are one if sum_n (w g - w' g')² over the rows and outputs is within what noise of this mean
    square, in units of var(y), moves a unit of d + 2 parameters by. A family's noise is that of a step of
    Fisher scoring. Beside a linear part units are compared but for what that can take up.
    """
    from scipy.optimize import linear_sum_assignment

    X = problem.samples.X[np.linspace(0, problem.n - 1, min(problem.n, _ROWS)).astype(int)]
    seen = problem.at(network)  # whose scale of y is that of ``mean_square``
    here, there = (_units(net, X, seen) for net in (network, other))
    apart = np.sum(here**2, axis=0)[:, None] + np.sum(there**2, axis=0) - 2 * here.T @ there
    mine, theirs = linear_sum_assignment(apart)
    share = len(X) / problem.n
    seen_mean_square = mean_square if problem.family is None else local_mean_square(seen, network)
    bound = _SPREAD * (problem.d + 1 + problem.form.q) * seen_mean_square * share
    # What descents leave open of a unit where there is hardly any noise.
    bounds = np.maximum(bound, _TRACE * np.sum(here**2, axis=0))
    return tuple(int(i) for i, j in zip(mine, theirs, strict=True) if apart[i, j] > bounds[i])


def _units(net: OneHiddenNet, X: np.ndarray, problem: Problem) -> Float[np.ndarray, "N k"]:
    """What each unit adds to the outputs at these rows, less what intercept and linear part can take up."""
    values = net.activation(X @ net.weights.T + net.bias)
    values = values - values.mean(axis=0)
    if problem.form.skip:
        design = np.column_stack([np.ones(len(X)), X])
        values = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    output = problem.end.divided(net.output)
    return (values[:, None, :] * output.reshape(net.n_hidden, -1).T).reshape(-1, net.n_hidden)


def local_mean_square(problem: Problem, network: OneHiddenNet) -> float:
    """Of the residuals of a network, in x, as a share of var(y)."""
    return problem.sums.loss(problem.theta(network)) / problem.numbers


def named(units: tuple[int, ...]) -> str:
    """Units in words."""
    numbers = [str(i + 1) for i in units]
    if len(numbers) == 1:
        return f"unit {numbers[0]}"
    return f"units {', '.join(numbers[:-1])} and {numbers[-1]}"
