"""Offspring of a population of networks: the units of two parents pooled, the best k of them kept, descended.

Units, not parameters, are the genes. They are compared by what they say about the rows, less the fixed
columns: that is blind to permutation, to the scale of homogeneous units and to their orientation.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.form import Form
from onehidden.starts.descents import Planes, Seen, Table, descended, looked, mean_squares

SAME = 0.99  # correlation, less the fixed columns, above which two units are one
_SHARE = 0.8  # of both parents' units that are pooled: which, is drawn anew for every child
_TRACE = 1e-5  # ridge of the elimination, in units of norm one: both parents may have one unit


def pooled(k: int) -> int:
    """Units that a child is chosen from."""
    return max(k + 1, round(_SHARE * 2 * k))


def draws(rng: np.random.Generator, count: int, k: int) -> Int[np.ndarray, "count pool"]:
    """Which of the 2 k units of its parents each child is chosen from."""
    return np.argsort(rng.random((count, 2 * k)), axis=1)[:, : pooled(k)]


@partial(jax.jit, static_argnums=0)
def offspring(
    form: Form, rows: Table, first: Planes, second: Planes, drawn: jax.Array, steps: jax.Array
) -> tuple[Planes, Float[jax.Array, " P"], Float[jax.Array, "P 2"]]:
    """Children of pairs of parents: their hyperplanes, mean squared residuals, and likeness to either parent.

    Of the units drawn, the one that the least-squares fit misses least is dropped until k are left, and the
    child descends from there.
    """
    both = jnp.concatenate([first, second], axis=1)
    pool = jnp.take_along_axis(both, drawn[..., None], axis=1)
    planes, seen = descended(form, rows, _best_units(form, rows, pool), steps)
    own = _directions(seen, rows)
    like = [_likeness(own, _directions(looked(form, rows, parent), rows)) for parent in (first, second)]
    return planes, mean_squares(seen), jnp.stack(like, axis=1)


@partial(jax.jit, static_argnums=0)
def shared_units(form: Form, rows: Table, planes: Planes) -> Float[jax.Array, " P"]:
    """How many units of the first network each one has."""
    own = _directions(looked(form, rows, planes), rows)
    return jnp.sum(jnp.max(jnp.abs(own[:1] @ own.mT), axis=2) > SAME, axis=1)


def _best_units(form: Form, rows: Table, pool: Float[jax.Array, "P M e"]) -> Planes:
    """The k units of each pool left by backward elimination: dropping unit i costs coef_i^2 / (G^-1)_ii."""
    size = pool.shape[1]
    wide = looked(_wide(form, size), rows, pool)
    unit = _directions(wide, rows)
    gram = unit @ unit.mT + _TRACE * jnp.eye(size, dtype=pool.dtype)
    inverse = jnp.linalg.inv(gram)
    coefficient = jnp.einsum("pij,pj->pi", inverse, unit @ rows.y)

    def left(inverse: jax.Array, coefficient: jax.Array) -> jax.Array:
        def drop(_: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            inverse, coefficient, alive = state
            cost = coefficient**2 / jnp.maximum(jnp.diagonal(inverse), jnp.finfo(pool.dtype).tiny)
            i = jnp.argmin(jnp.where(alive, cost, jnp.inf))
            column = inverse[:, i]
            coefficient = coefficient - column * (coefficient[i] / column[i])
            inverse = inverse - jnp.outer(column, column) / column[i]
            return inverse, coefficient, alive.at[i].set(False)

        start = inverse, coefficient, jnp.ones(size, bool)
        return jax.lax.fori_loop(0, size - form.k, drop, start)[2]

    alive = jax.vmap(left)(inverse, coefficient)
    kept = jnp.argsort(~alive, axis=1, stable=True)[:, : form.k]
    return jnp.take_along_axis(pool, kept[..., None], axis=1)


def _wide(form: Form, size: int) -> Form:
    return Form(form.activation, form.d, size, form.bias, form.intercept, form.skip, form.symmetrised)


def _directions(seen: Seen, rows: Table) -> Float[jax.Array, "P k n"]:
    """Units less the fixed columns, of norm one."""
    apart = seen.units - seen.along @ rows.fixed.T
    return apart / jnp.maximum(jnp.linalg.norm(apart, axis=2, keepdims=True), 1e-30)


def _likeness(own: jax.Array, other: jax.Array) -> Float[jax.Array, " P"]:
    """Mean over the units of the largest correlation with a unit of the other network."""
    return jnp.mean(jnp.max(jnp.abs(own @ other.mT), axis=2), axis=1)
