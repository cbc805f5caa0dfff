"""score_moments: T_1..T_4 of a sample or a streamed source under any score, in two passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.data.reduction import connected, reduce
from onehidden.data.source import BATCH_ROWS, Source
from onehidden.moments.accumulator import ScoreMoments
from onehidden.moments.products import Array
from onehidden.moments.score_protocol import Score
from onehidden.moments.streaming import (
    ControlPass,
    MomentPass,
    checked_orders,
    frame_of,
    hermite_scores,
    rows_at_a_time,
)
from onehidden.moments.weighting import checked_weight, of_rows
from onehidden.precision import in_double

__all__ = ["hermite_scores", "score_moments"]

P = TypeVar("P", ControlPass, MomentPass)
A = TypeVar("A", bound=Array)
_Arrays = tuple[Array, np.ndarray, np.ndarray | None]
_CONTROL_COLUMNS = 2048  # a quadratic control in more coordinates than this allows falls back to a linear one


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
    X, y : (n, d), (n,) samples; or a ``data.Source`` that holds the target, and None.
    score : the input law, known or estimated: anything with ``n_inputs`` and ``score(X, order, subspace)``.
    orders : among 1, 2, 3, 4.
    control_degree : degree (0, 1, 2) of the polynomial of x regressed out of y; -1 for none. It is
        lowered to 1 where the quadratic would have too many columns for the sample, and below the highest
        order.
    subspace : (d, r); moments contracted with its columns, with r^m rather than d^m entries.
    batch_size : rows read at a time (None: as many as suit the device); changes the result by rounding only.
    client : a Dask client or scheduler address for the passes over a source.
    weight : (n,) how much each row of X counts, or None; a source brings its own.
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
    # At order m a polynomial of degree m and more is of no use.
    degree, control = min(_affordable_degree(control_degree, r, n), max(orders) - 1), None
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
    """The values, looked at where they are."""
    if not (jnp if isinstance(values, jax.Array) else np).isfinite(values).all():
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    return values


def _affordable_degree(degree: int, r: int, n: int) -> int:
    columns = 1 + r + r * (r + 1) // 2
    return min(degree, 1) if columns > min(_CONTROL_COLUMNS, n / 4) else degree
