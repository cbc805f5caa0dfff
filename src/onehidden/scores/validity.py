"""Is it a score? Stein's identity with polynomials, each against its own standard error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.checks import Check, at_most
from onehidden.laws.base import ScoreFunction, as_points
from onehidden.streams import stream

_Z_LIMIT = 4.0


def validity(
    score: ScoreFunction,
    X: npt.ArrayLike,
    *,
    orders: Sequence[int] = (1, 2, 3, 4),
    directions: int = 4,
    seed: int = 0,
) -> list[Check]:
    """Check E[S_m] = 0 and E[q S_m] = E[∇^m q] on samples X, for powers q of linear forms.

    In whitened coordinates z = W(x - μ) take a unit u, v = W⁻¹u and q = ⟨u, z⟩^p; then
    E[q S_m(v, …, v)] = p!/(p-m)! E⟨u, z⟩^{p-m}. Each identity gets one number: the largest |z-value| over a
    few directions (two axes, the rest random). A score estimated from few samples can pass at small n and
    fail at large n: the advice names the size of the violation beside its significance.

    Parameters
    ----------
    score : a law of ``laws`` or an estimator of ``scores``.
    X : (n, d) samples of the law, best not those the score was fitted on.
    orders : the m to check.
    """
    X = as_points(X, score.n_inputs)
    n, d = X.shape
    if n < d + 2:
        raise ValueError(f"validity needs more than {d + 1} rows for {d} inputs, got {n}")
    mean = X.mean(axis=0)
    root = _root(X - mean)
    units = _directions(d, directions, seed)
    projections = np.linalg.solve(root, (X - mean).T).T @ units.T
    # The formula is judged whether or not the law calls it a score.
    contracted = getattr(score, "formula", score.contract)
    checks = []
    for m in orders:
        powers = sorted({0, m % 2 if m > 1 else 2, m})
        worst = dict.fromkeys(powers, (0.0, 0.0))
        for u, t in zip(units, projections.T, strict=True):
            s = contracted(X, *([root @ u] * m))
            for p in powers:
                right = _falling(p, m) * t ** max(p - m, 0)
                worst[p] = max(worst[p], _z_value(t**p * s - right), key=lambda pair: pair[0])
        for p in powers:
            z, size = worst[p]
            name = f"E[S_{m}] = 0" if p == 0 else f"E[q S_{m}] = E[∇^{m} q], q of degree {p}"
            checks.append(at_most(name, z, _Z_LIMIT, _advice(m, z, size, score)))
    return checks


def _z_value(difference: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """|mean| over its standard error, and |mean|; a constant other than zero is infinitely significant."""
    centre = abs(float(difference.mean()))
    error = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    rounding = np.finfo(float).eps * float(np.abs(difference).max(initial=0.0)) * 8
    if error <= rounding:
        return (0.0 if centre <= rounding else float("inf")), centre
    return centre / error, centre


def _advice(m: int, z: float, size: float, score: ScoreFunction) -> str:
    if z <= _Z_LIMIT:
        return f"order {m} holds within {_Z_LIMIT:g} standard errors"
    if m > score.valid_order:
        return f"off by {size:.3g}: this law is not smooth enough for order {m}; use a smooth stand-in"
    return f"off by {size:.3g}: do not use order {m} of this score; more data or another estimator"


def _falling(p: int, m: int) -> float:
    return float(np.prod([p - i for i in range(m)]))


def _directions(d: int, count: int, seed: int) -> Float[np.ndarray, "u d"]:
    axes = np.eye(d)[: min(2, d)]
    extra = stream(seed, "scores", "directions").standard_normal((max(0, count - len(axes)), d))
    extra /= np.linalg.norm(extra, axis=1, keepdims=True)
    return np.concatenate([axes, extra])


def _root(centred: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
    """Cholesky root of the sample covariance."""
    try:
        return np.linalg.cholesky(np.atleast_2d(np.cov(centred.T)))
    except np.linalg.LinAlgError:
        raise ValueError("the columns of X are constant or linearly dependent: drop some") from None
