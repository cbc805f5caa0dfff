"""An answer is never worse than the best linear function, where its form can be one.

A unit g(e <v, x> + b) with a small e is a linear function of x to first order in e, whatever g is: with it in
the place of the least useful unit, and outputs by least squares, a network is at least as good.
"""

from __future__ import annotations

import numpy as np

from onehidden.fit.linear_part import linear_network
from onehidden.fit.polish import Polished, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run

_TINY = np.finfo(float).tiny
_SMALL = 1e-4  # of the unit's bias at most: what bends is 1e-4 of what is linear, 1e-8 of its square


def no_worse_than_linear(answer: Polished, problem: Problem, run: Run) -> Polished:
    """The answer, or where a linear function is better, one of its form that is as good, finished."""
    line = linear_network(problem)
    if answer.mean_square <= float(np.sum(problem.losses(line))) / problem.numbers:
        return answer
    other = polish(with_linear_units(answer.network, line, problem.at(line)), problem, run)
    return other if other.mean_square < answer.mean_square else answer


def with_linear_units(network: OneHiddenNet, line: OneHiddenNet, problem: Problem) -> OneHiddenNet:
    """The network, in x, with a linear function in the place of units, outputs by least squares.

    The units that move y least are replaced, as many as the function has outputs where there are so many;
    without biases the new ones bend at the origin, and the answer is only as good as that allows.
    """
    samples, form = problem.samples, problem.form
    root = problem.weighted(np.ones(problem.n))[:, None]
    y = problem.weighted(samples.y).reshape(problem.n, -1)
    centred = samples.X - problem.around.shift
    slopes = line.linear.reshape(network.n_inputs, -1)
    directions = np.linalg.svd(slopes, full_matrices=False)[0].T[: network.n_hidden]
    rows = _SMALL * directions / np.maximum(np.abs(centred @ directions.T).max(axis=0), _TINY)[:, None]
    units = np.std(problem.activation(samples.X @ network.weights.T + network.bias), axis=0)
    moved = units * np.linalg.norm(network.output.reshape(network.n_hidden, -1), axis=1)
    weakest = np.argsort(moved)[: len(rows)]
    weights, offsets = network.weights.copy(), network.bias.copy()
    weights[weakest], offsets[weakest] = rows, 1.0 - rows @ problem.around.shift if form.bias else 0.0
    columns = [root * problem.activation(samples.X @ weights.T + offsets)]
    columns += [root] if form.intercept else []
    columns += [root * samples.X] if form.skip else []
    # Columns are brought to one length: that of a linear unit is nearly constant.
    design = np.column_stack(columns)
    length = np.maximum(np.linalg.norm(design, axis=0), _TINY)
    solved = np.linalg.lstsq(design / length, y, rcond=None)[0] / length[:, None]
    parts = np.split(solved, np.cumsum([column.shape[1] for column in columns])[:-1])
    output, rest = parts[0].reshape(network.output.shape), parts[1:]
    level = rest.pop(0).reshape(np.shape(network.intercept)) if form.intercept else 0.0
    linear = rest.pop(0).reshape(network.linear.shape) if form.skip else None
    return OneHiddenNet(weights, output, offsets, level, network.activation, linear)
