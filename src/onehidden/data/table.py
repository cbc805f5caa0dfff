"""The record every source becomes: features, target, and their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: tuple[str, ...]
    target_name: str | None = None
    weight: np.ndarray | None = None
    weight_name: str | None = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    @property
    def n_inputs(self) -> int:
        return self.X.shape[1]

    def __repr__(self) -> str:
        target = "no target" if self.target_name is None else f"target {self.target_name!r}"
        return f"Table({self.n_rows} rows, {self.n_inputs} features, {target})"


def read_only(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written through; the caller's own array stays as it was."""
    view = array.view()
    view.setflags(write=False)
    return view


def shorten(names: list[str], limit: int = 5) -> str:
    """At most ``limit`` quoted names, and how many were left out."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
