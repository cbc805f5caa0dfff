"""Score moments T_m = E[y S_m(x)], m = 1 … 4, of a sample or a streamed source: two passes of mergeable sums.

E[q(x) S_m(x)] = 0 for every polynomial q of degree below m, so y may be replaced by its residual: the
moment keeps its expectation and loses most of its variance. The first pass fits the polynomial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import jax
import numpy as np
import numpy.typing as npt

from onehidden.activations import xp
from onehidden.data.reduction import connected, reduce
from onehidden.data.source import BATCH_ROWS, Batch, Source
from onehidden.machine import in_double, sent
from onehidden_papers.laws.base import Score, require_valid_orders
from onehidden_papers.moments.products import (
    Array,
    contracted,
    multiplicities,
    places,
    product_sums,
    unpack,
)
from onehidden_papers.moments.rows import (
    GaussianFrame,
    ScoreFrame,
    Weight,
    by_coordinate,
    checked_samples,
    effective_rows,
    frame_of,
)

Rows = Batch | tuple[Array, np.ndarray] | tuple[Array, np.ndarray, Weight]


@dataclass(frozen=True)
class Control:
    """A polynomial of degree 0, 1 or 2 in coordinates u: c + <l, u> + sum_{i<=j} q_ij u_i u_j.

    At order m only degrees under m leave the expectation alone, so one polynomial is fitted for each
    degree and ``residual`` takes the best that the order allows.
    """

    coefficients: tuple[np.ndarray, ...]  # one vector for each degree 0, 1, …

    def residual(self, u: Array, y: Array, order: int) -> Array:
        """Subtract from y the best fitted polynomial of degree below ``order``."""
        degree, r = min(order, len(self.coefficients)) - 1, u.shape[1]
        fitted = self.coefficients[degree]
        y = y - fitted[0]
        if degree > 0:
            y = y - u @ fitted[1 : 1 + r]
        if degree > 1:
            upper = np.zeros((r, r))
            upper[np.triu_indices(r)] = fitted[1 + r :]
            # NumPy's function would bring JAX arrays back to the host.
            y = y - xp(u).einsum("ni,ni->n", u @ upper, u)
        return y


def _solved(gram: Array, cross: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return the least-squares coefficients of the leading columns, for each number of them.

    One Cholesky factor at unit diagonal serves all, on the device of the matrix. A ridge of 1e-12 keeps it
    positive definite where columns repeat each other.
    """
    from scipy import linalg

    place, solve = xp(gram), jax.scipy.linalg.cho_solve if isinstance(gram, jax.Array) else linalg.cho_solve
    diagonal = place.diag(gram)
    scale = 1 / place.sqrt(place.where(diagonal > 0, diagonal, 1.0))
    lower = place.linalg.cholesky(gram * scale[:, None] * scale[None, :] + 1e-12 * place.eye(len(scale)))
    return tuple(np.asarray(scale[:m] * solve((lower[:m, :m], True), (scale * cross)[:m])) for m in sizes)


@dataclass(frozen=True)
class ScoreMoments:
    """The moments of a sample: ``t[m]`` is the (r, …, r) tensor T_m in the coordinates asked for.

    Attributes
    ----------
    n : float
        Samples behind the means; with weights v the number (sum v)^2 / sum(v^2) of equal ones.
    orders : tuple of int
        Which m are there.
    """

    n: float
    orders: tuple[int, ...]
    _mean: dict[int, np.ndarray] = field(repr=False)
    _variance: dict[int, np.ndarray] = field(repr=False)
    _r: int = field(repr=False)
    _transform: np.ndarray | None = field(repr=False, default=None)

    def __getitem__(self, order: int) -> np.ndarray:
        return self._dense(self._mean, order, self._transform)

    def standard_error(self, order: int) -> np.ndarray:
        """Return the standard error of each entry of T_m.

        After an affine change of coordinates entries are combined as if uncorrelated, which they are
        when y carries no signal.

        Parameters
        ----------
        order : int
            The order m.

        Returns
        -------
        ndarray of shape (r, …, r)
            The standard errors.
        """
        squared = None if self._transform is None else self._transform**2
        return np.sqrt(self._dense(self._variance, order, squared) / self.n)

    def signal(self, order: int) -> float:
        """Compare |T_m|^2 with what noise alone gives.

        Parameters
        ----------
        order : int
            The order m.

        Returns
        -------
        float
            The difference in standard deviations of the noise.
        """
        # Without signal |T|_F^2 has mean sum_e se_e^2 and variance about 2 sum_e se_e^4 over distinct entries
        # e, each counted as often as it is repeated.
        count, variance = multiplicities(self._r, order), self._variance[order] / self.n
        excess, spread = np.sum(count * (self._mean[order] ** 2 - variance)), np.linalg.norm(count * variance)
        return float(excess / (np.sqrt(2) * spread)) if spread > 0 else 0.0

    def _dense(self, packed: dict[int, np.ndarray], order: int, transform: np.ndarray | None) -> np.ndarray:
        if order not in packed:
            raise ValueError(f"order {order} was not accumulated: the orders are {self.orders}")
        full = unpack(packed[order], self._r, order)
        return full if transform is None else contracted(full, transform.T)


