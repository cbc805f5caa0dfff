"""score_moments: T_1..T_4 of a sample or a streamed source under any score, in two passes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onehidden.data.reduction import connected, reduce
from onehidden.data.source import BATCH_ROWS, Source
from onehidden.moments.accumulator import ScoreMoments
from onehidden.moments.streaming import (
    ControlPass,
    MomentPass,
    checked_orders,
    frame_of,
    hermite_scores,
    rows_at_a_time,
)
from onehidden.precision import in_double

__all__ = ["hermite_scores", "score_moments"]

_CONTROL_COLUMNS = 2048  # a quadratic control in more coordinates than this allows falls back to a linear one


@in_double
def score_moments(
    X: Any,
    y: Any,
    score: Any,
    orders: tuple[int, ...] = (1, 2, 3, 4),
    control_degree: int = 2,
    subspace: Any = None,
    batch_size: int | None = None,
    client: Any = None,
) -> ScoreMoments:
    """T_m = E[y S_m(x)] = sum_i w_i kappa_{m,i} a_i^{(x)m} from samples.

    Parameters
    ----------
    X, y : (n, d), (n,) samples; or a ``data.Source`` that holds the target, and None.
    score : the input law, known or estimated: anything with ``score(X, order, subspace)``.
    orders : among 1, 2, 3, 4.
    control_degree : degree (0, 1, 2) of the polynomial of x regressed out of y; -1 for none. It is
        lowered to 1 where the quadratic would have too many columns for the sample.
    subspace : (d, r); moments contracted with its columns, with r^m rather than d^m entries.
    batch_size : rows read at a time (None: as many as suit the device); changes the result by rounding only.
    client : a Dask client or scheduler address for the passes over a source.
    """
    orders = checked_orders(orders)
    if isinstance(X, Source):
        if y is not None or X.target_name is None:
            raise ValueError("a source holds its target: open it with target=NAME and give None for y")
        n, d = X.n_rows, X.n_inputs
    else:
        X, y = _checked(X, y)
        n, d = X.shape
    r = frame_of(score, subspace).r
    batch_size = batch_size or max(BATCH_ROWS, rows_at_a_time(r))
    if score.n_inputs != d:
        raise ValueError(f"the score is one of {score.n_inputs} inputs, but X has {d} columns")
    degree, control = _affordable_degree(control_degree, r, n), None
    with connected(client, X if isinstance(X, Source) else None) as cluster:
        if degree >= 0:
            fit = partial(ControlPass, score, degree, subspace)
            control = _over(X, y, fit, batch_size, cluster).result()
        return _over(
            X, y, partial(MomentPass, score, orders, control, subspace), batch_size, cluster
        ).result()


def _over(X: Any, y: Any, make: Any, rows: int, client: Any) -> Any:
    """One pass over the samples in memory, or over the source."""
    if isinstance(X, Source):
        return reduce(X, make, client=client, rows=rows)
    total = make()
    for at in range(0, len(X), rows):
        total.update((X[at : at + rows], y[at : at + rows]))
    return total


def _checked(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got {X.shape} and {y.shape}")
    if len(X) < 2:
        raise ValueError(f"moments need at least 2 samples, got {len(X)}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    return X, y


def _affordable_degree(degree: int, r: int, n: int) -> int:
    columns = 1 + r + r * (r + 1) // 2
    return min(degree, 1) if columns > min(_CONTROL_COLUMNS, n / 4) else degree
