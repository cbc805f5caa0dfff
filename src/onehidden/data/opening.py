"""data.open: whatever holds the samples, one Table or one streamed Source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from onehidden.data.arrays import as_real, must_be_aligned
from onehidden.data.columns import build
from onehidden.data.request import Reading, requested
from onehidden.data.source import Source
from onehidden.data.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

Target = str | int | None  # the name of a column, or its place where columns have no names


@overload
def open(
    source: object,
    target: str | int | None = None,
    columns: Sequence[str] | None = None,
    *,
    stream: Literal[False],
    **reading: Unpack[Reading],
) -> Table: ...


@overload
def open(
    source: object,
    target: str | int | None = None,
    columns: Sequence[str] | None = None,
    *,
    stream: bool | None = None,
    **reading: Unpack[Reading],
) -> Table | Source: ...


def open(
    source: object,
    target: str | int | None = None,
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
        ``X`` (n, d) and ``y`` (n,), with optional ``feature_names``.
    target : name of the target column (for arrays without names also its index); None for no target,
        except that the ``y`` of an npz file or of a pair is taken.
    columns : feature columns to use, in this order; all but the target and the weight when None.
    stream : True never holds the data whole; False always does; None streams folders, Dask collections and
        files that would fill more than a quarter of the memory.
    weight : name of a column of weights, from 0 on.
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
        target = source.target_name if target is None else target
        if reading.get("weight") is None:
            reading["weight"] = source.weight_name
        source = _columns_of(source)
    if isinstance(source, str | os.PathLike):
        source = Path(source)
    request = requested(None if target is None else str(target), columns, reading)
    if _is_streamed(source, stream):
        from onehidden.data.streaming import open_source

        return open_source(source, target, request)
    where = str(source) if isinstance(source, Path) else "the table"
    notes: tuple[str, ...] = ()
    if isinstance(source, Path):
        from onehidden.data import files

        source, notes = files.read(source, request.dialect)
    table, target = as_arrow(source, target, where)
    built = build(table, replace(request, target=None if target is None else str(target)), where)
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


def as_arrow(source: object, target: Target, where: str) -> tuple[pa.Table, Target]:
    """Whatever is held in memory as named columns, and the name of the target among them."""
    if isinstance(source, tuple) and len(source) == 2:
        must_be_aligned(*source)
        source = {"X": source[0], "y": source[1]}
    if isinstance(source, Mapping):
        return _from_mapping(source, target, where)
    if is_frame(source):
        return to_arrow(source, where), target
    return _from_array(source, target, where)


def is_frame(source: object) -> bool:
    """Whether the source is a table with column names (pandas, polars, pyarrow or alike)."""
    if hasattr(source, "collect_schema"):  # polars; asking a lazy frame for its columns is a query
        return True
    named = hasattr(source, "columns") or hasattr(source, "column_names")
    return named and (_is_pandas(source) or hasattr(source, "__arrow_c_stream__"))


def _is_pandas(source: object) -> bool:
    return type(source).__module__.split(".")[0] == "pandas"


def to_arrow(source: object, where: str = "the table") -> pa.Table:
    """A frame as an Arrow table, names as text; the index of a pandas frame is left behind."""
    import pyarrow as pa

    frame: Any = source
    if not _is_pandas(frame):
        if hasattr(frame, "collect"):  # a polars LazyFrame
            frame = frame.collect()
        return pa.table(frame)
    names = [str(name) for name in frame.columns]
    arrays = []
    for j, name in enumerate(names):
        try:
            arrays.append(pa.array(frame.iloc[:, j], from_pandas=True))
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"{where} must have numeric columns, but {name!r} mixes kinds of value: convert it with "
                "pandas.to_numeric, or list the feature columns to use"
            ) from None
    return pa.Table.from_arrays([_plain(a) for a in arrays], names=names)


def _plain(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """pa.array may return chunks for frames backed by Arrow already."""
    import pyarrow as pa

    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _columns_of(table: Table) -> dict[str, Any]:
    """A Table back as named columns, to choose among them anew."""
    named: dict[str, Any] = {name: table.X[:, j] for j, name in enumerate(table.feature_names)}
    if table.y is not None and table.target_name is not None:
        named[table.target_name] = table.y
    if table.weight is not None and table.weight_name is not None:
        named[table.weight_name] = table.weight
    return named


def _from_mapping(source: Mapping[str, Any], target: Target, where: str) -> tuple[pa.Table, Target]:
    import pyarrow as pa

    if not source:
        raise ValueError(f"{where} holds no arrays: give X (n, d) and y (n,), or one column a name")
    if "X" in source and (is_frame(source["X"]) or np.ndim(source["X"]) != 1):
        return _from_pair(source, target, where)
    arrays, lengths = {}, {}
    for name, values in source.items():
        column = arrays[str(name)] = _column(values, f"column {str(name)!r}")
        lengths[str(name)] = len(column)
    if len(set(lengths.values())) > 1:
        short, long = min(lengths, key=lambda n: lengths[n]), max(lengths, key=lambda n: lengths[n])
        raise ValueError(
            f"columns must be of one length, but {short!r} has {lengths[short]} rows and {long!r} "
            f"{lengths[long]}: give them the same rows"
        )
    if len(arrays) < len(source):
        raise ValueError(
            f"{where} has more than one column called the same once written as text: rename them"
        )
    return pa.table(arrays), target


def _column(values: object, who: str) -> pa.Array:
    """One column of a dict. Text and gaps stay as they are: ``build`` names them and counts them."""
    import pyarrow as pa

    plain = None if hasattr(values, "toarray") else np.asarray(values)
    if plain is not None and plain.dtype.kind in "UTO" and plain.ndim == 1:
        try:
            return pa.array(plain.tolist(), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"{who} must hold numbers, got Python objects of several kinds: convert it"
            ) from None
    array = as_real(values, who)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{who} must be one-dimensional, got shape {array.shape}: give one array a column, or one matrix "
            "under the name X"
        )
    return pa.array(np.ascontiguousarray(array, dtype=float))


def _from_pair(source: Mapping[str, Any], target: Target, where: str) -> tuple[pa.Table, Target]:
    """The matrix X, with the target y or the array that ``target`` names."""
    import pyarrow as pa

    X = source["X"]
    given = source.get("feature_names")
    table, target = _from_array(
        X, target, where, None if given is None else np.asarray(given).ravel().tolist()
    )
    if target is not None and str(target) in table.column_names:
        return table, target
    name = "y" if target is None else str(target)
    if name not in source:
        if target is None:
            return table, None
        others = [key for key in source if key not in ("X", "feature_names")]
        held = f"it holds {', '.join(map(repr, others))}" if others else "it holds only X"
        raise ValueError(f"{where} has no target array {name!r}: {held}")
    y = as_real(source[name], f"target {name!r}")
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (table.num_rows,):
        raise ValueError(
            f"target {name!r} must have one value a row of X ({table.num_rows}), got shape {y.shape}: "
            "give both the same rows"
        )
    return table.append_column(name, pa.array(np.ascontiguousarray(y, dtype=float))), name


def _from_array(
    source: object, target: Target, where: str, names: list[str] | None = None
) -> tuple[pa.Table, Target]:
    import pyarrow as pa

    if is_frame(source):
        return to_arrow(source, where), target
    array = as_real(source, where)
    if array.dtype.names:
        return _from_mapping({name: array[name] for name in array.dtype.names}, target, where)
    if array.ndim != 2:
        raise ValueError(
            f"{where} must be a matrix of n rows and d columns, got shape {array.shape}: "
            "use X.reshape(-1, 1) for a single feature"
        )
    n_columns = array.shape[1]
    if names is None:
        names = [f"x{j}" for j in range(n_columns)]
    if len(names) != n_columns:
        raise ValueError(
            f"{where} names {len(names)} features for {n_columns} columns: give one name a column"
        )
    if isinstance(target, int | np.integer) and not isinstance(target, bool):
        if not -n_columns <= target < n_columns:
            raise ValueError(f"{where} has no column {target}: it has {n_columns}, counted from 0")
        target = names[int(target)]
    columns = [pa.array(np.ascontiguousarray(array[:, j], dtype=float)) for j in range(n_columns)]
    return pa.Table.from_arrays(columns, names=[str(name) for name in names]), target
