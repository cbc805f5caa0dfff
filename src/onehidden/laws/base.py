"""What every score shares, known or estimated: dense and contracted forms from one set of derivatives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.partitions import score_entry, score_tensor
from onehidden.refused import Refused

MAX_ORDER = 8
# A dense tensor beyond this many numbers is a mistake, not a wish.
_DENSE_LIMIT = 2**28
# Rows are taken a block at a time so that a block of the largest derivative stays near this many numbers.
_BLOCK = 2**21


class ScoreFunction:
    """A field S_m(x) = (-1)^m ∇^m f(x) / f(x) for m = 1, 2, …

    A subclass sets ``n_inputs`` and supplies ``_log_derivatives``: the derivatives of log f contracted with
    the columns of a (d, r) matrix. Everything else follows from the partition polynomial.

    Attributes
    ----------
    n_inputs : d.
    valid_order : the largest m for which the formula satisfies Stein's identity; infinity for smooth laws.
    """

    n_inputs: int
    valid_order: float = float("inf")

    def score(
        self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None
    ) -> Float[np.ndarray, "n ..."]:
        """S_m at the rows of X, contracted with the columns of ``subspace`` where one is given.

        Parameters
        ----------
        X : (n, d) points.
        order : m.
        subspace : (d, r) matrix V; the result is then S_m(V, …, V), (n, r, …, r), and d^m is never built.

        Returns
        -------
        (n, d, …, d), or (n, r, …, r).
        """
        self._must_be_ready()
        X = as_points(X, self.n_inputs)
        _check_order(order)
        require_valid_orders(self, [order])
        V = np.eye(self.n_inputs) if subspace is None else _as_matrix(subspace, self.n_inputs)
        r = V.shape[1]
        if len(X) * r**order > _DENSE_LIMIT:
            raise ValueError(
                f"S_{order} at {len(X)} points in {r} dimensions has {len(X) * r**order:.2g} entries: "
                "pass a subspace with fewer columns, fewer points at a time, or use contract"
            )
        out = np.empty((len(X),) + (r,) * order)
        for rows in _blocks(len(X), r**order):
            out[rows] = self._tensor(X[rows], order, V)
        return out

    def contract(self, X: npt.ArrayLike, *directions: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        """S_m(u, v, …) at the rows of X, one direction an argument, m = their number; (n,)."""
        self._must_be_ready()
        require_valid_orders(self, [len(directions)])
        return self.formula(X, *directions)

    def formula(self, X: npt.ArrayLike, *directions: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        """What ``contract`` would give if the density were smooth; ``scores.validity`` judges it on data."""
        self._must_be_ready()
        X = as_points(X, self.n_inputs)
        _check_order(len(directions))
        columns: list[np.ndarray] = []
        index = []
        for u in directions:
            u = np.asarray(u, dtype=float)
            if u.shape != (self.n_inputs,):
                raise ValueError(
                    f"a direction must have {self.n_inputs} entries, one an input; got shape {u.shape}"
                )
            # Equal directions share a column: S_4(u,u,u,u) then needs scalars only.
            place = next((i for i, c in enumerate(columns) if np.array_equal(c, u)), len(columns))
            if place == len(columns):
                columns.append(u)
            index.append(place)
        V = np.stack(columns, axis=1)
        out = np.empty(len(X))
        for rows in _blocks(len(X), V.shape[1] ** len(index)):
            out[rows] = self._entry(X[rows], V, index)
        return out

    def _must_be_ready(self) -> None:
        if not hasattr(self, "n_inputs"):
            raise ValueError(f"this {type(self).__name__} has not been fitted: call .fit(X) first")

    def _tensor(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> Float[np.ndarray, "n ..."]:
        return score_tensor(self._log_derivatives(X, order, V))

    def _entry(
        self, X: Float[np.ndarray, "n d"], V: Float[np.ndarray, "d r"], index: Sequence[int]
    ) -> Float[np.ndarray, " n"]:
        return score_entry(self._log_derivatives(X, len(index), V), index)

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        """G_1 … G_order contracted with V: G_j is (n, r, …, r), None where it vanishes."""
        raise TypeError(f"{type(self).__name__} defines no derivatives")

    def laplacian(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        """The divergence of ∇log f, (n,): what held-out score matching adds to ½|∇log f|²."""
        X = as_points(X, self.n_inputs)
        d = self.n_inputs
        out = np.empty(len(X))
        for rows in _blocks(len(X), d * d):
            second = self._log_derivatives(X[rows], 2, np.eye(d))[1]
            out[rows] = 0.0 if second is None else np.trace(second, axis1=1, axis2=2)
        return out


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

    def sample(self, n: int, seed: int) -> Float[np.ndarray, "n d"]:
        """n independent rows, (n, d)."""
        raise TypeError(f"{type(self).__name__} cannot be sampled")

    def log_density(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        """log f at the rows of X, (n,)."""
        raise TypeError(f"{type(self).__name__} has no density")


def as_points(X: npt.ArrayLike, d: int | None = None) -> Float[np.ndarray, "n d"]:
    """X as a finite float64 (n, d) matrix, or one sentence on what is wrong with it."""
    try:
        X = np.ascontiguousarray(np.asarray(X, dtype=float))
    except (TypeError, ValueError):
        raise ValueError("X must hold numbers only: encode or drop the other columns") from None
    if X.ndim != 2:
        raise ValueError(f"X must be an (n, d) matrix, got shape {X.shape}")
    if d is not None and X.shape[1] != d:
        raise ValueError(f"X must have {d} columns, got {X.shape[1]}")
    if not np.all(np.isfinite(X)):
        bad = np.flatnonzero(~np.isfinite(X).all(axis=0))
        raise ValueError(f"X must be finite: column {bad[0]} holds NaN or infinity; drop or fill those rows")
    return X


def as_spd(
    cov: npt.ArrayLike, d: int, name: str = "cov"
) -> tuple[Float[np.ndarray, "d d"], Float[np.ndarray, "d d"]]:
    """A symmetric positive definite (d, d) matrix and its Cholesky root."""
    cov = np.array(cov, dtype=float)
    if cov.shape != (d, d) or not np.all(np.isfinite(cov)) or not np.allclose(cov, cov.T, rtol=1e-10):
        raise ValueError(f"{name} must be a finite symmetric ({d}, {d}) matrix, got shape {cov.shape}")
    try:
        return cov, np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} must be positive definite: drop dependent columns") from None


def as_dimension(d: float) -> int:
    if int(d) != d or d < 1:
        raise ValueError(f"the number of inputs must be a positive integer, got {d}")
    return int(d)


def _as_matrix(V: npt.ArrayLike, d: int) -> Float[np.ndarray, "d r"]:
    V = np.asarray(V, dtype=float)
    if V.ndim != 2 or V.shape[0] != d or V.shape[1] < 1:
        raise ValueError(f"subspace must be a ({d}, r) matrix with r >= 1 columns, got shape {V.shape}")
    return V


def _check_order(order: int) -> None:
    if order not in range(1, MAX_ORDER + 1):
        raise ValueError(f"the order of a score must be 1 … {MAX_ORDER}, got {order}")


def _blocks(n: int, width: int) -> list[slice]:
    size = max(1, _BLOCK // max(1, width))
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


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
