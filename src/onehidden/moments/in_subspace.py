"""Score moments E[y S_m(x)] seen through a few directions V: k^m numbers, never d^m.

With no score given the law is N(0, I). Weights v say how much each row counts: Σ v y S_m / Σ v.

A polynomial q of z = V'x is the control variate: E[y S_m] = E[∇^m q] + E[(y - q) S_m] whatever the input law,
so what q explains of y costs no variance. Here q has Hermite products of z up to a chosen degree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from jaxtyping import Float

from onehidden.laws.base import BLOCK, Score
from onehidden.moments.passes import MomentPass
from onehidden.moments.products import pack, sorted_indices, z_of_norm
from onehidden.moments.weights import Weight, of_rows

Samples = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Basis = Float[np.ndarray, "d k"]


@dataclass(frozen=True)
class Moment:
    """One moment inside a subspace.

    Attributes
    ----------
    tensor : ndarray of shape (k, …, k)
        Estimate, symmetric.
    variance : ndarray of shape (k, …, k)
        Squared standard error of each entry.
    """

    tensor: np.ndarray
    variance: np.ndarray

    @property
    def signal(self) -> float:
        """z-value of |T|² against T = 0; entries equal by symmetry count as one."""
        mean, variance = (pack(part[None])[0] for part in (self.tensor, self.variance))
        return z_of_norm(mean, variance, len(self.tensor), self.tensor.ndim)

    @property
    def precision(self) -> float:
        """1 / mean squared standard error of an entry."""
        return 1 / max(float(np.mean(self.variance)), np.finfo(float).tiny)


def moments_inside(
    X: Samples, y: Values, V: Basis, orders: Iterable[int], score: Score | None = None, weight: Weight = None
) -> dict[int, Moment]:
    """Return the mean of y S_m(V, …, V) for every order asked, in one pass, with the variance of each entry.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Samples.
    V : array of shape (d, k)
        Directions.
    orders : iterable of int
        Among 1, 2, 3, 4.
    score : Score or None
        The input law; None for N(0, I).
    weight : array of shape (n,) or None
        How much each row counts.
    """
    total = MomentPass(score, tuple(orders), None, V).update((X, y, weight)).result()
    return {m: Moment(total[m], total.standard_error(m) ** 2) for m in total.orders}


def moment(
    X: Samples, y: Values, V: Basis, order: int, score: Score | None = None, weight: Weight = None
) -> Moment:
    """``moments_inside`` of one order."""
    return moments_inside(X, y, V, (order,), score, weight)[order]


def cross(
    X: Samples, y: Values, V: Basis, order: int, score: Score | None = None, weight: Weight = None
) -> Float[np.ndarray, "d _"]:
    """(d, k^(m-1)) mean of y S_m(·, V, …, V) for order 2 or 3: one free index, the others inside V."""
    if order not in (2, 3):
        raise ValueError(f"one index is left free of a moment of order 2 or 3, got {order}")
    d, k = V.shape
    # Each row's share of the mean: what follows is sums of it.
    y = y / len(y) if weight is None else y * (weight / np.sum(weight))
    if score is None:
        return _gaussian_cross(X, y, V, order)
    out = np.zeros((d, k ** (order - 1)))
    for low in range(0, d, k):  # blocks of coordinates beside V: linear in d
        block = np.arange(low, min(d, low + k))
        B = np.concatenate([np.eye(d)[:, block], V], axis=1)
        b, step = len(block), max(1, BLOCK // B.shape[1] ** order)
        for i in range(0, len(y), step):
            S = np.asarray(score.score(X[i : i + step], order, subspace=B), float)
            part = S[(slice(None), slice(0, b)) + (slice(b, None),) * (order - 1)]
            out[block] += np.tensordot(y[i : i + step], part, axes=1).reshape(b, -1)
    return out


def _gaussian_cross(X: Samples, share: Values, V: Basis, order: int) -> Float[np.ndarray, "d _"]:
    """Hermite: Σ y (x z' - V) for order 2, Σ y (x z z' - x I - sym of V z) for order 3; z = V'x."""
    z = X @ V
    if order == 2:
        return X.T @ (share[:, None] * z) - np.sum(share) * V
    k = z.shape[1]
    out = np.zeros((X.shape[1], k * k))
    step = max(1, BLOCK // k**2)
    for i in range(0, len(z), step):
        block = z[i : i + step]
        pairs = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        out += X[i : i + step].T @ (share[i : i + step, None] * pairs)
    cube, first = out.reshape(-1, k, k), share @ z
    cube -= np.multiply.outer(X.T @ share, np.eye(k))
    cube -= V[:, :, None] * first[None, None, :] + V[:, None, :] * first[None, :, None]
    return out


Index = tuple[int, ...]


@lru_cache(maxsize=64)
def indices(k: int, degree: int) -> tuple[Index, ...]:
    """Sorted index tuples of every Hermite product up to ``degree``, the empty one (constant) first."""
    return (), *(tuple(t) for m in range(1, degree + 1) for t in sorted_indices(k, m).tolist())


def largest_degree(k: int, limit: int, most: int = 4) -> int:
    """Return the largest degree (at least 1) with at most ``limit`` products beside the constant."""
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
        """E[∇^m q], (k,)*m."""
        derivative = self.coefficients
        for m in range(order):
            derivative = _lowered(derivative, self.k, self.degree - m)
        return np.tensordot(self.means[: len(derivative)], derivative, axes=1)

    def gradient_coefficients(self) -> np.ndarray:
        """(p, k) coefficients of ∂q/∂z_a on the same products."""
        found = _lowered(self.coefficients, self.k, self.degree)
        return np.pad(found, ((0, len(self.coefficients) - len(found)), (0, 0)))


def _lowered(coefficients: np.ndarray, k: int, degree: int) -> np.ndarray:
    """Derivatives along each axis, (p', k, …), of coefficients (p, …) on the products up to a degree.

    ∂He_α/∂z_a = α_a He_(α - e_a).
    """
    place = {name: i for i, name in enumerate(indices(k, max(degree - 1, 0)))}
    out = np.zeros((len(place), k, *coefficients.shape[1:]))
    for name, coefficient in zip(indices(k, max(degree, 0)), coefficients, strict=True):
        for a in set(name):
            at = name.index(a)
            out[place[name[:at] + name[at + 1 :]], a] = name.count(a) * coefficient
    return out


class Design:
    """The Hermite products at given points, kept in memory when they fit, and their least squares.

    ``gaussian`` says that the points are from N(0, I), under which the means of the products are known.
    """

    def __init__(
        self, z: Float[np.ndarray, "n k"], degree: int, gaussian: bool, weight: Weight = None
    ) -> None:
        n, self.k = z.shape
        self.degree, self._weight = degree, weight
        p = len(indices(self.k, degree))
        step = max(1, BLOCK // p)
        self._parts = [slice(i, min(n, i + step)) for i in range(0, n, step)]
        self._z, self._kept = z, None
        if n * p <= 16 * BLOCK:
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
        """Return the other polynomial with the means of these points."""
        return Polynomial(self.k, self.degree, other.coefficients, self._means)

    def apply(self, coefficients: np.ndarray) -> np.ndarray:
        """Multiply the products by coefficients, (p,) -> (n,) or (p, q) -> (n, q)."""
        return np.concatenate([F @ coefficients for _, F in self._blocks()])
