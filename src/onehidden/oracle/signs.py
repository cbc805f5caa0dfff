"""Orientation of units: signs s with sum_i s_i v_i = target, a subset problem solved exactly.

A kink looks the same from both sides; only the polynomial part of the whole function depends on the
orientations. With r independent equations for k signs, r signs follow from the other k - r. A few free signs
are tried in full. Many are the nearest point of a lattice: with s = 1 - 2 b and sum_i s_i v_i = t, b lies
near (1/2, K t') among the points (x, K V x) of whole x. In a basis reduced by the algorithm of Lenstra,
Lenstra and Lovász (1982) the Gram–Schmidt lengths bound the distance of lattice points. Above sqrt(k) the
nearest plane (Babai 1986) finds the signs, and no others fit. The more digits the equations have, the larger
K may be, and the farther apart lattice points are: about K^(r / k) for r equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from onehidden.oracle.domain import PerUnit


def solve_signs(
    vectors: np.ndarray, target: np.ndarray, *tolerances: float, swaps: int = 400_000
) -> np.ndarray | None:
    """Find (k,) signs with vectors @ s = target, one column per unit, or None.

    By the errors of the vectors a solved sign may be off +-1 by a tolerance, of which the first that leads to
    signs counts. ``swaps`` bounds the work of each tolerance, see ``relations``.
    """
    from scipy.linalg import qr

    norm = np.linalg.norm(vectors, axis=0)
    if np.any(norm == 0):
        return None
    basis = column_space(vectors)
    equations, right = basis.T @ vectors, basis.T @ target
    factors: Any = qr(equations / norm, pivoting=True, mode="r")
    order = factors[1]
    solved, free = order[: len(right)], order[len(right) :]
    inverse = np.linalg.inv(equations[:, solved])
    constant, slope = inverse @ right, inverse @ equations[:, free]  # s_solved = constant - slope s_free
    for tolerance in tolerances:
        if len(free) <= 14:
            tried = 1.0 - 2.0 * ((np.arange(2 ** len(free))[:, None] >> np.arange(len(free))) & 1)
        else:
            # s = 1 - 2 b: the point of the lattice of b nearest to one half everywhere.
            lattice = relations(equations / norm.max(), tolerance * np.sqrt(len(norm)), swaps=swaps)
            if lattice is None:
                return None
            half = 0.5 * (equations.sum(axis=1) - right) / norm.max()
            tried = 1.0 - 2.0 * lattice.nearest(np.full(len(norm), 0.5), half)[None, free]
        values = constant - tried @ slope.T
        off = np.max(np.abs(np.abs(values) - 1), axis=1, initial=0.0)
        best = int(np.argmin(off))
        if off[best] <= tolerance and np.all(np.abs(tried[best]) == 1):
            signs = np.ones(len(norm))
            signs[solved], signs[free] = np.where(values[best] < 0, -1.0, 1.0), tried[best]
            return signs
    return None


def column_space(vectors: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n r"]:
    """An orthonormal basis of the span of the columns: independent equations."""
    left, value, _ = np.linalg.svd(vectors / np.linalg.norm(vectors, axis=0), full_matrices=False)
    return left[:, value > 1e-8 * value[0]]


@dataclass(frozen=True, eq=False)
class Relations:
    """A reduced basis, by columns, of the whole numbers x by the length of (x, K V x)."""

    equations: Float[np.ndarray, "r k"]  # V
    basis: Float[np.ndarray, "k k"]
    steep: float  # K
    lengths: PerUnit  # Gram–Schmidt lengths: no x but zero is shorter than the least

    @property
    def proven(self) -> bool:
        """Whether no x of zeros, ones and minus ones, except zero, has V x = 0 to its error.

        Such an x has a length up to sqrt(k + 1) with K V x up to one; 5 % for the rounding of lengths.
        """
        return float(np.min(self.lengths)) > 1.05 * float(np.sqrt(len(self.basis) + 1.0))

    def nearest(self, middle: PerUnit, target: Float[np.ndarray, " r"]) -> PerUnit:
        """Whole numbers x with (x, K V x) near (middle, K target), by nearest planes.

        A far target has large coefficients, which multiply the rounding of V x: the rest is solved again.
        """
        Q, R = np.linalg.qr(np.concatenate([self.basis, self.steep * (self.equations @ self.basis)]))
        found = np.zeros(len(middle))
        for _ in range(20):
            away = target - self.equations @ found
            rest = Q.T @ np.concatenate([middle - found, self.steep * away])
            chosen = np.zeros(len(rest))
            for i in range(len(rest) - 1, -1, -1):
                chosen[i] = np.round(rest[i] / R[i, i])
                rest[: i + 1] -= chosen[i] * R[: i + 1, i]
            if not chosen.any():
                break
            found = found + self.basis @ chosen
        return found


def relations(
    equations: Float[np.ndarray, "r k"], error: float, largest: int = 160, swaps: int = 400_000
) -> Relations | None:
    """A basis in which lattice points are far enough apart, or as far as the digits of V allow.

    ``error`` is that of V x for a vector x of zeros and ones: K grows until it is half of one. None where
    there are more than ``largest`` columns; these and the swaps take about 20 s.
    """
    k = equations.shape[1]
    if k > largest:
        return None
    basis, steep, most = np.eye(k), 1.0, 0.5 / error
    while True:
        R = np.linalg.qr(np.concatenate([basis, steep * (equations @ basis)]))[1]
        swaps -= _reduce(R, basis, swaps)
        found = Relations(equations, basis, steep, np.abs(np.diag(R)))
        if found.proven or swaps <= 0 or steep >= most:
            return found
        steep = min(16.0 * steep, most)  # few enough digits a reduction for doubles


def _reduce(R: Float[np.ndarray, "k k"], basis: Float[np.ndarray, "k k"], most: int) -> int:
    """LLL in place: R of the embedded basis stays triangular by rotations; the number of swaps."""
    k, swaps, at = len(R), 0, 1
    while at < k and swaps < most:
        own = np.abs(np.diag(R)[:at])
        while len(long := np.flatnonzero(np.abs(R[:at, at]) > 0.51 * own)):
            j = int(long[-1])
            times = np.round(R[j, at] / R[j, j])
            R[: j + 1, at] -= times * R[: j + 1, j]
            basis[:, at] -= times * basis[:, j]
        above, below = R[at - 1, at], R[at, at]
        size = np.hypot(above, below)
        if size**2 >= 0.99 * R[at - 1, at - 1] ** 2:  # Lovász' condition
            at += 1
            continue
        pair = [at - 1, at]
        R[:, pair], basis[:, pair] = R[:, pair[::-1]], basis[:, pair[::-1]]
        turn = np.array([[above, below], [-below, above]]) / size
        R[pair, at - 1 :] = turn @ R[pair, at - 1 :]
        R[at, at - 1] = 0.0
        swaps, at = swaps + 1, max(at - 1, 1)
    return swaps
