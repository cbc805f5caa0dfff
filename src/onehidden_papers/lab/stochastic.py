"""First-order descent as one compiled loop: fresh samples or full batch, and perturbed gradient descent.

Perturbed descent leaves saddles by a small random push where the gradient vanishes: Jin, Ge, Netrapalli,
Kakade, Jordan (2017), "How to escape saddle points efficiently", Algorithm 1.
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
import optax

from onehidden.machine import in_double
from onehidden.run import derived_seed

Params = optax.Params  # arrays, or a tree of them
Carry = tuple[Params, optax.OptState, jax.Array]  # parameters, state of the optimiser, key


@dataclass(frozen=True)
class Descent:
    """Where a descent went."""

    params: Any  # final parameters, with a leading axis of seeds
    steps: np.ndarray  # (r,) at which was recorded
    values: np.ndarray  # (seeds, r) objective on the batch of that step
    path: Any  # parameters at those steps, leading axes (seeds, r)


# One object a setting, so that compilations are shared.
sgd, adam, cosine_decay = cache(optax.sgd), cache(optax.adam), cache(optax.cosine_decay_schedule)


@in_double
def descend(
    value_and_grad: Callable[[Any, Any], tuple[jax.Array, Any]],  # of params and data, traceable
    starts: npt.ArrayLike | tuple[npt.ArrayLike, ...],
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    data: object = None,  # the full batch or moments; or else:
    sampler: Callable[[jax.Array], object] | None = None,  # key -> fresh data for one step, traceable
    project: Callable[[Any], Any] | None = None,  # applied after each step, e.g. rows back to unit norm
    seed: int = 0,
    record_every: int | None = None,  # steps between records; None: about 100 records
) -> Descent:
    """Descend from every start (leading axis) in one jitted loop; kept functions share compilations."""
    if (data is None) == (sampler is None):
        raise ValueError("give either data (full batch) or sampler (fresh samples), not both or neither")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    every = max(1, steps // 100) if record_every is None else int(record_every)
    rounds = -(-steps // every)
    points = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, float)), starts)
    count = jax.tree.leaves(points)[0].shape[0]
    keys = jax.random.split(jax.random.key(seed), count)
    params, values, path = _run(
        value_and_grad, optimiser, sampler, project, every, rounds, points, keys, data
    )
    return Descent(
        jax.tree.map(np.asarray, params),
        every * np.arange(1, rounds + 1),
        np.asarray(values),
        jax.tree.map(np.asarray, path),
    )


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5))
def _run(
    value_and_grad: Callable[[Any, Any], tuple[jax.Array, Any]],
    optimiser: optax.GradientTransformation,
    sampler: Callable[[jax.Array], object] | None,
    project: Callable[[Any], Any] | None,
    every: int,
    rounds: int,
    starts: Params,
    keys: jax.Array,
    data: object,
) -> tuple[Params, jax.Array, Params]:
    def step(carry: Carry, _: None) -> tuple[Carry, jax.Array]:
        params, state, key = carry
        key, now = jax.random.split(key)
        value, gradient = value_and_grad(params, data if sampler is None else sampler(now))
        updates, state = optimiser.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        return (params if project is None else project(params), state, key), value

    def block(carry: Carry, _: None) -> tuple[Carry, tuple[jax.Array, Params]]:
        carry, values = jax.lax.scan(step, carry, None, length=every)
        return carry, (values[-1], carry[0])

    def one(params: Params, key: jax.Array) -> tuple[Params, jax.Array, Params]:
        carry = (params, optimiser.init(params), key)
        (params, _, _), (values, path) = jax.lax.scan(block, carry, None, length=rounds)
        return params, values, path

    return jax.vmap(one)(starts, keys)


@dataclass(frozen=True)
class PerturbedDescent:
    """Outcome of perturbed gradient descent; leading axis of starts everywhere.

    Attributes
    ----------
    params : ndarray
        The point of smallest value seen among those where the gradient had died.
    values, gradient_norms : ndarray
        There.
    perturbations : ndarray
        How many pushes each run took.
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
    value_and_grad : callable
        (params, data) -> (value, gradient), traceable.
    starts : array_like
        (s, ...) arrays of parameters, one run each.
    data : object
        Second argument of ``value_and_grad``.
    rate : float
        Step size.
    steps : int
        Number of steps.
    threshold : float
        Gradient norm that counts as stationary.
    radius : float
        Radius of the ball from which the push is drawn.
    wait : int
        Steps between two pushes.
    seed : int
        Seed of the pushes.

    Returns
    -------
    PerturbedDescent
        The best point of every run.
    """
    if not (rate > 0 and threshold > 0 and radius > 0 and steps >= 1 and wait >= 1):
        raise ValueError("rate, threshold, radius, steps and wait must be positive")
    starts = jnp.asarray(np.asarray(starts, float))
    keys = jax.random.split(jax.random.key(derived_seed(seed, "perturbed descent")), len(starts))
    out = _perturbed_run(value_and_grad, int(steps), int(wait), starts, keys, data, rate, threshold, radius)
    return PerturbedDescent(*(np.asarray(part) for part in out))


Point = tuple[jax.Array, jax.Array, jax.Array]  # parameters, value, gradient norm


@partial(jax.jit, static_argnums=(0, 1, 2))
def _perturbed_run(
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
    def choose(take: jax.Array, new: Point, old: Point) -> Point:
        return jax.tree.map(lambda a, b: jnp.where(take, a, b), new, old)

    def step(carry: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        x, key, since, pushes, best = carry
        value, gradient = value_and_grad(x, data)
        norm = jnp.sqrt(jnp.sum(gradient**2))
        key, a, b = jax.random.split(key, 3)
        calm = norm <= threshold
        best = choose(calm & (value < best[1]), (x, value, norm), best)
        push = calm & (since >= wait)
        # Uniform in the ball: a direction, and a radius whose power of the dimension is uniform.
        direction = jax.random.normal(a, x.shape)
        direction *= radius * jax.random.uniform(b) ** (1 / x.size) / jnp.sqrt(jnp.sum(direction**2))
        x = jnp.where(push, x + direction, x - rate * gradient)
        return (x, key, jnp.where(push, 0, since + 1), jnp.where(push, pushes + 1, pushes), best), None

    def one(x: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        none = jnp.asarray(jnp.inf)
        init = (x, key, jnp.asarray(wait), jnp.asarray(0), (x, none, none))
        (x, _, _, pushes, best), _ = jax.lax.scan(step, init, None, length=steps)
        value, gradient = value_and_grad(x, data)
        last = (x, value, jnp.sqrt(jnp.sum(gradient**2)))
        return (*choose(jnp.isfinite(best[1]), best, last), pushes)

    return jax.vmap(one)(starts, keys)
