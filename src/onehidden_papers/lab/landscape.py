"""The landscape of an objective: whether a point is a minimum, and pictures of its values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.machine import in_double
from onehidden_papers.objectives.base import Objective


@dataclass(frozen=True)
class LandscapeRecord:
    """What the landscape looks like at one point.

    Attributes
    ----------
    value, gradient_norm : float
        Objective and |∇| there.
    lambda_min, lambda_max : float
        Extreme eigenvalues of the Hessian.
    epsilon, tau : float
        Thresholds: |∇| ≤ ε is stationary, λ_min ≥ −τ has no way down.
    verdict : str
        "approximate local minimum", "saddle" (stationary, a way down) or "neither" (not stationary).
    direction : ndarray
        Unit eigenvector of λ_min, of the shape of the parameters: the way down from a saddle.
    """

    value: float
    gradient_norm: float
    lambda_min: float
    lambda_max: float
    epsilon: float
    tau: float
    verdict: Literal["approximate local minimum", "saddle", "neither"]
    direction: np.ndarray


@in_double
def landscape(
    objective: Objective,
    params: npt.ArrayLike,
    data: object,
    *,
    tau: float,
    epsilon: float | None = None,
    sphere: bool = False,
) -> LandscapeRecord:
    """Certify a point of any objective.

    Parameters
    ----------
    objective : Objective
        The function to judge; ``function(params, source)`` and ``prepare(data)`` are asked for.
    params : array_like
        The point, rows (k, d).
    data : tuple, mapping or OneHiddenNet
        Batch, moments or teacher.
    tau : float
        Curvature tolerance, τ of the theorem (``objective.tau`` gives it for G and L).
    epsilon : float or None
        Gradient tolerance; 1e-8·(1 + λ_max) when None.
    sphere : bool
        Judge the objective on rows of unit norm (P', f').
    """
    if tau < 0:
        raise ValueError(f"tau must be 0 or more, got {tau}")
    source = objective.prepare(data)
    x = jnp.asarray(np.asarray(params, float))
    fn = partial(_on_sphere, objective.function) if sphere else objective.function
    value, gradient = jax.jit(jax.value_and_grad(fn))(x, source)
    H = np.asarray(jax.jit(jax.hessian(fn))(x, source)).reshape(x.size, x.size)
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    low, high, direction = values[0], values[-1], vectors[:, 0]
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


@in_double
def slice_surface(
    objective: Objective,
    data: object,
    params: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    radius: float = 1.0,
    size: int = 61,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the objective at params + s·first + t·second, |s|, |t| ≤ radius.

    Parameters
    ----------
    objective : Objective
        The objective.
    data : object
        What the objective takes: a batch (X, y), score moments, or a prepared source.
    params : array_like of shape (k, d)
        Centre of the slice.
    first, second : array_like of shape (k, d)
        Directions of the two axes.
    radius : float
        Largest coordinate on each axis.
    size : int
        Points on each axis.

    Returns
    -------
    coordinates : ndarray of shape (size,)
        Those on both axes.
    values : ndarray of shape (size, size)
        The objective at each pair of them.
    """
    P, U, V = (jnp.asarray(np.asarray(part, float)) for part in (params, first, second))
    if P.shape != U.shape or P.shape != V.shape:
        raise ValueError(f"the two directions must have the shape of params, {P.shape}")
    t, source = np.linspace(-radius, radius, size), objective.prepare(data)
    row = jax.vmap(lambda s, t: objective.function(P + s * U + t * V, source), (None, 0))
    values = jax.jit(lambda t: jax.lax.map(lambda s: row(s, t), t))(jnp.asarray(t))
    return t, np.asarray(values)
