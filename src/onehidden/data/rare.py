"""Rows in which a column takes a value that a sample hardly saw: indicators of rare events, mostly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.data.survey import Summary, hashed
from onehidden.data.table import Batch

_MOST = 8192  # rows kept for all columns together
WANTED = 64  # rows in which a column should leave its usual value: as many as units have weights on it


class RareRows:
    """Accumulator of rows that leave the usual value of some column.

    Parameters
    ----------
    columns, usual : indices of the columns, and the value each mostly has.
    seed : of the choice among more than ``wanted`` rows a column.
    """

    def __init__(self, columns: np.ndarray, usual: np.ndarray, seed: int = 0, wanted: int = WANTED) -> None:
        self.columns, self.usual, self.seed = columns, usual, seed
        self.wanted = max(1, min(wanted, _MOST // max(len(columns), 1)))
        self._kept: list[tuple[np.ndarray, ...]] = []

    def update(self, batch: Batch) -> RareRows:
        assert batch.y is not None
        weight = np.ones(len(batch)) if batch.weight is None else batch.weight
        self._kept.append((batch.row, batch.X, batch.y, weight))
        self._trim()
        return self

    def merge(self, other: RareRows) -> RareRows:
        self._kept += other._kept
        self._trim()
        return self

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X, y and weights of the rows, in the order of the data."""
        row, X, y, weight = self._kept[0]
        order = np.argsort(row)
        return X[order], y[order], weight[order]

    def _trim(self) -> None:
        """For each column the rows whose numbers hash lowest: batches and order do not matter."""
        if not self._kept:
            return
        row, X, y, weight = (np.concatenate(part) for part in zip(*self._kept, strict=True))
        order, keep = np.argsort(hashed(row, self.seed), kind="stable"), np.zeros(len(row), bool)
        for column, usual in zip(self.columns, self.usual, strict=True):
            unusual = order[X[order, column] != usual]
            keep[unusual[: self.wanted]] = True
        self._kept = [(row[keep], X[keep], y[keep], weight[keep])]


def rare_columns(summary: Summary) -> tuple[np.ndarray, np.ndarray]:
    """Columns that leave their usual value in too few rows of the sample, and those values."""
    usual, count = _unusual(summary)
    scarce = np.flatnonzero(count < min(WANTED, len(summary.X) / 2))
    if len(summary.X) == summary.n:  # the sample is all there is
        scarce = scarce[:0]
    return scarce, usual[scarce]


def _unusual(summary: Summary) -> tuple[np.ndarray, np.ndarray]:
    """The usual value of each column and the number of rows of the sample that leave it."""
    usual = np.median(summary.X, axis=0)
    return usual, np.sum(summary.X != usual, axis=0)


def rare_column_reasons(summary: Summary, names: tuple[str, ...]) -> list[str]:
    """One clause for each column that leaves its usual value in few rows; the sample holds them by now."""
    usual, count = _unusual(summary)
    return [
        f"column {names[j]!r} differs from {usual[j]:g} in only {count[j]} of {summary.n} rows"
        for j in np.flatnonzero(count < min(WANTED, len(summary.X) / 2))
    ]


def with_rare_rows(summary: Summary, found: RareRows) -> Summary:
    """The sample with all rows found in place of those of them that it held already.

    The rows are chosen by their inputs alone: the noise in them is that of any other row.
    """
    X, y, weight = found.result()
    common = np.all(summary.X[:, found.columns] == found.usual, axis=1)
    X = np.vstack([summary.X[common], X])
    held = np.ones(len(common)) if summary.w is None else summary.w
    w = np.concatenate([held[common], weight])
    plain = bool(np.all(w == 1.0))
    return replace(summary, X=X, y=np.append(summary.y[common], y), w=None if plain else w)
