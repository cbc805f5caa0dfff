"""The final optimisation: Levenberg–Marquardt in all free parameters, wherever the rows are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

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
