"""Contents of files, folders, tables and Dask collections, in parts that a worker reads by itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data import files
from onehidden.data.arrays import as_arrow, is_frame, to_arrow
from onehidden.data.columns import ColumnKind, kind_of, numbers
from onehidden.data.faults import must_be_plausible, unreadable
from onehidden.data.files import Dialect, dialect_of, unpacked
from onehidden.data.table import Request, Targets, shorten

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import dataset

PART_ROWS = 1 << 18
Batches = Iterator["pa.RecordBatch"]
Reader = Callable[[list[str], int], Batches]  # (columns, rows of a batch at most)


@dataclass(frozen=True)
class FilePart:
    """Some rows of a file: ``read`` opens it anew."""

    path: str
    kind: str
    read: Reader

    def tables(self, columns: list[str], rows: int) -> Batches:
        """The rows in order, a bounded number at a time, with these columns."""
        with unreadable(self.path, self.kind):
            yield from self.read(columns, rows)


@dataclass(frozen=True, eq=False)
class TablePart:
    """Some rows in memory; only these travel to a worker."""

    table: pa.Table

    def tables(self, columns: list[str], rows: int) -> Batches:
        yield from self.table.select(columns).to_batches(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return TablePart, (self.table.take(np.arange(len(self.table))),)  # a slice would bring the whole


@dataclass(frozen=True, eq=False)
class DelayedPart:
    """One partition of a Dask collection, computed where it is read."""

    partition: Any  # dask.delayed.Delayed, or the computed block inside a worker
    names: tuple[str, ...]

    def tables(self, columns: list[str], rows: int) -> Batches:
        import pyarrow as pa

        block: Any = self.partition
        if hasattr(block, "compute"):
            block = block.compute(scheduler="synchronous")
        chosen = [self.names.index(name) for name in columns]
        if is_frame(block):  # by place: names need not be text there
            table = to_arrow(block.iloc[:, chosen], "the Dask collection")
        else:
            matrix = np.asarray(block, dtype=float)
            table = pa.table([np.ascontiguousarray(matrix[:, j]) for j in chosen], names=columns)
        yield from table.to_batches(rows)


Part = FilePart | TablePart | DelayedPart  # what one worker reads by itself; it must pickle


@dataclass(frozen=True)
class Contents:
    """What a source holds; ``where`` is what messages call it."""

    parts: Sequence[Part]
    schema: pa.Schema
    rows: int
    fingerprint: Callable[[], str]
    targets: Targets
    where: str
    notes: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, ColumnKind]:
        """Kinds of the columns, by name."""
        return {one.name: kind_of(one.type) for one in self.schema}


def contents(source: object, targets: Targets, request: Request, stream: bool) -> Contents:
    """What a source holds; ``stream`` where it is not to be held whole."""
    if isinstance(source, Path):
        if stream and source.is_dir():
            return _folder(source, targets)
        return _file(source, targets, request, stream)
    return _dask(source, targets) if is_dask(source) else _table(source, targets, "the table")


def _spans(total: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, stop) pairs of at most ``size`` that cover ``total``."""
    return ((at, min(at + size, total)) for at in range(0, total, max(size, 1)))


def _folder(path: Path, targets: Targets) -> Contents:
    """Every Parquet file below a folder, in the order of their names."""
    found = [
        file
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in (".parquet", ".pq") and file.is_file()
        and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
    ]  # fmt: skip
    if not found:
        raise ValueError(
            f"{path} is a folder without Parquet files: give a file, or a folder of .parquet files"
        )
    each = [_scanned(file, "Parquet", targets) for file in found]
    first = each[0]
    for file, other in zip(found, each, strict=True):
        if other.kinds != first.kinds:
            raise ValueError(
                f"the files of {path} differ in their columns: "
                f"{_difference(found[0].name, first.kinds, file.name, other.kinds)}"
            )
    parts, rows = [part for one in each for part in one.parts], sum(one.rows for one in each)
    stamps = "|".join(one.fingerprint() for one in each)
    return Contents(parts, first.schema, rows, lambda: stamps, targets, str(path))


def _difference(one: str, kinds: dict[str, ColumnKind], other: str, here: dict[str, ColumnKind]) -> str:
    lacking, extra = [n for n in kinds if n not in here], [n for n in here if n not in kinds]
    if lacking:
        return f"{other} lacks {shorten(lacking)}, which {one} has; give all files the same columns"
    if extra:
        return f"{other} has {shorten(extra)}, which {one} lacks; give all files the same columns"
    name = next(n for n in kinds if kinds[n] != here[n])
    held = sorted(((kinds[name], one), (here[name], other)), key=lambda pair: pair[0].value != "numbers")
    what = " and ".join(f"{kind.value} in {file}" for kind, file in held)
    return f"{name!r} holds {what}; give it one type in all files"


