"""The first pass over a source: means, covariance, ranges, gaps, and a sample of the rows.

Merging follows Chan, Golub and LeVeque: sums of squares are kept about their own means, so that neither the
size of the means nor the number of batches costs digits. The sample is the rows whose numbers hash lowest:
which rows those are depends on the seed alone, not on batches, order or workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onehidden.data.source import Selection
from onehidden.data.table import Batch
from onehidden.data.varying import varying


@dataclass(frozen=True, eq=False)
class Summary:
    """What the first pass found; with weights, means and covariances are weighted.

    Attributes
    ----------
    n : rows kept; ``weight`` the sum of their weights.
    mean, covariance, low, high : of the features, (d,), (d, d), (d,), (d,).
    level, variance, bottom, top : mean, variance, least and greatest value of the target; of several an array
        each.
    dropped, faults : rows left out for gaps, and gaps by column.
    X, y, w : the sampled rows in the order of the data (rare ones that were added come last); w is None
        without weights.
    """

    n: int
    weight: float
    mean: np.ndarray
    covariance: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: Any
    variance: Any
    bottom: Any
    top: Any
    dropped: int
    faults: dict[str, int]
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    w: np.ndarray | None = field(repr=False)


class Survey:
    """Accumulator of a ``Summary``.

    Parameters
    ----------
    d : features.
    sample : rows to keep.
    rows : rows expected in all: parts then keep only their share.
    seed : of the choice of rows.
    outputs : q, for targets (n, q); None for one target (n,).
    """

    def __init__(
        self, d: int, sample: int = 0, rows: int | None = None, seed: int = 0, outputs: int | None = None
    ) -> None:
        self.sample, self.seed, self.outputs, self.d = sample, seed, outputs, d
        # A margin of eight standard deviations over the share wanted: too few are not drawn in practice.
        share = 1.0 if not rows else (sample + 8 * np.sqrt(sample) + 8) / rows
        self._limit = np.uint64(min(share, 1.0) * float(2**64 - 2**11))
        self.n, self.dropped, self.weight = 0, 0, 0.0
        self.faults: dict[str, int] = {}
        p = d + (1 if outputs is None else outputs)
        self._mean, self._scatter = np.zeros(p), np.zeros((p, p))
        self._low, self._high = np.full(p, np.inf), np.full(p, -np.inf)
        self._kept: list[tuple[np.ndarray, ...]] = []
        self._held = 0

    def update(self, batch: Batch) -> Survey:
        if batch.y is None:
            raise ValueError("the source has no target: open it with target=NAME")
        if batch.y.ndim == 2 and self.outputs is None:
            raise ValueError("a streamed source is read for one target at a time: name one, or hold it whole")
        self.dropped += batch.dropped
        for name, count in batch.faults.items():
            self.faults[name] = self.faults.get(name, 0) + count
        if not len(batch):
            return self
        values = np.column_stack([batch.X, batch.y])
        weight = np.ones(len(batch)) if batch.weight is None else batch.weight
        total = float(weight.sum())
        if total > 0:
            mean = weight @ values / total
            centred = values - mean
            rest = weight @ centred / total  # what rounding left in the mean
            scatter = (centred * weight[:, None]).T @ centred - total * np.outer(rest, rest)
            self._combine(total, mean + rest, scatter)
        self.n += len(batch)
        self._low = np.minimum(self._low, values.min(axis=0))
        self._high = np.maximum(self._high, values.max(axis=0))
        self._take(batch.row, values, weight)
        return self

    def merge(self, other: Survey) -> Survey:
        if (self.sample, self.seed, self._limit) != (other.sample, other.seed, other._limit):
            raise ValueError("only surveys of one sample size and seed merge")
        self._combine(other.weight, other._mean, other._scatter)
        self.n += other.n
        self.dropped += other.dropped
        for name, count in other.faults.items():
            self.faults[name] = self.faults.get(name, 0) + count
        self._low = np.minimum(self._low, other._low)
        self._high = np.maximum(self._high, other._high)
        self._kept += other._kept
        self._held += other._held
        self._trim(2 * self.sample)
        return self

    def result(self) -> Summary:
        if self.n == 0 or not self.weight > 0:
            raise ValueError(f"no usable rows: {self.dropped} were left out for missing values")
        self._trim(self.sample)
        d, y = self.d, self.d if self.outputs is None else slice(self.d, None)
        row, values, weight = self._joined()
        order = np.argsort(row)
        covariance = self._scatter / self.weight
        level, variance, bottom, top = (
            own[y].copy() if self.outputs else float(own[y])
            for own in (self._mean, np.diag(covariance), self._low, self._high)
        )
        plain = bool(np.all(weight == 1.0))
        return Summary(
            self.n, self.weight, self._mean[:d], covariance[:d, :d], self._low[:d], self._high[:d],
            level, variance, bottom, top,
            self.dropped, self.faults, np.ascontiguousarray(values[order, :d]), values[order][:, y],
            None if plain else weight[order],
        )  # fmt: skip

    def _combine(self, weight: float, mean: np.ndarray, scatter: np.ndarray) -> None:
        if weight == 0:
            return
        total = self.weight + weight
        step = mean - self._mean
        self._scatter = self._scatter + scatter + np.outer(step, step) * (self.weight * weight / total)
        self._mean = self._mean + step * (weight / total)
        self.weight = total

    def _take(self, row: np.ndarray, values: np.ndarray, weight: np.ndarray) -> None:
        if not self.sample:
            return
        low = hashed(row, self.seed) < self._limit
        self._kept.append((row[low], values[low], weight[low]))
        self._held += int(low.sum())
        self._trim(2 * self.sample)

    def _trim(self, most: int) -> None:
        """Down to the wanted number once there are more than ``most``."""
        if self._held <= most or self._held <= self.sample:
            return
        row, values, weight = self._joined()
        keep = np.argsort(hashed(row, self.seed), kind="stable")[: self.sample]
        self._kept, self._held = [(row[keep], values[keep], weight[keep])], len(keep)

    def _joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not self._kept:
            return np.zeros(0, np.int64), np.zeros((0, len(self._mean))), np.zeros(0)
        row, values, weight = (np.concatenate(part) for part in zip(*self._kept, strict=True))
        return row, values, weight


def must_be_usable(summary: Summary, selection: Selection) -> None:
    """Gaps where they are refused, and constant columns: one sentence each."""
    if summary.dropped and selection.nulls == "refuse":
        raise ValueError(selection.refusal(summary.dropped, summary.n + summary.dropped, summary.faults))
    flat = np.flatnonzero(~varying(summary.low, summary.high))
    if flat.size:
        name = selection.names[flat[0]]
        raise ValueError(
            f"column {name!r} is constant ({summary.low[flat[0]]:g}): leave it out with constant='drop', and "
            "use bias=True for constant terms"
        )


def hashed(row: np.ndarray, seed: int) -> np.ndarray:
    """splitmix64 of the row's number and the seed: uniform 64-bit numbers."""
    with np.errstate(over="ignore"):
        step = 0x9E3779B97F4A7C15
        z = row.astype(np.uint64) * np.uint64(step) + np.uint64((step * (2 * seed + 1)) % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return z ^ (z >> np.uint64(31))
