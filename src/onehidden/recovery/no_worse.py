"""An answer is never worse than the least-squares linear function, where its form can be one.

A unit g(e <v, x> + b) with a small e is a linear function of x to first order in e, whatever g is: with it in
the place of the least useful unit, and outputs by least squares, a network is at least as good.
"""

from __future__ import annotations

import numpy as np

from onehidden.certify.row_losses import linear_fit
from onehidden.fit.polish import Polished, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run

_SMALL = 1e-4  # of the unit's bias at most: what bends is 1e-4 of what is linear, 1e-8 of its square


def no_worse_than_linear(answer: Polished, problem: Problem, run: Run) -> Polished:
    """The answer, or where a linear function is better, one of its form that is as good, finished."""
    left = linear_fit(problem)[1]
    if answer.mean_square <= float(np.mean(left**2)):
        return answer
    other = polish(with_linear_unit(answer.network, problem), problem, run)
    return other if other.mean_square < answer.mean_square else answer


def with_linear_unit(network: OneHiddenNet, problem: Problem) -> OneHiddenNet:
    """The network, in x, with the linear fit in the place of a unit, outputs by least squares.

    The unit that moves y least is replaced; without biases the new one bends at the origin, and the answer is
    only as good as that allows.
    """
    samples, form = problem.samples, problem.form
    root = problem.weighted(np.ones(problem.n))[:, None]
    y = problem.weighted(samples.y)
    centred = samples.X - problem.around.shift
    design = root * np.column_stack([np.ones(problem.n), centred])
    v = np.linalg.lstsq(design, y, rcond=None)[0][1:]
    bias = 1.0 if form.bias else 0.0
    size = max(float(np.abs(centred @ v).max()), np.finfo(float).tiny)
    row = _SMALL * v / size
    values = problem.activation(samples.X @ network.weights.T + network.bias) * network.output
    i = int(np.argmin(np.std(values, axis=0)))
    weights, offsets = network.weights.copy(), network.bias.copy()
    weights[i], offsets[i] = row, bias - (row @ problem.around.shift if form.bias else 0.0)
    columns = root * problem.activation(samples.X @ weights.T + offsets)
    columns = np.column_stack([columns, root]) if form.intercept else columns
    # Columns are brought to one length: that of the linear unit is nearly constant.
    length = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
    solved = np.linalg.lstsq(columns / length, y, rcond=None)[0] / length
    output, c = (solved[:-1], float(solved[-1])) if form.intercept else (solved, 0.0)
    return OneHiddenNet(weights, output, offsets, c, network.activation)
