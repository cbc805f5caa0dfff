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
from onehidden_papers.lab.descents import derivatives
from onehidden_papers.objectives.base import Objective, unit_rows


@dataclass(frozen=True)
class LandscapeRecord:
    """What the landscape looks like at one point.

    Attributes
    ----------
    value, gradient_norm : float
        Objective and |∇| there.
    lambda_min : float
        Smallest eigenvalue of the Hessian.
    verdict : str
        "approximate local minimum" (|∇| ≤ ε, λ_min ≥ −τ), "saddle" (stationary, a way down) or "neither" (not
        stationary).
    direction : ndarray
        Unit eigenvector of λ_min, of the shape of the parameters: the way down from a saddle.
    """

    value: float
    gradient_norm: float
    lambda_min: float
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
    source, x = objective.prepare(data), np.asarray(params, float)
    fn = partial(_on_sphere, objective.function) if sphere else objective.function
    value, gradient = derivatives(fn, x.shape, source, x, 1)
    values, vectors = np.linalg.eigh(derivatives(fn, x.shape, source, x, 2))
    low, norm, size = float(values[0]), float(np.linalg.norm(gradient)), 1 + abs(float(values[-1]))
    # Rounding of the spectrum: a zero mode must not read as a way down.
    minimum = low >= -tau - 1e-10 * size
    verdict = "approximate local minimum" if minimum else "saddle"
    if norm > (1e-8 * size if epsilon is None else epsilon):
        verdict = "neither"
    return LandscapeRecord(value, norm, low, verdict, vectors[:, 0].reshape(x.shape))


def _on_sphere(fn: Callable, x: jax.Array, source: object) -> jax.Array:
    return fn(unit_rows(x), source)


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