def _file(path: Path, targets: Targets, request: Request, stream: bool) -> Contents:
    kind = files.format_of(path)
    with unreadable(path, kind):
        if (
            kind == "Parquet"
            or (kind == "Feather" and files.first_bytes(path).startswith(b"ARROW1"))
            or (kind == "CSV" and stream)
        ):
            return _scanned(path, kind, targets, request)
        notes: tuple[str, ...] = ()
        held: Any
        if kind == "CSV":
            held, notes = files.read_text(path, request)
        elif kind == "an Excel sheet":
            held, notes = files.read_sheet(path, request)
        else:
            held = {"Feather": files.read_stream, "npz": files.read_npz, "npy": files.read_npy}[kind](path)
    if stream and isinstance(held, np.ndarray) and held.ndim == 2 and held.dtype.kind in "biuf":
        reads = [partial(_npy_batches, str(path), *span) for span in _spans(len(held), PART_ROWS)]
        return _of_file(path, kind, reads, _matrix_schema(held.shape[1]), len(held), targets)
    return _table(held, targets, str(path), notes)


def _of_file(
    path: Path, kind: str, reads: Sequence[Reader], schema: pa.Schema, rows: int, targets: Targets,
    notes: tuple[str, ...] = (),
) -> Contents:  # fmt: skip
    state = path.stat()
    stamp = f"{path.name}:{state.st_size}:{state.st_mtime_ns}"
    parts = [FilePart(str(path), kind, read) for read in reads]
    return Contents(parts, schema, rows, lambda: stamp, targets, str(path), notes)


def _matrix_schema(d: int, outputs: Sequence[str] = ()) -> pa.Schema:
    """Columns x0, x1, … and outputs, all numbers."""
    import pyarrow as pa

    return pa.schema([(name, pa.float64()) for name in (*(f"x{j}" for j in range(d)), *outputs)])


