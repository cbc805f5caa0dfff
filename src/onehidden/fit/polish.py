"""polish(): Levenberg–Marquardt in all parameters to the end.

The only finish, whoever asks and wherever the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.fit.rows import Rows
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LeastSquares, LevenbergMarquardt, Solution, Status, solution

FINELY, ROUGHLY = (
    1e-4,
    1e-1,
)  # n log(loss) that a step must be worth: of an answer, of what it is held against


@dataclass(frozen=True)
class Polished:
    """A finished network.

    Attributes
    ----------
    network : in x.
    mean_square : of its residuals, in units of var(y); the mean deviance where y has a family.
    status : how the descent ended. steps : taken.
    """

    network: OneHiddenNet
    mean_square: float
    status: Status = Status.STATIONARY
    steps: int = 0


def polish(
    network: OneHiddenNet, problem: Problem, run: Run, *, near: bool = False, enough: float = FINELY
) -> Polished:
    """The network, given in x, after a descent in all its free parameters.

    Parameters
    ----------
    near : it is close to its minimum already: begin without damping.
    enough : of n log(loss), on which a standard error is 1: two steps in a row that lower it by less are the
        last. What is only to be compared need not be finished finely.
    """
    fit, theta = problem.sums, problem.theta(network)
    n = problem.numbers
    if problem.rows.streamed and fit.loss(theta) <= problem.rows.rounding.floor(n):
        # Every row to rounding: a step more would be a pass for nothing.
        return Polished(network, fit.loss(theta) / n, Status.EXACT, 0)
    solver = _settings(problem.rows, n, near or problem.rows.streamed, enough)
    if near and not problem.rows.streamed and problem.rows.rounding.found(fit.loss(theta) / n):
        solver = replace(solver, exact=True)
    stage = "finish on all rows" if problem.rows.streamed else "finish"
    found = descend(solver, fit, theta, run, stage, n)
    return Polished(problem.network(found.theta), found.loss / n, found.status, found.steps)


def _settings(rows: Rows, n: int, near: bool, enough: float) -> LevenbergMarquardt:
    if rows.streamed:
        # A step is a pass over all rows: one whose gain is far below the square of a standard error is not
        # taken (2e-3 of n log(loss): a twentieth of a standard error).
        return LevenbergMarquardt(
            100, rows.rounding.floor(n), damping=1e-6, patience=5, tiny=max(1e-13, 2e-3 / n)
        )
    return LevenbergMarquardt(
        300,
        rows.rounding.floor(n),
        damping=1e-6 if near else 1e-3,
        patience=20,
        enough=enough / n,
    )


def descend(
    solver: LevenbergMarquardt,
    fit: LeastSquares,
    theta: Float[np.ndarray, " p"],
    run: Run,
    stage: str,
    n: int,
) -> Solution:
    """Drive a descent: the clock is asked before each step, progress told and the state kept after it."""
    kept = run.recall()
    if run.expired():  # no step will be taken: J'J at the first point would be for nothing
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
