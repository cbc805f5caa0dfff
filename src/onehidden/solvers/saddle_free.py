"""Second-order descent that saddles do not hold: Newton steps on |∇²f| inside a trust region.

Designed objectives at the weights of their theorems have curvatures 10⁸ apart, the saddles' being the small
ones: first-order methods see a plateau where the eigenvectors of the Hessian see the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.precision import in_double

_BISECTIONS = 40

Look = tuple[jax.Array, ...]  # value, gradient, eigenvalues, eigenvectors, |gradient|, whether it is the end
Carry = tuple[jax.Array, jax.Array, jax.Array, jax.Array, Look]  # point, key, radius, steps, look


@dataclass(frozen=True)
class NewtonDescent:
    """Outcome; leading axis of starts everywhere.

    Attributes
    ----------
    params : where each run stopped.
    values, gradient_norms, lambda_min : objective, |∇| and smallest curvature there.
    steps : steps taken until both were within tolerance, or the limit.
    converged : |∇| ≤ tolerance·(1 + λ_max) and λ_min ≥ −tolerance·(1 + λ_max).
    """

    params: np.ndarray
    values: np.ndarray
    gradient_norms: np.ndarray
    lambda_min: np.ndarray
    steps: np.ndarray
    converged: np.ndarray


@in_double
def saddle_free_newton(
    function: Callable[[Any, Any], jax.Array],
    starts: npt.ArrayLike,
    data: object,
    *,
    steps: int = 200,
    tolerance: float = 1e-11,
    radius: float = 0.5,
    seed: int = 0,
) -> NewtonDescent:
    """Minimise from every start (leading axis) with dense Hessians: up to a few hundred parameters.

    Parameters
    ----------
    function : (params, data) -> value, traceable and twice differentiable.
    starts : (s, ...) arrays.
    tolerance : on |∇| and on −λ_min, relative to the largest curvature.
    radius : first trust radius.
    """
    points = jnp.asarray(np.asarray(starts, float))
    keys = jax.random.split(jax.random.key(seed), len(points))
    out = _run(function, int(steps), points, keys, data, tolerance, radius)
    return NewtonDescent(*(np.asarray(part) for part in out))


@partial(jax.jit, static_argnums=(0, 1))
def _run(
    function: Callable[[Any, Any], jax.Array],
    steps: int,
    starts: jax.Array,
    keys: jax.Array,
    data: object,
    tolerance: float,
    radius: float,
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
        return f(x), gradient, eigenvalues, vectors, norm, done

    def advance(carry: Carry) -> Carry:
        x, key, delta, count, (value, gradient, eigenvalues, vectors, _, _) = carry
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
        return (carry[3] < steps) & ~carry[4][5] & (carry[2] > 1e-15)

    def one(x: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        x = x.ravel()
        x, _, _, count, (value, _, eigenvalues, _, norm, done) = jax.lax.while_loop(
            going, advance, (x, key, jnp.asarray(radius), jnp.asarray(0), look(x))
        )
        return x.reshape(shape), value, norm, eigenvalues[0], count, done

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
    _, nu = jax.lax.fori_loop(0, _BISECTIONS, bisect, (floor * 1e-6, top))
    nu = jnp.where(length(0.0) <= delta, 0.0, nu)
    step = -g / (absolute + nu)
    # On a saddle the gradient along the most negative curvature can be zero: take what is left of the radius.
    left = jnp.sqrt(jnp.maximum(delta**2 - jnp.sum(step**2), 0.0))
    towards = jnp.where(step[0] == 0, sign, jnp.sign(step[0]))
    return step.at[0].add(jnp.where(eigenvalues[0] < -floor, towards * left, 0.0))
