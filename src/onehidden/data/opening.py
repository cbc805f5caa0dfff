"""data.open: whatever holds the samples, one Table or one streamed Source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack, cast, overload

from onehidden.data.columns import build
from onehidden.data.held import as_arrow
from onehidden.data.request import BESIDE, Reading, Target, named_targets, requested
from onehidden.data.source import Source
from onehidden.data.table import Table


@overload
def open(
    source: object,
    target: Target = None,
    columns: Sequence[str] | None = None,
    *,
    stream: Literal[False],
    **reading: Unpack[Reading],
) -> Table: ...


@overload
def open(
    source: object,
    target: Target = None,
    columns: Sequence[str] | None = None,
    *,
    stream: bool | None = None,
    **reading: Unpack[Reading],
) -> Table | Source: ...


def open(
    source: object,
    target: Target = None,
    columns: Sequence[str] | None = None,
    *,
    stream: bool | None = None,
    **reading: Unpack[Reading],
) -> Table | Source:
    """Read samples from a file, a folder, a table, arrays or a Dask collection.

    Parameters
    ----------
    source : path of a CSV, Parquet, Feather, npz or npy file, or of a folder of Parquet files; a pandas,
        polars or pyarrow table; a NumPy array; a dict of columns; a pair (X, y); a Dask DataFrame or Array;
        a ``Table`` or ``Source``. An npz file or a dict holds either one column a name, or the arrays
        ``X`` (n, d) and ``y`` (n,) or (n, q), with optional ``feature_names``.
    target : name of the target column (for arrays without names also its index), or a list of several, of
        which ``y`` has one column each; None for no target, except that the ``y`` of an npz file or of a pair
        is taken.
    columns : feature columns to use, in this order; all but the target and the weight when None.
    stream : True never holds the data whole; False always does; None streams folders, Dask collections and
        files that would fill more than a quarter of the memory.
    weight : name of a column of weights, from 0 on.
    offset, trials : names of columns for families of ``recover``: what is added to the linear predictor, and
        how many trials a row counts.
    nulls : "refuse" samples with missing or infinite values, or "drop" those rows.
    drop : columns that are no features.
    one_hot : True makes of each text column one indicator a category, but for the most frequent, the base; a
        dict names the categories of each such column, the base first (``levels`` of an earlier opening).
    constant : "keep" features that do not vary, or "drop" them.
    encoding : of a CSV file; UTF-8 without it, or cp1252 where the bytes are no UTF-8.
    decimal : the mark before decimals in a CSV file, "." or ",".
    na : texts of a CSV file or a sheet that stand for a missing value, beside "NA", "n/a", "?", "-" and such.

    Returns
    -------
    Table with finite C-ordered float64 values; or, where streamed, a ``Source`` that is read batch by batch.

    Raises
    ------
    ValueError with one sentence when the source cannot be used as it is.
    """
    if stream not in (None, True, False):
        raise ValueError(f"stream must be True, False or None, got {stream!r}")
    if isinstance(source, Source):
        if target is None and columns is None and not reading:
            return source
        raise ValueError("a Source has chosen its columns already: open the data themselves once more")
    if isinstance(source, Table):
        if target is None and columns is None and not reading and not stream:
            return source
        target = source.target_names or None if target is None else target
        kept = {role: getattr(source, f"{role}_name") for role in BESIDE if reading.get(role) is None}
        reading = cast(Reading, {**reading, **kept})
        source = _columns_of(source)
    if isinstance(source, str | os.PathLike):
        source = Path(source)
    targets = named_targets(target)
    request = requested(targets, columns, reading)
    if _is_streamed(source, stream):
        from onehidden.data.streaming import open_source

        return open_source(source, targets, request)
    where = str(source) if isinstance(source, Path) else "the table"
    notes: tuple[str, ...] = ()
    if isinstance(source, Path):
        from onehidden.data import files

        source, notes = files.read(source, request.dialect)
    table, targets = as_arrow(source, targets, where)
    built = build(table, replace(request, targets=tuple(map(str, targets))), where)
    return replace(built, notes=(*notes, *built.notes))


def _is_streamed(source: object, stream: bool | None) -> bool:
    from onehidden.data.containers import is_dask, too_large

    dask = is_dask(source)
    if dask and stream is False:
        raise ValueError("a Dask collection is streamed: call its compute() first to hold it whole")
    if stream is not None:
        return stream
    if isinstance(source, Path):
        return source.is_dir() or (source.is_file() and too_large(source))
    return dask


def _columns_of(table: Table) -> dict[str, Any]:
    """A Table back as named columns, to choose among them anew."""
    named: dict[str, Any] = {name: table.X[:, j] for j, name in enumerate(table.feature_names)}
    if table.y is not None:
        named |= zip(table.target_names, table.y.reshape(table.n_rows, -1).T, strict=True)
    for role in BESIDE:
        if getattr(table, role) is not None:
            named[getattr(table, f"{role}_name")] = getattr(table, role)
    return named
