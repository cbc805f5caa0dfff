"""Subsets of columns that sum to zero: the 0/1 vectors in the null space of a matrix, found exactly.

Full column rank proves that there are none. Otherwise the columns fall into blocks that share no relation,
and in each block r free entries fix all others: two tables of 2^(r/2) partial sums are sorted and matched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import qr, solve_triangular
from scipy.sparse.csgraph import connected_components

from onehidden.run import stream


@dataclass(frozen=True)
class Limits:
    """Limits of the search."""

    free: float = 1e-4  # a singular value below it is free: entries of s then err by up to tolerance / free
    entry: float = 0.05  # an entry of s this close to 0 or 1 is one of them
    freedom: int = 40  # free entries at most: 2^20 partial sums in each table
    small: int = 16  # free entries up to which all 2^r are tried
    work: int = 22  # log2 of the lookups; spare ones guess dependent entries, which leaves fewer matches
    matches: int = 20_000_000  # looked through at most, about 20 s; beyond, the columns are too alike
    kept: int = 4096  # sets kept before the minimal ones are picked


@dataclass(frozen=True)
class ZeroSubsets:
    """Minimal sets of columns that sum to zero."""

    complete: bool  # the search was exhaustive; with no sets this is a proof that there are none
    sets: tuple[tuple[int, ...], ...]  # none inside another, small ones first
    reason: str  # what was done, or why the search stopped


def zero_subset_sums(
    columns: Float[np.ndarray, "m k"],
    tolerance: float,
    apart: Sequence[tuple[int, int]] = (),
    most: int = 20,
    limits: Limits | None = None,
) -> ZeroSubsets:
    """All minimal S with |sum_S column_i| <= tolerance * sqrt(|S|) * max_i |column_i|.

    The bound is the length of the sum of |S| independent errors of size tolerance * max |column|. Since
    |M s| >= sigma_min |s|, a smallest singular value above it proves that no set exists.

    Rows of the matrix must be in comparable units. ``tolerance`` is the error of one column as a share of the
    longest. A set never holds both of a pair in ``apart``, whose sum is zero for a reason of no interest; a
    pair (i, i) excludes i. At most ``most`` sets are reported.
    """
    columns, limits = np.asarray(columns, float), limits or Limits()
    k = columns.shape[1]
    lengths = np.linalg.norm(columns, axis=0)
    unit = float(np.max(lengths, initial=0.0))
    barred = {i for i, j in apart if i == j}
    empty = [i for i in range(k) if lengths[i] <= tolerance * unit]
    sets = [(i,) for i in empty if i not in barred]
    rest = np.array([i for i in range(k) if i not in barred and i not in empty], int)
    if not len(rest):
        return ZeroSubsets(True, tuple(sets[:most]), "no column is longer than its error")
    matrix = np.linalg.qr(columns[:, rest] / unit)[1]
    blocks = _blocks(matrix, tolerance, limits.free)
    complete, reason = True, "all sets were searched" if blocks else "the columns are independent"
    for block in blocks:
        inside = {int(rest[i]): at for at, i in enumerate(block)}
        pairs = [(inside[i], inside[j]) for i, j in apart if i != j and i in inside and j in inside]
        searched, why, found = _search(matrix[:, block], tolerance, pairs, limits)
        sets += [tuple(int(i) for i in rest[block[row]]) for row in found]
        if not searched:
            complete, reason = False, why
    return ZeroSubsets(complete, tuple(_minimal(sets)[:most]), reason)


def _blocks(matrix: np.ndarray, tolerance: float, free: float) -> list[np.ndarray]:
    """Blocks of columns between which there is no relation; only those that hold one inside."""
    k = matrix.shape[1]
    value, vector = _spectrum(matrix)
    if value[0] > tolerance:
        return []
    null = value <= tolerance
    whole = np.arange(k)
    if np.any(~null & (value <= free)):  # near relations may add up to a relation: not to be split
        return [whole]
    # The projector on the null space is block diagonal exactly where the null space is a direct sum.
    linked = np.abs(vector[:, null] @ vector[:, null].T) > 1e-3
    count, label = connected_components(linked, directed=False)
    blocks = [np.flatnonzero(label == i) for i in range(count)]
    nullity = [int(np.sum(_spectrum(matrix[:, block])[0] <= tolerance)) for block in blocks]
    if sum(nullity) != int(np.sum(null)):  # a weak link was cut
        return [whole]
    return [block for block, r in zip(blocks, nullity, strict=True) if r]


def _spectrum(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values of all k right singular vectors, ascending, and the vectors."""
    _, value, vector = np.linalg.svd(matrix)
    value = np.concatenate([value, np.zeros(matrix.shape[1] - len(value))])
    return value[::-1], vector[::-1].T


