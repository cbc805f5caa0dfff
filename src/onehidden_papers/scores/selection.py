"""Choose an estimator by held-out score matching, and check by Stein's identity that it is a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import perm
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.checks import Check, at_most
from onehidden.refused import Refused
from onehidden.run import stream
from onehidden_papers.laws.base import ScoreFunction, as_points
from onehidden_papers.scores.local_likelihood import LocalLikelihood
from onehidden_papers.scores.sample import check_sample
from onehidden_papers.scores.structured import (
    GaussianScore,
    IndependentScore,
    KernelDensityScore,
    MixtureScore,
)

# From simple to rich, the baseline last: a richer estimator must win by more than its standard error.
CANDIDATES: dict[str, Callable[[int], Any]] = {
    "gaussian": lambda seed: GaussianScore("auto"),
    "mixture": lambda seed: MixtureScore(seed=seed),
    "independent": lambda seed: IndependentScore(seed=seed),
    "local likelihood": lambda seed: LocalLikelihood(seed=seed),
    "kernel density": lambda seed: KernelDensityScore(seed=seed),
}


def score_matching(score: ScoreFunction, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
    """Hyvärinen's ½|∇log f|² + Δlog f at each row, (n,): its mean needs no normalising constant.

    Parameters
    ----------
    score : ScoreFunction
        A law of ``laws`` or an estimator of ``scores``.
    X : array_like of shape (n, d)
        Samples, best not those the score was fitted on.

    Returns
    -------
    ndarray of shape (n,)
        The value at each row.
    """
    first = score.score(X, 1)
    return 0.5 * np.sum(first**2, axis=1) + score.laplacian(X)


def select(X: npt.ArrayLike, *, candidates: Iterable[str] | None = None, seed: int = 0) -> ScoreFunction:
    """Return the estimator of lowest held-out score matching, refitted to all of X.

    A third of the rows is held out. Losses are compared in standardised columns, so units do not matter;
    among those within one standard error of the lowest the simplest is taken, for which ``.reason`` gives the
    reason. ``.selection`` holds all losses, minus half the Fisher information at best.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Samples.
    candidates : iterable of str or None
        Names of ``CANDIDATES``; all but kernel density when None.
    seed : int
        Seed of the rows held out and of the estimators.

    Returns
    -------
    ScoreFunction
        The estimator, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> estimate = oh.scores.select(X, candidates=["gaussian", "mixture"])
    >>> sorted(estimate.selection)
    ['gaussian', 'mixture']
    """
    X = check_sample(X)
    n, d = X.shape
    names = list(CANDIDATES)[:-1] if candidates is None else list(candidates)
    unknown = [name for name in names if name not in CANDIDATES]
    if unknown or not names:
        raise ValueError(f"candidates must be among {', '.join(CANDIDATES)}, got {candidates}")
    scaled = _without_ties((X - X.mean(axis=0)) / X.std(axis=0), seed)
    order = stream(seed, "scores", "held out").permutation(n)
    held = order[: max(1, min(n // 3, 2000))]
    train = order[len(held) :]
    if len(train) < d + 2:
        raise Refused(f"select needs at least {(3 * (d + 2)) // 2 + 1} rows for {d} inputs, got {n}")
    losses = {}
    for name in names:
        fitted = CANDIDATES[name](seed).fit(scaled[train])
        losses[name] = score_matching(fitted, scaled[held])
    mean = {name: float(np.mean(rows)) for name, rows in losses.items()}
    lowest = min(mean, key=lambda name: mean[name])

    def close(name: str) -> bool:
        behind = losses[name] - losses[lowest]
        return float(np.mean(behind)) <= float(np.std(behind)) / np.sqrt(len(behind))

    chosen = next(filter(close, names))
    result = CANDIDATES[chosen](seed).fit(X)
    result.selection = mean
    simplest = f"simplest within one standard error of {lowest}"
    result.reason = "lowest held-out score matching" if chosen == lowest else simplest
    return result


def _without_ties(X: Float[np.ndarray, "n d"], seed: int) -> Float[np.ndarray, "n d"]:
    """Blur rounded columns over their grid: a density that sits on ties has an unbounded loss."""
    X = X.copy()
    rng = stream(seed, "scores", "blur")
    for column in X.T:
        values = np.unique(column)
        if len(values) < len(column) / 2:
            spacing = float(np.median(np.diff(values)))
            column += spacing * rng.uniform(-0.5, 0.5, len(column))
    return X


def validity(
    score: ScoreFunction, X: npt.ArrayLike, *, orders: Sequence[int] = (1, 2, 3, 4), limit: float = 4.0
) -> list[Check]:
    """Check E[S_m] = 0 and E[q S_m] = E[∇^m q] on samples X, for powers q of linear forms.

    In whitened coordinates z = W(x - μ) take a unit u, v = W⁻¹u and q = ⟨u, z⟩^p; then
    E[q S_m(v, …, v)] = p!/(p-m)! E⟨u, z⟩^{p-m}. Each identity gets one number: the largest |z-value| over a
    four directions, at most two of them axes and the rest random. A score estimated from few samples can pass
    at small n and fail at large n: the advice names the size of the violation beside its significance.

    Parameters
    ----------
    score : ScoreFunction
        A law of ``laws`` or an estimator of ``scores``.
    X : array_like of shape (n, d)
        Samples of the law, best not those the score was fitted on.
    orders : sequence of int
        The m to check.
    limit : float
        Largest |z-value| that passes.

    Returns
    -------
    list of Check
        One check for each order and power.
    """
    X = as_points(X, score.n_inputs)
    n, d = X.shape
    if n < d + 2:
        raise ValueError(f"validity needs more than {d + 1} rows for {d} inputs, got {n}")
    mean = X.mean(axis=0)
    try:
        root = np.linalg.cholesky(np.atleast_2d(np.cov(X.T)))
    except np.linalg.LinAlgError:
        raise ValueError("the columns of X are constant or linearly dependent: drop some") from None
    others = stream(0, "scores", "directions").standard_normal((4 - min(2, d), d))
    units = np.vstack([np.eye(d)[:2], others / np.linalg.norm(others, axis=1, keepdims=True)])
    projections = np.linalg.solve(root, (X - mean).T).T @ units.T
    checks = []
    for m in orders:
        exists = m <= score.valid_order
        contracted = [score.contract(X, *([root @ u] * m)) if exists else np.zeros(n) for u in units]
        for p in sorted({0, m % 2 if m > 1 else 2, m}):
            gaps = [
                t**p * s - perm(p, m) * t ** max(p - m, 0)
                for t, s in zip(projections.T, contracted, strict=True)
            ]
            z, size = max(map(_z_value, gaps)) if exists else (float("inf"), float("nan"))
            if not exists:
                advice = f"this law is not smooth enough for order {m}: use a smooth stand-in"
            elif z > limit:
                advice = (
                    f"off by {size:.3g}: do not use order {m} of this score; more data or another estimator"
                )
            else:
                advice = f"order {m} holds within {limit:g} standard errors"
            name = f"E[S_{m}] = 0" if p == 0 else f"E[q S_{m}] = E[∇^{m} q], q of degree {p}"
            checks.append(at_most(name, z, limit, advice))
    return checks


def _z_value(difference: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """|mean| over its standard error, and |mean|; a constant other than zero is infinitely significant."""
    centre = abs(float(difference.mean()))
    error = float(difference.std(ddof=1)) / np.sqrt(len(difference))
    rounding = np.finfo(float).eps * float(np.abs(difference).max(initial=0.0)) * 8
    if error <= rounding:
        return (0.0 if centre <= rounding else float("inf")), centre
    return centre / error, centre
