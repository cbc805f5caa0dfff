"""Score moments E[y S_m(x)] seen through a few directions V: k^m numbers, never d^m.

With no score given the law is N(0, I). Weights v say how much each row counts: Σ v y S_m / Σ v.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Float

from onehidden.moments.packing import pack, z_of_norm
from onehidden.moments.score_protocol import Score
from onehidden.moments.streaming import MomentPass
from onehidden.moments.weighting import Weight
from onehidden.precision import in_double
from onehidden.streams import stream

_BATCH_ENTRIES = 1 << 21  # numbers of a table of products or scores held at a time

Samples = Float[np.ndarray, "n d"]
Values = Float[np.ndarray, " n"]
Basis = Float[np.ndarray, "d k"]


@dataclass(frozen=True)
class Moment:
    """One moment inside a subspace.

    Attributes
    ----------
    tensor : (k,)*m estimate, symmetric.
    variance : (k,)*m squared standard error of each entry.
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
    """mean of y S_m(V, …, V) for every order asked, in one pass, with the variance of each entry.

    Parameters
    ----------
    X, y : (n, d) and (n,).
    V : (d, k) directions.
    orders : among 1, 2, 3, 4.
    score : the input law; None for N(0, I).
    weight : (n,) how much each row counts, or None.
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
        b, step = len(block), max(1, _BATCH_ENTRIES // B.shape[1] ** order)
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
    step = max(1, _BATCH_ENTRIES // k**2)
    for i in range(0, len(z), step):
        block = z[i : i + step]
        pairs = (block[:, :, None] * block[:, None, :]).reshape(len(block), -1)
        out += X[i : i + step].T @ (share[i : i + step, None] * pairs)
    cube, first = out.reshape(-1, k, k), share @ z
    cube -= np.multiply.outer(X.T @ share, np.eye(k))
    cube -= V[:, :, None] * first[None, None, :] + V[:, None, :] * first[None, :, None]
    return out


@in_double
def contracted_fourth(
    X: Samples,
    y: Values,
    V: Basis,
    count: int,
    seed: int,
    score: Score | None = None,
    weight: Values | None = None,
) -> list[Moment]:
    """T_4(V, V, V, α) for ``count`` random unit α inside span(V), V orthonormal: k³ numbers each, never k⁴.

    For N(0, I), with z = V'x and b the coordinates of α, S_4(·, ·, ·, b) = <b, z> S_3 - 3 sym(b ⊗ S_2).
    """
    random = stream(seed, "contractions of order 4")
    second = None if score is not None else moment(X, y, V, 2, None, weight).tensor
    out = []
    for _ in range(count):
        b = random.standard_normal(V.shape[1])
        b /= np.linalg.norm(b)
        if second is None:
            assert score is not None
            out.append(_contracted_by_score(X, y, V, b, score, weight))
        else:
            third = moment(X, y * (X @ (V @ b)), V, 3, None, weight)
            tensor = third.tensor - 3 * _symmetric(np.multiply.outer(b, second))
            out.append(Moment(tensor, third.variance))
    return out


def _contracted_by_score(
    X: Samples, y: Values, V: Basis, b: Float[np.ndarray, " k"], score: Score, weight: Values | None
) -> Moment:
    """The same from any score, in batches of few rows: the dense order 4 of a batch is contracted at once."""
    k = V.shape[1]
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / np.sum(weight)
    total, square = np.zeros((k,) * 3), np.zeros((k,) * 3)
    step = max(1, 4 * _BATCH_ENTRIES // k**4)
    for i in range(0, len(y), step):
        S = np.asarray(score.score(X[i : i + step], 4, subspace=V), float) @ b
        part = share[i : i + step] * y[i : i + step]
        total += np.tensordot(part, S, axes=1)
        square += np.tensordot(part**2, S**2, axes=1)
    # Σ v² e² / (Σ v)² less the square of the mean at as many rows as the weights are worth.
    return Moment(total, np.maximum(square - total**2 * np.sum(share**2), 0.0))


def _symmetric(a: np.ndarray) -> np.ndarray:
    orders = list(permutations(range(a.ndim)))
    return sum((a.transpose(p) for p in orders), np.zeros_like(a)) / len(orders)
