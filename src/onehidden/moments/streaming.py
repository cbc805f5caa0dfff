"""Score moments and their control as reductions over raw batches (X, y, weight) of any source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.data.source import Batch
from onehidden.device import memory, on_accelerator, sent
from onehidden.laws import Gaussian, require_valid_orders
from onehidden.moments.accumulator import MomentAccumulator, ScoreMoments
from onehidden.moments.control import Control, ControlAccumulator
from onehidden.moments.products import Array
from onehidden.moments.score_protocol import Score
from onehidden.precision import in_double

Rows = Batch | tuple[Array, np.ndarray] | tuple[Array, np.ndarray, np.ndarray | None]

_ROWS = 4096  # rows prepared at a time
_DEVICE_ROWS, _DEVICE_SHARE = 262_144, 0.1  # on an accelerator, and of its memory for tables of pairs
_KEPT_BYTES = 1 << 30  # of inputs that stay there from one pass to the next


class MomentPass:
    """T_m = E[y S_m(x)] of raw batches: ``update(batch)``, ``merge(other)``, ``result()``.

    Parameters
    ----------
    score : the input law, known or estimated; None for N(0, I), which needs a subspace.
    orders : among 1, 2, 3, 4.
    control : what a ``ControlPass`` over the same data returned, or None.
    subspace : (d, r); moments contracted with its columns.

    A batch is a ``data.Batch`` or a tuple (X, y) or (X, y, weight).
    """

    def __init__(
        self,
        score: Score | None,
        orders: tuple[int, ...] = (1, 2, 3, 4),
        control: Control | None = None,
        subspace: npt.ArrayLike | None = None,
    ) -> None:
        orders = checked_orders(orders)
        require_valid_orders(score, orders)
        self._frame = frame_of(score, subspace)
        degree = -1 if control is None else len(control.coefficients) - 1
        self._total = MomentAccumulator(self._frame.r, orders, control, degree)

    @in_double
    def update(self, batch: Rows) -> MomentPass:
        for X, y, weight in _pieces(batch, self._frame.r):
            self._frame.add(self._total, X, y, weight)
        return self

    def merge(self, other: MomentPass) -> MomentPass:
        self._total.merge(other._total)
        return self

    def result(self) -> ScoreMoments:
        return self._total.result(self._frame.transform)


class ControlPass:
    """The polynomial of low degree to take off y, from raw batches: the pass before a ``MomentPass``."""

    def __init__(self, score: Score | None, degree: int = 2, subspace: npt.ArrayLike | None = None) -> None:
        self._frame = frame_of(score, subspace)
        self._total = ControlAccumulator(self._frame.r, degree)

    @in_double
    def update(self, batch: Rows) -> ControlPass:
        for X, y, weight in _pieces(batch, self._frame.r):
            self._total.update(self._frame.coordinates(X), y, weight)
        return self

    def merge(self, other: ControlPass) -> ControlPass:
        self._total.merge(other._total)
        return self

    def result(self) -> Control:
        return self._total.result()


def checked_orders(orders: Iterable[int]) -> tuple[int, ...]:
    """Distinct orders among 1, 2, 3, 4, ascending."""
    orders = tuple(sorted(set(orders)))
    if not orders or any(m not in (1, 2, 3, 4) for m in orders):
        raise ValueError(f"orders must be among 1, 2, 3, 4, got {orders}")
    return orders


def rows_at_a_time(r: int) -> int:
    """Of moments in r coordinates: few on a CPU, whose cache they must fit; many on an accelerator."""
    if not on_accelerator():
        return _ROWS
    return max(256, min(_DEVICE_ROWS, int(_DEVICE_SHARE * memory()) // (3 * 8 * (r * (r + 1) // 2))))


def _pieces(batch: Rows, r: int) -> Iterator[tuple[Array, np.ndarray, np.ndarray | None]]:
    if isinstance(batch, Batch):
        X, y, weight = batch.X, batch.y, batch.weight
    else:
        X, y, weight = batch if len(batch) == 3 else (*batch, None)
    if y is None:
        raise ValueError("moments need the target: open the source with target=NAME, or give (X, y)")
    step = rows_at_a_time(r)
    for at in range(0, len(X), step):
        rows = slice(at, at + step)
        yield X[rows], y[rows], None if weight is None else weight[rows]


def frame_of(score: Score | None, subspace: npt.ArrayLike | None) -> _GaussianFrame | _ScoreFrame:
    """How scores are evaluated: in closed form for a Gaussian law, else by asking the score."""
    if score is None:
        if subspace is None:
            raise ValueError("give a law, or a subspace for the moments of N(0, I)")
        return _GaussianFrame(None, np.asarray(subspace, float))
    if not callable(getattr(score, "score", None)):
        raise ValueError(f"score must be a law or a fitted score, got {type(score).__name__}")
    basis = None if subspace is None else np.asarray(subspace, float)
    if basis is not None and (basis.ndim != 2 or len(basis) != score.n_inputs):
        raise ValueError(f"subspace must be ({score.n_inputs}, r), got shape {basis.shape}")
    return _GaussianFrame(score, basis) if isinstance(score, Gaussian) else _ScoreFrame(score, basis)


class _GaussianFrame:
    """Whitened coordinates of a Gaussian law: independent, with Hermite polynomials as 1-D scores."""

    def __init__(self, law: Gaussian | None, basis: np.ndarray | None) -> None:
        if law is None:  # N(0, I) seen through a basis: nothing of size d x d is formed
            assert basis is not None
            self._mean: np.ndarray | float = 0.0
            self._to_u, R = np.linalg.qr(basis)
            self.transform: np.ndarray | None = R.T
            self.r = self._to_u.shape[1]
            return
        self._mean = law.mean
        whiten = np.linalg.inv(np.linalg.cholesky(law.cov))
        if basis is None and np.array_equal(law.cov, np.eye(law.n_inputs)):
            self._to_u, self.transform = np.eye(law.n_inputs), None
        else:
            # S_m(x) contracted with B is the standard S_m contracted with W B = Q R.
            Q, R = np.linalg.qr(whiten @ (np.eye(law.n_inputs) if basis is None else basis))
            self._to_u, self.transform = whiten.T @ Q, R.T
        self.r = self._to_u.shape[1]

    def coordinates(self, X: Array) -> Array:
        """On an accelerator, where there is one: all that follows is products of these."""
        place = jnp if on_accelerator() else np
        return (place.asarray(X) - self._mean) @ self._to_u

    def at_hand(self, X: Array) -> Array:
        """The inputs where the sums are formed, for several passes: sent once if they find room there."""
        return sent(np.asarray(X)) if on_accelerator() and X.nbytes <= _KEPT_BYTES else X

    def add(self, total: MomentAccumulator, X: Array, y: np.ndarray, weight: np.ndarray | None) -> None:
        u = self.coordinates(X)
        total.update(u, y, product=hermite_scores(u), weight=weight)


class _ScoreFrame:
    """Any score, evaluated densely in the subspace."""

    transform = None

    def __init__(self, score: Score, basis: np.ndarray | None) -> None:
        self.score, self.basis = score, basis
        self.r = score.n_inputs if basis is None else basis.shape[1]

    def at_hand(self, X: Array) -> Array:
        return X

    def coordinates(self, X: Array) -> Array:
        return X if self.basis is None else X @ self.basis

    def add(self, total: MomentAccumulator, X: Array, y: np.ndarray, weight: np.ndarray | None) -> None:
        X = np.asarray(X)
        for rows in self._pieces(len(X), max(total.orders)):
            piece, part = X[rows], None if weight is None else weight[rows]
            dense = {m: self.score.score(piece, m, subspace=self.basis) for m in total.orders}
            total.update(self.coordinates(piece), y[rows], dense=dense, weight=part)

    def _pieces(self, n: int, order: int) -> Iterator[slice]:
        step = max(1, (64 << 20) // (8 * self.r**order))
        return (slice(i, i + step) for i in range(0, n, step))


def hermite_scores(u: Array) -> tuple[Array, ...]:
    """s_1..s_4 of the standard normal: the probabilists' Hermite polynomials, not normalised."""
    squared = u * u
    return u, squared - 1, u * (squared - 3), squared * (squared - 6) + 3
