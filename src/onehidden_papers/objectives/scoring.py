"""From a score, known or estimated, to the source that L reads: the best form the score offers.

Tried in this order:

1. no score: Hermite forms of the standard normal law;
2. ``log_derivatives(X)``: four (n, d) arrays, derivatives 1–4 of log f by coordinate (product laws);
3. ``weights``, ``means``, ``covs`` (a Gaussian mixture) or a ``laws.Gaussian``: Hermite forms in the whitened
   coordinates of each component, weighted by its posterior;
4. ``score(X, order)``, dense: averaged into moment tensors, for at most ``DENSE_LIMIT`` inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.laws import Gaussian
from onehidden.laws.base import require_valid_orders
from onehidden_papers.objectives.sources import GaussianBatch, Mixture, ProductBatch, Tensors

DENSE_LIMIT = 12
_DENSE_BLOCK = 4096


@dataclass(frozen=True)
class ProductScore:
    """The score of a law with independent coordinates, from the log-density of one of them.

    Parameters
    ----------
    log_density : callable
        Traceable function of one number, smooth; the coordinates share it.
    """

    log_density: Callable[[jax.Array], jax.Array]

    def log_derivatives(self, X: Any) -> tuple[jax.Array, ...]:
        """Return derivatives 1–4 of log f at every entry of X, four (n, d) arrays."""
        return _derivatives(self.log_density, jnp.asarray(X))


@partial(jax.jit, static_argnums=0)
def _derivatives(log_density: Callable, X: jax.Array) -> tuple[jax.Array, ...]:
    out, fn = [], log_density
    for _ in range(4):
        fn = jax.grad(fn)
        out.append(jax.vmap(jax.vmap(fn))(X))
    return tuple(out)


def source_of(score: Any, X: jax.Array, y: jax.Array, orders: Sequence[int]) -> Any:
    """Return the source behind samples (X, y) under that score."""
    if score is None:
        return GaussianBatch.of(X, y)
    require_valid_orders(score, orders)
    if hasattr(score, "log_derivatives"):
        return ProductBatch.of([jnp.asarray(part) for part in score.log_derivatives(X)], y)
    if all(hasattr(score, name) for name in ("weights", "means", "covs")):
        return _mixture(
            X, y, *(np.asarray(getattr(score, name), float) for name in ("weights", "means", "covs"))
        )
    if isinstance(score, Gaussian):
        mean, cov = np.asarray(score.mean, float), np.asarray(score.cov, float)
        return _mixture(X, y, np.ones(1), mean[None], cov[None])
    if hasattr(score, "score"):
        return _dense(score, np.asarray(X), np.asarray(y), orders)
    raise ValueError(
        f"{type(score).__name__} is no score: it needs score(X, order) or, a product law, log_derivatives(X)"
    )


def _mixture(X: jax.Array, y: jax.Array, weights: np.ndarray, means: np.ndarray, covs: np.ndarray) -> Mixture:
    roots = [np.linalg.cholesky(cov) for cov in covs]
    maps = [jnp.asarray(np.linalg.inv(root)) for root in roots]
    white = [(X - mean) @ W.T for mean, W in zip(means, maps, strict=True)]
    logs = jnp.stack(
        [
            np.log(weight) - np.sum(np.log(np.diag(root))) - jnp.sum(Z**2, axis=1) / 2
            for weight, root, Z in zip(weights, roots, white, strict=True)
        ]
    )
    posterior = jax.nn.softmax(logs, axis=0)
    parts = [GaussianBatch.of(Z, y * p) for Z, p in zip(white, posterior, strict=True)]
    return Mixture(tuple(parts), tuple(maps))


def _dense(score: Any, X: np.ndarray, y: np.ndarray, orders: Sequence[int]) -> Tensors:
    if X.shape[1] > DENSE_LIMIT:
        raise ValueError(
            f"{type(score).__name__} has no contracted form here, and {X.shape[1]} inputs are too many for "
            f"dense scores (limit {DENSE_LIMIT}): project on the span of T_2 first, or use moments"
        )
    T = {}
    for m in orders:
        blocks = range(0, len(y), _DENSE_BLOCK)
        T[m] = jnp.asarray(
            sum(
                np.tensordot(y[i : i + _DENSE_BLOCK], np.asarray(score.score(X[i : i + _DENSE_BLOCK], m)), 1)
                for i in blocks
            )
            / len(y)
        )
    return Tensors(T)
