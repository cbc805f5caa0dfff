"""Offspring: the units of two networks made into a third. Units, not parameters, are the genes.

They are compared by what they say about the rows, less the fixed columns: that is blind to permutation, to
the scale of homogeneous units and to orientation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.compiled import jitted
from onehidden.fit.form import Form
from onehidden.starts.descents import Planes, Table, looked

SAME = 0.99  # correlation, less the fixed columns, above which two units are one
_SHARE = 0.8  # of both parents' units that a child is chosen from: which, is drawn anew for every child
_TRACE = 1e-5  # ridge of the elimination, for units of norm one: both parents may have the same


def drawn_units(rng: np.random.Generator, count: int, k: int) -> Int[np.ndarray, "P M"]:
    """Which of the 2 k units of its parents each child is chosen from."""
    size = max(k + 1, round(_SHARE * 2 * k))
    return np.argsort(rng.random((count, 2 * k)), axis=1)[:, :size]


def own_units(rng: np.random.Generator, count: int, k: int) -> Bool[np.ndarray, "P k"]:
    """Which units each child takes from its first parent: a third to two thirds of them."""
    least = max(k // 3, 1)
    taken = rng.integers(least, max(k - least, least) + 1, (count, 1))
    return np.argsort(np.argsort(rng.random((count, k)), axis=1), axis=1) < taken


@partial(jitted, static_argnums=0)
def pooled(form: Form, rows: Table, first: Planes, second: Planes, drawn: Int[jax.Array, "P M"]) -> Planes:
    """The k units, of those drawn from both parents, that fit best together.

    Backward elimination: dropping unit i costs |coef_i|^2 / (G^-1)_ii, the cheapest goes, until k are left.
    """
    pool = jnp.take_along_axis(jnp.concatenate([first, second], axis=1), drawn[..., None], axis=1)
    size = pool.shape[1]
    unit = directions(form, rows, pool)
    inverse = jnp.linalg.inv(unit @ unit.mT + _TRACE * jnp.eye(size, dtype=pool.dtype))
    coefficient = inverse @ (unit @ rows.y)  # (P, M, q)

    def left(inverse: jax.Array, coefficient: jax.Array) -> jax.Array:
        def drop(_: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            inverse, coefficient, alive = state
            size = jnp.sum(coefficient**2, axis=1)
            cost = size / jnp.maximum(jnp.diagonal(inverse), jnp.finfo(pool.dtype).tiny)
            i = jnp.argmin(jnp.where(alive, cost, jnp.inf))
            column = inverse[:, i]
            coefficient = coefficient - jnp.outer(column, coefficient[i] / column[i])
            return inverse - jnp.outer(column, column) / column[i], coefficient, alive.at[i].set(False)

        return jax.lax.fori_loop(0, size - form.k, drop, (inverse, coefficient, jnp.ones(size, bool)))[2]

    dropped = ~jax.vmap(left)(inverse, coefficient)
    kept = jnp.argsort(dropped, axis=1, stable=True)[:, : form.k]
    return jnp.take_along_axis(pool, kept[..., None], axis=1)


@partial(jitted, static_argnums=0)
def mixed(form: Form, rows: Table, first: Planes, second: Planes, own: Bool[jax.Array, "P k"]) -> Planes:
    """The units of the first parent that the child owns, and those of the second least like them."""
    alike = jnp.abs(directions(form, rows, second) @ directions(form, rows, first).mT)
    alike = jnp.max(jnp.where(own[:, None, :], alike, 0.0), axis=2)
    rank = jnp.concatenate([jnp.where(own, -1.0, 2.0), alike], axis=1)
    kept = jnp.argsort(rank, axis=1, stable=True)[:, : form.k]
    return jnp.take_along_axis(jnp.concatenate([first, second], axis=1), kept[..., None], axis=1)


@partial(jitted, static_argnums=0)
def shared_units(form: Form, rows: Table, planes: Planes) -> Float[jax.Array, " P"]:
    """How many units of the first network each one has."""
    unit = directions(form, rows, planes)
    return jnp.sum(jnp.max(jnp.abs(unit[:1] @ unit.mT), axis=2) > SAME, axis=1)


def directions(form: Form, rows: Table, planes: Float[jax.Array, "P M e"]) -> Float[jax.Array, "P M n"]:
    """What units say about the rows, less the fixed columns, of norm one."""
    seen = looked(replace(form, k=planes.shape[1]), rows, planes)
    apart = seen.units - seen.along @ rows.fixed.T
    return apart / jnp.maximum(jnp.linalg.norm(apart, axis=2, keepdims=True), 1e-30)
