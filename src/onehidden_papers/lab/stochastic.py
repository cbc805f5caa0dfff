"""First-order descent as one compiled loop, on fresh samples or a full batch."""

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
    found = _run(value_and_grad, optimiser, sampler, project, every, rounds, points, keys, data)
    params, values, path = jax.tree.map(np.asarray, found)
    return Descent(params, every * np.arange(1, rounds + 1), values, path)


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