P = TypeVar("P", bound="_Pass")


class _Pass:
    """A sum over raw batches: ``update(batch)``, ``merge(other)``, ``result()``."""

    def __init__(self, frame: GaussianFrame | ScoreFrame, orders: tuple[int, ...]) -> None:
        self._frame, self._orders = frame, orders
        self._counts = np.zeros(3)  # rows, sum v and sum v² of their weights v
        self._sums: list[Any] = []

    @in_double
    def update(self: P, batch: Rows) -> P:
        """Add a batch.

        Parameters
        ----------
        batch : Batch or tuple
            The rows, their targets and weights.

        Returns
        -------
        same class
            The pass itself.
        """
        X, y = (batch.X, batch.y) if isinstance(batch, Batch) else batch[:2]
        weight = batch.weight if isinstance(batch, Batch) else batch[2] if len(batch) == 3 else None
        if y is None:
            raise ValueError("moments need the target: open the source with target=NAME, or give (X, y)")
        v = np.ones(len(y)) if weight is None else weight
        self._counts += len(y), np.sum(v), np.sum(v**2)
        for at in range(0, len(y), self._frame.step):
            rows = slice(at, at + self._frame.step)
            u = self._frame.coordinates(X[rows])
            place = xp(u)  # on the device, if the coordinates are there
            self._add(self._terms(X[rows], u, place.asarray(y[rows]), place.asarray(v[rows])))
        return self

    def merge(self: P, other: P) -> P:
        """Add the sums of another pass.

        Parameters
        ----------
        other : same class
            A pass over other rows.

        Returns
        -------
        same class
            The pass itself.
        """
        if (self._frame.r, self._orders) != (other._frame.r, other._orders):
            raise ValueError("only passes of the same coordinates and orders merge")
        self._counts += other._counts
        self._add(other._sums)
        return self

    def __getstate__(self) -> dict[str, object]:
        """On the way to another process as NumPy: a JAX array would arrive in single precision there."""
        return {**vars(self), "_sums": [np.asarray(one) for one in self._sums]}

    def _terms(self, X: Array, u: Array, y: Array, v: Array) -> list[Any]:
        """Return what some rows add to the sums."""
        raise NotImplementedError

    def _add(self, terms: list[Any]) -> None:
        if not self._sums:  # a part without rows has none
            self._sums = terms
        elif terms:
            self._sums = [mine + new for mine, new in zip(self._sums, terms, strict=True)]


class ControlPass(_Pass):
    """The polynomial of low degree to take off y, by regression: the pass before a ``MomentPass``.

    The columns 1; u_i; u_i u_j have the raw moments of u up to order four as their Gram matrix, each of
    which is summed once.
    """

    def __init__(
        self,
        score: Score,
        degree: int = 2,
        subspace: npt.ArrayLike | None = None,
        accelerator: int | None = None,
    ) -> None:
        if degree not in (0, 1, 2):
            raise ValueError(f"control_degree must be 0, 1 or 2, got {degree}")
        orders = *range(2 * degree + 1), *range(degree + 1)  # of the Gram matrix, then of those with y
        super().__init__(frame_of(score, subspace, accelerator, 2), orders)
        self.degree = degree

    def _terms(self, X: Array, u: Array, y: Array, v: Array) -> list[Any]:
        first = by_coordinate(u)
        second = first * first
        powers = first, second, first * second, second * second
        factors = [v] * (2 * self.degree + 1) + [v * y] * (self.degree + 1)
        return [product_sums(m, one, powers) for m, one in zip(self._orders, factors, strict=True)]

    @in_double
    def result(self) -> Control:
        r, degrees, moments = self._frame.r, range(self.degree + 1), self._sums
        cross = np.concatenate([np.asarray(one) for one in moments[2 * self.degree + 1 :]])
        gram = xp(moments[0]).block([[moments[i + j][places(r, i, j)] for j in degrees] for i in degrees])
        sizes = (1, 1 + r, len(cross))[: self.degree + 1]
        return Control(_solved(gram, cross, sizes))


