"""Subsets of columns that sum to zero: the 0/1 vectors in the null space of a matrix, found exactly.

Full column rank proves that there are none. Otherwise r free entries fix all others, and all 2^r are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import qr, solve_triangular


class ZeroSubsets(NamedTuple):
    """Minimal sets of columns that sum to zero."""

    complete: bool  # the search was exhaustive; with no sets this is a proof that there are none
    sets: tuple[tuple[int, ...], ...]  # none inside another, small ones first
    reason: str  # what was done, or why the search stopped


def zero_subset_sums(
    columns: Float[np.ndarray, "m k"],
    tolerance: float,
    apart: Sequence[tuple[int, int]] = (),
    most: int = 20,
    free: float = 1e-4,
    most_free: int = 22,
) -> ZeroSubsets:
    """All minimal S with |sum_S column_i| <= tolerance * sqrt(|S|) * max_i |column_i|.

    The bound is the length of the sum of |S| independent errors of size tolerance * max |column|. Since
    |M s| >= sigma_min |s|, a smallest singular value above it proves that no set exists. A singular value
    below ``free`` makes an entry free, and others err by up to tolerance / free; ``most_free`` are searched,
    in a second or two.

    Rows of the matrix must be in comparable units. ``tolerance`` is the error of one column as a share of the
    longest. A set never holds both of a pair in ``apart``, whose sum is zero for a reason of no interest; a
    pair (i, i) excludes i. At most ``most`` sets are reported.
    """
    columns = np.asarray(columns, float)
    lengths = np.linalg.norm(columns, axis=0)
    unit = float(np.max(lengths, initial=0.0))
    barred = {i for i, j in apart if i == j}
    empty = [i for i, length in enumerate(lengths) if length <= tolerance * unit]
    sets = [(i,) for i in empty if i not in barred]
    rest = np.array([i for i in range(len(lengths)) if i not in barred and i not in empty], int)
    if not len(rest):
        return ZeroSubsets(True, tuple(sets[:most]), "no column is longer than its error")
    matrix = np.linalg.qr(columns[:, rest] / unit)[1]
    value = np.zeros(len(rest))
    value[: len(matrix)] = np.linalg.svd(matrix, compute_uv=False)
    if value[-1] > tolerance:
        return ZeroSubsets(True, tuple(_minimal(sets)[:most]), "the columns are independent")
    freedom = int(np.sum(value <= max(free, tolerance)))
    if freedom > most_free:
        return ZeroSubsets(False, tuple(sets[:most]), f"{freedom} free entries are too many to search")
    complete, reason = True, "all sets were searched"
    for found in _searched(matrix, tolerance, freedom):
        if found is None or len(sets) > 4096:
            complete, reason = False, "the columns are too alike"
            break
        for i, j in apart:
            found = found[~(found[:, rest == i].any(axis=1) & found[:, rest == j].any(axis=1))]
        sets += [tuple(rest[row].tolist()) for row in found]
    return ZeroSubsets(complete, tuple(_minimal(sets)[:most]), reason)


def _searched(
    matrix: Float[np.ndarray, "m k"], tolerance: float, freedom: int, entry: float = 0.05
) -> Iterator[Bool[np.ndarray, "s k"] | None]:
    """Sets of sum zero, part by part; None where errors hide whether an entry is zero or one.

    An entry this close to either is taken for it, and the sum is then looked at.
    """
    k = matrix.shape[1]
    rank = k - freedom
    _, triangle, order = qr(matrix, pivoting=True)  # pyright: ignore[reportAssignmentType]
    lead = triangle[:rank, :rank]
    if tolerance * np.sqrt(k) > entry * np.min(np.linalg.svd(lead, compute_uv=False), initial=np.inf):
        yield None
        return
    law = -solve_triangular(lead, triangle[:rank, rank:])  # s[fixed] = law @ s[free]
    for start in range(0, 1 << freedom, 1 << 16):
        numbers = np.arange(start, min(start + (1 << 16), 1 << freedom))
        chosen = ((numbers[:, None] >> np.arange(freedom)) & 1).astype(float)
        forced = chosen @ law.T
        entries = np.round(forced)
        good = np.all((np.abs(forced - entries) <= entry) & (entries >= 0) & (entries <= 1), axis=1)
        sets = np.zeros((int(good.sum()), k))
        sets[:, order[:rank]], sets[:, order[rank:]] = entries[good], chosen[good]
        size = sets.sum(axis=1)
        zero = np.linalg.norm(sets @ matrix.T, axis=1) <= tolerance * np.sqrt(size)
        yield sets[zero & (size > 0)] > 0


def _minimal(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those that hold no other, small ones first."""
    kept: list[tuple[int, ...]] = []
    for candidate in sorted(set(sets), key=lambda s: (len(s), s)):
        if not any(set(other) <= set(candidate) for other in kept):
            kept.append(candidate)
    return kept
