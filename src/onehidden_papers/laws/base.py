"""What every score shares, known or estimated: dense and contracted forms from one set of derivatives.

Sums over set partitions turn derivatives of log f into derivatives of f.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.data.arrays import as_real
from onehidden.refused import Refused

Points = Float[np.ndarray, "n d"]
Directions = Float[np.ndarray, "d r"]
Values = Float[np.ndarray, " n"]
Tensors = Float[np.ndarray, "n ..."]
Derivatives = list[np.ndarray | None]  # G_1, G_2, … of log f along directions, (n, r, …, r); None: zero
Partition = tuple[tuple[int, ...], ...]
_LETTERS = "abcdefghijklm"


@lru_cache(maxsize=32)
def set_partitions(order: int) -> tuple[Partition, ...]:
    """All partitions of {0, …, order-1} into blocks."""
    if order == 0:
        return ((),)
    grown: list[Partition] = []
    last = order - 1
    for smaller in set_partitions(order - 1):
        for i, block in enumerate(smaller):
            grown.append((*smaller[:i], (*block, last), *smaller[i + 1 :]))
        grown.append((*smaller, (last,)))
    return tuple(grown)


def score_tensor(G: Sequence[Tensors | None]) -> Tensors:
    """S_m from G_1, …, G_m with every axis open: G_j is (n, r, …, r) or None for zero.

    (8) of [GMOV] with the symmetrisation written out: (-1)^m S_m is the sum over set partitions of the m
    axes of the product of G_|block| on each block (complete Bell polynomial).
    """
    order = len(G)
    axes = _LETTERS[:order]
    total: np.ndarray | None = None
    for partition in set_partitions(order):
        factors = [factor for block in partition if (factor := G[len(block) - 1]) is not None]
        if len(factors) < len(partition):
            continue
        inputs = ",".join("z" + "".join(axes[i] for i in block) for block in partition)
        term = np.einsum(f"{inputs}->z{axes}", *factors, optimize=False)
        total = term if total is None else total + term
    if total is None:
        raise ValueError("a score needs G_1: pass an array of zeros for a flat log-density")
    return total if order % 2 == 0 else -total


BLOCK = 2**21  # numbers of a table of derivatives, scores or products held at a time


@runtime_checkable
class Score(Protocol):
    """The field S_m(x) = (-1)^m ∇^m f(x) / f(x) of a density f: laws and fitted scores both are one."""

    @property
    def n_inputs(self) -> int:
        """Number of inputs d."""
        ...

    def score(self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None) -> np.ndarray:
        """S_m at the rows of X, (n, d, …, d); with ``subspace`` (d, r) contracted to (n, r, …, r)."""
        ...


class ScoreFunction:
    """A field S_m(x) = (-1)^m ∇^m f(x) / f(x) for every order m.

    A subclass sets ``n_inputs`` and supplies ``_log_derivatives``: the derivatives of log f contracted with
    the columns of a (d, r) matrix. Everything else follows from the partition polynomial.

    Attributes
    ----------
    n_inputs : int
        d.
    valid_order : float
        The largest m for which the formula satisfies Stein's identity; infinity for smooth laws.
    """

    n_inputs: int
    valid_order: float = float("inf")

    def score(self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None) -> Tensors:
        """S_m at the rows of X, contracted with the columns of ``subspace`` where one is given.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Points.
        order : int
            m, at most 8.
        subspace : array_like of shape (d, r) or None
            Matrix V; the result is then S_m(V, …, V), (n, r, …, r), and d^m is never built.

        Returns
        -------
        ndarray of shape (n, d, …, d) or (n, r, …, r)
            The tensor at each point.
        """
        X = self._checked(X, order)
        V = np.eye(self.n_inputs) if subspace is None else np.asarray(subspace, dtype=float)
        if V.ndim != 2 or len(V) != self.n_inputs or V.shape[1] < 1:
            raise ValueError(f"subspace must be a ({self.n_inputs}, r) matrix, got shape {V.shape}")
        size = len(X) * V.shape[1] ** order
        if size > 2**28:  # 2 GiB
            raise ValueError(
                f"S_{order} at {len(X)} points in {V.shape[1]} dimensions has {size:.2g} entries: "
                "pass a subspace with fewer columns, fewer points at a time, or use contract"
            )
        return self._in_blocks(X, order, V)

    def contract(self, X: npt.ArrayLike, *directions: npt.ArrayLike) -> Values:
        """Contract S_m with m directions: S_m(u, v, …).

        Parameters
        ----------
        X : array_like of shape (n, d)
            Points.
        *directions : array_like of shape (d,)
            The directions u, v, …; their number is the order m.

        Returns
        -------
        ndarray of shape (n,)
            The value at each point.
        """
        X = self._checked(X, len(directions))
        for u in directions:
            if np.shape(u) != (self.n_inputs,):
                raise ValueError(
                    f"a direction must have {self.n_inputs} entries, one per input; got shape {np.shape(u)}"
                )
        # Equal directions share a column: S_4(u,u,u,u) then needs scalars only.
        columns, index = np.unique(np.asarray(directions, float), axis=0, return_inverse=True)
        return self._in_blocks(X, len(index), columns.T, index.ravel().tolist())

    def _checked(self, X: npt.ArrayLike, order: int) -> Points:
        """Return the points; refuse an estimator that was not fitted and an order that is no score."""
        if not hasattr(self, "n_inputs"):
            raise ValueError(f"this {type(self).__name__} has not been fitted: call .fit(X) first")
        if order not in range(1, 9):
            raise ValueError(f"the order of a score must be 1 … 8, got {order}")
        require_valid_orders(self, [order])
        return as_points(X, self.n_inputs)

    def _in_blocks(self, X: Points, order: int, V: Directions, entry: Iterable[int] = ()) -> Tensors:
        """(n, r, …, r) the tensors at the points, or one entry of each; some points at a time."""
        parts = (self._tensor(X[rows], order, V) for rows in _blocks(len(X), V.shape[1] ** order))
        return np.concatenate([part[(slice(None), *entry)] for part in parts])

    def _tensor(self, X: Points, order: int, V: Directions) -> Tensors:
        return score_tensor(self._log_derivatives(X, order, V))

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        """G_1 … G_order contracted with V."""
        raise TypeError(f"{type(self).__name__} defines no derivatives")

    def laplacian(self, X: npt.ArrayLike) -> Values:
        """Divergence of ∇log f at the rows of X, (n,): tr S_2 - |S_1|²."""
        X = np.asarray(X, float)
        parts = [X[rows] for rows in _blocks(len(X), self.n_inputs**2)]
        trace = np.concatenate([np.trace(self.score(part, 2), axis1=1, axis2=2) for part in parts])
        return trace - np.sum(self.score(X, 1) ** 2, axis=1)


class Law(ScoreFunction):
    """A score whose law is known: it can also be sampled and has a density."""

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        """E[x], (d,)."""
        raise TypeError(f"{type(self).__name__} does not know its mean")

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        """Cov[x], (d, d)."""
        raise TypeError(f"{type(self).__name__} does not know its covariance")

    def sample(self, n: int, seed: int) -> Points:
        """Draw independent rows.

        Parameters
        ----------
        n : int
            Number of rows.
        seed : int
            Seed of the draw.

        Returns
        -------
        ndarray of shape (n, d)
            The rows.
        """
        raise TypeError(f"{type(self).__name__} cannot be sampled")

    def log_density(self, X: npt.ArrayLike) -> Values:
        """Compute log f.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            The value at each point.
        """
        raise TypeError(f"{type(self).__name__} has no density")


def as_points(X: npt.ArrayLike, d: int | None = None) -> Points:
    """X as a finite float64 (n, d) matrix, or one sentence on what is wrong with it."""
    X = np.ascontiguousarray(as_real(X, "X"), dtype=float)
    if X.ndim != 2:
        raise ValueError(f"X must be an (n, d) matrix, got shape {X.shape}")
    if d is not None and X.shape[1] != d:
        raise ValueError(f"X must have {d} columns, got {X.shape[1]}")
    if not np.all(np.isfinite(X)):
        bad = np.flatnonzero(~np.isfinite(X).all(axis=0))
        raise ValueError(f"X must be finite: column {bad[0]} holds NaN or infinity; drop or fill those rows")
    return X


def _blocks(n: int, width: int) -> list[slice]:
    size = max(1, BLOCK // max(1, width))
    return [slice(i, min(i + size, n)) for i in range(0, max(n, 1), size)]


def require_valid_orders(score: object, orders: Iterable[int]) -> None:
    """Refuse orders at which a law says that its formula is no score (Laplace beyond 1, uniform at all)."""
    limit = getattr(score, "valid_order", float("inf"))
    who = type(getattr(score, "score_of_x", score)).__name__
    beyond = [m for m in orders if m > limit]
    if beyond:
        raise Refused(
            f"{who} has no score of order {beyond[0]}: its density is not smooth and "
            f"Stein's identity holds up to order {limit:g} only; use a smooth stand-in of equal variance, "
            "such as Logistic, or an estimated score"
        )


def power_sum(L: Points, V: Directions, j: int) -> Tensors:
    """Σ_i L_i V_i^{⊗j}, (n, r, …, r): the diagonal tensor diag(L) of order j contracted with V (d, r)."""
    return (L @ row_powers(V, j)).reshape((len(L),) + (V.shape[1],) * j)


def row_powers(V: Any, order: int) -> Any:
    """(d, r^order) the powers V_i^{⊗order} of the rows, flattened; NumPy's or JAX's."""
    out = V[:, :1] ** 0
    for _ in range(order):
        out = (out[:, :, None] * V[:, None, :]).reshape(len(V), -1)
    return out
