"""Rows on their way into score moments: checked, weighted, in coordinates; the sums of their scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.activations import xp
from onehidden.machine import accelerator_memory
from onehidden_papers.laws import Gaussian
from onehidden_papers.laws.base import Score
from onehidden_papers.moments.products import Array, pack, product_sums

Weight = Float[np.ndarray, " n"]  # at least zero, of mean one


def checked_samples(
    X: npt.ArrayLike, y: npt.ArrayLike | None, weight: npt.ArrayLike | None = None
) -> tuple[Any, np.ndarray, Weight]:
    """X (n, d), y (n,) and weights of mean one, in double precision and finite; refuse what is not."""
    X, y = X if isinstance(X, jax.Array) else np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got shapes {X.shape} and {y.shape}")
    if not (xp(X).isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    v = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    if v.shape != y.shape:
        raise ValueError(f"weight must have one number for each of the {len(y)} rows, got shape {v.shape}")
    if not np.all(np.isfinite(v)) or np.any(v < 0) or not (np.any(v > 0) or len(v) == 0):
        raise ValueError("weight must be finite and not negative, with some of it above zero")
    return X, y, v / (np.mean(v) if len(v) else 1.0)


def effective_rows(weight: Weight) -> float:
    """(Σ v)² / Σ v²: as many rows of equal weight would give means of the same variance."""
    return float(np.sum(weight) ** 2 / np.sum(weight**2))


def rows_at_a_time(r: int, accelerator: int) -> int:
    """Rows whose tables of pairs fit the cache of a CPU, or a tenth of the memory of an accelerator."""
    if not accelerator:
        return 4096
    return max(256, min(262_144, int(0.1 * accelerator) // (3 * 8 * (r * (r + 1) // 2))))


def frame_of(
    score: Score, subspace: npt.ArrayLike | None, accelerator: int | None = None, highest: int = 1
) -> GaussianFrame | ScoreFrame:
    """How scores are evaluated: in closed form for a Gaussian law, else by asking the score."""
    accelerator = accelerator_memory() if accelerator is None else accelerator
    if not callable(getattr(score, "score", None)):
        raise ValueError(f"score must be a law or a fitted score, got {type(score).__name__}")
    basis = None if subspace is None else np.asarray(subspace, float)
    if basis is not None and (basis.ndim != 2 or len(basis) != score.n_inputs):
        raise ValueError(f"subspace must be ({score.n_inputs}, r), got shape {basis.shape}")
    if isinstance(score, Gaussian):
        return GaussianFrame(score, basis, accelerator)
    return ScoreFrame(score, basis, highest)


class GaussianFrame:
    """Whitened coordinates of a Gaussian law: independent, with Hermite polynomials as 1-D scores."""

    def __init__(self, law: Gaussian, basis: np.ndarray | None, accelerator: int) -> None:
        whiten, eye = np.linalg.inv(np.linalg.cholesky(law.cov)), np.eye(law.n_inputs)
        # S_m(x) contracted with B is the standard S_m contracted with W B = Q R.
        Q, R = (eye, whiten) if basis is None else np.linalg.qr(whiten @ basis)
        self._mean, self._to_u = law.mean, whiten.T @ Q
        self.transform = None if basis is None and np.array_equal(whiten, eye) else R.T
        self.r, self.accelerator = self._to_u.shape[1], accelerator
        self.step = rows_at_a_time(self.r, accelerator)

    def coordinates(self, X: Array) -> Array:
        """On an accelerator, where there is one: all that follows is products of these."""
        place = jnp if self.accelerator else np
        return (place.asarray(X) - self._mean) @ self._to_u

    def sums(self, X: Array, u: Array, factors: dict[int, Array]) -> Iterator[Array]:
        """Yield the sum over rows of each order's factor times S_m, then that of their squares."""
        scores = hermite_scores(by_coordinate(u))
        squared = tuple(s * s for s in scores)
        for m, factor in factors.items():
            yield product_sums(m, factor, scores)
            yield product_sums(m, factor**2, squared)


class ScoreFrame:
    """Any score, evaluated densely in the subspace, on the host."""

    accelerator = 0

    def __init__(self, score: Score, basis: np.ndarray | None, highest: int) -> None:
        self.score, self.basis, self.transform = score, basis, None
        self.r = score.n_inputs if basis is None else basis.shape[1]
        self.step = min(4096, max(1, (64 << 20) // (8 * self.r**highest)))

    def coordinates(self, X: Array) -> Array:
        return X if self.basis is None else X @ self.basis

    def sums(self, X: Array, u: Array, factors: dict[int, Array]) -> Iterator[Array]:
        for m, factor in factors.items():
            entries = pack(self.score.score(np.asarray(X), m, subspace=self.basis))
            yield factor @ entries
            yield factor**2 @ entries**2


def by_coordinate(values: Array) -> Array:
    """(n, r) as (r, n), one run of memory a coordinate."""
    return values.T if isinstance(values, jax.Array) else np.ascontiguousarray(np.asarray(values).T)


def hermite_scores(u: Array) -> tuple[Array, ...]:
    """s_1..s_4 of the standard normal: the probabilists' Hermite polynomials, not normalised."""
    squared = u * u
    return u, squared - 1, u * (squared - 3), squared * (squared - 6) + 3
