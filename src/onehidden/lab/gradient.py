"""Plain gradient descent with the step 1/M_0 of [ZSJBD], and the linear rate it is seen to have.

f(W) = 1/(2n) Σ (Σ_i v_i g(<w_i, x> + b_i) + c - y)², over W alone: v, b, c are held, as in the corollary
|W⁺ - W*|² <= (1 - m_0/M_0) |W - W*|².
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.precision import in_double


@dataclass(frozen=True)
class Descent:
    """What the descent did.

    Attributes
    ----------
    weights : (k, d) where it ended.
    losses : (steps + 1,) f(W) along the way, the start included.
    distances : (steps + 1,) |W - W*|_F where a truth was given, else empty.
    step : the step size 1/M_0.
    rate : factor of f a step, fitted over the straight part of log f; NaN when it never fell by 10.
    converged : whether the loss ended below ``tolerance``.
    """

    weights: np.ndarray
    losses: np.ndarray
    distances: np.ndarray
    step: float
    rate: float
    converged: bool


@lru_cache(maxsize=32)
def _runner(
    fn: Callable[[jax.Array], jax.Array], slope: Callable[[jax.Array], jax.Array], steps: int
) -> Callable:
    """Compiled block of ``steps`` steps for one activation."""

    def value_and_gradient(W: jax.Array, problem: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        X, y, v, b, c = problem
        t = X @ W.T + b
        r = fn(t) @ v + c - y
        return 0.5 * jnp.mean(r**2), ((r[:, None] * slope(t)) * v).T @ X / X.shape[0]

    def block(
        W: jax.Array, step: jax.Array, truth: jax.Array, problem: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        def one(W: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            value, gradient = value_and_gradient(W, problem)
            return W - step * gradient, (value, jnp.linalg.norm(W - truth))

        return jax.lax.scan(one, W, None, length=steps)

    return jax.jit(block)


@in_double
def descend(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    weights: npt.ArrayLike,
    output: npt.ArrayLike,
    *,
    fn: Callable[[jax.Array], jax.Array],
    slope: Callable[[jax.Array], jax.Array],
    smoothness: float,
    bias: npt.ArrayLike | None = None,
    intercept: float = 0.0,
    truth: npt.ArrayLike | None = None,
    steps: int = 2000,
    tolerance: float = 1e-20,
) -> Descent:
    """Gradient descent from ``weights`` with step 1/``smoothness``.

    Parameters
    ----------
    X, y : (n, d), (n,).
    weights, output, bias, intercept : the start; only the weights move.
    fn, slope : g and g' as JAX functions (``activation.fn``, ``activation.slope``).
    smoothness : M_0, an upper bound of the Hessian's eigenvalues on the way.
    truth : (k, d) W* in the same order of units, to measure distances.
    steps, tolerance : the most steps, and the loss at which to stop (looked at every 100 steps).
    """
    if not (np.isfinite(smoothness) and smoothness > 0):
        raise ValueError(f"smoothness M_0 must be positive and finite, got {smoothness}")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    W = jnp.asarray(np.asarray(weights, float))
    k = W.shape[0]
    problem = tuple(
        jnp.asarray(np.asarray(a, float))
        for a in (X, y, output, np.zeros(k) if bias is None else bias, intercept)
    )
    reference = jnp.asarray(np.asarray(truth, float)) if truth is not None else jnp.zeros_like(W)
    step = jnp.asarray(1.0 / smoothness)
    block = min(100, steps)
    run = _runner(fn, slope, block)
    losses: list[np.ndarray] = []
    distances: list[np.ndarray] = []
    for _ in range(-(-steps // block)):
        W, (value, distance) = run(W, step, reference, problem)
        losses.append(np.asarray(value))
        distances.append(np.asarray(distance))
        if not np.all(np.isfinite(losses[-1])) or losses[-1][-1] <= tolerance:
            break
    _, (value, distance) = _runner(fn, slope, 1)(W, step, reference, problem)
    trace = np.append(np.concatenate(losses), np.asarray(value))
    path = np.append(np.concatenate(distances), np.asarray(distance)) if truth is not None else np.zeros(0)
    return Descent(
        np.asarray(W), trace, path, float(1.0 / smoothness), linear_rate(trace), bool(trace[-1] <= tolerance)
    )


def linear_rate(values: np.ndarray) -> float:
    """Factor a step of a geometrically falling sequence, by least squares on its logarithm.

    The first fifth (not yet linear) and everything within 10⁴ roundings of zero are left out.
    """
    values = np.asarray(values, float)
    least = max(float(np.max(values)) * 1e-26, 1e-28)
    below = np.flatnonzero(values <= least)
    end = int(below[0]) if len(below) else len(values)
    start = end // 5
    if end - start < 5 or not values[end - 1] < 0.1 * values[0]:
        return float("nan")
    t = np.arange(start, end)
    return float(np.exp(np.polyfit(t, np.log(values[start:end]), 1)[0]))
