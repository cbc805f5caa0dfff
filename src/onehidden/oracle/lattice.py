"""Whole numbers x with V x close to a target: a reduced basis of the lattice of (x, K V x).

Signs s = 1 - 2 b with sum_i s_i v_i = t are a lattice point near (1/2, K t'): b is off by sqrt(k) / 2 there.
In a basis that Lenstra, Lenstra and Lovász reduce, the Gram–Schmidt lengths tell how far lattice points are
apart: above sqrt(k) the nearest plane (Babai 1986) finds the signs, and no others fit. The more digits the
equations have the larger K may be, and the farther apart lattice points are: about K^(r / k) for r equations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

LARGEST = 160  # columns: a reduction takes 20 s at 128
_SWAP = 0.99  # Lovász: a column comes first where it is shorter than this share, in squares
_GROWTH = 16.0  # times K from one reduction to the next: few enough digits for doubles
_REDUCED = 0.51  # share of a Gram–Schmidt length that a column may keep of it
_REFINED = 20  # times that the nearest point of what is left is added
_SWAPS = 400_000  # at most, about 20 s: 64 signs of 16 equations take 20 000


@dataclass(frozen=True, eq=False)
class Relations:
    """A reduced basis of the whole numbers x, by the length of (x, K V x).

    Attributes
    ----------
    equations : (r, k) V. basis : (k, k) columns of whole numbers. steep : K.
    lengths : (k,) Gram–Schmidt lengths; no x but zero is shorter than the least of them.
    """

    equations: Float[np.ndarray, "r k"]
    basis: Float[np.ndarray, "k k"]
    steep: float
    lengths: Float[np.ndarray, " k"]

    @property
    def apart(self) -> float:
        """No x but zero has a shorter (x, K V x)."""
        return float(np.min(self.lengths))

    @property
    def proven(self) -> bool:
        """Whether no zeros, ones and minus ones, but all zeros, have V x = 0 to its error."""
        return self.apart > _wanted(len(self.basis))

    def nearest(
        self, middle: Float[np.ndarray, " k"], target: Float[np.ndarray, " r"]
    ) -> Float[np.ndarray, " k"]:
        """Whole numbers x with (x, K V x) near (middle, K target), by nearest planes.

        A far target has large coefficients, which multiply the rounding of V x: what is left is asked again.
        """
        Q, R = np.linalg.qr(_embedded(self.equations, self.basis, self.steep))
        found = np.zeros(len(middle))
        for _ in range(_REFINED):
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


def relations(equations: Float[np.ndarray, "r k"], error: float) -> Relations:
    """A basis in which lattice points are far enough apart, or as far as the digits of the equations allow.

    Parameters
    ----------
    equations : V. error : of V x for a vector x of zeros and ones: K grows until it is half of one.
    """
    basis, swaps = np.eye(equations.shape[1]), _SWAPS
    steep, most = 1.0, 0.5 / error
    while True:
        R = np.linalg.qr(_embedded(equations, basis, steep))[1]
        swaps -= _reduce(R, basis, swaps)
        found = Relations(equations, basis, steep, np.abs(np.diag(R)))
        if found.proven or swaps <= 0 or steep >= most:
            return found
        steep = min(_GROWTH * steep, most)


def _wanted(k: int) -> float:
    """Longer than (x, K V x) of zeros and ones with K V x up to one half; 5% for the rounding of lengths."""
    return 1.05 * float(np.sqrt(k + 1.0))


def _embedded(
    equations: Float[np.ndarray, "r k"], basis: Float[np.ndarray, "k k"], steep: float
) -> Float[np.ndarray, "m k"]:
    return np.concatenate([basis, steep * (equations @ basis)])


def _reduce(R: Float[np.ndarray, "k k"], basis: Float[np.ndarray, "k k"], most: int) -> int:
    """LLL in place: R of the embedded basis stays triangular by rotations; the number of swaps."""
    k, swaps = len(R), 0
    at = 1
    while at < k and swaps < most:
        own = np.abs(np.diag(R)[:at])
        while True:
            long = np.flatnonzero(np.abs(R[:at, at]) > _REDUCED * own)
            if not len(long):
                break
            j = int(long[-1])
            times = np.round(R[j, at] / R[j, j])
            R[: j + 1, at] -= times * R[: j + 1, j]
            basis[:, at] -= times * basis[:, j]
        above, below = R[at - 1, at], R[at, at]
        size = np.hypot(above, below)
        if size**2 >= _SWAP * R[at - 1, at - 1] ** 2:
            at += 1
            continue
        pair = [at - 1, at]
        R[:, pair], basis[:, pair] = R[:, pair[::-1]], basis[:, pair[::-1]]
        turn = np.array([[above, below], [-below, above]]) / size
        R[pair, at - 1 :] = turn @ R[pair, at - 1 :]
        R[at, at - 1] = 0.0
        swaps, at = swaps + 1, max(at - 1, 1)
    return swaps
