"""Whatever is held in memory as named columns: frames, dicts, arrays, pairs of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.arrays import as_real, must_be_aligned
from onehidden.data.request import Name

if TYPE_CHECKING:
    import pyarrow as pa

Targets = tuple[Name, ...]


def as_arrow(source: object, target: Targets, where: str) -> tuple[pa.Table, Targets]:
    """Whatever is held in memory as named columns, and the names of the targets among them."""
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


def _from_mapping(source: Mapping[str, Any], target: Targets, where: str) -> tuple[pa.Table, Targets]:
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


def _from_pair(source: Mapping[str, Any], targets: Targets, where: str) -> tuple[pa.Table, Targets]:
    """The matrix X, with the target y or the arrays that ``targets`` name."""
    given = source.get("feature_names")
    names = None if given is None else np.asarray(given).ravel().tolist()
    table, targets = _from_array(source["X"], targets, where, names)
    found: list[Name] = []
    for target in targets or (("y",) if "y" in source else ()):
        if str(target) in table.column_names:
            found.append(target)
            continue
        name = str(target)
        if name not in source:
            others = [key for key in source if key not in ("X", "feature_names")]
            held = f"it holds {', '.join(map(repr, others))}" if others else "it holds only X"
            raise ValueError(f"{where} has no target array {name!r}: {held}")
        for called, column in _outputs(source[name], name, table.num_rows):
            table = table.append_column(called, column)
            found.append(called)
    return table, tuple(found)


def _outputs(y: object, name: str, n: int) -> Iterator[tuple[str, pa.Array | pa.ChunkedArray]]:
    """The columns of a target: one of (n,) or (n, 1), q of (n, q), by their own names if they have any."""
    import pyarrow as pa

    if is_frame(y):
        frame = to_arrow(y, f"target {name!r}")
        if frame.num_rows != n:
            raise ValueError(f"target {name!r} must have one row a row of X ({n}), got {frame.num_rows}")
        single = frame.num_columns == 1
        yield from ((name if single else called, frame.column(called)) for called in frame.column_names)
        return
    values = as_real(y, f"target {name!r}")
    if values.shape[:1] != (n,) or values.ndim > 2:
        raise ValueError(
            f"target {name!r} must have one value a row of X ({n}), got shape {values.shape}: "
            "give both the same rows"
        )
    columns = values.reshape(n, -1).T
    for j, column in enumerate(columns):
        called = name if len(columns) == 1 else f"{name}{j}"
        yield called, pa.array(np.ascontiguousarray(column, dtype=float))


def _from_array(
    source: object, targets: Targets, where: str, names: list[str] | None = None
) -> tuple[pa.Table, Targets]:
    import pyarrow as pa

    if is_frame(source):
        return to_arrow(source, where), targets
    array = as_real(source, where)
    if array.dtype.names:
        return _from_mapping({name: array[name] for name in array.dtype.names}, targets, where)
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
    columns = [pa.array(np.ascontiguousarray(array[:, j], dtype=float)) for j in range(n_columns)]
    named = [str(name) for name in names]
    return pa.Table.from_arrays(columns, names=named), placed(targets, named, where)


def placed(targets: Targets, names: Sequence[str], where: str) -> Targets:
    """Targets by name; places among the columns become the names there."""
    found: list[Name] = []
    for target in targets:
        if isinstance(target, int):
            if not -len(names) <= target < len(names):
                raise ValueError(f"{where} has no column {target}: it has {len(names)}, counted from 0")
            target = names[target]
        found.append(target)
    return tuple(found)
