"""Levenberg–Marquardt for least squares: one loop over normal equations or over a linear operator.

A problem offers ``loss(theta)`` and one of two linearisations r + J s of its residuals:

- ``normal_equations(theta)`` (``Dense``): J'J is factored by Cholesky, with more damping where it is too
  ill-conditioned; such a problem may have lower bounds ``lower`` (p,) of theta, and steps are projected;
- ``linearise(theta)`` (``MatrixFree``): products with J and J' only; a step is damped LSMR.

``init`` makes a state, ``step`` the next one, ``done`` says whether a state is the last. The caller drives
the loop, so that it can watch a clock and store states, as ``onehidden.fit.problem.descend`` does. The module
knows nothing of networks.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

TINY = float(np.finfo(float).tiny)
SINGLE = float(np.finfo(np.float32).eps)
Vector = Float[np.ndarray, " p"]
Matrix = Float[np.ndarray, "p p"]
Residual = Float[np.ndarray, " m"]


class LeastSquares(Protocol):
    """A sum of squared residuals."""

    def loss(self, theta: Vector) -> float:
        """Sum of squared residuals at theta."""
        ...


class Dense(LeastSquares, Protocol):
    """Least squares with J'J as a sum over samples; J itself is never formed."""

    def normal_equations(self, theta: Vector, rough: bool = False) -> tuple[Matrix, Vector, float]:
        """J'J (p, p), J'r (p,) and r'r; ``rough`` says that six digits of J'J are enough."""
        ...


class Linearisation(Protocol):
    """The linear operator J at a point, and the residuals r there.

    ``residual`` is (m,), ``lengths`` (p,) holds the lengths of the columns of J, or estimates of them: they
    precondition the step and scale its damping. A parameter of length zero is not moved.
    """

    residual: Residual
    lengths: Vector

    def jvp(self, step: Vector, /) -> Residual:
        """J step."""
        ...

    def vjp(self, residual: Residual, /) -> Vector:
        """J' residual."""
        ...


@runtime_checkable
class MatrixFree(LeastSquares, Protocol):
    """Least squares whose Jacobian is a linear operator; J'J is never formed."""

    def linearise(self, theta: Vector) -> Linearisation:
        """Residuals and Jacobian at theta."""
        ...


Problem = Dense | MatrixFree


@dataclass(frozen=True, eq=False)
class NormalModel:
    """The quadratic model r'r + 2 s'J'r + s'J'J s of the loss, by J'J (in single precision where rough)."""

    hessian: Matrix
    gradient: Vector
    loss: float
    room: Vector | None = None  # (p,) how far each parameter is above its lower bound; None without bounds

    @cached_property
    def free(self) -> np.ndarray:
        """(p,) whether a parameter can move: not one at its bound that the gradient holds there."""
        return (
            np.ones(len(self.gradient), bool) if self.room is None else (self.room > 0) | (self.gradient < 0)
        )

    @property
    def squares(self) -> Vector:
        """(p,) squared lengths of the columns of J."""
        diagonal = np.diag(self.hessian).astype(float)
        return np.maximum(diagonal, 1e-10 * max(diagonal.max(), TINY))  # bounded away from zero

    def decrease(self, step: Vector) -> float:
        """Predicted decrease of the loss."""
        return float(-(2 * self.gradient @ step + (step.astype(self.hessian.dtype) @ self.hessian) @ step))

    def step(self, damping: float) -> Vector | None:
        """The damped step; a parameter that it would take below its bound is moved onto it, then the others.

        Where that does not lower the loss more damping does: the step turns to the projected gradient.
        """
        if self.room is None:
            return self._step(damping)
        step, free = np.zeros(len(self.gradient)), self.free.copy()
        while free.any():
            gradient = self.gradient[free] + self.hessian[np.ix_(free, ~free)] @ step[~free]
            moved = NormalModel(self.hessian[np.ix_(free, free)], gradient, self.loss)._step(damping)
            if moved is None:
                return None
            step[free] = moved
            beyond = free & (step < -self.room)
            if not beyond.any():
                break
            step[beyond], free = -self.room[beyond], free & ~beyond
        return step

    def _step(self, damping: float, band: int = 64) -> Vector | None:
        """-(J'J + damping D)^-1 J'r, D the diagonal of J'J; None where J'J is too ill-conditioned.

        J'J is scaled ``band`` rows at a time, which stay in the cache: a third of the time of whole matrices.
        """
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

        scale, hessian = 1 / np.sqrt(self.squares), self.hessian
        kind = hessian.dtype if scale.max() < np.finfo(np.float32).max else np.dtype(float)
        scaled, own = np.empty(hessian.shape, kind), scale.astype(kind)
        for at in range(0, len(own), band):  # only the upper triangle is read
            rows, rest = slice(at, at + band), slice(at, None)
            np.multiply(hessian[rows, rest], own[rows, None], out=scaled[rows, rest], casting="same_kind")
            scaled[rows, rest] *= own[rest]
        scaled[np.diag_indices_from(scaled)] += damping
        try:  # the lower half of the transpose is in LAPACK's order: nothing is copied
            lower = cho_factor(scaled.T, lower=True, overwrite_a=True, check_finite=False)[0]
        except LinAlgError:
            return None
        # J'J has the square of the condition of J: below about eps^(1/2) in the factor no digits are left.
        if not np.min(np.abs(np.diag(lower))) > 1e-7:
            return None
        right = scale * self.gradient
        size = max(float(np.max(np.abs(right))), TINY)  # single precision has a small range
        return -scale * cho_solve((lower, True), (right / size).astype(kind), check_finite=False) * size


