"""Contents of files, folders, tables and Dask collections, in parts that a worker reads by itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data import files
from onehidden.data.arrays import as_arrow, to_arrow
from onehidden.data.columns import ColumnKind, kind_of
from onehidden.data.files import dialect_of, must_be_plausible, unreadable
from onehidden.data.table import Request, Targets, shorten

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import dataset

PART_ROWS = 1 << 18
Batches = Iterator["pa.RecordBatch"]


@dataclass(frozen=True, eq=False)
class FilePart:
    """Some rows of a file that Arrow scans, opened anew by each reader."""

    path: str
    kind: str
    fragment: dataset.Fragment
    schema: pa.Schema

    def tables(self, columns: list[str], rows: int) -> Batches:
        """The rows in order, a bounded number at a time, with these columns."""
        from pyarrow import dataset

        how: dict[str, Any] = {"batch_size": rows, "batch_readahead": 1, "fragment_readahead": 1}
        if self.kind == "Parquet":  # buffered by the page: a row group may be a gigabyte
            how["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=1 << 20, pre_buffer=False
            )
        with unreadable(self.path, self.kind):
            for batch in self.fragment.to_batches(self.schema, columns=columns, use_threads=False, **how):
                batch.validate()
                yield batch


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
    """One partition of a Dask DataFrame, computed where it is read."""

    partition: Any  # dask.delayed.Delayed, or the computed frame inside a worker
    names: tuple[str, ...]

    def tables(self, columns: list[str], rows: int) -> Batches:
        frame: Any = self.partition
        if hasattr(frame, "compute"):
            frame = frame.compute(scheduler="synchronous")
        chosen = [self.names.index(name) for name in columns]  # by place: names need not be text there
        yield from to_arrow(frame.iloc[:, chosen], "the Dask collection").to_batches(rows)


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
        return _folder(source, targets) if stream and source.is_dir() else _file(source, targets, request)
    return _dask(source, targets) if is_dask(source) else _table(source, targets, "the table")


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
    for file, other in zip(found, each, strict=True):
        if other.kinds != each[0].kinds:
            odd = sorted({name for name, _ in other.kinds.items() ^ each[0].kinds.items()})
            raise ValueError(
                f"the files of {path} differ in their columns, as {found[0].name} and {file.name} in "
                f"{shorten(odd)}: give all files the same columns of the same types"
            )
    parts, rows = [part for one in each for part in one.parts], sum(one.rows for one in each)
    stamps = "|".join(one.fingerprint() for one in each)
    return Contents(parts, each[0].schema, rows, lambda: stamps, targets, str(path))


def _file(path: Path, targets: Targets, request: Request) -> Contents:
    kind = files.format_of(path)
    with unreadable(path, kind):
        if kind in ("Parquet", "Feather", "CSV"):
            return _scanned(path, kind, targets, request)
        held = files.read_sheet(path, request) if kind == "an Excel sheet" else files.read_arrays(path)
    return _table(held, targets, str(path))


def _scanned(path: Path, kind: str, targets: Targets, request: Request | None = None) -> Contents:
    """A file that Arrow reads a bounded number of rows at a time; of Parquet a part is some row groups."""
    import pyarrow as pa
    from pyarrow import dataset, fs

    notes: tuple[str, ...] = ()
    form: Any = {"Parquet": dataset.ParquetFileFormat, "Feather": dataset.IpcFileFormat}.get(kind)
    if kind == "CSV":
        how, notes = dialect_of(path, request or Request())
        form = dataset.CsvFileFormat(**how)
    else:
        form = form()
    with unreadable(path, kind):
        whole = form.make_fragment(str(path), fs.LocalFileSystem(use_mmap=kind == "Feather"))
        schema, rows = whole.physical_schema, whole.count_rows()
        groups = whole.num_row_groups if kind == "Parquet" else 1
    must_be_plausible(path, 8 * rows * len(schema))  # strings count as pointers
    types = schema
    if kind == "CSV":
        files.must_be_names(path, schema.names)
        # Whole numbers may have decimals later; a column of numbers that has text later is refused.
        types = pa.schema(
            one.with_type(pa.float64())
            if pa.types.is_integer(one.type) or pa.types.is_null(one.type)
            else one
            for one in schema
        )
    each = max(1, PART_ROWS * groups // max(rows, 1))
    spans = [list(range(at, min(at + each, groups))) for at in range(0, groups, each)]
    parts = [whole.subset(row_group_ids=span) for span in spans] if kind == "Parquet" else [whole]
    state = path.stat()
    stamp = f"{path.name}:{state.st_size}:{state.st_mtime_ns}"
    return Contents(
        [FilePart(str(path), kind, part, types) for part in parts], schema, rows, lambda: stamp, targets,
        str(path), notes,
    )  # fmt: skip


def _table(source: object, targets: Targets, where: str) -> Contents:
    """Columns in memory, in slices without another copy."""
    table, targets = as_arrow(source, targets, where)

    def fingerprint() -> str:
        digest = hashlib.sha256()
        for chunk in (chunk for column in table.columns for chunk in column.chunks):
            digest.update(f"{chunk.offset} {len(chunk)}".encode())
            for buffer in filter(None, chunk.buffers()):
                digest.update(buffer)
        return digest.hexdigest()

    parts = [TablePart(table.slice(at, PART_ROWS)) for at in range(0, table.num_rows, PART_ROWS)]
    return Contents(parts, table.schema, table.num_rows, fingerprint, targets, where)


def is_dask(source: object) -> bool:
    """Whether the source is a Dask DataFrame or Array."""
    return type(source).__module__.split(".")[0] == "dask" and hasattr(source, "__dask_graph__")


def _dask(source: Any, targets: Targets) -> Contents:
    """A Dask DataFrame, a part each partition; the columns of an Array are x0, x1, …."""
    import pyarrow as pa
    from dask.base import tokenize

    if not hasattr(source, "columns"):
        from dask.dataframe import from_dask_array

        if source.ndim != 2:
            raise ValueError(f"a Dask Array must be a matrix of n rows and d columns, got {source.shape}")
        names = [f"x{j}" for j in range(source.shape[1])]
        source = from_dask_array(source.rechunk({1: -1}), columns=names)
    known = list(source.columns)
    kinds = {**dict.fromkeys("biuf", pa.float64()), **dict.fromkeys("mM", pa.timestamp("ns"))}
    types = [kinds.get(dtype.kind, pa.string()) for dtype in source.dtypes]
    schema = pa.schema(list(zip(map(str, known), types, strict=True)))
    parts = [DelayedPart(block, tuple(schema.names)) for block in source.to_delayed()]
    return Contents(parts, schema, len(source), lambda: tokenize(source), targets, "the Dask collection")


def too_large(path: Path, share: float = 0.25) -> bool:
    """Whether the table of a file would fill more than this share of the machine's memory."""
    size = path.stat().st_size
    if files.format_of(path) == "Parquet":
        found = _scanned(path, "Parquet", ())
        size = 8 * found.rows * len(found.schema)
    elif path.suffix.lower() == ".gz":
        size *= 10  # what tables of numbers are packed by, at most
    return size > share * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
