"""The best linear function of the inputs: least squares, or the maximum of a family's likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.solvers import LevenbergMarquardt


def linear_network(problem: Problem, inputs: bool = True) -> OneHiddenNet:
    """The linear function as a network, in x, whose units add nothing; without ``inputs`` a constant.

    Its parametrisation has no units. The loss is convex: Fisher scoring takes 5 to 10 steps, and ends at a
    deviance of 1e-6 where classes are separable and the maximum lies at infinity.
    """
    k, d = problem.k, problem.samples.X.shape[1]
    form = replace(problem.form, k=0, bias=True, intercept=True, skip=inputs, symmetrised=False)
    linear = replace(problem, form=form)
    level = np.zeros(form.q)
    if problem.family is not None:
        level = level + problem.family.start(problem.samples.y, problem.samples.weight)
        level = level - np.average(problem.offsets.reshape(problem.n, -1), axis=0, weights=problem.weight)
    theta = form.pack(np.zeros((0, form.d)), np.zeros((0, form.q)), intercept=level)
    floor = 1e-6 if problem.family is not None else problem.rows.rounding.floor(problem.n_values)
    solver = LevenbergMarquardt(max_steps=50, floor=floor, damping=1e-13)
    _, _, _, beta, constant = form.unpack(solver.solve(linear.least_squares, theta).theta)
    nothing = np.zeros((k, *form.tail))
    inner = OneHiddenNet(np.eye(k, form.d), nothing, None, constant, problem.activation, beta)
    net = linear.fit_coordinates.outward(inner)
    return OneHiddenNet(
        np.tile(np.eye(d)[0], (k, 1)), nothing, None, net.intercept, net.activation, net.linear
    )


def with_best_outputs(network: OneHiddenNet, problem: Problem) -> OneHiddenNet:
    """The network, in x, with the most likely outputs of its units; itself where none are more likely.

    A search sees the working rows of a family at one linear function. Outputs found there may lie far off:
    behind a log link they add up to exp(40) on some rows, from where a descent does not come back. For fixed
    units the likelihood is that of a generalised linear model, concave for the canonical links.
    """
    form, X = problem.form, problem.samples.X
    if problem.family is None or not form.intercept:
        return network
    columns = network.activation(X @ network.weights.T + network.bias)
    columns = np.column_stack([columns, X]) if form.skip else columns
    varying = np.ptp(columns, axis=0) > 0  # a unit that is off on all rows keeps its output
    if not varying.any():
        return network
    samples = replace(problem.samples, X=columns[:, varying])
    whitening = replace(
        samples.coordinates(True), level=problem.whitening.level, scale=problem.whitening.scale
    )
    units = replace(form, d=whitening.rank, k=1)
    fitted = linear_network(
        replace(problem, rows=samples, form=units, whitening=whitening, basis=None, input_model=None)
    )
    coefficients = np.concatenate([network.output, network.linear]) if form.skip else network.output.copy()
    coefficients[varying] = fitted.linear
    output, skip = coefficients[: form.k], coefficients[form.k :] if form.skip else None
    other = OneHiddenNet(network.weights, output, network.bias, fitted.intercept, network.activation, skip)
    losses = [float(np.sum(problem.row_losses(one))) for one in (network, other)]
    return other if losses[1] < losses[0] or not np.isfinite(losses[0]) else network
