"""The record every source becomes: features, target, and their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a source, finite float64.

    Attributes
    ----------
    X, y, weight : (n, d), (n,) or None, (n,) or None.
    row : (n,) numbers that name each row for good, whatever the batches; they begin at ``first``.
    dropped : rows left out for missing or infinite values, and ``faults``: how many in each column.
    """

    X: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None
    row: np.ndarray
    dropped: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    first: int = 0

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Table:
    """Samples ready for use: finite, numeric, C-ordered float64, read-only.

    Attributes
    ----------
    X : (n, d) features.
    y : (n,) target, or None when none was asked for.
    feature_names : d names, in the order of X's columns.
    target_name : name of y, or None.
    weight : (n,) weights of the rows, from 0 on, or None; ``weight_name`` their column.
    levels : the categories of each text column that became indicators, the base first.
    notes : what was done to the columns on the way, a sentence each.
    row, n_read : (n,) the places of the rows among the n_read that were read; None where all were kept.
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: tuple[str, ...]
    target_name: str | None = None
    weight: np.ndarray | None = None
    weight_name: str | None = None
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    row: np.ndarray | None = field(default=None, repr=False)
    n_read: int | None = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def n_inputs(self) -> int:
        return self.X.shape[1]

    def __repr__(self) -> str:
        target = "no target" if self.target_name is None else f"target {self.target_name!r}"
        return f"Table({self.n_rows} rows, {self.n_inputs} features, {target})"

    def batches(self) -> Iterator[Batch]:
        """All rows at once: what a streamed source gives in pieces."""
        row = np.arange(self.n_rows) if self.row is None else self.row
        read = self.n_rows if self.n_read is None else self.n_read
        yield Batch(self.X, self.y, self.weight, row, read - self.n_rows)


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written through; the caller's own array stays as it was."""
    view = array.view()
    view.setflags(write=False)
    return view


def shorten(names: Sequence[str], limit: int = 5) -> str:
    """At most ``limit`` quoted names, none of them long, and how many were left out."""
    cut = [name if len(name) <= 60 else name[:57] + "..." for name in names[:limit]]
    shown = ", ".join(repr(name) for name in cut)
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
