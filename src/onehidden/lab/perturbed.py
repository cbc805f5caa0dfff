"""Perturbed gradient descent: leaves saddles by a small random push where the gradient has died.

Reference: Jin, Ge, Netrapalli, Kakade, Jordan (2017), "How to escape saddle points efficiently", Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.precision import in_double
from onehidden.streams import derived_seed


@dataclass(frozen=True)
class PerturbedDescent:
    """Outcome of perturbed gradient descent; leading axis of starts everywhere.

    Attributes
    ----------
    params : the point of smallest value seen among those where the gradient had died.
    values, gradient_norms : there.
    perturbations : how many pushes each run took.
    """

    params: np.ndarray
    values: np.ndarray
    gradient_norms: np.ndarray
    perturbations: np.ndarray


@in_double
def perturbed_descent(
    value_and_grad: Callable[..., tuple[jax.Array, jax.Array]],
    starts: npt.ArrayLike,
    data: object,
    *,
    rate: float,
    steps: int,
    threshold: float = 1e-6,
    radius: float = 1e-2,
    wait: int = 200,
    seed: int = 0,
) -> PerturbedDescent:
    """Gradient descent that pushes itself off any point where |∇| ≤ threshold.

    Parameters
    ----------
    starts : (s, ...) arrays of parameters, one run each.
    rate, steps : step size and number of steps.
    threshold : gradient norm that counts as stationary.
    radius : of the ball from which the push is drawn.
    wait : steps between two pushes.
    """
    if not (rate > 0 and threshold > 0 and radius > 0 and steps >= 1 and wait >= 1):
        raise ValueError("rate, threshold, radius, steps and wait must be positive")
    starts = jnp.asarray(np.asarray(starts, float))
    keys = jax.random.split(jax.random.key(derived_seed(seed, "perturbed descent")), len(starts))
    out = _run(value_and_grad, int(steps), int(wait), starts, keys, data, rate, threshold, radius)
    return PerturbedDescent(*(np.asarray(part) for part in out))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _run(
    value_and_grad: Callable[..., tuple[jax.Array, jax.Array]],
    steps: int,
    wait: int,
    starts: jax.Array,
    keys: jax.Array,
    data: object,
    rate: float,
    threshold: float,
    radius: float,
) -> tuple[jax.Array, ...]:
    def step(carry: tuple[jax.Array, ...], _: None) -> tuple[tuple[jax.Array, ...], None]:
        x, key, since, pushes, best, best_value, best_norm = carry
        value, gradient = value_and_grad(x, data)
        norm = jnp.sqrt(jnp.sum(gradient**2))
        key, a, b = jax.random.split(key, 3)
        calm = norm <= threshold
        better = calm & (value < best_value)
        best = jnp.where(better, x, best)
        best_value, best_norm = jnp.where(better, value, best_value), jnp.where(better, norm, best_norm)
        push = calm & (since >= wait)
        # Uniform in the ball: a direction, and a radius whose power of the dimension is uniform.
        direction = jax.random.normal(a, x.shape)
        direction *= radius * jax.random.uniform(b) ** (1 / x.size) / jnp.sqrt(jnp.sum(direction**2))
        x = jnp.where(push, x + direction, x - rate * gradient)
        since = jnp.where(push, 0, since + 1)
        return (x, key, since, jnp.where(push, pushes + 1, pushes), best, best_value, best_norm), None

    def one(x: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        none = jnp.asarray(jnp.inf)
        init = (x, key, jnp.asarray(wait), jnp.asarray(0), x, none, none)
        carry, _ = jax.lax.scan(step, init, None, length=steps)
        x, _, _, pushes, best, best_value, best_norm = carry
        value, gradient = value_and_grad(x, data)
        norm = jnp.sqrt(jnp.sum(gradient**2))
        never = ~jnp.isfinite(best_value)
        return (
            jnp.where(never, x, best),
            jnp.where(never, value, best_value),
            jnp.where(never, norm, best_norm),
            pushes,
        )

    return jax.vmap(one)(starts, keys)
