"""Sources from folders, large files, memory maps and Dask collections; each fault one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.columns import constant_note, must_be_numeric, must_have_features, text_columns
from onehidden.data.faults import unreadable
from onehidden.data.features import Kind, choose, kind_of, learnt_levels, must_be_choosable
from onehidden.data.parts import (
    PART_ROWS,
    ArrayPart,
    CsvPart,
    DelayedPart,
    FeatherPart,
    ParquetPart,
    slices,
)
from onehidden.data.request import Dialect, Request
from onehidden.data.size import COMFORTABLE, RATIO, memory, must_be_plausible
from onehidden.data.source import BATCH_ROWS, Part, Selection, Source
from onehidden.data.table import shorten
from onehidden.data.varying import varying

if TYPE_CHECKING:
    import pyarrow as pa
    from dask.delayed import Delayed

    from onehidden.data.opening import Target


@dataclass(frozen=True)
class _Found:
    """What opening a container yields: parts, names, kinds of the columns, rows, a fingerprint, notes."""

    parts: Sequence[Part]
    names: list[str]
    kinds: list[Kind]
    rows: int
    mark: str
    notes: tuple[str, ...] = ()


def open_source(source: object, target: Target, request: Request) -> Source:
    """A ``Source`` over a path, a Dask collection or a table in memory."""
    if isinstance(source, Path):
        where = str(source)
        found, target = (
            (_folder(source), target) if source.is_dir() else _file(source, target, request.dialect)
        )
    elif is_dask(source):
        where, (found, target) = "the Dask collection", _dask(source, target)
    else:
        where, (found, target) = "the table", _table(source, target)
    if isinstance(target, (int, np.integer)) and not isinstance(target, bool):
        if not -len(found.names) <= target < len(found.names):
            raise ValueError(f"{where} has no column {target}: it has {len(found.names)}, counted from 0")
        target = found.names[int(target)]
    selection, notes = _select(found, replace(request, target=None if target is None else str(target)), where)
    if found.rows == 0:
        raise ValueError(f"{where} has column names but no rows: give a table with data in it")
    if request.constant == "drop":
        flat = _constant_features(found.parts, selection)
        if flat:
            notes = (*notes, constant_note(flat))
            gone = set(flat)
            left = tuple(one for one in selection.features if one.name not in gone)
            selection = replace(selection, features=left)
            must_have_features(left, where)
    mark = hashlib.sha256(f"{found.mark}|{selection}".encode()).hexdigest()
    parts: tuple[Part, ...] = tuple(found.parts)
    return Source(parts, selection, found.rows, mark, notes)


def _select(found: _Found, request: Request, where: str) -> tuple[Selection, tuple[str, ...]]:
    kinds = dict(zip(found.names, found.kinds, strict=True))
    given = request.one_hot if isinstance(request.one_hot, Mapping) else {}
    must_be_choosable(found.names, request, where, [f"{c}={level}" for c in given for level in given[c][1:]])
    text = text_columns(found.names, kinds, request) if request.one_hot is True else []
    tables = (table for part in found.parts for table in part.tables(text, BATCH_ROWS))
    levels = learnt_levels(tables, text, where) if request.one_hot is True else given
    chosen = choose(found.names, kinds, request, levels)
    others = [name for name in (request.target, request.weight) if name is not None]
    must_be_numeric(chosen.features, others, kinds, where, lambda name: _first(found.parts, name))
    selection = Selection(
        chosen.features, request.target, request.weight, request.nulls, where, tuple(chosen.levels.items())
    )
    return selection, (*found.notes, *chosen.notes())


def _first(parts: Sequence[Part], name: str) -> pa.ChunkedArray | None:
    """Some values of a column, to show in a message; None where reading them fails."""
    import pyarrow as pa

    try:
        return pa.chunked_array([next(iter(parts[0].tables([name], 1000))).column(name)])
    except (ValueError, StopIteration, IndexError, TypeError):
        return None


def _constant_features(parts: Sequence[Part], selection: Selection) -> list[str]:
    """Features that never vary: those that do not in the first rows are followed until they do."""
    left, first = list(selection.features), None
    for number, part in enumerate(parts):
        here = replace(selection, features=tuple(left), target=None, weight=None)
        for batch in here.batches(number, part, BATCH_ROWS, counting=True):
            if not len(batch):
                continue
            names = [one.name for one in here.features]
            held = {name: batch.X[:, j] for j, name in enumerate(names)}
            first = {name: float(column[0]) for name, column in held.items()} if first is None else first
            ends = [
                (min(first[n.name], held[n.name].min()), max(first[n.name], held[n.name].max())) for n in left
            ]
            low, high = (np.array(end) for end in zip(*ends, strict=True))
            left = [one for one, varies in zip(left, varying(low, high), strict=True) if not varies]
            if not left:
                return []
    return [one.name for one in left]


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
    return _Found(parts, first[1].names, first[1].kinds, rows, "|".join(mark))


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


def _parquet(path: Path) -> _Found:
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
    return _Found(parts, names, kinds, sum(sizes), _stamp(path))


def _feather(path: Path) -> _Found:
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
    return _Found(parts, names, kinds, sum(sizes), _stamp(path))


def _csv(path: Path, dialect: Dialect) -> _Found:
    from pyarrow import csv

    from onehidden.data.files import must_be_names
    from onehidden.data.written import written

    with unreadable(str(path), "CSV"):
        how, notes = written(path, dialect)
        with csv.open_csv(path, how.read(), how.parse(), how.convert()) as reader:
            names, kinds = _of_schema(reader.schema)
            booleans = tuple(field.name for field in reader.schema if str(field.type) == "bool")
        must_be_names(path, names)
        # One pass over the first column counts the rows: a line may hold a quoted line break.
        count = how.convert(include_columns=names[:1])
        with csv.open_csv(path, how.read(1 << 24), how.parse(), count) as reader:
            rows = sum(batch.num_rows for batch in reader)
    texts = tuple(name for name, kind in zip(names, kinds, strict=True) if kind is Kind.TEXT)
    return _Found([CsvPart(str(path), how, booleans, texts)], names, kinds, rows, _stamp(path), notes)


def _file(path: Path, target: Target, dialect: Dialect) -> tuple[_Found, Target]:
    from onehidden.data import files

    kind = files.kind_of(path)
    if kind == "parquet":
        return _parquet(path), target
    if kind == "csv":
        return _csv(path, dialect), target
    if kind == "feather" and files.has_footer(path):
        return _feather(path), target
    held, notes = files.read(path, dialect)
    if isinstance(held, np.ndarray) and held.ndim == 2 and held.dtype.kind in "biuf":
        names = tuple(f"x{j}" for j in range(held.shape[1]))
        parts = [ArrayPart(names, a, b, path=str(path)) for a, b in slices(len(held), PART_ROWS)]
        return _Found(parts, list(names), [Kind.NUMBER] * len(names), len(held), _stamp(path)), target
    found, target = _table(held, target)
    return replace(found, notes=notes), target


def _table(source: object, target: Target) -> tuple[_Found, Target]:
    """Columns in memory, streamed in slices without another copy of the whole."""
    from onehidden.data.opening import as_arrow

    table, target = as_arrow(source, target, "the table")
    names, kinds = _of_schema(table.schema)
    columns = tuple(_plain(table.column(j), kind) for j, kind in enumerate(kinds))
    rows = table.num_rows
    parts = [ArrayPart(tuple(names), a, b, columns=columns) for a, b in slices(rows, PART_ROWS)]
    digest = hashlib.sha256()
    for column in columns:
        held = column if isinstance(column, np.ndarray) else np.array(column.to_pylist(), dtype=str)
        digest.update(np.ascontiguousarray(held).tobytes())
    return _Found(parts, names, kinds, rows, digest.hexdigest()), target


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


def _dask(source: object, target: Target) -> tuple[_Found, Target]:
    import dask.array as da
    from dask.base import tokenize

    held: Any = source
    if hasattr(held, "to_delayed") and hasattr(held, "columns"):
        names = [str(name) for name in held.columns]
        target = str(target) if target in list(held.columns) else target  # a name before a place
        kinds = [_KINDS.get(dtype.kind, Kind.TEXT) for dtype in held.dtypes]
        rows = len(held)
        parts = [DelayedPart(part, tuple(names)) for part in held.to_delayed()]
        return _Found(parts, names, kinds, rows, tokenize(held)), target
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
    return _Found(parts, names, [Kind.NUMBER] * len(names), int(X.shape[0]), tokenize(X, y)), target


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
