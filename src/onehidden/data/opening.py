"""What holds the samples: ``open`` makes one Table or one streamed Source of it, ``check_arrays`` arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onehidden.data.arrays import as_real, is_frame, must_be_aligned, placed, to_arrow, varying
from onehidden.data.columns import GAPS, ColumnKind, constant_note, flat_targets, gap_of
from onehidden.data.faults import must_be_none
from onehidden.data.parts import Contents, contents, is_dask, too_large
from onehidden.data.source import Source, no_feature_varies, open_source, select
from onehidden.data.table import EXTRAS, Name, OneHot, Request, Table, left_out, named_targets


def open(
    source: object,
    target: Name | Sequence[Name] | None = None,
    columns: Sequence[str] | None = None,
    *,
    stream: bool | None = None,
    weight: str | None = None,
    offset: str | None = None,
    trials: str | None = None,
    nulls: str = "refuse",
    drop: Sequence[str] = (),
    one_hot: OneHot = False,
    constant: str = "keep",
    encoding: str | None = None,
    decimal: str = ".",
    na: Sequence[str] = (),
) -> Table | Source:
    """Read samples from a file, a folder, a table, arrays or a Dask collection.

    Parameters
    ----------
    source : path, data frame, array_like, mapping, tuple or Dask collection
        Path of a CSV, Parquet, Feather, Excel, npz or npy file, or of a folder of Parquet files; a pandas,
        polars or pyarrow table; an array; a dict of columns; a pair (X, y); a Dask DataFrame or Array; a
        ``Table`` or ``Source``. An npz file or a dict holds either one column a name, or the arrays ``X``
        (n, d) and ``y`` (n,) or (n, q), with optional ``feature_names``.
    target : str, int or list, optional
        Name of the target column (for arrays without names also its index), or a list of several, of which
        ``y`` has one column each; the ``y`` of an npz file or of a pair is taken without it.
    columns : list of str, optional
        Feature columns to use, in this order; all that have no other role if not given.
    stream : bool, optional
        True never holds the data whole; False always does; by default folders, Dask collections and files
        that would fill more than a quarter of the memory are streamed.
    weight : str, optional
        Column of weights, from 0 on.
    offset, trials : str, optional
        Columns for families of ``recover``: what is added to the linear predictor, and how many trials a row
        counts.
    nulls : {"refuse", "drop"}
        What to do about rows with missing or infinite values.
    drop : list of str
        Columns that are no features.
    one_hot : bool or mapping
        True makes of each text column one indicator a category, but for the most frequent, the base; a dict
        names the categories of each such column, the base first (``levels`` of an earlier opening).
    constant : {"keep", "drop"}
        What to do about features that do not vary.
    encoding : str, optional
        Of a CSV file; UTF-8 without it, or cp1252 where the bytes are no UTF-8.
    decimal : {".", ","}
        The mark before decimals in a CSV file.
    na : list of str
        Texts of a CSV file or a sheet that mean a missing value, as "NA", "n/a", "?", "-" and such.

    Returns
    -------
    Table or Source
        Finite C-ordered float64 values; or, where streamed, a source that is read batch by batch.

    Raises
    ------
    ValueError
        One sentence, where the source cannot be used as it is.

    Examples
    --------
    >>> import onehidden as oh
    >>> table = oh.data.open({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [5.0, 6.0]}, target="y")
    >>> table.feature_names, table.y.tolist()
    (('a', 'b'), [5.0, 6.0])
    """
    if stream not in (None, True, False):
        raise ValueError(f"stream must be True, False or None, got {stream!r}")
    targets = named_targets(target)
    request = Request(
        tuple(map(str, targets)), columns, weight, offset, trials, nulls, drop, one_hot, constant, encoding,
        decimal, na,
    )  # fmt: skip
    if isinstance(source, Table | Source) and request == Request():
        if isinstance(source, Source) or not stream:
            return source
    if isinstance(source, Source):
        raise ValueError("a Source has chosen its columns already: open the data themselves once more")
    if isinstance(source, Table):
        targets = targets or source.target_names
        kept = {role: getattr(request, role) or getattr(source, f"{role}_name") for role in EXTRAS}
        request = replace(request, **kept)
        source = _columns_of(source)
    if isinstance(source, str | os.PathLike):
        source = Path(source)
    if is_dask(source) and stream is False:
        raise ValueError("a Dask collection is streamed: call its compute() first to hold it whole")
    large = isinstance(source, Path) and (source.is_dir() or (source.is_file() and too_large(source)))
    streamed = bool(is_dask(source) or large) if stream is None else stream
    found = contents(source, targets, request, streamed)
    targets = placed(found.targets, found.schema.names, found.where) if streamed else found.targets
    request = replace(request, targets=tuple(map(str, targets)))
    return open_source(found, request) if streamed else _table(found, request)


def _columns_of(table: Table) -> dict[str, Any]:
    """A Table as named columns again, to choose among them anew."""
    named: dict[str, Any] = {name: table.X[:, j] for j, name in enumerate(table.feature_names)}
    if table.y is not None:
        named |= zip(table.target_names, table.y.reshape(table.n_rows, -1).T, strict=True)
    extras = {getattr(table, f"{role}_name"): getattr(table, role) for role in EXTRAS}
    return named | {name: values for name, values in extras.items() if values is not None}


def _table(found: Contents, request: Request) -> Table:
    """The whole of a source as numbers; each fault is one sentence."""
    import pyarrow as pa

    where = found.where
    selection, notes, problems = select(found, request)
    columns = selection.columns
    table = pa.Table.from_batches([b for part in found.parts for b in part.tables(columns, found.rows)])
    number = {name for name, kind in found.kinds.items() if kind is ColumnKind.NUMBER}
    features = tuple(one for one in selection.features if one.level is not None or one.column in number)
    X = replace(selection, features=features).inputs(table)
    held = selection.held(table, [name for name in selection.others if name in number])
    faults: dict[str, str] = {}
    for name, values in [*zip((one.column for one in features), X.T, strict=True), *held.items()]:
        gap = None if name in faults else gap_of(values, name, table.column(name).null_count == len(table))
        faults |= {} if gap is None else {name: gap}
    good = np.all([np.isfinite(X).all(axis=1), *map(np.isfinite, held.values())], axis=0)
    gaps = list(faults.values())
    if faults and not good.any():
        emptiest = features[int(np.argmax((~np.isfinite(X)).sum(axis=0)))].column
        problems.append(
            f"{where} has no row without missing or infinite values: {', '.join(gaps[:5])}; leave out a "
            f"column that is mostly empty with {left_out([emptiest])}"
        )
    elif faults and request.nulls == "refuse":
        more = f"; {len(gaps) - 5} more columns too" if len(gaps) > 5 else ""
        problems.append(f"{where} must hold finite numbers only, but {', '.join(gaps[:5])}{more}: {GAPS}")
    if request.weight in held and np.any(held[request.weight] < 0):
        problems.append(f"{where} has negative weights in column {request.weight!r}: give numbers from 0 on")
    must_be_none(problems)
    kept = None
    if faults:
        X, held, kept = X[good], {name: values[good] for name, values in held.items()}, np.flatnonzero(good)
        notes += (f"{found.rows - len(kept)} of {found.rows} rows with gaps were left out",)
    names = selection.names
    if request.constant == "drop" and (flat := [names[j] for j in _flat(X)]):
        notes += (constant_note(flat),)
        X = np.ascontiguousarray(X[:, [name not in flat for name in names]])
        names = tuple(name for name in names if name not in flat)
        if not names:
            raise ValueError(no_feature_varies(where))
    y, extras = selection.together(held)
    if y is not None and y.ndim == 2:
        n, q = y.shape
        if q >= n:
            raise ValueError(f"{where} has {n} rows for {q} targets: bring more rows, or name fewer targets")
        must_be_none(flat_targets(y, selection.others))
    for array in (X, y, *extras.values()):
        if array is not None:
            array.setflags(write=False)
    named: dict[str, Any] = {f"{role}_name": name for role, name in request.extras.items()}
    return Table(
        X, y, names, request.targets, levels=selection.levels, notes=notes, row=kept,
        n_read=found.rows, **extras, **named,
    )  # fmt: skip


def check_arrays(
    X: object, y: object = None, feature_names: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check inputs and target, and return them as arrays.

    Parameters
    ----------
    X : array_like of shape (n, d)
        An array, or a pandas, polars or pyarrow table.
    y : array_like of shape (n,), (n, 1) or (n, q), optional
        Target, or several outputs.
    feature_names : sequence of str, optional
        Names for messages; those of a table are found, columns are numbered otherwise.

    Returns
    -------
    tuple of ndarray
        X as a finite C-ordered (n, d) float64 matrix; y as a finite (n,) vector or (n, q) matrix, or None.

    Raises
    ------
    ValueError
        One sentence: wrong or mismatched shapes, NaN or infinity, complex numbers, text, Python objects,
        sparse matrices, constant columns, pandas objects whose indices differ.
    """
    must_be_aligned(X, y)
    if is_frame(X):
        table = open(X, stream=False)
        assert isinstance(table, Table)
        X, feature_names = table.X, feature_names or table.feature_names
    matrix = as_real(X, "X")
    if matrix.ndim != 2:
        cure = "use X.reshape(-1, 1) for a single feature" if matrix.ndim == 1 else "flatten it"
        raise ValueError(f"X must be a matrix of n rows and d columns, got shape {matrix.shape}: {cure}")
    n, d = matrix.shape
    if n == 0 or d == 0:
        raise ValueError(
            f"X must have rows and columns, got shape {matrix.shape}: give a table with data in it"
        )
    matrix = np.ascontiguousarray(matrix, dtype=float)
    names = None if feature_names is None else list(map(str, feature_names))
    bad = ~np.isfinite(matrix)
    if bad.any():
        raise ValueError(
            f"X must hold finite numbers only, but {int(bad.any(axis=1).sum())} of {n} rows hold NaN or "
            f"infinity in {_called(np.flatnonzero(bad.any(axis=0)), names)}: drop those rows or fill the "
            "gaps first"
        )
    target = None if y is None else _target(y, n)
    if n == 1:
        raise ValueError("X must have at least 2 rows, got 1: nothing can be learnt from a single sample")
    flat = _flat(matrix)
    if flat.size:
        are, first, them = ("is", "its value is", "it") if flat.size == 1 else ("are", "the first is", "them")
        value = matrix[:, flat[0]].min()
        raise ValueError(
            f"{_called(flat, names)} of X {are} constant ({first} {value:g}): leave {them} out, and "
            "use bias=True for constant terms"
        )
    return matrix, target


