"""Rows and how much each counts: (n,) weights of at least zero and mean one."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.activations import xp

Weight = Float[np.ndarray, " n"]


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
