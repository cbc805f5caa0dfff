"""Which way units face: signs s with sum_i s_i v_i = target, a subset problem solved exactly.

A kink looks the same from both sides; only the polynomial part of the whole function knows the orientations.
With r independent equations for k signs, r signs follow from the other k - r, which are tried in full, or,
when they are many, met in the middle.
"""

from __future__ import annotations

import numpy as np

_DIRECT = 16  # free signs up to which all combinations are tried
MOST_FREE = 42  # beyond, 2^(free / 2) sums no longer fit
_TOLERANCE = 1e-4  # how far from +-1 a solved sign may be


def solve_signs(vectors: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """(k,) signs with vectors @ s = target, or None.

    Parameters
    ----------
    vectors : (n, k) one column a unit.
    target : (n,).
    """
    from scipy.linalg import qr

    norm = np.linalg.norm(vectors, axis=0)
    k = len(norm)
    if np.any(norm == 0):
        return None
    # Independent equations: an orthonormal basis of what the columns span.
    left, value, _ = np.linalg.svd(vectors / norm, full_matrices=False)
    basis = left[:, value > 1e-8 * value[0]]
    equations, right = basis.T @ vectors, basis.T @ target
    rank = len(right)
    order = qr(equations / norm, pivoting=True, mode="r")[1]
    solved, free = order[:rank], order[rank:]
    inverse = np.linalg.inv(equations[:, solved])
    constant, slope = inverse @ right, inverse @ equations[:, free]  # s_solved = constant - slope s_free
    tolerance = _TOLERANCE + 1e-11 * np.linalg.norm(inverse, axis=1) * np.linalg.norm(right)
    if len(free) > MOST_FREE:
        return None
    if len(free) <= _DIRECT:
        tried = _combinations(len(free))
    else:
        tried = _met_in_the_middle(slope[0], float(constant[0]), float(tolerance[0]))
    values = constant - tried @ slope.T
    off = np.max(np.abs(np.abs(values) - 1) / tolerance, axis=1) if len(values) else np.zeros(0)
    if not np.any(off <= 1):
        return None
    best = int(np.argmin(off))
    signs = np.ones(k)
    signs[solved], signs[free] = np.where(values[best] < 0, -1.0, 1.0), tried[best]
    return signs


def _combinations(count: int) -> np.ndarray:
    """(2^count, count) all signs."""
    return 1.0 - 2.0 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)


def _met_in_the_middle(slope: np.ndarray, constant: float, tolerance: float) -> np.ndarray:
    """Free signs for which the first solved sign, constant - <slope, s>, comes out as +-1."""
    half = len(slope) // 2
    first, second = _combinations(half), _combinations(len(slope) - half)
    here, there = first @ slope[:half], second @ slope[half:]
    order = np.argsort(here)
    here = here[order]
    found = []
    for sign in (1.0, -1.0):
        wanted = constant - sign - there
        begin = np.searchsorted(here, wanted - tolerance)
        end = np.searchsorted(here, wanted + tolerance)
        for j in np.flatnonzero(end > begin):
            matches = order[begin[j] : end[j]]
            found.append(np.hstack([first[matches], np.repeat(second[j : j + 1], len(matches), axis=0)]))
    return np.vstack(found) if found else np.zeros((0, len(slope)))
