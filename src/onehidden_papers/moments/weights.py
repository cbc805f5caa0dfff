"""Rows and how much each counts: (n,) weights of at least zero, or None where all count alike."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.activations import xp

Weight = Float[np.ndarray, " n"] | None


def checked_weight(weight: npt.ArrayLike | None, n: int) -> Weight:
    """Scale the weights of n rows to mean one; refuse what is no weight."""
    if weight is None:
        return None
    array = np.asarray(weight, float)
    if array.shape != (n,):
        raise ValueError(f"weight must have one number for each of the {n} rows, got shape {array.shape}")
    if not np.all(np.isfinite(array)) or np.any(array < 0) or not np.any(array > 0):
        raise ValueError("weight must be finite and not negative, with some of it above zero")
    return array / np.mean(array)


def checked_samples(
    X: npt.ArrayLike, y: npt.ArrayLike | None, weight: npt.ArrayLike | None
) -> tuple[Any, np.ndarray, Weight]:
    """X (n, d), y (n,) and weights of mean one, in double precision and finite; refuse what is not."""
    X, y = X if isinstance(X, jax.Array) else np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got shapes {X.shape} and {y.shape}")
    if not (xp(X).isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    return X, y, checked_weight(weight, len(y))


def weighted_mean(values: np.ndarray, weight: Weight) -> np.ndarray:
    """Σ v a / Σ v over the rows of a."""
    return np.asarray(np.mean(values, axis=0) if weight is None else weight @ values / np.sum(weight))


def rooted(values: np.ndarray, weight: Weight) -> np.ndarray:
    """Rows times the root of their weight: least squares on them is weighted least squares."""
    return values if weight is None else values * np.sqrt(weight).reshape(-1, *[1] * (values.ndim - 1))


def of_rows(weight: Weight, rows: slice | np.ndarray) -> Float[np.ndarray, " m"] | None:
    """Return the weights of some of the rows."""
    return None if weight is None else weight[rows]


def effective_rows(weight: Weight, n: int) -> float:
    """(Σ v)² / Σ v²: as many rows of equal weight would give means of the same variance."""
    return float(n) if weight is None else float(np.sum(weight) ** 2 / np.sum(weight**2))