class MomentPass(_Pass):
    """T_m = E[y S_m(x)] of raw batches: ``update(batch)``, ``merge(other)``, ``result()``.

    A batch is a ``data.Batch`` or a tuple (X, y) or (X, y, weight). With weights v the mean is
    sum(v e) / sum(v).

    Parameters
    ----------
    score : Score
        The input law, known or estimated.
    orders : tuple of int
        Among 1, 2, 3, 4.
    control : Control or None
        What a ``ControlPass`` over the same data returned, or None.
    subspace : array_like of shape (d, r) or None
        Moments contracted with its columns.
    accelerator : int or None
        Bytes of the accelerator that forms the sums, 0 for the host; None for the device of JAX.
    """

    def __init__(
        self,
        score: Score,
        orders: tuple[int, ...] = (1, 2, 3, 4),
        control: Control | None = None,
        subspace: npt.ArrayLike | None = None,
        accelerator: int | None = None,
    ) -> None:
        orders = checked_orders(orders)
        require_valid_orders(score, orders)
        super().__init__(frame_of(score, subspace, accelerator, max(orders)), orders)
        self._control = control

    def _terms(self, X: Array, u: Array, y: Array, v: Array) -> list[Any]:
        control = self._control
        left = {m: v * (y if control is None else control.residual(u, y, m)) for m in self._orders}
        return list(self._frame.sums(X, u, left))

    @in_double
    def result(self) -> ScoreMoments:
        """Compute the moments of all rows added so far.

        Returns
        -------
        ScoreMoments
            The tensors with their standard errors.
        """
        rows, weight, squared_weight = self._counts.tolist()
        if rows == 0:
            raise ValueError("no samples were accumulated")
        if not weight > 0:
            raise ValueError("the weights of the samples add up to zero: give some of them weight")
        mean, variance = {}, {}
        for m, total, square in zip(self._orders, self._sums[::2], self._sums[1::2], strict=True):
            mean[m] = np.asarray(total) / weight
            variance[m] = np.maximum(np.asarray(square) / squared_weight - mean[m] ** 2, 0.0)
        n = weight**2 / squared_weight
        return ScoreMoments(n, self._orders, mean, variance, self._frame.r, self._frame.transform)


def checked_orders(orders: Iterable[int]) -> tuple[int, ...]:
    """Distinct orders among 1, 2, 3, 4, ascending."""
    orders = tuple(sorted(set(orders)))
    if not orders or any(m not in (1, 2, 3, 4) for m in orders):
        raise ValueError(f"orders must be among 1, 2, 3, 4, got {orders}")
    return orders


Kind = TypeVar("Kind", ControlPass, MomentPass)


@in_double
def score_moments(
    X: npt.ArrayLike | Source,
    y: npt.ArrayLike | None,
    score: Score,
    orders: tuple[int, ...] = (1, 2, 3, 4),
    control_degree: int = 2,
    subspace: npt.ArrayLike | None = None,
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
    orders, frame = checked_orders(orders), frame_of(score, subspace)
    if isinstance(X, Source):
        if y is not None or weight is not None or X.target_name is None:
            raise ValueError("a source holds its target and weights: open it with target=NAME, weight=NAME")
        data, (n, d) = X, (X.n_rows, X.n_inputs)
    else:
        X = np.asarray(X, float)
        # Inputs that fit are sent once to the device that forms the sums.
        data = checked_samples(sent(X) if frame.accelerator and X.nbytes <= 1 << 30 else X, y, weight)
        if len(data[1]) < 2:
            raise ValueError(f"moments need at least 2 samples, got {len(data[1])}")
        n, d = effective_rows(data[2]), data[0].shape[1]
    if score.n_inputs != d:
        raise ValueError(f"the score is one of {score.n_inputs} inputs, but X has {d} columns")
    r = frame.r
    # At order m a polynomial of degree m and more is of no use, and a quadratic needs rows for its columns.
    quadratic = 1 + r + r * (r + 1) // 2 <= min(2048, n / 4)
    degree = min(control_degree, max(orders) - 1, control_degree if quadratic else 1)

    def over(make: Callable[[], Kind]) -> Kind:
        if isinstance(data, Source):
            return reduce(data, make, client=cluster, rows=max(BATCH_ROWS, frame.step))
        return make().update(data)

    with connected(client, data if isinstance(data, Source) else None) as cluster:
        control = over(partial(ControlPass, score, degree, subspace)).result() if degree >= 0 else None
        return over(partial(MomentPass, score, orders, control, subspace)).result()