def _scanned(path: Path, kind: str, targets: Targets, request: Request | None = None) -> Contents:
    """A file that Arrow reads a bounded number of rows at a time; of Parquet a part is some row groups."""
    import pyarrow as pa

    dialect, notes = (None, ()) if kind != "CSV" else dialect_of(path, request or Request())
    with unreadable(path, kind):
        opened = _fragment(str(path), kind, dialect)
        schema, rows = opened.physical_schema, opened.count_rows()
        groups = opened.num_row_groups if kind == "Parquet" else 1
    must_be_plausible(path, 8 * rows * len(schema))  # strings count as pointers
    types = schema
    if kind == "CSV":
        files.must_be_names(path, schema.names)
        # Types of the whole file: a column of numbers that has text later is refused.
        kept = {ColumnKind.TEXT: pa.string()}
        types = pa.schema(
            one if pa.types.is_boolean(one.type) else one.with_type(kept.get(kind_of(one.type), pa.float64()))
            for one in schema
        )
    each = max(1, PART_ROWS * groups // max(rows, 1))
    spans = [range(*span) for span in _spans(groups, each)]
    reads = [partial(_scan, str(path), kind, dialect, types, span) for span in spans]
    return _of_file(path, kind, reads, schema, rows, targets, notes)


def _fragment(path: str, kind: str, dialect: Dialect | None, block: int = 1 << 20) -> dataset.Fragment:
    """The file as Arrow scans it; a CSV file is read in blocks of so many bytes."""
    from pyarrow import dataset, fs

    if kind == "Parquet":  # buffered by the page: a row group may be a gigabyte
        options = dataset.ParquetFragmentScanOptions(
            use_buffered_stream=True, buffer_size=1 << 20, pre_buffer=False
        )
        form = dataset.ParquetFileFormat(default_fragment_scan_options=options)
    else:
        form = dataset.CsvFileFormat(**dialect.options(block, False)) if dialect else dataset.IpcFileFormat()
    return form.make_fragment(path, fs.LocalFileSystem(use_mmap=kind == "Feather"))


def _scan(
    path: str, kind: str, dialect: Dialect | None, schema: pa.Schema, groups: range,
    columns: list[str], rows: int,
) -> Batches:  # fmt: skip
    """The rows of a file, of Parquet those of some row groups."""
    block = int(np.clip(12 * rows * (len(columns) + 1), 1 << 16, 1 << 25))  # 12 characters a number
    fragment = _fragment(path, kind, dialect, block)
    if kind == "Parquet":
        fragment = fragment.subset(row_group_ids=list(groups))
    for batch in fragment.to_batches(
        schema, columns=columns, batch_size=rows, batch_readahead=1, fragment_readahead=1, use_threads=False
    ):
        batch.validate()
        yield batch


def _npy_batches(path: str, start: int, stop: int, columns: list[str], rows: int) -> Batches:
    """Consecutive rows of a mapped npy file."""
    import pyarrow as pa

    matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    chosen = [int(name.removeprefix("x")) for name in columns]
    for first, last in _spans(stop - start, rows):
        block = np.array(matrix[start + first : start + last], dtype=float).T  # one read of whole rows
        arrays = [pa.array(np.ascontiguousarray(block[j])) for j in chosen]
        yield pa.RecordBatch.from_arrays(arrays, names=columns)


def _table(source: object, targets: Targets, where: str, notes: tuple[str, ...] = ()) -> Contents:
    """Columns in memory, in slices without another copy."""
    table, targets = as_arrow(source, targets, where)

    def fingerprint() -> str:
        digest = hashlib.sha256()
        for one, column in zip(table.schema, table.columns, strict=True):
            number = kind_of(one.type) is ColumnKind.NUMBER
            held = numbers(column, one.name, where) if number else np.array(column.to_pylist(), dtype=str)
            digest.update(np.ascontiguousarray(held).tobytes())
        return digest.hexdigest()

    parts = [TablePart(table.slice(start, stop - start)) for start, stop in _spans(table.num_rows, PART_ROWS)]
    return Contents(parts, table.schema, table.num_rows, fingerprint, targets, where, notes)


def is_dask(source: object) -> bool:
    """Whether the source is a Dask DataFrame or Array, or a pair of arrays with one."""
    if isinstance(source, tuple):
        return any(is_dask(one) for one in source)
    return type(source).__module__.split(".")[0] == "dask" and hasattr(source, "__dask_graph__")


def _dask(source: Any, targets: Targets) -> Contents:
    """A Dask DataFrame, Array, or pair of arrays, a part each partition."""
    import dask.array as da
    import pyarrow as pa
    from dask.base import tokenize
    from dask.delayed import delayed

    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        known = list(source.columns)
        targets = tuple(str(name) if name in known else name for name in targets)  # a name before a place
        kinds = {**dict.fromkeys("biuf", pa.float64()), **dict.fromkeys("mM", pa.timestamp("ns"))}
        types = [kinds.get(dtype.kind, pa.string()) for dtype in source.dtypes]
        schema = pa.schema(list(zip(map(str, known), types, strict=True)))
        blocks, rows, token = list(source.to_delayed()), len(source), tokenize(source)
    else:
        X, y = source if isinstance(source, tuple) else (source, None)
        X = X if hasattr(X, "__dask_graph__") else da.from_array(np.asarray(X))
        if X.ndim != 2:
            raise ValueError(f"the Dask array must be a matrix of n rows and d columns, got shape {X.shape}")
        if np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        X = X.rechunk((X.chunks[0], -1))
        outputs: tuple[str, ...] = ()
        blocks = list(X.to_delayed().ravel())
        if y is not None:
            y = y if hasattr(y, "__dask_graph__") else da.from_array(np.asarray(y))
            if y.shape[:1] != X.shape[:1] or y.ndim > 2:
                raise ValueError(
                    f"X has {X.shape[0]} rows but y has shape {y.shape}: give both the same rows"
                )
            y = y.reshape(-1, 1) if y.ndim == 1 else y
            q = y.shape[1]
            if len(targets) not in (0, q):
                raise ValueError(
                    f"target names {len(targets)} columns for the {q} of y: give one name a column"
                )
            outputs = tuple(map(str, targets)) or (("y",) if q == 1 else tuple(f"y{j}" for j in range(q)))
            targets, others = outputs, y.rechunk((X.chunks[0], -1)).to_delayed().ravel()
            blocks = [delayed(np.column_stack)([*pair]) for pair in zip(blocks, others, strict=True)]
        schema, rows, token = _matrix_schema(X.shape[1], outputs), int(X.shape[0]), tokenize(X, y)
    parts = [DelayedPart(block, tuple(schema.names)) for block in blocks]
    return Contents(parts, schema, rows, lambda: token, targets, "the Dask collection")


def too_large(path: Path, share: float = 0.25) -> bool:
    """Whether the table of a file would fill more than this share of the machine's memory."""
    try:
        room = share * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return False
    size = path.stat().st_size
    if files.format_of(path) == "Parquet":
        found = _scanned(path, "Parquet", ())
        return 8 * found.rows * len(found.schema) > room
    if path.suffix.lower() == ".gz" and size > room / 200:
        with unreadable(path, "CSV"):
            size = sum(map(len, unpacked(path)))
    return size > room
