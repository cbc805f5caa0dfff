"""Samples: rows in memory, checked; what a recovery is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from onehidden import data
from onehidden.data.arrays import as_real, must_be_aligned
from onehidden.fit.coordinates import Coordinates, whitened
from onehidden.fit.form import Form
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.rounding import EPS, Rounding, rounding_of
from onehidden.fit.rows import A
from onehidden.journal import fingerprint

_BLOCK_ENTRIES = 1 << 20  # numbers of Z in one block of a fold: 8 MiB


@dataclass(frozen=True)
class Samples:
    """Inputs X (n, d), target y (n,), and weights of mean one (None: all equal).

    A weight says how much a row counts: the noise of row i has variance sigma^2 / weight_i, or the row
    stands for that many. ``grain`` is the relative rounding of y.
    """

    X: Float[np.ndarray, "n d"] = field(repr=False)
    y: Float[np.ndarray, " n"] = field(repr=False)
    weight: Float[np.ndarray, " n"] | None = field(repr=False, default=None)
    names: tuple[str, ...] = ()
    grain: float = EPS

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def streamed(self) -> bool:
        return False

    @property
    def share(self) -> Float[np.ndarray, " n"]:
        """(n,) weights of sum one."""
        return np.full(len(self.y), 1 / len(self.y)) if self.weight is None else self.weight / len(self.y)

    @property
    def rounding(self) -> Rounding:
        """How coarsely y is known."""
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        level = float(self.share @ self.y)
        spread = float(np.sqrt(self.share @ (self.y - level) ** 2))
        return rounding_of(float(np.max(np.abs(self.y))), spread, self.grain)

    @property
    def fingerprint(self) -> str:
        """Changes when the data change."""
        return fingerprint(self.X, self.y, self.weight)

    def coordinates(self, bias: bool) -> Coordinates:
        """Whitened coordinates; without biases, about the origin where that shows more directions."""
        around = whitened(self.X, self.y, self.share)
        if bias or around.null.shape[1] == 0:
            return around
        raw = whitened(self.X, self.y, self.share, about_mean=False)
        return raw if raw.rank > around.rank else around

    def take(self, index: Int[np.ndarray, " m"]) -> Samples:
        """The samples of these rows."""
        weight = None if self.weight is None else self.weight[index]
        return Samples(self.X[index], self.y[index], weight, self.names, self.grain)

    def sums(self, form: Form, coordinates: Coordinates) -> NetworkFit:
        """The fit of a form in these coordinates."""
        return NetworkFit(form, coordinates.inputs(self.X), coordinates.target(self.y), self.weight)

    def fold(self, make: Callable[[], A], coordinates: Coordinates) -> A:
        """An accumulator that has seen all rows, block by block."""
        total, step = make(), max(1, _BLOCK_ENTRIES // self.X.shape[1])
        for at in range(0, len(self), step):
            part = slice(at, at + step)
            weight = None if self.weight is None else self.weight[part]
            row = np.arange(at, min(at + step, len(self)))
            total.update(coordinates.inputs(self.X[part]), coordinates.target(self.y[part]), weight, row)
        return total


def checked_samples(X: object, y: object, sample_weight: object) -> Samples:
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
    weight = None
    if sample_weight is not None:
        must_be_aligned(X, y)
        must_be_aligned(X, sample_weight, "sample_weight")
        X, y, weight = _weighted_rows(X, y, sample_weight)
    matrix, target = data.check_arrays(X, y, feature_names=names or None)
    assert target is not None
    return Samples(matrix, target, weight, names or tuple(f"x{j}" for j in range(matrix.shape[1])))


def _weighted_rows(X: object, y: object, sample_weight: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
