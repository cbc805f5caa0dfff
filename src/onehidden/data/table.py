"""The record every source becomes: features, target, and their names."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a source, finite float64.

    Attributes
    ----------
    X, y : (n, d); (n,), of several targets (n, q), or None.
    weight, offset, trials : (n,) or None.
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
    offset: np.ndarray | None = None
    trials: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Table:
    """Samples ready for use: finite, numeric, C-ordered float64, read-only.

    Attributes
    ----------
    X : (n, d) features.
    y : (n,) target; (n, q) of several; None when none was asked for.
    feature_names : d names, in the order of X's columns.
    target_names : names of y's columns; none, one or several.
    weight : (n,) weights of the rows, from 0 on, or None; ``weight_name`` their column.
    levels : the categories of each text column that became indicators, the base first.
    notes : what was done to the columns on the way, a sentence each.
    row, n_read : (n,) the places of the rows among the n_read that were read; None where all were kept.
    offset, trials : (n,) what is added to the linear predictor, and how many trials each row counts; or None,
        with ``offset_name`` and ``trials_name``.
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...] = ()
    weight: np.ndarray | None = None
    weight_name: str | None = None
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    row: np.ndarray | None = field(default=None, repr=False)
    n_read: int | None = None
    offset: np.ndarray | None = None
    offset_name: str | None = None
    trials: np.ndarray | None = None
    trials_name: str | None = None

    @property
    def target_name(self) -> str | None:
        """The name of y; of several targets all of them; None where there is none."""
        return ", ".join(self.target_names) or None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def n_inputs(self) -> int:
        return self.X.shape[1]

    def __repr__(self) -> str:
        return f"Table({self.n_rows} rows, {self.n_inputs} features, {targets_in_words(self.target_names)})"

    def batches(self) -> Iterator[Batch]:
        """All rows at once: what a streamed source gives in pieces."""
        row = np.arange(self.n_rows) if self.row is None else self.row
        read = self.n_rows if self.n_read is None else self.n_read
        yield Batch(
            self.X, self.y, self.weight, row, read - self.n_rows, offset=self.offset, trials=self.trials
        )


def targets_in_words(names: Sequence[str]) -> str:
    """no target, target 'y', targets 'a', 'b'."""
    if not names:
        return "no target"
    return f"target{'s' if len(names) > 1 else ''} {shorten(names)}"


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


def left_out(names: Sequence[str]) -> str:
    """How columns are left out, in Python and typed."""
    typed = " ".join(f"--drop {shlex.quote(name)}" for name in names)
    return f"drop={list(names)!r} ({typed})"
