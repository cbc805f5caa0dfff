"""Levenberg–Marquardt on normal equations accumulated over batches, QR when they are too ill-conditioned.

Knows nothing of networks: a problem is anything with ``normal_equations``, ``loss`` and ``triangle``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from onehidden.memo import FORGETFUL, Memo
from onehidden.solvers.status import Status

_ROUGH = 1e-4  # damping above which the seventh digit of J'J makes no difference to a step


class LeastSquares(Protocol):
    """Sum of squared residuals, seen only through reductions over samples."""

    @property
    def key(self) -> tuple[Any, ...]:
        """All that the residuals depend on beside theta; asked for only where states are remembered."""
        ...

    def loss(self, theta: np.ndarray) -> float:
        """Sum of squared residuals at theta."""
        ...

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J (p, p), J'r (p,) and r'r; ``rough``: six digits of the first are enough."""
        ...

    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R (p, p) and Q'r (p,) of the QR factors of J, accumulated over batches."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where a solver ended, and how."""

    theta: np.ndarray
    loss: float
    status: Status
    steps: int
    trace: tuple[float, ...]


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss–Newton with Nielsen's update of the damping.

    Attributes
    ----------
    max_steps : accepted steps at most.
    floor : sum of squares at or below which residuals count as rounding.
    damping, least : the first damping, relative to the diagonal of J'J, and the smallest. Above 1e-14 a
        direction without curvature, such as the scale of a homogeneous unit, never asks for QR.
    patience : stop after this many steps in a row that each lower the loss by less than ``slow``
        (relative); 0 switches the rule off.
    slow : see ``patience``.
    enough : two steps in a row that each lower the loss by less than this share end the descent; a share of
        e / n is a change of e in n log(loss), the scale on which a standard error is 1. Damped steps count
        too: at the optimum of kinked units with noise the damping never falls.
    tiny : a predicted gain below this share of the loss, at little damping, ends the descent: with noise
        it is far below the square of a standard error.
    """

    max_steps: int = 200
    floor: float = 0.0
    damping: float = 1e-2
    least: float = 1e-15
    patience: int = 0
    slow: float = 1e-4
    enough: float = 0.0
    tiny: float = 1e-13

    def solve(
        self,
        problem: LeastSquares,
        theta: np.ndarray,
        stop: Callable[[], bool] | None = None,
        report: Callable[[int, float], None] | None = None,
        memo: Memo = FORGETFUL,
    ) -> Solution:
        """Minimise from theta; ``stop()`` is asked before each step, ``report(step, loss)`` told after.

        ``memo`` keeps the state after each step: a solve that was cut off goes on from there.
        """
        theta = np.asarray(theta, dtype=float).copy()
        key = "levenberg", repr(self), theta, () if memo is FORGETFUL else problem.key
        trace, damping, growth, polish = [], self.damping, 2.0, False
        crawling = idle = steps = 0
        kept = memo.recall(*key)
        if kept is not None:
            theta, trace = kept["theta"], kept["trace"].tolist()
            damping, growth = float(kept["damping"]), float(kept["growth"])
            crawling, idle, steps = (int(kept[name]) for name in ("crawling", "idle", "steps"))
            polish = bool(kept["polish"])
        hessian, gradient, loss = problem.normal_equations(theta, damping > _ROUGH)
        trace, status = trace or [loss], Status.STEP_LIMIT
        while steps < self.max_steps:
            if not np.isfinite(loss):
                status = Status.NOT_FINITE
                break
            if loss <= self.floor and polish:
                status = Status.EXACT
                break
            if stop is not None and stop():
                status = Status.OUT_OF_TIME
                break
            polish = loss <= self.floor  # one step more: convergence is quadratic there
            diagonal = _scaling(hessian)
            step, damping = _damped_step(problem, theta, hessian, gradient, diagonal, damping)
            predicted = -(2 * gradient @ step + step @ hessian @ step)
            if loss > self.floor and damping < 1e-4 and 0 <= predicted < self.tiny * loss:
                status = Status.STATIONARY
                break
            trial_loss = problem.loss(theta + step)
            gain = (loss - trial_loss) / predicted if predicted > 0 else -1.0
            if not (np.isfinite(trial_loss) and trial_loss < loss):
                if loss <= self.floor:
                    status = Status.EXACT
                    break
                damping, growth = damping * growth, 2 * growth
                if damping > 1e12 or np.all(np.abs(step) <= 1e-16 * (1 + np.abs(theta))):
                    status = Status.NO_PROGRESS
                    break
                continue
            theta = theta + step
            damping, growth = max(damping * max(1 / 9, 1 - (2 * gain - 1) ** 3), self.least), 2.0
            crawling = crawling + 1 if loss - trial_loss < self.slow * loss else 0
            relative_drop = (loss - trial_loss) / max(loss, np.finfo(float).tiny)
            idle = idle + 1 if relative_drop < self.enough else 0
            hessian, gradient, loss = problem.normal_equations(theta, damping > _ROUGH)
            steps += 1
            trace.append(loss)
            if report is not None:
                report(steps, loss)
            if idle > 1 or (self.patience and crawling >= self.patience):
                status = Status.STALLED
                break
            # The gradient in units where a parameter moves the residuals by its own column's length.
            if _scaled_gradient(gradient, hessian, loss) < 1e-13 or relative_drop < 1e-15:
                status = Status.STATIONARY
                break
            state = {"theta": theta, "trace": trace, "damping": damping, "growth": growth, "polish": polish}
            memo.keep(state | {"crawling": crawling, "idle": idle, "steps": steps}, *key, passing=True)
        return Solution(theta, loss, status, steps, tuple(trace))


def _scaling(hessian: np.ndarray) -> np.ndarray:
    diagonal = np.diag(hessian)
    return np.maximum(diagonal, 1e-10 * max(diagonal.max(), np.finfo(float).tiny))


def _scaled_gradient(gradient: np.ndarray, hessian: np.ndarray, loss: float) -> float:
    """max_j |<J_j, r>| / (|J_j| |r|): the largest cosine between a column of J and the residuals."""
    return float(np.max(np.abs(gradient) / np.sqrt(_scaling(hessian) * max(loss, np.finfo(float).tiny))))


def _damped_step(problem, theta, hessian, gradient, diagonal, damping):
    """Solve (J'J + damping D) step = -J'r; by Cholesky, or by QR of [J; sqrt(damping D)] if that fails."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

    scale = 1 / np.sqrt(diagonal)
    scaled = hessian * scale[:, None]
    scaled *= scale
    scaled[np.diag_indices_from(scaled)] += damping
    try:  # the transpose, the same matrix, is in LAPACK's order: nothing is copied
        factor = cho_factor(scaled.T, lower=True, overwrite_a=True, check_finite=False)
        # J'J carries the square of J's condition: below eps^(1/2) in the factor its digits are gone.
        if np.min(np.abs(np.diag(factor[0]))) > 1e-7:
            return -scale * cho_solve(factor, scale * gradient, check_finite=False), damping
    except LinAlgError:
        pass
    upper, projected = problem.triangle(theta)
    stacked = np.vstack([upper * scale[None, :], np.sqrt(damping) * np.eye(len(theta))])
    target = np.concatenate([-projected, np.zeros(len(theta))])
    solved: Any = lstsq(stacked, target, check_finite=False, lapack_driver="gelsy")
    return scale * solved[0], damping
