"""score_moments: T_1..T_4 of a sample under any score, in two passes over batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onehidden.laws import Gaussian, require_valid_orders
from onehidden.moments.accumulator import MomentAccumulator, ScoreMoments
from onehidden.moments.control import ControlAccumulator
from onehidden.precision import in_double

_BATCH = 4096
_CONTROL_COLUMNS = 2048  # a quadratic control in more coordinates than this allows falls back to a linear one


@in_double
def score_moments(
    X: Any,
    y: Any,
    score: Any,
    orders: tuple[int, ...] = (1, 2, 3, 4),
    control_degree: int = 2,
    subspace: Any = None,
    batch_size: int = _BATCH,
) -> ScoreMoments:
    """T_m = E[y S_m(x)] = sum_i w_i kappa_{m,i} a_i^{(x)m} from samples.

    Parameters
    ----------
    X, y : (n, d), (n,) samples.
    score : the input law, known or estimated: anything with ``score(X, order, subspace)``.
    orders : among 1, 2, 3, 4.
    control_degree : degree (0, 1, 2) of the polynomial of x regressed out of y; -1 for none. It is
        lowered to 1 where the quadratic would have too many columns for the sample.
    subspace : (d, r); moments contracted with its columns, with r^m rather than d^m entries.
    batch_size : rows at a time; changes the result by rounding only.
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    orders = tuple(sorted(set(orders)))
    if not orders or any(m not in (1, 2, 3, 4) for m in orders):
        raise ValueError(f"orders must be among 1, 2, 3, 4, got {orders}")
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got {X.shape} and {y.shape}")
    if len(X) < 2:
        raise ValueError(f"moments need at least 2 samples, got {len(X)}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    if not callable(getattr(score, "score", None)):
        raise ValueError(f"score must be a law or a fitted score, got {type(score).__name__}")
    require_valid_orders(score, orders)
    basis = None if subspace is None else np.asarray(subspace, float)
    if basis is not None and (basis.ndim != 2 or len(basis) != X.shape[1]):
        raise ValueError(f"subspace must be ({X.shape[1]}, r), got shape {basis.shape}")
    source = _GaussianSource(score, basis) if isinstance(score, Gaussian) else _ScoreSource(score, basis)

    batches = [slice(i, i + batch_size) for i in range(0, len(X), batch_size)]
    control, degree = None, _affordable_degree(control_degree, source.r, len(X))
    if degree >= 0:
        fit = ControlAccumulator(source.r, degree)
        for rows in batches:
            fit.update(source.coordinates(X[rows]), y[rows])
        control = fit.result()
    total = MomentAccumulator(source.r, orders, control, degree)
    for rows in batches:
        source.add(total, X[rows], y[rows], orders)
    return total.result(source.transform)


def _affordable_degree(degree: int, r: int, n: int) -> int:
    columns = 1 + r + r * (r + 1) // 2
    return min(degree, 1) if columns > min(_CONTROL_COLUMNS, n / 4) else degree


class _GaussianSource:
    """Whitened coordinates of a Gaussian law: independent, with Hermite polynomials as 1-D scores."""

    def __init__(self, law: Gaussian, basis: np.ndarray | None) -> None:
        self.law = law
        whiten = np.linalg.inv(np.linalg.cholesky(law.cov))
        if basis is None and np.array_equal(law.cov, np.eye(law.n_inputs)):
            self._to_u, self.transform = np.eye(law.n_inputs), None
        else:
            # S_m(x) contracted with B is the standard S_m contracted with W B = Q R.
            Q, R = np.linalg.qr(whiten @ (np.eye(law.n_inputs) if basis is None else basis))
            self._to_u, self.transform = whiten.T @ Q, R.T
        self.r = self._to_u.shape[1]

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return (X - self.law.mean) @ self._to_u

    def add(self, total: MomentAccumulator, X: np.ndarray, y: np.ndarray, orders: tuple[int, ...]) -> None:
        u = self.coordinates(X)
        total.update(u, y, product=hermite_scores(u))


class _ScoreSource:
    """Any score, evaluated densely in the subspace."""

    transform = None

    def __init__(self, score: Any, basis: np.ndarray | None) -> None:
        self.score, self.basis = score, basis
        self.r = score.n_inputs if basis is None else basis.shape[1]

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return X if self.basis is None else X @ self.basis

    def add(self, total: MomentAccumulator, X: np.ndarray, y: np.ndarray, orders: tuple[int, ...]) -> None:
        for rows in self._pieces(len(X), max(orders)):
            piece = X[rows]
            dense = {m: self.score.score(piece, m, subspace=self.basis) for m in orders}
            total.update(self.coordinates(piece), y[rows], dense=dense)

    def _pieces(self, n: int, order: int) -> Iterator[slice]:
        step = max(1, (64 << 20) // (8 * self.r**order))
        return (slice(i, i + step) for i in range(0, n, step))


def hermite_scores(u: np.ndarray) -> tuple[np.ndarray, ...]:
    """s_1..s_4 of the standard normal: the probabilists' Hermite polynomials, not normalised."""
    squared = u * u
    return u, squared - 1, u * (squared - 3), squared * (squared - 6) + 3
