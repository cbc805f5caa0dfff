"""Sources from folders, large files, memory maps and Dask collections; each fault one sentence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.columns import choose_features, must_exist
from onehidden.data.parts import (
    PART_ROWS,
    ArrayPart,
    CsvPart,
    DelayedPart,
    FeatherPart,
    ParquetPart,
    slices,
    unreadable,
)
from onehidden.data.source import Part, Selection, Source
from onehidden.data.table import shorten

if TYPE_CHECKING:
    import pyarrow as pa
    from dask.delayed import Delayed

    from onehidden.data.opening import Target

_COMFORTABLE = 0.25  # share of the machine's memory that a table may fill before it is streamed


class _Found:
    """What opening a container yields: parts, names, kinds of the columns, rows, a fingerprint."""

    def __init__(
        self, parts: Sequence[Part], names: list[str], numeric: list[bool], rows: int, mark: str
    ) -> None:
        self.parts, self.names, self.numeric, self.rows, self.mark = parts, names, numeric, rows, mark


def open_source(
    source: object, target: Target, columns: Sequence[str] | None, weight: str | None, nulls: str
) -> Source:
    """A ``Source`` over a path, a Dask collection or a table in memory."""
    if isinstance(source, Path):
        where = str(source)
        found, target = (_folder(source), target) if source.is_dir() else _file(source, target)
    elif is_dask(source):
        where, (found, target) = "the Dask collection", _dask(source, target)
    else:
        where, (found, target) = "the table", _table(source, target)
    if isinstance(target, (int, np.integer)) and not isinstance(target, bool):
        if not -len(found.names) <= target < len(found.names):
            raise ValueError(f"{where} has no column {target}: it has {len(found.names)}, counted from 0")
        target = found.names[int(target)]
    selection = _select(found, None if target is None else str(target), columns, weight, nulls, where)
    if found.rows == 0:
        raise ValueError(f"{where} has column names but no rows: give a table with data in it")
    mark = hashlib.sha256(f"{found.mark}|{selection}".encode()).hexdigest()
    parts: tuple[Part, ...] = tuple(found.parts)
    return Source(parts, selection, found.rows, mark)


def _select(
    found: _Found,
    target: str | None,
    columns: Sequence[str] | None,
    weight: str | None,
    nulls: str,
    where: str,
) -> Selection:
    repeated = [name for name, count in Counter(found.names).items() if count > 1]
    if repeated:
        raise ValueError(f"{where} has more than one column called {shorten(repeated)}: rename them")
    for name, role in ((target, "target column"), (weight, "weight column")):
        if name is not None:
            must_exist(name, found.names, where, role)
    if weight is not None and weight == target:
        raise ValueError(f"{weight!r} cannot be both the target and the weight: name two columns")
    names = [name for name in found.names if name != weight]
    features = choose_features(names, target, columns, where)
    selection = Selection(tuple(features), target, weight, nulls, where)
    kinds = dict(zip(found.names, found.numeric, strict=True))
    text = [name for name in selection.columns if not kinds[name]]
    if text:
        raise ValueError(
            f"{where} must have numeric columns, but {shorten(text)} {'is' if len(text) == 1 else 'are'} "
            "not: encode as numbers, or list the feature columns to use"
        )
    return selection


def _folder(path: Path) -> _Found:
    """Every Parquet file below a folder, in the order of their names."""
    files = sorted(
        p
        for p in path.rglob("*")
        if p.suffix.lower() in (".parquet", ".pq")
        and p.is_file()
        and not any(part.startswith((".", "_")) for part in p.relative_to(path).parts)
    )
    if not files:
        raise ValueError(
            f"{path} is a folder without Parquet files: give a file, or a folder of .parquet files"
        )
    parts: list[Any] = []
    rows, mark, first, kinds = 0, [], None, None
    for file in files:
        found = _parquet(file)
        here = dict(zip(found.names, found.numeric, strict=True))
        if kinds is None or first is None:
            kinds, first = here, (file, found)
        elif here != kinds:
            raise ValueError(
                f"the files of {path} differ in their columns: {_difference(first[0], kinds, file, here)}"
            )
        parts += found.parts
        rows += found.rows
        mark.append(found.mark)
    assert first is not None
    return _Found(parts, first[1].names, first[1].numeric, rows, "|".join(mark))


def _difference(one: Path, kinds: dict[str, bool], other: Path, here: dict[str, bool]) -> str:
    lacking, extra = [n for n in kinds if n not in here], [n for n in here if n not in kinds]
    if lacking:
        return f"{other.name} lacks {shorten(lacking)}, which {one.name} has; give all files the same columns"
    if extra:
        return f"{other.name} has {shorten(extra)}, which {one.name} lacks; give all files the same columns"
    name = next(n for n in kinds if kinds[n] != here[n])
    which = one.name if kinds[name] else other.name
    return f"{name!r} holds numbers in {which} only; give it one type in all files"


def _stamp(path: Path) -> str:
    state = path.stat()
    return f"{path.name}:{state.st_size}:{state.st_mtime_ns}"


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)


def _of_schema(schema: pa.Schema) -> tuple[list[str], list[bool]]:
    return list(schema.names), [_is_number(field.type) for field in schema]


def _parquet(path: Path) -> _Found:
    from pyarrow import parquet

    with unreadable(str(path), "Parquet"):
        with parquet.ParquetFile(path) as file:
            names, numeric = _of_schema(file.schema_arrow)
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    parts, group, held = [], [], 0
    for i, size in enumerate(sizes):
        if group and held + size > PART_ROWS:
            parts.append(ParquetPart(str(path), tuple(group)))
            group, held = [], 0
        group.append(i)
        held += size
    if group:
        parts.append(ParquetPart(str(path), tuple(group)))
    return _Found(parts, names, numeric, sum(sizes), _stamp(path))


def _feather(path: Path) -> _Found:
    import pyarrow as pa

    with unreadable(str(path), "Feather"):
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        names, numeric = _of_schema(file.schema)
        sizes = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
    parts, first, held = [], 0, 0
    for i, size in enumerate(sizes):
        held += size
        if held >= PART_ROWS or i == len(sizes) - 1:
            parts.append(FeatherPart(str(path), first, i + 1))
            first, held = i + 1, 0
    return _Found(parts, names, numeric, sum(sizes), _stamp(path))


def _csv(path: Path) -> _Found:
    from pyarrow import csv

    from onehidden.data.files import csv_delimiter, must_be_names

    delimiter = csv_delimiter(path)
    parse = csv.ParseOptions(delimiter=delimiter)
    with unreadable(str(path), "CSV"):
        with csv.open_csv(path, parse_options=parse) as reader:
            names, numeric = _of_schema(reader.schema)
            booleans = tuple(field.name for field in reader.schema if str(field.type) == "bool")
        must_be_names(path, names)
        # One pass over the first column counts the rows: a line may hold a quoted line break.
        count = csv.ConvertOptions(include_columns=names[:1])
        with csv.open_csv(path, csv.ReadOptions(block_size=1 << 24), parse, count) as reader:
            rows = sum(batch.num_rows for batch in reader)
    return _Found([CsvPart(str(path), delimiter, booleans)], names, numeric, rows, _stamp(path))


def _npy(path: Path) -> _Found:
    from onehidden.data.files import read

    array = read(path)
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold one matrix of numbers, n rows and d columns, to be streamed")
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    parts = [ArrayPart(names, a, b, path=str(path)) for a, b in slices(len(array), PART_ROWS)]
    return _Found(parts, list(names), [True] * len(names), len(array), _stamp(path))


def _file(path: Path, target: Target) -> tuple[_Found, Target]:
    from onehidden.data.files import kind_of, read

    kind = kind_of(path)
    if kind == "npz":
        return _table(read(path), target)
    found = {"parquet": _parquet, "feather": _feather, "csv": _csv, "npy": _npy}[kind](path)
    return found, target


def _table(source: object, target: Target) -> tuple[_Found, Target]:
    """Columns in memory, streamed in slices without another copy of the whole."""
    from onehidden.data.opening import as_arrow

    table, target = as_arrow(source, target, "the table")
    names, numeric = _of_schema(table.schema)
    columns = tuple(_plain(table.column(j)) if good else np.zeros(0) for j, good in enumerate(numeric))
    rows = table.num_rows
    parts = [ArrayPart(tuple(names), a, b, columns=columns) for a, b in slices(rows, PART_ROWS)]
    digest = hashlib.sha256()
    for column in columns:
        digest.update(np.ascontiguousarray(column).tobytes())
    return _Found(parts, names, numeric, rows, digest.hexdigest()), target


def _plain(column: pa.ChunkedArray) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy()


def is_dask(source: object) -> bool:
    """Whether the source is a Dask DataFrame or Array, or a pair of arrays with one."""
    if isinstance(source, tuple):
        return any(is_dask(one) for one in source)
    return type(source).__module__.split(".")[0] == "dask" and hasattr(source, "__dask_graph__")


def _dask(source: object, target: Target) -> tuple[_Found, Target]:
    import dask.array as da
    from dask.base import tokenize

    held: Any = source
    if hasattr(held, "to_delayed") and hasattr(held, "columns"):
        names = [str(name) for name in held.columns]
        target = str(target) if target in list(held.columns) else target  # a name before a place
        numeric = [dtype.kind in "biuf" for dtype in held.dtypes]
        rows = len(held)
        parts = [DelayedPart(part, tuple(names)) for part in held.to_delayed()]
        return _Found(parts, names, numeric, rows, tokenize(held)), target
    X, y = held if isinstance(held, tuple) else (held, None)
    X = X if hasattr(X, "__dask_graph__") else da.from_array(np.asarray(X))
    if X.ndim != 2:
        raise ValueError(f"the Dask array must be a matrix of n rows and d columns, got shape {X.shape}")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    X = X.rechunk((X.chunks[0], -1))
    names = [f"x{j}" for j in range(X.shape[1])]
    blocks = list(X.to_delayed().ravel())
    if y is not None:
        y = y if hasattr(y, "__dask_graph__") else da.from_array(np.asarray(y))
        if y.shape != (X.shape[0],):
            raise ValueError(f"X has {X.shape[0]} rows but y has shape {y.shape}: give both the same rows")
        target = "y" if target is None else str(target)
        names.append(target)
        other = y.rechunk((X.chunks[0],)).to_delayed().ravel()
        blocks = [_beside(a, b) for a, b in zip(blocks, other, strict=True)]
    parts = [DelayedPart(block, tuple(names)) for block in blocks]
    return _Found(parts, names, [True] * len(names), int(X.shape[0]), tokenize(X, y)), target


def _beside(left: Delayed, right: Delayed) -> Delayed:
    """Two delayed blocks as the columns of one."""
    from dask.delayed import delayed

    return delayed(np.column_stack)([left, right])


def too_large(path: Path) -> bool:
    """Whether the table of a file would fill more of the memory than is comfortable."""
    import os

    from onehidden.data.files import kind_of

    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        size = path.stat().st_size
    except (OSError, ValueError, AttributeError):
        return False
    if size < _COMFORTABLE * memory / 8:  # no compression makes a small file a large table
        return False
    if kind_of(path) == "parquet":
        found = _parquet(path)
        size = 8 * found.rows * len(found.names)
    return size > _COMFORTABLE * memory
