"""Full-batch descents: gradient steps 1/M_0 with their linear rate, and Newton steps on |∇²f|.

f(W) = 1/(2n) Σ (Σ_i v_i g(<w_i, x> + b_i) + c - y)², over W alone: v, b, c are held, as in the corollary
|W⁺ - W*|² <= (1 - m_0/M_0) |W - W*|² of [ZSJBD].

Designed objectives at the weights of their theorems have curvatures 10⁸ apart, the saddles' being the small
ones: first-order methods see a plateau where the eigenvectors of the Hessian, inside a trust region, see the
way out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.activations import Activation
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden_papers.lab import stochastic
from onehidden_papers.lab.stochastic import sgd


@dataclass(frozen=True)
class Descent:
    """What the descent did.

    Attributes
    ----------
    weights : ndarray of shape (k, d)
        Where it ended.
    losses : ndarray of shape (steps + 1,)
        f(W) along the way, the start included.
    distances : ndarray of shape (steps + 1,)
        |W - W*|_F where a truth was given, else empty.
    """

    weights: np.ndarray
    losses: np.ndarray
    distances: np.ndarray


@in_double
def descend(
    network: OneHiddenNet,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    smoothness: float,
    truth: npt.ArrayLike | None = None,
    steps: int = 2000,
) -> Descent:
    """Gradient descent on the rows of a network with step 1/``smoothness``.

    Parameters
    ----------
    network : OneHiddenNet
        The start; its rows move, all other parameters are held.
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.
    smoothness : float
        M_0, an upper bound of the Hessian's eigenvalues on the way.
    truth : array_like of shape (k, d) or None
        W* in the same order of units, to measure distances.
    steps : int
        Number of steps.

    Returns
    -------
    Descent
        The weights at the end, and the losses and distances on the way.
    """
    if not (np.isfinite(smoothness) and smoothness > 0):
        raise ValueError(f"smoothness M_0 must be positive and finite, got {smoothness}")
    parts = (X, y, network.output, network.bias, network.intercept)
    data = tuple(jnp.asarray(np.asarray(part, float)) for part in parts)
    value_and_grad = _value_and_grad(squared_loss(network.activation))
    run = stochastic.descend(
        value_and_grad, network.weights[None], optimiser=sgd(1.0 / smoothness), steps=steps, data=data,
        record_every=1,
    )  # fmt: skip
    end = run.params[0]
    # The value of a step is that of the point before it.
    losses = np.append(run.values[0], float(value_and_grad(jnp.asarray(end), data)[0]))
    distances = np.zeros(0)
    if truth is not None:
        distances = np.linalg.norm(np.stack([network.weights, *run.path[0]]) - truth, axis=(1, 2))
    return Descent(end, losses, distances)


@cache
def squared_loss(activation: Activation) -> Callable[[jax.Array, Any], jax.Array]:
    """½ mean (prediction − y)² in W, data = (X, y, v, b, c); kept, to share compilations."""

    def loss(W: jax.Array, data: tuple[jax.Array, ...]) -> jax.Array:
        X, y, v, b, c = data
        return 0.5 * jnp.mean((activation.fn(X @ W.T + b) @ v + c - y) ** 2)

    return loss


_value_and_grad = cache(jax.value_and_grad)


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


Look = tuple[jax.Array, ...]  # value, gradient, eigenvalues, eigenvectors, whether it is the end
Carry = tuple[jax.Array, jax.Array, jax.Array, jax.Array, Look]  # point, key, radius, steps, look


@dataclass(frozen=True)
class NewtonDescent:
    """Where each run of ``saddle_free_newton`` stopped; leading axis of starts everywhere.

    Attributes
    ----------
    params : ndarray of shape (s, …)
        The points.
    lambda_min : ndarray of shape (s,)
        Smallest curvature there.
    converged : ndarray of shape (s,)
        Whether |∇| and −λ_min are within the tolerance, relative to 1 + λ_max.
    """

    params: np.ndarray
    lambda_min: np.ndarray
    converged: np.ndarray


@in_double
def saddle_free_newton(
    function: Callable[[Any, Any], jax.Array],
    starts: npt.ArrayLike,
    data: object,
    *,
    steps: int = 200,
    radius: float = 0.5,
) -> NewtonDescent:
    """Minimise from every start with dense Hessians, past saddles: up to a few hundred parameters.

    Parameters
    ----------
    function : callable
        (params, data) -> value, traceable.
    starts : array_like of shape (s, …)
        Parameters, one run each.
    data : object
        Second argument of the function.
    steps : int
        Steps at most.
    radius : float
        Of the first trust region.

    Returns
    -------
    NewtonDescent
        The end of every run.
    """
    points = jnp.asarray(np.asarray(starts, float))
    keys = jax.random.split(jax.random.key(0), len(points))
    out = _run(function, int(steps), points, keys, data, radius)
    return NewtonDescent(*(np.asarray(part) for part in out))


@partial(jax.jit, static_argnums=(0, 1))
def _run(
    function: Callable[[Any, Any], jax.Array],
    steps: int,
    starts: jax.Array,
    keys: jax.Array,
    data: object,
    radius: float,
    tolerance: float = 1e-11,
) -> tuple[jax.Array, ...]:
    shape = starts.shape[1:]
    f = lambda x: function(x.reshape(shape), data)  # noqa: E731
    eye = jnp.eye(int(np.prod(shape)))

    def look(x: jax.Array) -> Look:
        gradient, curve = jax.linearize(jax.grad(f), x)
        H = jax.vmap(curve)(eye)
        eigenvalues, vectors = jnp.linalg.eigh((H + H.T) / 2)
        norm = jnp.sqrt(jnp.sum(gradient**2))
        scale = tolerance * (1 + jnp.max(jnp.abs(eigenvalues)))
        done = (norm <= scale) & (eigenvalues[0] >= -scale)
        return f(x), gradient, eigenvalues, vectors, done

    def advance(carry: Carry) -> Carry:
        x, key, delta, count, (value, gradient, eigenvalues, vectors, _) = carry
        key, now = jax.random.split(key)
        step = _trust_step(
            vectors.T @ gradient, eigenvalues, delta, jax.random.rademacher(now, (), float), tolerance
        )
        predicted = step @ (vectors.T @ gradient) + 0.5 * jnp.sum(eigenvalues * step**2)
        new = x + vectors @ step
        actual = f(new) - value
        # At rounding level the ratio is noise: a Newton step that does not climb is then as good as any.
        rounding = 1e-14 * (1 + jnp.abs(value))
        good = (actual <= 0.1 * predicted) | (jnp.abs(actual) <= rounding) & (predicted >= -rounding)
        delta = jnp.where(good, jnp.where(actual <= 0.5 * predicted, 2 * delta, delta), delta / 4)
        x = jnp.where(good, new, x)
        return x, key, jnp.minimum(delta, 10.0), count + 1, look(x)

    def going(carry: Carry) -> jax.Array:
        return (carry[3] < steps) & ~carry[4][4] & (carry[2] > 1e-15)

    def one(x: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        x = x.ravel()
        x, _, _, _, (_, _, eigenvalues, _, done) = jax.lax.while_loop(
            going, advance, (x, key, jnp.asarray(radius), jnp.asarray(0), look(x))
        )
        return x.reshape(shape), eigenvalues[0], done

    # One start after the other: batched loops would all wait for the slowest.
    return jax.lax.map(lambda pair: one(*pair), (starts, keys))


def _trust_step(
    g: jax.Array, eigenvalues: jax.Array, delta: jax.Array, sign: jax.Array, tolerance: float
) -> jax.Array:
    """−g_i/(|λ_i| + ν), ν ≥ 0 such that |step| ≤ delta, and a push along the way down where g has none."""
    size = jnp.max(jnp.abs(eigenvalues))
    floor = tolerance * (1 + size)
    absolute = jnp.maximum(jnp.abs(eigenvalues), floor)
    length = lambda nu: jnp.sqrt(jnp.sum((g / (absolute + nu)) ** 2))  # noqa: E731

    def bisect(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = jnp.sqrt(low * high)
        return jnp.where(length(middle) > delta, middle, low), jnp.where(length(middle) > delta, high, middle)

    top = jnp.sqrt(jnp.sum(g**2)) / delta + floor
    _, nu = jax.lax.fori_loop(0, 40, bisect, (floor * 1e-6, top))
    nu = jnp.where(length(0.0) <= delta, 0.0, nu)
    step = -g / (absolute + nu)
    # On a saddle the gradient along the most negative curvature can be zero: take what is left of the radius.
    left = jnp.sqrt(jnp.maximum(delta**2 - jnp.sum(step**2), 0.0))
    towards = jnp.where(step[0] == 0, sign, jnp.sign(step[0]))
    return step.at[0].add(jnp.where(eigenvalues[0] < -floor, towards * left, 0.0))