def _target(y: Any, n: int) -> np.ndarray:
    """The target as (n,) or, of several outputs, (n, q) finite numbers."""
    if is_frame(y):
        y = np.column_stack([np.asarray(column) for column in to_arrow(y, "y").columns])
    target = as_real(y, "y")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim not in (1, 2) or 0 in target.shape:
        raise ValueError(f"y must have one number per row, or one for each output, got shape {target.shape}")
    if len(target) != n:
        raise ValueError(f"X has {n} rows but y has {len(target)} values: give both the same rows")
    if target.ndim == 2 and target.shape[1] >= n:
        raise ValueError(
            f"y has {target.shape[1]} outputs but only {n} rows: bring more rows, or transpose it"
        )
    target = np.ascontiguousarray(target, dtype=float)
    bad = ~np.isfinite(target)
    if bad.any():
        count, first = int(bad.sum()), int(np.argmax(bad.reshape(n, -1).any(axis=1)))
        raise ValueError(
            f"y must hold finite numbers only, but {count} of {bad.size} values "
            f"{'is' if count == 1 else 'are'} NaN or infinite (first at index {first}): drop those rows first"
        )
    if target.ndim == 2 and (flat := _flat(target)).size:
        raise ValueError(f"{_called(flat, None)} of y is constant: leave it out, it shows no unit")
    return target


def _flat(values: np.ndarray) -> np.ndarray:
    """Places of the columns that do not vary."""
    return np.flatnonzero(~varying(values.min(axis=0), values.max(axis=0)))


def _called(columns: np.ndarray, names: list[str] | None) -> str:
    plural = "column" if len(columns) == 1 else "columns"
    shown = [str(j) if names is None else f"{names[j]!r} (index {j})" for j in columns[:5]]
    return f"{plural} {', '.join(shown)}" + ("" if len(columns) <= 5 else f" and {len(columns) - 5} more")
