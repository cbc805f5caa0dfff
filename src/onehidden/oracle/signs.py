"""Which way units face: signs s with sum_i s_i v_i = target, a subset problem solved exactly.

A kink looks the same from both sides; only the polynomial part of the whole function knows the orientations.
With r independent equations for k signs, r signs follow from the other k - r. Few are tried in full. Many are
the nearest point of a lattice, as far as the digits of the equations tell it from others: 128 signs of 20
equations. Where they do not, of one or two equations, both halves of the signs are met in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from onehidden.oracle.lattice import LARGEST, relations

_DIRECT = 14  # free signs up to which all combinations are tried
_MOST_FREE = 46  # beyond, the 2^(free / 2) sums of one half no longer fit
_MOST_MATCHES = 1e6  # pairs of halves looked at


def solve_signs(vectors: np.ndarray, target: np.ndarray, tolerance: float) -> np.ndarray | None:
    """(k,) signs with vectors @ s = target, or None.

    Parameters
    ----------
    vectors : (n, k) one column a unit.
    target : (n,).
    tolerance : how far from +-1 a solved sign may be, by the errors of the vectors.
    """
    from scipy.linalg import qr

    norm = np.linalg.norm(vectors, axis=0)
    if np.any(norm == 0):
        return None
    basis = spanned(vectors)
    equations, right = basis.T @ vectors, basis.T @ target
    factors: Any = qr(equations / norm, pivoting=True, mode="r")
    order = factors[1]
    solved, free = order[: len(right)], order[len(right) :]
    inverse = np.linalg.inv(equations[:, solved])
    constant, slope = inverse @ right, inverse @ equations[:, free]  # s_solved = constant - slope s_free
    for tried in _tried(equations / norm.max(), right / norm.max(), free, constant, slope, tolerance):
        values = constant - tried @ slope.T
        off = np.max(np.abs(np.abs(values) - 1), axis=1, initial=0.0)
        best = int(np.argmin(off)) if len(off) else 0
        if len(off) and off[best] <= tolerance:
            signs = np.ones(len(norm))
            signs[solved], signs[free] = np.where(values[best] < 0, -1.0, 1.0), tried[best]
            return signs
    return None


def spanned(vectors: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n r"]:
    """An orthonormal basis of what the columns span: independent equations."""
    left, value, _ = np.linalg.svd(vectors / np.linalg.norm(vectors, axis=0), full_matrices=False)
    return left[:, value > 1e-8 * value[0]]


def _tried(
    equations: Float[np.ndarray, "r k"],
    right: Float[np.ndarray, " r"],
    free: np.ndarray,
    constant: Float[np.ndarray, " r"],
    slope: Float[np.ndarray, "r f"],
    tolerance: float,
) -> Iterator[Float[np.ndarray, "m f"]]:
    """Free signs that may be right, one way of finding them after the other."""
    count, k = len(free), equations.shape[1]
    if count <= _DIRECT:
        yield _signs(np.arange(2**count), count)
        return
    if k <= LARGEST:
        # s = 1 - 2 b: the point of the lattice of b nearest to one half everywhere.
        near = relations(equations, tolerance * np.sqrt(k))
        b = near.nearest(np.full(k, 0.5), 0.5 * (equations.sum(axis=1) - right))
        if np.all((b == 0) | (b == 1)):
            yield (1.0 - 2.0 * b[free])[None]
        if near.proven:  # no other signs are as near
            return
    if count <= _MOST_FREE and tolerance * 2.0**count < _MOST_MATCHES * np.sum(np.abs(slope[0])):
        yield _met_in_the_middle(slope[0], float(constant[0]), tolerance)


def _signs(index: np.ndarray, count: int) -> np.ndarray:
    """(m, count) the signs that a number stands for, one bit each."""
    return 1.0 - 2.0 * ((index[:, None] >> np.arange(count)) & 1)


def _sums(slope: np.ndarray) -> np.ndarray:
    """<slope, s> for all 2^count signs, in the order of their numbers."""
    total = np.zeros(1)
    for value in slope:
        total = np.concatenate([total + value, total - value])
    return total


def _met_in_the_middle(slope: np.ndarray, constant: float, tolerance: float) -> np.ndarray:
    """Free signs for which the first solved sign, constant - <slope, s>, comes out as +-1."""
    half = len(slope) // 2
    here, there = _sums(slope[:half]), _sums(slope[half:])
    order = np.argsort(here)
    here = here[order]
    found = []
    for sign in (1.0, -1.0):
        wanted = constant - sign - there
        begin = np.searchsorted(here, wanted - tolerance)
        end = np.searchsorted(here, wanted + tolerance)
        for j in np.flatnonzero(end > begin):
            first = _signs(order[begin[j] : end[j]], half)
            second = _signs(np.array([j]), len(slope) - half)
            found.append(np.hstack([first, np.repeat(second, len(first), axis=0)]))
    return np.vstack(found) if found else np.zeros((0, len(slope)))
