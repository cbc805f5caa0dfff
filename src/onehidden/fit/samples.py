"""Samples: rows in memory, checked; what a recovery is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
    """Inputs X (n, d), target y (n,) or (n, q), and weights (None: all equal).

    A weight says how much a row counts: the noise of row i has variance sigma^2 / weight_i, or the row
    stands for that many. Weights have mean one; they may differ from output to output, (n, q), or be the
    information of a row, (n, q, q).

    Attributes
    ----------
    grain : the relative rounding of y.
    unit, dispersion : sigma^2 for a dispersion of one, and that dispersion where it is known.
    noisy : y is random by its nature (a count, a class), so that no fit to it is one to rounding.
    """

    X: Float[np.ndarray, "n d"] = field(repr=False)
    y: Float[np.ndarray, "n ..."] = field(repr=False)
    weight: Float[np.ndarray, "n ..."] | None = field(repr=False, default=None)
    names: tuple[str, ...] = ()
    grain: float = EPS
    unit: float = 1.0
    dispersion: float | None = None
    noisy: bool = False

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def streamed(self) -> bool:
        return False

    @cached_property
    def row_weight(self) -> Float[np.ndarray, " n"] | None:
        """(n,) how much a row counts, over its outputs on average; None: all alike."""
        if self.weight is None or self.weight.ndim == 1:
            return self.weight
        own = self.weight if self.weight.ndim == 2 else np.einsum("nqq->nq", self.weight)
        return own.mean(axis=1)

    @property
    def share(self) -> Float[np.ndarray, " n"]:
        """(n,) weights of sum one."""
        weight = self.row_weight
        return np.full(len(self.y), 1 / len(self.y)) if weight is None else weight / weight.sum()

    @property
    def rounding(self) -> Rounding:
        """How coarsely y is known."""
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        spread = np.sqrt(self.share @ (self.y - self.share @ self.y) ** 2)
        largest = np.max(np.abs(self.y), axis=0)
        found = rounding_of(*coarsest(largest, spread), self.grain)
        return replace(found, noisy=self.noisy)

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
        return replace(self, X=self.X[index], y=self.y[index], weight=weight)

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


def coarsest(largest: np.ndarray, spread: np.ndarray) -> tuple[float, float]:
    """Largest size and standard deviation of the output that is most coarsely known."""
    largest, spread = np.atleast_1d(largest), np.atleast_1d(spread)
    worst = int(np.argmax(largest / np.maximum(spread, np.finfo(float).tiny)))
    return float(largest[worst]), float(spread[worst])


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
    if weight.shape != target.shape[:1]:
        raise ValueError(
            f"sample_weight must have one entry for each of the {len(target)} rows, got shape {weight.shape}"
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight must be finite and not negative, with some weight above zero")
    kept = weight > 0
    return matrix[kept], target[kept], weight[kept] / weight[kept].mean()
