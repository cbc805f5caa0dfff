"""Which way units face: signs s with sum_i s_i v_i = target, a subset problem solved exactly.

A kink looks the same from both sides; only the polynomial part of the whole function knows the orientations.
With r independent equations for k signs, r signs follow from the other k - r, which are tried in full, or,
when they are many, met in the middle.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
    # Independent equations: an orthonormal basis of what the columns span.
    left, value, _ = np.linalg.svd(vectors / norm, full_matrices=False)
    basis = left[:, value > 1e-8 * value[0]]
    equations, right = basis.T @ vectors, basis.T @ target
    factors: Any = qr(equations / norm, pivoting=True, mode="r")
    order = factors[1]
    solved, free = order[: len(right)], order[len(right) :]
    inverse = np.linalg.inv(equations[:, solved])
    constant, slope = inverse @ right, inverse @ equations[:, free]  # s_solved = constant - slope s_free
    if len(free) <= _DIRECT:
        tried = _signs(np.arange(2 ** len(free)), len(free))
    elif len(free) <= _MOST_FREE and tolerance * 2.0 ** len(free) < _MOST_MATCHES * np.sum(np.abs(slope[0])):
        tried = _met_in_the_middle(slope[0], float(constant[0]), tolerance)
    else:
        return None
    values = constant - tried @ slope.T
    if len(values) == 0:
        return None
    off = np.max(np.abs(np.abs(values) - 1), axis=1)
    best = int(np.argmin(off))
    if off[best] > tolerance:
        return None
    signs = np.ones(len(norm))
    signs[solved], signs[free] = np.where(values[best] < 0, -1.0, 1.0), tried[best]
    return signs


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