def _search(
    matrix: np.ndarray, tolerance: float, pairs: list[tuple[int, int]], limits: Limits
) -> tuple[bool, str, np.ndarray]:
    """(exhaustive, reason, (s, k) bool) sets of one block, by meeting in the middle."""
    k = matrix.shape[1]
    none = np.zeros((0, k), bool)
    freedom = int(np.sum(_spectrum(matrix)[0] <= max(limits.free, tolerance)))
    if freedom > limits.freedom:
        return False, f"{freedom} free entries are too many to search", none
    rank = k - freedom
    _, triangle, order = qr(matrix, pivoting=True)  # pyright: ignore[reportAssignmentType]
    lead = triangle[:rank, :rank]
    error = tolerance * np.sqrt(k) / float(np.min(np.linalg.svd(lead, compute_uv=False), initial=np.inf))
    if error > limits.entry:
        return False, "the columns are too nearly dependent for their errors", none
    fixed, free = order[:rank], order[rank:]
    law = -solve_triangular(lead, triangle[:rank, rank:])  # s[fixed] = law @ s[free]
    half = freedom // 2
    guessed = 0 if freedom <= limits.small else min(rank, 6, limits.work - (freedom - half))
    rows = _telling(law)[:guessed]
    mix = stream(0, "weights of guessed entries").uniform(1.0, 2.0, guessed)
    window = 4 * (error + np.finfo(float).eps * k) * float(np.sum(mix))
    keys, others = (_partial_sums(mix @ part) for part in (law[rows, :half], law[rows, half:]))
    ranked = np.argsort(others)
    others = others[ranked]
    found, looked = [none], 0
    for guess in _partial_sums(mix):
        target = guess - keys
        low = np.searchsorted(others, target - window)
        high = np.searchsorted(others, target + window, side="right")
        ends = np.cumsum(high - low)
        total = int(ends[-1])
        for start in range(0, total, 1 << 16):
            if looked >= limits.matches or sum(map(len, found)) >= limits.kept:
                return False, "too many sets are nearly of sum zero to look at each", np.concatenate(found)
            place = np.arange(start, min(start + (1 << 16), total))
            looked += len(place)
            at = np.searchsorted(ends, place, side="right")
            partner = ranked[high[at] - (ends[at] - place)]
            chosen = np.concatenate([_bits(at, half), _bits(partner, freedom - half)], axis=1)
            found.append(_confirmed(matrix, tolerance, law, fixed, free, chosen, pairs, limits.entry))
    return True, "all sets were searched", np.unique(np.concatenate(found), axis=0)


def _confirmed(
    matrix: Float[np.ndarray, "m k"],
    tolerance: float,
    law: Float[np.ndarray, "f r"],
    fixed: Int[np.ndarray, " f"],
    free: Int[np.ndarray, " r"],
    chosen: Float[np.ndarray, "s r"],
    pairs: Sequence[tuple[int, int]],
    entry: float,
) -> Bool[np.ndarray, "t k"]:
    """The rows s of 0/1 vectors with these free entries that do sum to zero."""
    forced = chosen @ law.T
    entries = np.round(forced)
    good = np.all((np.abs(forced - entries) <= entry) & (entries >= 0) & (entries <= 1), axis=1)
    sets = np.zeros((int(good.sum()), matrix.shape[1]))
    sets[:, fixed], sets[:, free] = entries[good], chosen[good]
    size = sets.sum(axis=1)
    sums = np.linalg.norm(sets @ matrix.T, axis=1)
    good = (size > 0) & (sums <= tolerance * np.sqrt(size))
    for i, j in pairs:
        good &= sets[:, i] + sets[:, j] < 2
    return sets[good] > 0


def _telling(law: np.ndarray) -> np.ndarray:
    """Rows of the law, those first whose partial sums take many values (few zeros, few equal entries)."""
    values = [len(np.unique(np.round(np.abs(row[np.abs(row) > 1e-6]), 6))) for row in law]
    return np.argsort(-np.array(values, int), kind="stable")


def _partial_sums(values: np.ndarray) -> np.ndarray:
    """(2^r,) sums over all subsets; subset number s holds the entries of the bits of s."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums, sums + value])
    return sums


def _bits(numbers: np.ndarray, count: int) -> np.ndarray:
    """(len(numbers), count) the subsets of these numbers as 0/1 vectors."""
    return ((numbers[:, None] >> np.arange(count)) & 1).astype(float)


def _minimal(sets: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those that hold no other, small ones first."""
    kept: list[tuple[int, ...]] = []
    for candidate in sorted(set(sets), key=lambda s: (len(s), s)):
        if not any(set(other) <= set(candidate) for other in kept):
            kept.append(candidate)
    return kept
