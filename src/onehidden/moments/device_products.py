"""The sums of ``ProductSums`` on an accelerator: the same blocks, one compiled function an order."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.moments.packing import sorted_indices


@partial(jax.jit, static_argnums=(0, 1, 2))
def device_sums(
    blocks: tuple[tuple[int, ...], ...],
    order: int,
    roughly: bool,
    weight: jax.Array,
    scores: tuple[jax.Array, ...],
) -> jax.Array:
    """The flat store of a ``_Layout`` with these blocks for one batch, scores (r, n) and weight (n,).

    Roughly is in single precision as the device multiplies it, ten bits of each factor at least, with the
    weight in units of its largest.
    """
    if not roughly:
        return _sums(blocks, order, weight, scores)
    unit = jnp.maximum(jnp.max(jnp.abs(weight)), jnp.finfo(weight.dtype).tiny)
    narrow = (weight / unit).astype(jnp.float32), tuple(s.astype(jnp.float32) for s in scores)
    return unit * _sums(blocks, order, *narrow).astype(weight.dtype)


def _sums(
    blocks: tuple[tuple[int, ...], ...], order: int, weight: jax.Array, scores: tuple[jax.Array, ...]
) -> jax.Array:
    s1, s2, s3, s4 = scores
    r = len(s1)
    weighted = weight * s1
    if order == 1:
        return s1 @ weight
    if order == 2:
        return jnp.fill_diagonal(weighted @ s1.T, s2 @ weight, inplace=False).ravel()
    squared = weight * s2
    table = s1 if order == 3 else _with_squares(s1, s2, s1, *sorted_indices(r, 2).T)
    products = []
    for a, b, _, _, width, suffix in blocks:
        j = np.repeat(np.arange(a, b), np.arange(a, b) + 1)
        i = np.concatenate([np.arange(q + 1) for q in range(a, b)])
        left = _with_squares(weighted, squared, s1, j, i)
        products.append((left @ table[suffix : suffix + width].T).ravel())
        if order == 4:
            products.append(((squared[j] * s1[i]) @ s1[a:].T).ravel())
    last, beside = (s3, s2) if order == 3 else (s4, s3)
    return jnp.concatenate([*products, ((beside * weight) @ s1.T).ravel(), last @ weight])


def _with_squares(
    first: jax.Array, square: jax.Array, second: jax.Array, j: np.ndarray, i: np.ndarray
) -> jax.Array:
    """Rows first_j second_i, and square_j where i = j."""
    return jnp.where((i == j)[:, None], square[j], first[j] * second[i])
