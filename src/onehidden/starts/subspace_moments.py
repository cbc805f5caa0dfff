"""Score moments E[y S_m(x)] seen through a few directions: k^m numbers, never d^m.

With no score given the law is N(0, I) and the Hermite formulas are used; any other score is asked through
``score.score(X, order, subspace=B) -> (n, r, …, r)``, B of shape (d, r). Both are sums over batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from onehidden.starts.subspace_polynomial import BATCH_ENTRIES, features, indices

VARIANCE_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Moment:
    """One moment inside a subspace.

    Attributes
    ----------
    tensor : (k,)*m estimate.
    variance : (k,)*m squared standard error of each entry.
    """

    tensor: np.ndarray
    variance: np.ndarray

    @property
    def signal(self) -> float:
        """z-value of |T|² against T = 0; entries equal by symmetry count as one."""
        expected = float(np.sum(self.variance))
        # Σ over distinct entries of (multiplicity · variance)² = Σ over all of multiplicity · variance²
        spread = np.sqrt(2 * np.sum(_multiplicity(self.tensor.shape) * self.variance**2))
        return (float(np.sum(self.tensor**2)) - expected) / max(float(spread), np.finfo(float).tiny)

    @property
    def precision(self) -> float:
        """1 / mean squared standard error of an entry."""
        return 1 / max(float(np.mean(self.variance)), np.finfo(float).tiny)


def _multiplicity(shape: tuple[int, ...]) -> np.ndarray:
    """How often the entry at each place is repeated by symmetry."""
    place = np.sort(np.stack(np.meshgrid(*(np.arange(s) for s in shape), indexing="ij"), axis=-1), axis=-1)
    flat = place.reshape(-1, len(shape))
    code = flat @ (shape[0] ** np.arange(len(shape)))
    _, inverse, count = np.unique(code, return_inverse=True, return_counts=True)
    return count[inverse].reshape(shape)


def moment(X: np.ndarray, y: np.ndarray, V: np.ndarray, order: int, score: Any = None) -> Moment:
    """mean of y S_m(V, …, V) with the variance of each entry."""
    if score is None:
        return _gaussian_moment(X @ V, y, order)
    n, k = len(X), V.shape[1]
    total, square = np.zeros((k,) * order), np.zeros((k,) * order)
    step = max(1, BATCH_ENTRIES // k**order)
    for i in range(0, n, step):
        S = np.asarray(score.score(X[i : i + step], order, subspace=V), float)
        batch = y[i : i + step]
        total += np.tensordot(batch, S, axes=1)
        square += np.tensordot(batch**2, S**2, axes=1)
    mean = total / n
    return Moment(mean, np.maximum(square / n - mean**2, 0) / n)


def _gaussian_moment(z: np.ndarray, y: np.ndarray, order: int) -> Moment:
    """The Hermite tensors of section 6: x; xx' - I; x³ - 3 sym(x I); x⁴ - 6 sym(xxI) + 3 sym(II)."""
    n, k = z.shape
    eye = np.eye(k)
    mean_y = float(np.mean(y))
    first = y @ z / n
    second = (y[:, None] * z).T @ z / n
    if order == 1:
        tensor = first
    elif order == 2:
        tensor = second - mean_y * eye
    elif order == 3:
        tensor = _power_sum(z, y, 1) / n - 3 * _symmetric(np.multiply.outer(first, eye))
    elif order == 4:
        # The paper's ⊗~ counts each pairing of I ⊗ I twice; three pairings are right.
        tensor = (
            _power_sum(z, y, 2) / n
            - 6 * _symmetric(np.multiply.outer(second, eye))
            + 3 * mean_y * _symmetric(np.multiply.outer(eye, eye))
        )
    else:
        raise ValueError(f"moments of order 1 to 4 are used, got {order}")
    return Moment(tensor, _hermite_variance(z, y, order))


