"""Linearisations of least squares and their damped steps: by normal equations or products with J."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

TINY = float(np.finfo(float).tiny)
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

    @property
    def residual(self) -> Residual: ...

    @property
    def lengths(self) -> Vector: ...

    def jvp(self, step: Vector, /) -> Residual:
        """J step."""
        ...

    def vjp(self, residual: Residual, /) -> Vector:
        """J' residual."""
        ...


@runtime_checkable
class MatrixFree(Protocol):
    """Least squares whose Jacobian is a linear operator; J'J is never formed."""

    def loss(self, theta: Vector) -> float:
        """Sum of squared residuals at theta."""
        ...

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
    inner: int
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
        at = self.linearisation
        return damped_least_squares(at, at.residual, damping, self.inner, self.forcing)


def damped_least_squares(
    at: Linearisation, residual: Residual, damping: float = 0.0, inner: int = 60, forcing: float = 1e-3
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
