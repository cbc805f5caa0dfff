"""check_arrays: what recover() may be given, and one sentence for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onehidden.data.varying import varying


def check_arrays(
    X: object, y: object = None, feature_names: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """X as a finite C-ordered (n, d) float64 matrix, y as a finite (n,) float64 vector or (n, q) matrix.

    Parameters
    ----------
    X : (n, d) array, or a pandas, polars or pyarrow table.
    y : (n,) or (n, 1) array, (n, q) of several outputs, or None when there is no target.
    feature_names : names for messages; those of a table are found, columns are numbered otherwise.

    Raises
    ------
    ValueError with one sentence: wrong or mismatched shapes, NaN or infinity, complex numbers, text,
    Python objects, sparse matrices, constant columns, pandas objects whose indices differ.
    """
    from onehidden.data.held import is_frame
    from onehidden.data.opening import open as open_table

    must_be_aligned(X, y)
    if is_frame(X):
        table = open_table(X, stream=False)
        X, feature_names = table.X, feature_names or table.feature_names
    matrix = as_real(X, "X")
    if matrix.ndim == 1:
        raise ValueError(
            f"X must be a matrix of n rows and d columns, got shape {matrix.shape}: use X.reshape(-1, 1) for "
            "a single feature"
        )
    if matrix.ndim != 2:
        raise ValueError(f"X must be a matrix of n rows and d columns, got shape {matrix.shape}: flatten it")
    n, d = matrix.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"X must have rows and columns, got shape {matrix.shape}: give a table with data in it"
        )
    matrix = np.ascontiguousarray(matrix, dtype=float)
    names = [str(name) for name in feature_names] if feature_names is not None else None
    _must_be_finite(matrix, names)
    target = None if y is None else _target(y, n)
    _must_vary(matrix, names)
    return matrix, target


def must_be_aligned(X: object, y: object, called: str = "y") -> None:
    """Refuse pandas objects whose rows have other labels: by place they would be paired wrongly."""
    one, other = _labels(X), _labels(y)
    if one is None or other is None or len(one) != len(other) or one.equals(other):
        return
    place = int(np.argmax(np.asarray(one != other)))
    same = "the same labels in another order" if set(one) == set(other) else "other labels"
    raise ValueError(
        f"the index of {called} has {same} than that of X (first at row {place}: {other[place]!r} beside "
        f"{one[place]!r}): align them, as {called}.loc[X.index], or give {called}.to_numpy() if they "
        "are in order"
    )


def _labels(values: object) -> Any:
    """The index of a pandas object, None of anything else."""
    held: Any = values
    return held.index if type(held).__module__.split(".")[0] == "pandas" and hasattr(held, "iloc") else None


def as_real(values: object, who: str) -> np.ndarray:
    """The values as a real numeric array of any shape; structured arrays pass through."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise ValueError(f"{who} must be a dense array, got a sparse matrix: use {who}.toarray()")
    if np.ma.is_masked(values):
        raise ValueError(
            f"{who} must hold finite numbers only, got {np.ma.count_masked(values)} masked values: drop "
            "those rows or fill the gaps first"
        )
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        raise ValueError(
            f"{who} must be an array of numbers, got rows of unequal length: pad or cut them"
        ) from None
    if array.dtype.names:
        return array
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(
            f"{who} must hold real numbers, got complex ones: give real and imaginary parts as two columns"
        )
    if kind in "USTOMmV":
        what = {"O": "Python objects", "M": "dates", "m": "time spans", "V": "raw bytes"}.get(kind, "text")
        raise ValueError(
            f"{who} must be an array of numbers, got {what}: convert it first, for example with astype(float)"
        )
    return array


def _target(y: object, n: int) -> np.ndarray:
    column: Any = y
    # A one-column frame has names only for messages; its values are what matters here.
    if hasattr(column, "to_numpy") and hasattr(column, "columns"):
        column = column.to_numpy()
    elif hasattr(column, "column_names") and hasattr(column, "__arrow_c_stream__"):
        column = np.column_stack([column.column(name).to_numpy() for name in column.column_names])
    target = as_real(column, "y")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim not in (1, 2) or 0 in target.shape:
        raise ValueError(f"y must have one number a row, or one for each output, got shape {target.shape}")
    if len(target) != n:
        raise ValueError(f"X has {n} rows but y has {len(target)} values: give both the same rows")
    if target.ndim == 2 and target.shape[1] >= n:
        raise ValueError(
            f"y has {target.shape[1]} outputs but only {n} rows: bring more rows, or transpose it"
        )
    target = np.ascontiguousarray(target, dtype=float)
    bad = ~np.isfinite(target)
    if bad.any():
        raise ValueError(
            f"y must hold finite numbers only, but {_count(bad)} NaN or infinite (first at index "
            f"{int(np.argmax(bad.reshape(n, -1).any(axis=1)))}): drop those rows first"
        )
    if target.ndim == 2:
        flat = np.flatnonzero(~varying(target.min(axis=0), target.max(axis=0)))
        if flat.size:
            raise ValueError(f"{_called(flat, None)} of y is constant: leave it out, it shows no unit")
    return target


def _count(bad: np.ndarray) -> str:
    count = int(bad.sum())
    return f"{count} of {bad.size} values {'is' if count == 1 else 'are'}"


def _must_be_finite(X: np.ndarray, names: list[str] | None) -> None:
    # The sum is finite whenever every entry is, barring overflow: one pass in the usual case.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):
            return
    bad = ~np.isfinite(X)
    if not bad.any():
        return
    columns = np.flatnonzero(bad.any(axis=0))
    rows = int(bad.any(axis=1).sum())
    raise ValueError(
        f"X must hold finite numbers only, but {rows} of {len(X)} rows hold NaN or infinity in "
        f"{_called(columns, names)}: drop those rows or fill the gaps first"
    )


def _must_vary(X: np.ndarray, names: list[str] | None) -> None:
    if len(X) == 1:
        raise ValueError("X must have at least 2 rows, got 1: nothing can be learnt from a single sample")
    low, high = X.min(axis=0), X.max(axis=0)
    flat = np.flatnonzero(~varying(low, high))
    if flat.size:
        are, first, them = ("is", "its value is", "it") if flat.size == 1 else ("are", "the first is", "them")
        raise ValueError(
            f"{_called(flat, names)} of X {are} constant ({first} {low[flat[0]]:g}): leave {them} out, and "
            "use bias=True for constant terms"
        )


def _called(columns: np.ndarray, names: list[str] | None) -> str:
    plural = "column" if len(columns) == 1 else "columns"
    shown = [str(j) if names is None else f"{names[j]!r} (index {j})" for j in columns[:5]]
    return f"{plural} {', '.join(shown)}" + ("" if len(columns) <= 5 else f" and {len(columns) - 5} more")
