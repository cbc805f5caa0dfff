"""Polynomials of a few linear features: the control variate whose score moments are known exactly.

For a polynomial q, E[y S_m] = E[∇^m q] + E[(y - q) S_m], whatever the input law: what q explains of y costs
no variance. Here q has Hermite products of z = V'x up to a chosen degree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement, permutations
from math import comb

import numpy as np
from jaxtyping import Float

from onehidden.moments.packing import sorted_indices
from onehidden.moments.weighting import Weight, of_rows

Index = tuple[int, ...]
_BATCH_ENTRIES, _KEPT_ENTRIES = 1 << 21, 1 << 25  # products held at a time, and kept where all fit


@lru_cache(maxsize=64)
def indices(k: int, degree: int) -> tuple[Index, ...]:
    """Sorted index tuples of every Hermite product up to ``degree``, the empty one (constant) first."""
    return (), *(tuple(t) for m in range(1, degree + 1) for t in sorted_indices(k, m).tolist())


def largest_degree(k: int, limit: int, most: int = 4) -> int:
    """The largest degree (at least 1) whose number of products beside the constant is within ``limit``."""
    degree = 1
    while degree < most and comb(k + degree + 1, degree + 1) - 1 <= limit:
        degree += 1
    return degree


def features(z: Float[np.ndarray, "n k"], degree: int) -> Float[np.ndarray, "n p"]:
    """(n, p) products of probabilists' Hermite polynomials of the columns of z, ordered as ``indices``."""
    n, k = z.shape
    single = [np.ones((n, k)), z]
    for m in range(1, degree):
        single.append(z * single[m] - m * single[m - 1])
    names = indices(k, degree)
    place = {name: i for i, name in enumerate(names)}
    out = np.empty((len(names), n))
    for i, name in enumerate(names):
        if not name:
            out[i] = 1.0
            continue
        last = name[-1]
        run = name.count(last)  # names are sorted: the last index forms the final run
        np.multiply(out[place[name[:-run]]], single[run][:, last], out=out[i])
    return out.T


@dataclass(frozen=True)
class Polynomial:
    """q(z) = Σ coefficients · Hermite products; ``means`` holds E of each product under the input law."""

    k: int
    degree: int
    coefficients: np.ndarray
    means: np.ndarray

    def expected_derivative(self, order: int) -> np.ndarray:
        """E[∇^m q], (k,)*m, from ∂^β He_α = α!/(α-β)! He_(α-β)."""
        names = indices(self.k, self.degree)
        place = {name: i for i, name in enumerate(names)}
        out = np.zeros((self.k,) * order)
        for name, coefficient in zip(names, self.coefficients, strict=True):
            if len(name) < order:
                continue
            for taken in combinations_with_replacement(sorted(set(name)), order):
                rest, factor = list(name), 1
                for j in taken:
                    factor *= rest.count(j)
                    if not factor:
                        break
                    rest.remove(j)
                value = coefficient * factor * self.means[place[tuple(rest)]] if factor else 0.0
                if value:
                    for position in set(permutations(taken)):
                        out[position] += value
        return out

    def gradient_coefficients(self) -> np.ndarray:
        """(p, k) coefficients of ∂q/∂z_a on the same products."""
        names = indices(self.k, self.degree)
        place = {name: i for i, name in enumerate(names)}
        out = np.zeros((len(names), self.k))
        for name, coefficient in zip(names, self.coefficients, strict=True):
            for a in set(name):
                rest = list(name)
                rest.remove(a)
                out[place[tuple(rest)], a] += coefficient * name.count(a)
        return out


class Design:
    """The Hermite products at given points, kept in memory when they fit, and their least squares.

    Parameters
    ----------
    z : (n, k) points.
    degree : of the polynomial.
    gaussian : whether the points are from N(0, I), under which the means of the products are known.
    weight : (n,) how much each point counts in least squares and means, or None.
    """

    def __init__(
        self, z: Float[np.ndarray, "n k"], degree: int, gaussian: bool, weight: Weight = None
    ) -> None:
        n, self.k = z.shape
        self.degree, self._weight = degree, weight
        p = len(indices(self.k, degree))
        step = max(1, _BATCH_ENTRIES // p)
        self._parts = [slice(i, min(n, i + step)) for i in range(0, n, step)]
        self._z, self._kept = z, None
        if n * p <= _KEPT_ENTRIES:
            self._kept = [features(z[part], degree) for part in self._parts]
        gram, means = np.zeros((p, p)), np.zeros(p)
        for part, F in self._blocks():
            weighted = self._weighted(F, part)
            gram += F.T @ weighted
            means += weighted.sum(axis=0)
        self._scale = 1 / np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
        gram *= self._scale[:, None] * self._scale[None, :]
        # The ridge only guards against equal columns: 1e-10 of a unit diagonal.
        self._factor = np.linalg.cholesky(gram + 1e-10 * np.eye(p))
        # Under the standard Gaussian law every product but the constant has mean zero exactly; other laws
        # need the sample means where a derivative leaves a product of positive degree.
        self._means = np.eye(1, p)[0] if gaussian else means / means[0]  # the first product is one

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        for i, part in enumerate(self._parts):
            yield part, self._kept[i] if self._kept is not None else features(self._z[part], self.degree)

    def _weighted(self, rows: np.ndarray, part: slice) -> np.ndarray:
        weight = of_rows(self._weight, part)
        return rows if weight is None else weight.reshape(-1, *[1] * (rows.ndim - 1)) * rows

    def fit(self, y: Float[np.ndarray, " n"]) -> Polynomial:
        """Least squares of y on the products."""
        from scipy.linalg import cho_solve

        right = np.zeros(len(self._scale))
        for part, F in self._blocks():
            right += F.T @ self._weighted(y[part], part)
        coefficients = self._scale * cho_solve((self._factor, True), self._scale * right)
        return Polynomial(self.k, self.degree, coefficients, self._means)

    def adopt(self, other: Polynomial) -> Polynomial:
        """A polynomial fitted elsewhere, with the means of these points."""
        return Polynomial(self.k, self.degree, other.coefficients, self._means)

    def apply(self, coefficients: np.ndarray) -> np.ndarray:
        """The products times coefficients, (p,) -> (n,) or (p, q) -> (n, q)."""
        return np.concatenate([F @ coefficients for _, F in self._blocks()])