def _hermite_variance(z: np.ndarray, y: np.ndarray, order: int) -> np.ndarray:
    """(k,)*m mean of (y S)² / n, entry by entry, from as many rows as are affordable.

    E[y²] E[S²] would be too small: what is left in y grows with |z|, and so does S.
    """
    n, k = z.shape
    names = [name for name in indices(k, order) if len(name) == order]
    rows = max(200, min(n, VARIANCE_ENTRIES // len(names)))
    step = max(1, BATCH_ENTRIES // len(indices(k, order)))
    total = np.zeros(len(names))
    for i in range(0, min(n, rows), step):
        part = slice(i, min(n, rows, i + step))
        products = features(z[part], order)[:, -len(names) :]
        total += (y[part] ** 2) @ products**2
    variance = np.empty((k,) * order)
    for name, value in zip(names, total / min(n, rows) / n, strict=True):
        for place in set(permutations(name)):
            variance[place] = value
    return variance


def _power_sum(z: np.ndarray, y: np.ndarray, right: int) -> np.ndarray:
    """Σ y z^(⊗(2 + right)) with the pairs z ⊗ z as one matrix product."""
    k = z.shape[1]
    out = np.zeros((k * k, k**right))
    step = max(1, BATCH_ENTRIES // k**2)
    for i in range(0, len(z), step):
        block = z[i : i + step]
        pairs = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        other = block if right == 1 else pairs
        out += pairs.T @ (y[i : i + step, None] * other)
    return out.reshape((k,) * (2 + right))


def _symmetric(a: np.ndarray) -> np.ndarray:
    orders = list(permutations(range(a.ndim)))
    return sum((a.transpose(p) for p in orders), np.zeros_like(a)) / len(orders)


def cross(X: np.ndarray, y: np.ndarray, V: np.ndarray, order: int, score: Any = None) -> np.ndarray:
    """(d, k^(m-1)) mean of y S_m(·, V, …, V) for order 2 or 3: one free index, the others inside V."""
    n, d = X.shape
    k = V.shape[1]
    if score is None:
        z = X @ V
        if order == 2:
            return X.T @ (y[:, None] * z) / n - np.mean(y) * V
        first = y @ z / n
        out = _cross_power(X, y, z) / n - np.multiply.outer(X.T @ y / n, np.eye(k))
        out -= V[:, :, None] * first[None, None, :] + V[:, None, :] * first[None, :, None]
        return out.reshape(d, k * k)
    out = np.zeros((d, k ** (order - 1)))
    for low in range(0, d, k):  # blocks of coordinates beside V: linear in d
        block = np.arange(low, min(d, low + k))
        B = np.concatenate([np.eye(d)[:, block], V], axis=1)
        b, step = len(block), max(1, BATCH_ENTRIES // B.shape[1] ** order)
        for i in range(0, n, step):
            S = np.asarray(score.score(X[i : i + step], order, subspace=B), float)
            part = S[(slice(None), slice(0, b)) + (slice(b, None),) * (order - 1)]
            out[block] += np.tensordot(y[i : i + step], part, axes=1).reshape(b, -1) / n
    return out


def _cross_power(X: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    k = z.shape[1]
    out = np.zeros((X.shape[1], k * k))
    step = max(1, BATCH_ENTRIES // k**2)
    for i in range(0, len(z), step):
        block = z[i : i + step]
        pairs = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        out += X[i : i + step].T @ (y[i : i + step, None] * pairs)
    return out.reshape(-1, k, k)


def contracted_fourth(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, count: int, seed: int, score: Any = None
) -> list[Moment]:
    """T_4(V, V, V, α) for ``count`` random unit α inside span(V): k³ numbers each, never k⁴.

    For N(0, I), with z = V'x and b the coordinates of α: the mean of
    y [ (b'z) z³ - (b'z) 3 sym(z I) - 3 sym(b z z) + 3 sym(b I) ].
    """
    random = np.random.default_rng(seed)
    k, n = V.shape[1], len(y)
    out = []
    for _ in range(count):
        b = random.standard_normal(k)
        b /= np.linalg.norm(b)
        if score is None:
            z = X @ V
            weighted = y * (z @ b)
            second = (y[:, None] * z).T @ z / n
            tensor = (
                _power_sum(z, weighted, 1) / n
                - 3 * _symmetric(np.multiply.outer(weighted @ z / n, np.eye(k)))
                - 3 * _symmetric(np.multiply.outer(b, second))
                + 3 * np.mean(y) * _symmetric(np.multiply.outer(b, np.eye(k)))
            )
            variance = _hermite_variance(z, weighted, 3)
        else:
            tensor, variance = _contracted_by_score(X, y, V, V @ b, score)
        out.append(Moment(tensor, variance))
    return out


def _contracted_by_score(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, alpha: np.ndarray, score: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The same from any score, in batches of few rows: the dense order 4 of a batch is contracted at once."""
    n, k = len(y), V.shape[1]
    total, square = np.zeros((k,) * 3), np.zeros((k,) * 3)
    step = max(1, 4 * BATCH_ENTRIES // k**4)
    for i in range(0, n, step):
        S = np.asarray(score.score(X[i : i + step], 4, subspace=V), float) @ (V.T @ alpha)
        total += np.tensordot(y[i : i + step], S, axes=1)
        square += np.tensordot(y[i : i + step] ** 2, S**2, axes=1)
    mean = total / n
    return mean, np.maximum(square / n - mean**2, 0) / n
