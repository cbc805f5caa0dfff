"""Symmetric tensors by their distinct entries, and the sums over samples that give each entry.

An entry has a sorted multi-index. Its sum is that of a weight times, over distinct coordinates, the
one-dimensional score of their multiplicity. At order four, splitting i <= j <= k <= l as (i, j | k, l) and
taking the j in blocks, every block is a matrix product of the pairs that end in it with the pairs that begin
at it or later: a sixth of the full product of both tables of pairs, at the speed of a matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.activations import xp

Array = np.ndarray | jax.Array
Scores = tuple[Array, ...]


@lru_cache(maxsize=64)
def sorted_indices(r: int, order: int) -> np.ndarray:
    """(N, order) all i_1 <= … <= i_m below r, in lexicographic order; that of order 0 is empty."""
    if order < 2:
        return np.arange(r if order else 1)[:, None][:, :order]
    rest = sorted_indices(r, order - 1)
    tails = [rest[rest[:, 0] >= i] for i in range(r)]
    first = np.repeat(np.arange(r), [len(tail) for tail in tails])
    return np.column_stack([first, np.concatenate(tails)])


@lru_cache(maxsize=64)
def multiplicities(r: int, order: int) -> np.ndarray:
    """(N,) how many positions of the full tensor each distinct entry fills: m! / prod(run lengths!)."""
    indices = sorted_indices(r, order)
    run, divisor = np.ones(len(indices)), np.ones(len(indices))
    for j in range(1, order):
        run = np.where(indices[:, j] == indices[:, j - 1], run + 1, 1)
        divisor = divisor * run
    return factorial(order) / divisor


@lru_cache(maxsize=16)
def places(r: int, rows: int, columns: int) -> np.ndarray:
    """(M, N) places, among its distinct entries, of a tensor of order rows + columns as a matrix."""
    left, right = sorted_indices(r, rows), sorted_indices(r, columns)
    sides = np.repeat(left, len(right), axis=0), np.tile(right, (len(left), 1))
    names = _names(np.column_stack(sides), r).reshape(len(left), len(right))
    return np.searchsorted(_names(sorted_indices(r, rows + columns), r), names).astype(np.int32)


def _names(indices: np.ndarray, r: int) -> np.ndarray:
    """One number for each multi-index, whatever its order; ascending for those of ``sorted_indices``."""
    return np.sort(indices, axis=1) @ r ** np.arange(indices.shape[1])[::-1]


def unpack(values: np.ndarray, r: int, order: int) -> np.ndarray:
    """Return the full (r, …, r) symmetric tensor of its distinct entries."""
    indices = sorted_indices(r, order)
    full = np.empty((r,) * order)
    for permutation in permutations(range(order)):
        full[tuple(indices[:, p] for p in permutation)] = values
    return full


def contracted(full: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Return the tensor (r, …, r) contracted with the columns of a basis (r, k) along every axis."""
    for _ in range(full.ndim):  # contracting the first axis puts the new one last: after m turns all are done
        full = np.tensordot(full, basis, axes=(0, 0))
    return full


def pack(full: np.ndarray) -> np.ndarray:
    """Distinct entries of symmetric tensors stacked along axis 0: (n, r, …, r) -> (n, N)."""
    return full[(slice(None), *sorted_indices(full.shape[1], full.ndim - 1).T)]


