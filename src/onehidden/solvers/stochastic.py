"""First-order descent as one compiled loop: fresh samples or full batch, any schedule, many seeds at once."""

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

from onehidden.precision import in_double

Schedule = optax.Schedule
Params = optax.Params  # arrays, or a tree of them
Carry = tuple[Params, optax.OptState, jax.Array]  # parameters, state of the optimiser, key


@dataclass(frozen=True)
class Descent:
    """Where a descent went.

    Attributes
    ----------
    params : final parameters, with a leading axis of seeds.
    steps : (r,) steps at which was recorded.
    values : (seeds, r) objective on the batch of that step.
    path : parameters at those steps, leading axes (seeds, r).
    """

    params: Any
    steps: np.ndarray
    values: np.ndarray
    path: Any


def sgd(rate: float | Schedule, momentum: float | None = None) -> optax.GradientTransformation:
    """Plain stochastic gradient; one object a setting, so that compilations are shared."""
    return _optimiser("sgd", rate, momentum)


def adam(rate: float | Schedule) -> optax.GradientTransformation:
    """Adam; one object a setting."""
    return _optimiser("adam", rate, None)


@cache
def cosine_decay(rate: float, steps: int) -> Schedule:
    """From ``rate`` to zero along half a cosine; one object a setting."""
    return optax.cosine_decay_schedule(rate, steps)


@cache
def staircase(rate: float, steps: int) -> Schedule:
    """``rate`` for half the run, then divided by 4 at every eighth: the schedule of [GLM] Section 4."""
    return optax.piecewise_constant_schedule(rate, {steps * i // 8: 0.25 for i in range(4, 8)})


_KEPT: dict[Any, optax.GradientTransformation] = {}


def _optimiser(kind: str, rate: float | Schedule, momentum: float | None) -> optax.GradientTransformation:
    key = (kind, rate, momentum)
    if key not in _KEPT:
        _KEPT[key] = optax.sgd(rate, momentum) if kind == "sgd" else optax.adam(rate)
    return _KEPT[key]


@in_double
def descend(
    value_and_grad: Callable[[Any, Any], tuple[jax.Array, Any]],
    starts: npt.ArrayLike | tuple[npt.ArrayLike, ...],
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    data: object = None,
    sampler: Callable[[jax.Array], object] | None = None,
    project: Callable[[Any], Any] | None = None,
    seed: int = 0,
    record_every: int | None = None,
) -> Descent:
    """Descend from every start (leading axis) in one jitted loop.

    Parameters
    ----------
    value_and_grad : (params, data) -> (value, gradient), traceable; kept functions share compilations.
    starts : parameters with a leading axis of seeds.
    optimiser : ``sgd(rate)``, ``adam(rate)`` or any optax transformation; the rate may be a schedule.
    data : the full batch (or moments); exclusive with ``sampler``.
    sampler : key -> fresh data for one step, traceable.
    project : applied after each step, e.g. rows back to unit norm.
    record_every : steps between records; about 100 records when None.
    """
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
