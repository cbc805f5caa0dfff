"""What a folder, a file, a table or a Dask collection holds: parts, names, kinds of columns, rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.faults import unreadable
from onehidden.data.features import Kind, kind_of
from onehidden.data.parts import (
    PART_ROWS,
    ArrayPart,
    CsvPart,
    DelayedPart,
    FeatherPart,
    ParquetPart,
    slices,
)
from onehidden.data.request import Dialect
from onehidden.data.size import COMFORTABLE, RATIO, memory, must_be_plausible
from onehidden.data.source import Part
from onehidden.data.table import shorten

if TYPE_CHECKING:
    import pyarrow as pa
    from dask.delayed import Delayed

    from onehidden.data.held import Targets


@dataclass(frozen=True)
class Found:
    """What opening a container yields: parts, names, kinds of the columns, rows, a fingerprint, notes."""

    parts: Sequence[Part]
    names: list[str]
    kinds: list[Kind]
    rows: int
    mark: str
    notes: tuple[str, ...] = ()


def contents(source: object, targets: Targets, dialect: Dialect) -> tuple[Found, Targets, str]:
    """What a source holds, the names of its targets, and how it is called in messages."""
    if isinstance(source, Path):
        found, targets = (_folder(source), targets) if source.is_dir() else _file(source, targets, dialect)
        return found, targets, str(source)
    if is_dask(source):
        return *_dask(source, targets), "the Dask collection"
    return *_table(source, targets), "the table"


def _folder(path: Path) -> Found:
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
        here = dict(zip(found.names, found.kinds, strict=True))
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
    return Found(parts, first[1].names, first[1].kinds, rows, "|".join(mark))


def _difference(one: Path, kinds: dict[str, Kind], other: Path, here: dict[str, Kind]) -> str:
    lacking, extra = [n for n in kinds if n not in here], [n for n in here if n not in kinds]
    if lacking:
        return f"{other.name} lacks {shorten(lacking)}, which {one.name} has; give all files the same columns"
    if extra:
        return f"{other.name} has {shorten(extra)}, which {one.name} lacks; give all files the same columns"
    name = next(n for n in kinds if kinds[n] != here[n])
    this, that = (one, other) if kinds[name] is Kind.NUMBER else (other, one)
    held = {one: kinds[name], other: here[name]}
    what = f"{held[this].value} in {this.name} and {held[that].value} in {that.name}"
    return f"{name!r} holds {what}; give it one type in all files"


def _stamp(path: Path) -> str:
    state = path.stat()
    return f"{path.name}:{state.st_size}:{state.st_mtime_ns}"


def _of_schema(schema: pa.Schema) -> tuple[list[str], list[Kind]]:
    return list(schema.names), [kind_of(field.type) for field in schema]


def _parquet(path: Path) -> Found:
    from pyarrow import parquet

    from onehidden.data.files import unpacked_parquet

    with unreadable(str(path), "Parquet"):
        with parquet.ParquetFile(path) as file:
            names, kinds = _of_schema(file.schema_arrow)
            must_be_plausible(path, path.stat().st_size, unpacked_parquet(file.metadata))
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
    return Found(parts, names, kinds, sum(sizes), _stamp(path))


def _feather(path: Path) -> Found:
    import pyarrow as pa

    from onehidden.data.files import must_unpack_plausibly

    with unreadable(str(path), "Feather"):
        must_unpack_plausibly(path)
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        names, kinds = _of_schema(file.schema)
        sizes = [file.get_batch(i).num_rows for i in range(file.num_record_batches)]
    parts, first, held = [], 0, 0
    for i, size in enumerate(sizes):
        held += size
        if held >= PART_ROWS or i == len(sizes) - 1:
            parts.append(FeatherPart(str(path), first, i + 1))
            first, held = i + 1, 0
    return Found(parts, names, kinds, sum(sizes), _stamp(path))


def _csv(path: Path, dialect: Dialect) -> Found:
    import pyarrow as pa
    from pyarrow import csv

    from onehidden.data.files import must_be_names
    from onehidden.data.written import written

    with unreadable(str(path), "CSV"):
        how, notes = written(path, dialect)
        with csv.open_csv(path, how.read(), how.parse(), how.convert()) as reader:
            names, kinds = _of_schema(reader.schema)
            booleans = tuple(field.name for field in reader.schema if str(field.type) == "bool")
        must_be_names(path, names)
        # One pass over the first column counts the rows: a line may hold a quoted line break. As text, which
        # any cell is: whole numbers in the first block would make 1.5 in a later one an error.
        count = how.convert(include_columns=names[:1], column_types={names[0]: pa.string()})
        with csv.open_csv(path, how.read(1 << 24), how.parse(), count) as reader:
            rows = sum(batch.num_rows for batch in reader)
    texts = tuple(name for name, kind in zip(names, kinds, strict=True) if kind is Kind.TEXT)
    return Found([CsvPart(str(path), how, booleans, texts)], names, kinds, rows, _stamp(path), notes)


def _file(path: Path, targets: Targets, dialect: Dialect) -> tuple[Found, Targets]:
    from onehidden.data import files

    kind = files.kind_of(path)
    if kind == "parquet":
        return _parquet(path), targets
    if kind == "csv":
        return _csv(path, dialect), targets
    if kind == "feather" and files.has_footer(path):
        return _feather(path), targets
    held, notes = files.read(path, dialect)
    if isinstance(held, np.ndarray) and held.ndim == 2 and held.dtype.kind in "biuf":
        names = tuple(f"x{j}" for j in range(held.shape[1]))
        parts = [ArrayPart(names, a, b, path=str(path)) for a, b in slices(len(held), PART_ROWS)]
        return Found(parts, list(names), [Kind.NUMBER] * len(names), len(held), _stamp(path)), targets
    found, targets = _table(held, targets)
    return replace(found, notes=notes), targets


def _table(source: object, targets: Targets) -> tuple[Found, Targets]:
    """Columns in memory, streamed in slices without another copy of the whole."""
    from onehidden.data.held import as_arrow

    table, targets = as_arrow(source, targets, "the table")
    names, kinds = _of_schema(table.schema)
    columns = tuple(_plain(table.column(j), kind) for j, kind in enumerate(kinds))
    rows = table.num_rows
    parts = [ArrayPart(tuple(names), a, b, columns=columns) for a, b in slices(rows, PART_ROWS)]
    digest = hashlib.sha256()
    for column in columns:
        held = column if isinstance(column, np.ndarray) else np.array(column.to_pylist(), dtype=str)
        digest.update(np.ascontiguousarray(held).tobytes())
    return Found(parts, names, kinds, rows, digest.hexdigest()), targets


def _plain(column: pa.ChunkedArray, kind: Kind) -> np.ndarray | pa.ChunkedArray:
    import pyarrow as pa

    if kind is not Kind.NUMBER:
        return column
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.float64(), safe=False).to_numpy()


_KINDS = {**dict.fromkeys("biuf", Kind.NUMBER), **dict.fromkeys("mM", Kind.DATE)}  # of NumPy's kinds


def is_dask(source: object) -> bool:
    """Whether the source is a Dask DataFrame or Array, or a pair of arrays with one."""
    if isinstance(source, tuple):
        return any(is_dask(one) for one in source)
    return type(source).__module__.split(".")[0] == "dask" and hasattr(source, "__dask_graph__")


def _dask(source: object, targets: Targets) -> tuple[Found, Targets]:
    import dask.array as da
    from dask.base import tokenize

    held: Any = source
    if hasattr(held, "to_delayed") and hasattr(held, "columns"):
        names = [str(name) for name in held.columns]
        known = list(held.columns)
        targets = tuple(str(name) if name in known else name for name in targets)  # a name before a place
        kinds = [_KINDS.get(dtype.kind, Kind.TEXT) for dtype in held.dtypes]
        rows = len(held)
        parts = [DelayedPart(part, tuple(names)) for part in held.to_delayed()]
        return Found(parts, names, kinds, rows, tokenize(held)), targets
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
        if y.shape[:1] != X.shape[:1] or y.ndim > 2:
            raise ValueError(f"X has {X.shape[0]} rows but y has shape {y.shape}: give both the same rows")
        y = y.reshape(-1, 1) if y.ndim == 1 else y
        q = y.shape[1]
        if len(targets) not in (0, q):
            raise ValueError(f"target names {len(targets)} columns for the {q} of y: give one name a column")
        called = list(map(str, targets)) or (["y"] if q == 1 else [f"y{j}" for j in range(q)])
        targets, names = tuple(called), names + called
        other = y.rechunk((X.chunks[0], -1)).to_delayed().ravel()
        blocks = [_beside(a, b) for a, b in zip(blocks, other, strict=True)]
    parts = [DelayedPart(block, tuple(names)) for block in blocks]
    return Found(parts, names, [Kind.NUMBER] * len(names), int(X.shape[0]), tokenize(X, y)), targets


def _beside(left: Delayed, right: Delayed) -> Delayed:
    """Two delayed blocks as the columns of one."""
    from dask.delayed import delayed

    return delayed(np.column_stack)([left, right])


def too_large(path: Path) -> bool:
    """Whether the table of a file would fill more of the memory than is comfortable."""
    from onehidden.data.files import kind_of

    size, room = path.stat().st_size, COMFORTABLE * memory()
    kind = kind_of(path)
    if kind == "parquet":
        found = _parquet(path)
        return 8 * found.rows * len(found.names) > room
    if path.suffix.lower() == ".gz" and size > room / RATIO:
        from onehidden.data.written import blocks

        with unreadable(str(path), "CSV"):
            size = sum(len(block) for block in blocks(path))
    return size > room
