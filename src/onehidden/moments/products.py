"""Weighted sums over samples of products of one-dimensional scores, one for each sorted multi-index.

A symmetric tensor of order four has r^4 / 24 distinct entries. Splitting i <= j <= k <= l as (i, j | k, l)
and taking the j in blocks, every block is a matrix product of the pairs that end in it with the pairs that
begin at it or later: a sixth of the full product of both tables of pairs, at the speed of a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.laws.base import BLOCK
from onehidden.moments.packing import sorted_indices


@partial(jax.jit, static_argnums=(0, 1, 2))
def device_sums(
    blocks: tuple[tuple[int, ...], ...],
    order: int,
    roughly: bool,
    weight: jax.Array,
    scores: tuple[jax.Array, ...],
) -> jax.Array:
    """Return the flat store of a ``_Layout`` with these blocks for one batch, scores (r, n) and weight (n,).

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


_BLOCK = 8  # values of j taken together: thin enough to skip repeated entries, thick enough for BLAS

Array = np.ndarray | jax.Array
Scores = tuple[Array, ...]


@dataclass(frozen=True)
class _Layout:
    """Where each block lies in one flat store, and which place of the store each entry is read from.

    ``ends`` are (a, b, start, left, right, suffix): the j from a to b, the block's place, its rows and
    columns, and where its right factor begins among the rows of pairs.
    """

    blocks: tuple[tuple[int, int, int, int, int, int], ...]
    middle: tuple[int, ...]
    triple: int
    single: int
    size: int
    pick: np.ndarray


def _pair_offsets(r: int) -> np.ndarray:
    """Row of the pair (k, k) among the pairs k <= l in lexicographic order; last, their number."""
    return np.concatenate([[0], np.cumsum(r - np.arange(r))])