def _factors(r: int, order: int, block: int = 8) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Products (q, left, right) whose entries, together, are those of a tensor of order 2, 3 or 4.

    Rows ``left`` and ``right`` are multi-indices. In an entry the last index of a left row counts ``q``
    times. It is that of the sorted multi-index of both where the last index of the left row is below the
    first of the right one, or for a left row of one index differs from it. ``block`` is how many j are
    taken together: few enough to skip repeated entries, enough for a matrix product.
    """
    one, pairs = sorted_indices(r, 1), sorted_indices(r, 2)
    if order > 2:
        by_last = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
        right = one if order == 3 else pairs
        for a in range(0, r, block):
            left = by_last[(by_last[:, 1] >= a) & (by_last[:, 1] < a + block)]
            yield 1, left, right[right[:, 0] >= a]
            if order == 4:
                yield 2, left, one[a:]
    yield order - 1, one, one


@lru_cache(maxsize=32)
def _pick(r: int, order: int) -> np.ndarray:
    """Which place of the flat sums of ``_summed`` each distinct entry is read from."""
    if order < 2:
        return np.arange(r if order else 1)
    found, size = [], 0
    for q, left, right in _factors(r, order):
        rows, columns = (part.ravel() for part in np.indices((len(left), len(right))))
        before, after, alone = left[rows, -1], right[columns, 0], left.shape[1] == 1
        whole = np.column_stack([left[rows], *[before] * (q - 1), right[columns]])
        valid = before != after if alone else before < after
        if q == 2 and not alone:
            valid &= left[rows, 0] < before
        found.append(np.column_stack([_names(whole, r), size + np.arange(len(whole))])[valid])
        size += len(whole)
    diagonal = np.repeat(np.arange(r)[:, None], order, axis=1)
    names, store = np.concatenate([*found, np.column_stack([_names(diagonal, r), size + np.arange(r)])]).T
    first = np.argsort(names, kind="stable")
    return store[first][np.searchsorted(names[first], _names(sorted_indices(r, order), r))]


def _summed(order: int, weight: Array, scores: Scores) -> Any:
    """Return the sums of all products of ``_factors``, and of the diagonal, one after another."""
    if order == 0:
        return xp(weight).sum(weight)[None]
    s1, last = scores[0], scores[order - 1] @ weight
    if order == 1:
        return last
    weighted = [weight * s for s in scores[: max(2, order - 1)]]
    table = _rows(sorted_indices(len(s1), 2 if order == 4 else 1), s1, scores[1], s1)
    parts = []
    for q, left, right in _factors(len(s1), order):
        products = _rows(left, weighted[q - 1], weighted[1], s1)
        with_them = s1 if right.shape[1] == 1 else table
        parts.append((products @ with_them[len(with_them) - len(right) :].T).ravel())
    return xp(s1).concatenate([*parts, last])


def _rows(indices: np.ndarray, first: Array, square: Array, second: Array) -> Array:
    """Rows first_j second_i of pairs (i, j), square_j where i = j; rows first_j of single indices."""
    j = indices[:, -1]
    if indices.shape[1] == 1:
        return first[j]
    i = indices[:, 0]
    if isinstance(first, jax.Array):
        return jnp.where((i == j)[:, None], square[j], first[j] * second[i])
    found = first[j]
    found *= second[i]
    same = np.flatnonzero(i == j)
    found[same] = square[j[same]]
    return found


_summed_there = jax.jit(_summed, static_argnums=0)
_pick_there = lru_cache(maxsize=8)(lambda r, order: jnp.asarray(_pick(r, order)))


def product_sums(order: int, weight: Array, scores: Scores) -> Array:
    """Sum over samples of weight times each distinct entry of S_m, on the device of the scores.

    ``scores`` are s_1 … s_4 with one row a coordinate, (r, n). Raw moments are the case s_m = u^m.
    """
    r, n = scores[0].shape
    if isinstance(scores[0], jax.Array):
        more = (1 << (n - 1).bit_length()) - n  # rows of weight zero: few lengths, few compilations
        padded = tuple(jnp.pad(s, ((0, 0), (0, more))) for s in scores)
        return _summed_there(order, jnp.pad(jnp.asarray(weight), (0, more)), padded)[_pick_there(r, order)]
    # Tables of pairs that stay in the cache: 1 MiB.
    columns = n if order < 3 else max((1 << 18) // (r * (r + 1)), 256)
    parts = (slice(at, at + columns) for at in range(0, n, columns))
    sums = sum(_summed(order, weight[part], tuple(s[:, part] for s in scores)) for part in parts)
    return np.asarray(sums)[_pick(r, order)]
