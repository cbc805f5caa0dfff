"""Symmetric tensors by their distinct entries: one value for each sorted multi-index."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from math import factorial

import numpy as np


@lru_cache(maxsize=64)
def sorted_indices(r: int, order: int) -> np.ndarray:
    """(N, order) all i_1 <= … <= i_m below r, in lexicographic order; that of order 0 is empty."""
    if order < 2:
        return np.arange(r if order else 1)[:, None][:, :order]
    if order == 2:
        return np.column_stack(np.triu_indices(r))
    rest = sorted_indices(r, order - 1)
    blocks = []
    for i in range(r):
        tail = rest[rest[:, 0] >= i]
        blocks.append(np.column_stack([np.full(len(tail), i), tail]))
    return np.concatenate(blocks)


@lru_cache(maxsize=64)
def multiplicities(r: int, order: int) -> np.ndarray:
    """(N,) how many positions of the full tensor each distinct entry fills: m! / prod(run lengths!)."""
    indices = sorted_indices(r, order)
    run, divisor = np.ones(len(indices)), np.ones(len(indices))
    for j in range(1, order):
        run = np.where(indices[:, j] == indices[:, j - 1], run + 1, 1)
        divisor = divisor * run
    return factorial(order) / divisor


def z_of_norm(mean: np.ndarray, variance: np.ndarray, r: int, order: int) -> float:
    """How far |T|^2 stands above what noise alone gives, in its standard deviations.

    Without signal |T|_F^2 has mean sum_e se_e^2 and variance about 2 sum_e se_e^4 over distinct entries e,
    each counted as often as it is repeated; ``mean`` and ``variance`` = se^2 hold one value for each.
    """
    count = multiplicities(r, order)
    excess = np.sum(count * (mean**2 - variance))
    spread = np.sqrt(2 * np.sum((count * variance) ** 2))
    return float(excess / spread) if spread > 0 else 0.0


@lru_cache(maxsize=16)
def places(r: int, rows: int, columns: int) -> np.ndarray:
    """(M, N) places, among its distinct entries, of a tensor of order rows + columns as a matrix."""
    order = rows + columns
    radix = r ** np.arange(order)[::-1]  # a sorted multi-index read as a number: ascending, too
    left, right = sorted_indices(r, rows), sorted_indices(r, columns)
    shape = len(left), len(right)
    sides = (np.broadcast_to(part, (*shape, part.shape[-1])) for part in (left[:, None], right[None]))
    whole = np.sort(np.concatenate(list(sides), axis=2), axis=2)
    return np.searchsorted(sorted_indices(r, order) @ radix, whole @ radix).astype(np.int32)


def unpack(values: np.ndarray, r: int, order: int) -> np.ndarray:
    """Return the full (r, …, r) symmetric tensor of its distinct entries."""
    indices = sorted_indices(r, order)
    full = np.empty((r,) * order)
    for permutation in permutations(range(order)):
        full[tuple(indices[:, p] for p in permutation)] = values
    return full


def symmetric_part(a: np.ndarray) -> np.ndarray:
    """Mean of a tensor over all orders of its axes."""
    orders = list(permutations(range(a.ndim)))
    return sum((a.transpose(p) for p in orders), np.zeros_like(a)) / len(orders)


def pack(full: np.ndarray) -> np.ndarray:
    """Distinct entries of symmetric tensors stacked along axis 0: (n, r, …, r) -> (n, N)."""
    order, r = full.ndim - 1, full.shape[1]
    indices = sorted_indices(r, order)
    return full[(slice(None), *indices.T)]
