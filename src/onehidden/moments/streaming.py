"""Score moments T_1 … T_4 of a sample or a streamed source under any score: two passes of mergeable sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.data.reduction import connected, reduce
from onehidden.data.source import BATCH_ROWS, Batch, Source
from onehidden.laws import Gaussian
from onehidden.laws.base import Score, require_valid_orders
from onehidden.machine import memory, on_accelerator, sent
from onehidden.moments.accumulator import Control, ControlAccumulator, MomentAccumulator, ScoreMoments
from onehidden.moments.products import Array
from onehidden.moments.weighting import checked_weight, of_rows
from onehidden.precision import in_double

Rows = Batch | tuple[Array, np.ndarray] | tuple[Array, np.ndarray, np.ndarray | None]


class MomentPass:
    """T_m = E[y S_m(x)] of raw batches: ``update(batch)``, ``merge(other)``, ``result()``.

    A batch is a ``data.Batch`` or a tuple (X, y) or (X, y, weight).

    Parameters
    ----------
    score : Score or None
        The input law, known or estimated; None for N(0, I), which needs a subspace.
    orders : tuple of int
        Among 1, 2, 3, 4.
    control : Control or None
        What a ``streaming.ControlPass`` over the same data returned, or None.
    subspace : array_like of shape (d, r) or None
        Moments contracted with its columns.
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
        """Add a batch.

        Parameters
        ----------
        batch : Batch or tuple
            The rows, their targets and weights.

        Returns
        -------
        MomentPass
            The pass itself.
        """
        for X, y, weight in _pieces(batch, self._frame.r):
            self._frame.add(self._total, X, y, weight)
        return self

    def merge(self, other: MomentPass) -> MomentPass:
        """Add the sums of another pass.

        Parameters
        ----------
        other : MomentPass
            A pass over other rows.

        Returns
        -------
        MomentPass
            The pass itself.
        """
        self._total.merge(other._total)
        return self

    def result(self) -> ScoreMoments:
        """Compute the moments of all rows added so far.

        Returns
        -------
        ScoreMoments
            The tensors with their standard errors.
        """
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
    """Rows whose tables of pairs fit the cache of a CPU, or a tenth of the memory of an accelerator."""
    if not on_accelerator():
        return 4096
    return max(256, min(262_144, int(0.1 * memory()) // (3 * 8 * (r * (r + 1) // 2))))


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
        """Return the inputs on the device that forms the sums, sent once if they fit."""
        return sent(np.asarray(X)) if on_accelerator() and X.nbytes <= 1 << 30 else X

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


P = TypeVar("P", ControlPass, MomentPass)
A = TypeVar("A", bound=Array)
_Arrays = tuple[Array, np.ndarray, np.ndarray | None]


@in_double
def score_moments(
    X: npt.ArrayLike | Source,
    y: npt.ArrayLike | None,
    score: Score,
    orders: tuple[int, ...] = (1, 2, 3, 4),
    control_degree: int = 2,
    subspace: npt.ArrayLike | None = None,
    batch_size: int | None = None,
    client: object = None,
    weight: npt.ArrayLike | None = None,
) -> ScoreMoments:
    """T_m = E[y S_m(x)] = sum_i w_i kappa_{m,i} a_i^{(x)m} from samples.

    Parameters
    ----------
    X : array_like of shape (n, d) or Source
        Samples; a ``data.Source`` holds the target, too.
    y : array_like of shape (n,) or None
        Target; None where X is a source.
    score : Score
        The input law, known or estimated: anything with ``n_inputs`` and ``score(X, order, subspace)``.
    orders : tuple of int
        Among 1, 2, 3, 4.
    control_degree : int
        Degree (0, 1, 2) of the polynomial of x regressed out of y; -1 for none. It is lowered to 1 where the
        quadratic would have too many columns for the sample, and below the highest order.
    subspace : array_like of shape (d, r) or None
        Moments contracted with its columns, with r^m rather than d^m entries.
    batch_size : int or None
        Rows read at a time (None: as many as suit the device); changes the result by rounding only.
    client : dask.distributed.Client or str or None
        A Dask client or scheduler address for the passes over a source.
    weight : array_like of shape (n,) or None
        How much each row of X counts, or None; a source brings its own.

    Returns
    -------
    ScoreMoments
        The tensors ``t[m]`` with their standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> law = oh.laws.Gaussian(np.zeros(2))
    >>> X = law.sample(20_000, seed=0)
    >>> t = oh.moments.score_moments(X, np.abs(X[:, 0]), law, orders=(2,))
    >>> t[2].shape, bool(t.signal(2) > 5)
    ((2, 2), True)
    >>> round(float(t[2][0, 0]), 1)  # E[|z| (z^2 - 1)] = 0.798
    0.8
    """
    orders = checked_orders(orders)
    if isinstance(X, Source):
        if y is not None or X.target_name is None:
            raise ValueError("a source holds its target: open it with target=NAME and give None for y")
        if weight is not None:
            raise ValueError("a source holds its weights: open it with weight=NAME")
        data, (n, d) = X, (X.n_rows, X.n_inputs)
    else:
        data = _checked(X, y, weight)
        n, d = data[0].shape
    frame = frame_of(score, subspace)
    r = frame.r
    batch_size = batch_size or max(BATCH_ROWS, rows_at_a_time(r))
    if score.n_inputs != d:
        raise ValueError(f"the score is one of {score.n_inputs} inputs, but X has {d} columns")
    if not isinstance(data, Source):
        data = _require_finite(frame.at_hand(data[0])), *data[1:]
    # At order m a polynomial of degree m and more is of no use, and a quadratic needs rows for its columns.
    quadratic = 1 + r + r * (r + 1) // 2 <= min(2048, n / 4)
    degree = min(control_degree, max(orders) - 1, control_degree if quadratic else 1)
    control = None
    with connected(client, data if isinstance(data, Source) else None) as cluster:
        if degree >= 0:
            fit = partial(ControlPass, score, degree, subspace)
            control = _over(data, fit, batch_size, cluster).result()
        return _over(
            data, partial(MomentPass, score, orders, control, subspace), batch_size, cluster
        ).result()


def _over(data: Source | _Arrays, make: Callable[[], P], rows: int, client: object) -> P:
    """One pass over the samples in memory, or over the source."""
    if isinstance(data, Source):
        return reduce(data, make, client=client, rows=rows)
    total = make()
    X, y, weight = data
    for at in range(0, len(X), rows):
        part = slice(at, at + rows)
        total.update((X[part], y[part], of_rows(weight, part)))
    return total


def _checked(X: npt.ArrayLike, y: npt.ArrayLike | None, weight: npt.ArrayLike | None) -> _Arrays:
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got {X.shape} and {y.shape}")
    if len(X) < 2:
        raise ValueError(f"moments need at least 2 samples, got {len(X)}")
    return X, _require_finite(y), checked_weight(weight, len(y))


def _require_finite(values: A) -> A:
    """Return the values where they are; refuse NaN and infinity."""
    if not (jnp if isinstance(values, jax.Array) else np).isfinite(values).all():
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    return values