@dataclass(frozen=True, eq=False)
class OperatorModel:
    """The same model by products with J and J'."""

    linearisation: Linearisation
    forcing: float

    @cached_property
    def gradient(self) -> Vector:
        return self.linearisation.vjp(self.linearisation.residual)

    @cached_property
    def loss(self) -> float:
        residual = self.linearisation.residual
        return float(residual @ residual)

    @cached_property
    def squares(self) -> Vector:
        """(p,) squared lengths of the columns of J."""
        return np.maximum(np.asarray(self.linearisation.lengths, float) ** 2, TINY)

    def decrease(self, step: Vector) -> float:
        """Predicted decrease of the loss."""
        moved = self.linearisation.jvp(step)
        return float(-(2 * self.linearisation.residual @ moved + moved @ moved))

    def step(self, damping: float) -> Vector:
        """The damped step: an inexact solution, which the next linearisation corrects."""
        return damped_least_squares(self.linearisation, self.linearisation.residual, damping, self.forcing)


def damped_least_squares(
    at: Linearisation, residual: Residual, damping: float = 0.0, forcing: float = 1e-3, inner: int = 60
) -> Vector:
    """Minimise |J s + residual|^2 + damping |D s|^2 over s by LSMR, D the lengths of the columns of J.

    It takes at most ``inner`` products with J and J', and ends where a share of ``forcing`` is left of the
    residual or of J' residual.
    """
    from scipy.sparse.linalg import LinearOperator, lsmr

    lengths = np.asarray(at.lengths, float)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    size = float(np.linalg.norm(residual)) or 1.0
    make: Any = LinearOperator
    operator = make(
        (len(residual), len(scale)),
        matvec=lambda step: at.jvp(scale * np.ravel(step)),
        rmatvec=lambda right: scale * at.vjp(np.ravel(right)),
        dtype=float,
    )
    # Near a minimum with noise |J'r| is small from the beginning: what counts is how much of it is left.
    cosine = float(np.linalg.norm(scale * at.vjp(residual))) / (size * np.sqrt(len(scale)))
    solved = lsmr(
        operator, -residual / size, np.sqrt(damping), atol=forcing * cosine, btol=forcing, maxiter=inner
    )
    return scale * solved[0] * size


Model = NormalModel | OperatorModel


class Status(enum.Enum):
    """How a solver ended."""

    EXACT = "residuals vanish to rounding"
    STATIONARY = "the gradient vanishes: a stationary point of the loss"
    NO_PROGRESS = "no step lowers the loss any more: rounding, or a kink of the loss"
    STALLED = "the loss falls too slowly to be worth going on"
    STEP_LIMIT = "the step limit was reached before convergence: allow more steps"
    NOT_FINITE = "the loss became infinite or NaN: rescale the data or start elsewhere"


