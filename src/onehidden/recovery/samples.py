"""Samples: what a recovery is made from, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onehidden import data
from onehidden.data.arrays import as_real


@dataclass(frozen=True)
class Samples:
    """Inputs X (n, d), target y (n,), and weights of mean one (None: all equal).

    A weight says how much a row counts: the noise of row i has variance sigma^2 / weight_i, or the row
    stands for that many.
    """

    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    weight: np.ndarray | None = field(repr=False, default=None)
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    @property
    def share(self) -> np.ndarray:
        """(n,) weights of sum one."""
        return np.full(len(self.y), 1 / len(self.y)) if self.weight is None else self.weight / len(self.y)

    def rows(self, index: np.ndarray) -> Samples:
        """The samples of these rows."""
        weight = None if self.weight is None else self.weight[index]
        return Samples(self.X[index], self.y[index], weight, self.names)


def checked_samples(X: Any, y: Any, sample_weight: Any) -> Samples:
    """Samples from arrays or a table; one sentence for anything else."""
    names: tuple[str, ...] = ()
    if isinstance(X, data.Table):
        if y is None and X.y is None:
            raise ValueError("the table has no target: open it with target=NAME, or give y")
        sample_weight = X.weight if sample_weight is None else sample_weight
        X, y, names = X.X, X.y if y is None else y, X.feature_names
    else:
        columns = getattr(X, "column_names", None)
        columns = getattr(X, "columns", None) if columns is None else columns
        names = () if columns is None else tuple(str(c) for c in columns)
    if y is None:
        raise ValueError("recover needs the target: recover(X, y, …)")
    if sample_weight is not None:
        X, y, sample_weight = _weighted_rows(X, y, sample_weight)
    matrix, target = data.check_arrays(X, y, feature_names=names or None)
    assert target is not None
    return Samples(matrix, target, sample_weight, names or tuple(f"x{j}" for j in range(matrix.shape[1])))


def _weighted_rows(X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of positive weight; weights are brought to mean one."""
    matrix, target = data.check_arrays(X, y)
    assert target is not None
    weight = np.asarray(as_real(sample_weight, "sample_weight"), float)
    if weight.shape != target.shape:
        raise ValueError(
            f"sample_weight must have one entry for each of the {len(target)} rows, got shape {weight.shape}"
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight must be finite and not negative, with some weight above zero")
    kept = weight > 0
    return matrix[kept], target[kept], weight[kept] / weight[kept].mean()
