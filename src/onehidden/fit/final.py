"""Optima of a problem: in all free parameters, the final optimisation; in the linear ones; in the outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.families import Bernoulli
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt, Solution, Status, solution
from onehidden.solvers.linearised import Problem as LeastSquares

TO_COMPARE = 0.1  # tolerance of a network that is only compared with another


@dataclass(frozen=True)
class Optimum:
    """A network after the final optimisation, in x.

    ``mean_square`` of its residuals is in units of var(y); with a family it is the mean deviance.
    """

    network: OneHiddenNet
    mean_square: float
    status: Status = Status.STATIONARY
    steps: int = 0


def optimise(
    network: OneHiddenNet, problem: Problem, run: Run, *, warm: bool = False, tolerance: float = 1e-4
) -> Optimum:
    """Minimise the loss from a network, in x, in all its free parameters.

    ``warm`` says that the network is near its minimum: the first step is then taken almost without damping.
    Two steps in a row that lower n log(loss) by less than ``tolerance`` are the last; a standard error is 1
    on this scale.
    """
    fit, theta = problem.least_squares, problem.theta(network)
    n, rounding, streamed = problem.n_values, problem.rows.rounding, problem.rows.streamed
    if streamed:
        loss = fit.loss(theta)
        if loss <= rounding.floor(n):  # a further step would cost a pass for nothing
            return Optimum(network, loss / n, Status.EXACT, 0)
        # A step is a pass over all rows: none for a twentieth of a standard error, 2e-3 of n log(loss).
        solver = LevenbergMarquardt(100, patience=5, predicted_rtol=max(1e-13, 2e-3 / n))
    else:
        solver = LevenbergMarquardt(300, patience=20, rtol=tolerance / n)
    warm = warm or streamed
    solver = replace(solver, floor=rounding.floor(n), damping=1e-6 if warm else 1e-3)
    if warm and not streamed and rounding.found(fit.loss(theta) / n):
        solver = replace(solver, exact=True)
    stage = "final optimisation on all rows" if streamed else "final optimisation"
    found = descend(solver, fit, theta, run, stage, n)
    return Optimum(problem.network(found.theta), found.loss / n, found.status, found.steps)


def descend(
    solver: LevenbergMarquardt,
    fit: LeastSquares,
    theta: Float[np.ndarray, " p"],
    run: Run,
    stage: str,
    n: int,
) -> Solution:
    """Run a solver within the time of a run; progress is reported and the state recorded after each step."""
    kept = run.recall()
    if run.expired():  # no step will be taken: J'J at the first point is not needed
        theta = theta if kept is None else kept["theta"]
        loss = fit.loss(theta)
        return Solution(theta, loss, Status.OUT_OF_TIME, 0, (loss,))
    state = solver.init(fit, theta, kept)
    while not solver.done(state) and not run.expired():
        before, state = state.steps, solver.step(fit, state)
        if state.steps > before:
            run.report(stage, state.steps, state.loss / n)
            if run.journal.remembers:
                run.keep(state.to_arrays(), passing=True)
    return solution(state)


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


def searched(problem: Problem) -> Problem:
    """The least-squares problem on which units are searched: that of Fisher scoring at a simple network.

    It is the best linear function, but the best constant for probabilities: where a linear function is far
    off, rows that it holds for certain and that came out otherwise outweigh all others. With one ReLU unit
    and 1500 labels of outputs -2 to 10, 5 of 12 searches found no answer twice from the linear function.
    """
    if problem.family is None:
        return problem
    return problem.at(linear_network(problem, inputs=not isinstance(problem.family, Bernoulli)))


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