@dataclass(frozen=True)
class State:
    """A point of the descent: parameters, the quadratic model there, and the damping.

    ``status`` is None until the descent has ended. ``trace`` has the losses of the first point and of all
    accepted steps.
    """

    theta: Vector = field(repr=False)
    model: Model = field(repr=False)
    damping: float
    trace: tuple[float, ...] = field(repr=False)
    growth: float = 2.0
    status: Status | None = None

    @property
    def loss(self) -> float:
        return self.trace[-1]

    @property
    def steps(self) -> int:
        """Accepted steps."""
        return len(self.trace) - 1

    def to_arrays(self) -> dict[str, npt.ArrayLike]:
        """All but what the problem computes again at ``theta``."""
        status = "" if self.status is None else self.status.name
        return {
            "theta": self.theta,
            "trace": self.trace,
            "damping": self.damping,
            "growth": self.growth,
            "status": status,
        }

    def crawls(self, steps: int, share: float) -> bool:
        """Whether each of so many last steps lowered the loss by less than this share of it."""
        last = np.array(self.trace[-steps - 1 :])
        return len(last) > steps and bool(np.all(last[:-1] - last[1:] < share * last[:-1]))


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss–Newton with Nielsen's update of the damping.

    Attributes
    ----------
    max_steps : int
        Accepted steps at most.
    floor : float
        Sum of squares at or below which residuals count as rounding. One more step is taken from there:
        convergence is quadratic.
    damping, least : float
        The first damping, relative to the diagonal of J'J, and the smallest. Above 1e-14 a direction without
        curvature, such as the scale of a homogeneous unit, leaves J'J well enough conditioned.
    patience : int
        Stop after this many steps in a row that each lower the loss by less than ``slow`` (relative); 0
        switches the rule off.
    slow : float
        See ``patience``.
    rtol : float
        Two steps in a row that each lower the loss by a smaller share end the descent. A share of e / n is a
        change of e in n log(loss), the scale on which a standard error is 1. Damped steps count as well: at
        the optimum of kinked units with noise the damping never falls.
    predicted_rtol : float
        A predicted decrease below this share of the loss, at little damping, ends the descent.
    forcing : float
        Relative accuracy of a step of a matrix-free problem. 1e-3 takes 16 products where J is random with
        twice as many rows as columns.
    """

    max_steps: int = 200
    floor: float = 0.0
    damping: float = 1e-2
    least: float = 1e-15
    patience: int = 0
    slow: float = 1e-4
    rtol: float = 0.0
    predicted_rtol: float = 1e-13
    forcing: float = 1e-3

    def init(self, problem: Problem, theta: Vector, kept: Mapping[str, np.ndarray] | None = None) -> State:
        """The first state at theta, or the state that ``State.to_arrays`` stored in ``kept``."""
        if kept is None:
            theta = np.array(theta, dtype=float)
            model = self._model(problem, theta, self.damping)
            return self._ended(State(theta, model, self.damping, (model.loss,)))
        theta, damping, ended = kept["theta"], float(kept["damping"]), str(kept["status"])
        model = self._model(problem, theta, damping)
        state = State(theta, model, damping, tuple(kept["trace"].tolist()), float(kept["growth"]))
        return replace(state, status=Status[ended]) if ended else self._ended(state)

    def done(self, state: State) -> bool:
        """Whether the state is the last."""
        return state.status is not None

    def step(self, problem: Problem, state: State) -> State:
        """The next state: a step taken, or refused with more damping."""
        model, loss, damping = state.model, state.loss, state.damping
        step = model.step(damping)
        if step is None:
            return self._more_damping(state)
        predicted = model.decrease(step)
        if damping < 1e-4 and 0 <= predicted < self.predicted_rtol * loss:
            return replace(state, status=Status.STATIONARY)
        trial = problem.loss(state.theta + step)
        if not (np.isfinite(trial) and trial < loss):
            if loss <= self.floor:
                return replace(state, status=Status.EXACT)
            if np.all(np.abs(step) <= 1e-16 * (1 + np.abs(state.theta))):
                return replace(state, status=Status.NO_PROGRESS)
            return self._more_damping(state)
        gain = (loss - trial) / predicted if predicted > 0 else -1.0
        taken = replace(
            state,
            theta=state.theta + step,
            trace=(*state.trace, trial),
            damping=float(max(damping * max(1 / 9, 1 - (2 * gain - 1) ** 3), self.least)),
            growth=2.0,
        )
        if max(loss, trial) <= self.floor:  # nothing will read a model at the new point
            return replace(taken, status=Status.EXACT)
        moved = self._model(problem, taken.theta, taken.damping)
        return self._ended(replace(taken, model=moved, trace=(*state.trace, moved.loss)))

    def solve(self, problem: Problem, theta: Vector) -> State:
        """Minimise from theta to the end."""
        state = self.init(problem, theta)
        while not self.done(state):
            state = self.step(problem, state)
        return state

    def _model(self, problem: Problem, theta: Vector, damping: float) -> Model:
        if isinstance(problem, MatrixFree):
            return OperatorModel(problem.linearise(theta), self.forcing)
        # Such damping hides what single precision takes from J'J.
        lower = getattr(problem, "lower", None)
        room = None if lower is None else theta - lower
        return NormalModel(*problem.normal_equations(theta, rough=damping > 1e3 * SINGLE), room)

    def _more_damping(self, state: State) -> State:
        damping = max(state.damping, self.least) * state.growth
        status = Status.NO_PROGRESS if damping > 1e12 else None
        return replace(state, damping=damping, growth=2 * state.growth, status=status)

    def _ended(self, state: State) -> State:
        """The state with its status, if it is the last."""
        status = None
        if not np.isfinite(state.loss):
            status = Status.NOT_FINITE
        elif state.steps and max(state.trace[-2:]) <= self.floor:
            status = Status.EXACT
        elif state.crawls(2, self.rtol) or (self.patience and state.crawls(self.patience, self.slow)):
            status = Status.STALLED
        elif state.steps and (_largest_cosine(state.model) < 1e-13 or state.crawls(1, 1e-15)):
            status = Status.STATIONARY
        elif state.steps >= self.max_steps:
            status = Status.STEP_LIMIT
        return replace(state, status=status)


def _largest_cosine(model: Model) -> float:
    """max_j |<J_j, r>| / (|J_j| |r|) over the columns of J: the gradient without units."""
    gradient = np.where(model.free, model.gradient, 0.0) if isinstance(model, NormalModel) else model.gradient
    return float(np.max(np.abs(gradient) / np.sqrt(model.squares * max(model.loss, TINY))))