@lru_cache(maxsize=32)
def _layout(r: int, order: int) -> _Layout:
    """Return the plan for order 3 or 4."""
    offset = _pair_offsets(r)
    blocks, middle, size = [], [], 0
    start_of, width_of, first_of, row_of = (np.zeros(r, int) for _ in range(4))
    middle_start = np.zeros(r, int)
    for a in range(0, r, _BLOCK):
        b = min(a + _BLOCK, r)
        j = np.arange(a, b)
        suffix = int(offset[a]) if order == 4 else a
        right = int(offset[-1] - offset[a]) if order == 4 else r - a
        left = int(np.sum(j + 1))
        blocks.append((a, b, size, left, right, suffix))
        start_of[j], width_of[j], first_of[j] = size, right, suffix
        row_of[j] = np.cumsum(j + 1) - (j + 1)
        size += left * right
        if order == 4:  # rows (i, j), i <= j, with s_2 at j, against s_1 from a on
            middle.append(size)
            middle_start[j] = size
            size += left * (r - a)
    triple, size = size, size + r * r
    single, size = size, size + r
    index = sorted_indices(r, order)
    i, j, k = index[:, 0], index[:, 1], index[:, 2]
    if order == 3:
        pick = start_of[j] + (row_of[j] + i) * width_of[j] + k - first_of[j]
        pick = np.where(j == k, triple + j * r + i, pick)  # s_2 at j, s_1 at i
        pick = np.where((i == j) & (j == k), single + i, pick)
        return _Layout(tuple(blocks), (), triple, single, size, pick)
    l = index[:, 3]
    pick = start_of[j] + (row_of[j] + i) * width_of[j] + offset[k] + (l - k) - first_of[j]
    base = (j // _BLOCK) * _BLOCK
    pick = np.where((j == k), middle_start[j] + (row_of[j] + i) * (r - base) + l - base, pick)
    pick = np.where((i == j) & (j == k), triple + i * r + l, pick)  # s_3 at i, s_1 at l
    pick = np.where((j == k) & (k == l), triple + j * r + i, pick)
    pick = np.where((i == j) & (j == k) & (k == l), single + i, pick)
    return _Layout(tuple(blocks), tuple(middle), triple, single, size, pick)


class ProductSums:
    """Sum over samples of weight times each entry of S_m.

    The entry at sorted indices is the product, over distinct coordinates, of the one-dimensional score of
    their multiplicity.
    ``update(weight, scores)`` takes scores s_1 … s_4 with one row a coordinate, (r, n); ``result()`` is the
    packed vector. Raw moments are the case s_m = u^m. JAX arrays are summed where they are, ``roughly`` to
    three digits at least, at three times the speed, if nothing is negative.
    """

    def __init__(self, r: int, order: int, roughly: bool = False) -> None:
        self.r, self.order, self._roughly = r, order, roughly
        size = {1: r, 2: r * r}.get(order) or _layout(r, order).size
        self._store, self._packed = np.zeros(size), 0.0

    def update(self, weight: Array, scores: Scores) -> ProductSums:
        s1, s2 = scores[:2]
        if isinstance(s1, jax.Array):
            blocks = _layout(self.r, self.order).blocks if self.order > 2 else ()
            self._store = self._store + device_sums(
                blocks, self.order, self._roughly, *_padded(weight, scores)
            )
            return self
        if isinstance(self._store, jax.Array):
            self._store = np.array(self._store)
        if self.order == 1:
            self._store += s1 @ weight
        elif self.order == 2:
            table = (s1 * weight) @ s1.T
            table[np.diag_indices(self.r)] = s2 @ weight
            self._store += table.ravel()
        else:
            self._update_blocks(*(np.asarray(v) for v in (weight, *scores)))
        return self

    def __getstate__(self) -> dict[str, object]:
        """On the way to another process as NumPy: a JAX array would arrive in single precision there."""
        return {**vars(self), "_store": np.asarray(self._store)}

    def add(self, packed: np.ndarray) -> ProductSums:
        """Add sums formed elsewhere, one for each sorted multi-index."""
        self._packed = self._packed + packed
        return self

    def merge(self, other: ProductSums) -> ProductSums:
        self._store = self._store + other._store
        self._packed = self._packed + other._packed
        return self

    def result(self) -> np.ndarray:
        return np.asarray(self._store)[self._pick()] + self._packed

    def where_it_lies(self) -> Array:
        """Return the result on the device of the sums."""
        return self._store[self._pick()] + self._packed

    def _pick(self) -> np.ndarray | slice:
        if self.order == 1:
            return slice(None)
        if self.order == 2:
            rows, columns = np.triu_indices(self.r)
            return rows * self.r + columns
        return _layout(self.r, self.order).pick

    def _update_blocks(
        self, weight: np.ndarray, s1: np.ndarray, s2: np.ndarray, s3: np.ndarray, s4: np.ndarray
    ) -> None:
        r, plan = self.r, _layout(self.r, self.order)
        last, beside = (s3, s2) if self.order == 3 else (s4, s3)
        self._store[plan.triple : plan.triple + r * r] += ((beside * weight) @ s1.T).ravel()
        self._store[plan.single : plan.single + r] += last @ weight
        n = s1.shape[1]
        columns = min(max(BLOCK // int(_pair_offsets(r)[-1]), 256), 8192, n)
        left = np.empty((max(block[3] for block in plan.blocks), columns))
        product = np.empty(max(block[3] * block[4] for block in plan.blocks))
        right = np.empty((int(_pair_offsets(r)[-1]), columns)) if self.order == 4 else None
        for at in range(0, n, columns):
            part = slice(at, at + columns)
            self._slab(plan, weight[part], s1[:, part], s2[:, part], left, right, product)

    def _slab(
        self,
        plan: _Layout,
        weight: np.ndarray,
        s1: np.ndarray,
        s2: np.ndarray,
        left: np.ndarray,
        right: np.ndarray | None,
        product: np.ndarray,
    ) -> None:
        if len(weight) < left.shape[1]:
            left, right = (
                left[:, : len(weight)].copy(),
                None if right is None else right[:, : len(weight)].copy(),
            )
        s1 = np.ascontiguousarray(s1)
        weighted, squared = weight * s1, weight * s2
        table = s1 if right is None else _pairs(s1, s2, right)
        for q, (a, b, start, rows, width, suffix) in enumerate(plan.blocks):
            at = 0
            for j in range(a, b):
                np.multiply(weighted[j], s1[: j + 1], out=left[at : at + j + 1])
                left[at + j] = squared[j]
                at += j + 1
            self._add(start, left[:rows], table[suffix : suffix + width], product)
            if self.order == 4:
                at = 0
                for j in range(a, b):
                    np.multiply(squared[j], s1[: j + 1], out=left[at : at + j + 1])
                    at += j + 1
                self._add(plan.middle[q], left[:rows], s1[a:], product)

    def _add(self, start: int, left: np.ndarray, right: np.ndarray, product: np.ndarray) -> None:
        """Add left right' to the store from ``start`` on.

        By NumPy alone: SciPy has a BLAS of its own, whose idle threads spin and take the cores.
        """
        size = len(left) * len(right)
        place = product[:size].reshape(len(left), len(right))
        self._store[start : start + size] += np.matmul(left, right.T, out=place).ravel()


def _padded(weight: Array, scores: Scores) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Pad with samples of weight zero to a power of two: few lengths, few compilations."""
    n = scores[0].shape[1]
    missing = (1 << (n - 1).bit_length()) - n
    weight = jnp.asarray(weight)
    if not missing:
        return weight, tuple(jnp.asarray(s) for s in scores)
    return jnp.pad(weight, (0, missing)), tuple(jnp.pad(s, ((0, 0), (0, missing))) for s in scores)


def beside(u: Array, values: Array) -> Array:
    """Values where u is: on the device, or as they are."""
    return jnp.asarray(values) if isinstance(u, jax.Array) else values


def by_coordinate(values: Array) -> Array:
    """(n, r) as (r, n), one run of memory a coordinate."""
    return values.T if isinstance(values, jax.Array) else np.ascontiguousarray(np.asarray(values).T)


def _pairs(s1: np.ndarray, s2: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Rows s_1k s_1l for k < l and s_2k for k = l, in lexicographic order."""
    at = 0
    for k in range(len(s1)):
        np.multiply(s1[k], s1[k:], out=out[at : at + len(s1) - k])
        out[at] = s2[k]
        at += len(s1) - k
    return out
