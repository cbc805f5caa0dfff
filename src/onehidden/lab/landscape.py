"""Is this point a minimum of that objective: |∇|, the extreme curvatures, and what the theorem concludes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.checks import Check, at_least, at_most
from onehidden.objectives.base import Objective
from onehidden.precision import in_double
from onehidden.streams import stream

DENSE_LIMIT = 400


@dataclass(frozen=True)
class LandscapeRecord:
    """What the landscape looks like at one point.

    Attributes
    ----------
    value, gradient_norm : objective and |∇| there.
    lambda_min, lambda_max : extreme eigenvalues of the Hessian.
    epsilon, tau : thresholds: |∇| ≤ ε is stationary, λ_min ≥ −τ has no way down.
    verdict : "approximate local minimum", "saddle" (stationary, a way down) or "neither" (not stationary).
    direction : unit eigenvector of λ_min, of the shape of the parameters: the way down from a saddle.
    """

    value: float
    gradient_norm: float
    lambda_min: float
    lambda_max: float
    epsilon: float
    tau: float
    verdict: Literal["approximate local minimum", "saddle", "neither"]
    direction: np.ndarray

    @property
    def checks(self) -> list[Check]:
        """The two conditions of the theorem as checks."""
        return [
            at_most("gradient norm", self.gradient_norm, self.epsilon, "stationary: descend further if not"),
            at_least("smallest curvature", self.lambda_min, -self.tau, "no way down: push along it if not"),
        ]


@in_double
def landscape(
    objective: Objective,
    params: npt.ArrayLike,
    data: object,
    *,
    tau: float,
    epsilon: float | None = None,
    sphere: bool = False,
    dense_limit: int = DENSE_LIMIT,
) -> LandscapeRecord:
    """Certify a point of any objective.

    Parameters
    ----------
    objective : the function to judge; ``function(params, source)`` and ``prepare(data)`` are asked for.
    params : the point, rows (k, d).
    data : batch, moments or teacher.
    tau : curvature tolerance, τ of the theorem (``objective.tau`` gives it for G and L).
    epsilon : gradient tolerance; 1e-8·(1 + λ_max) when None.
    sphere : judge the objective on rows of unit norm (P', f').
    dense_limit : up to so many parameters the Hessian is formed, beyond it Lanczos runs on products.
    """
    if tau < 0:
        raise ValueError(f"tau must be 0 or more, got {tau}")
    source = objective.prepare(data)
    x = jnp.asarray(np.asarray(params, float))
    fn = partial(_on_sphere, objective.function) if sphere else objective.function
    value, gradient = jax.jit(jax.value_and_grad(fn))(x, source)
    if x.size <= dense_limit:
        values, vectors = np.linalg.eigh(_dense_hessian(fn, x, source))
        low, high, direction = values[0], values[-1], vectors[:, 0]
    else:
        low, high, direction = _lanczos(fn, x, source)
    norm = float(jnp.sqrt(jnp.sum(gradient**2)))
    epsilon = 1e-8 * (1 + abs(float(high))) if epsilon is None else float(epsilon)
    # Rounding of the spectrum: a zero mode must not read as a way down.
    slack = 1e-10 * (1 + abs(float(high)))
    if norm > epsilon:
        verdict = "neither"
    else:
        verdict = "approximate local minimum" if low >= -tau - slack else "saddle"
    return LandscapeRecord(
        float(value), norm, float(low), float(high), epsilon, tau + slack, verdict, direction.reshape(x.shape)
    )


def _on_sphere(fn: Callable, x: jax.Array, source: object) -> jax.Array:
    return fn(x / jnp.linalg.norm(x, axis=1, keepdims=True), source)


def _dense_hessian(fn: Callable, x: jax.Array, source: object) -> np.ndarray:
    H = np.asarray(jax.jit(jax.hessian(fn))(x, source)).reshape(x.size, x.size)
    return (H + H.T) / 2


def _lanczos(fn: Callable, x: jax.Array, source: object) -> tuple[float, float, np.ndarray]:
    from scipy.sparse.linalg import LinearOperator, eigsh

    @jax.jit
    def product(point: jax.Array, data: object, v: jax.Array) -> jax.Array:
        return jax.jvp(lambda p: jax.grad(fn)(p, data), (point,), (v,))[1]

    def apply(v: np.ndarray) -> np.ndarray:
        return np.asarray(product(x, source, jnp.asarray(v).reshape(x.shape))).ravel()

    operator = LinearOperator((x.size, x.size), matvec=apply, dtype=np.float64)  # type: ignore[call-arg]
    v0 = stream(0, "lanczos").standard_normal(x.size)
    high = eigsh(operator, k=1, which="LA", v0=v0, tol=1e-6, return_eigenvectors=False)[0]  # type: ignore[arg-type]
    # λ_min sits in a cluster: shift by λ_max so that it becomes the largest in magnitude.
    shifted = LinearOperator((x.size, x.size), matvec=lambda v: high * v - apply(v), dtype=np.float64)  # type: ignore[call-arg]
    value, vector = eigsh(shifted, k=1, which="LA", v0=v0, tol=1e-8, ncv=min(x.size, 60))  # type: ignore[arg-type]
    return float(high - value[0]), float(high), vector[:, 0]
