"""The parts of files and arrays: row groups, record batches, blocks of text, slices of memory maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.faults import unreadable
from onehidden.data.written import Written

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS = 1 << 18


def slices(total: int, rows: int) -> Iterator[tuple[int, int]]:
    """(start, stop) pairs that cover ``total`` rows."""
    return ((at, min(at + rows, total)) for at in range(0, total, rows))


@dataclass(frozen=True)
class ParquetPart:
    """Consecutive row groups of one Parquet file."""

    path: str
    groups: tuple[int, ...]

    def tables(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        from pyarrow import parquet

        with unreadable(self.path, "Parquet"):
            # Buffered by the page, not by the row group: a group may be a gigabyte.
            file = parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20)
        try:
            batches = file.iter_batches(
                rows, row_groups=list(self.groups), columns=columns, use_threads=False
            )
            while True:
                with unreadable(self.path, "Parquet"):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield batch
        finally:
            file.close()


@dataclass(frozen=True)
class FeatherPart:
    """Consecutive record batches of one Feather (Arrow IPC) file, mapped."""

    path: str
    first: int
    last: int

    def tables(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        with unreadable(self.path, "Feather"):
            file = pa.ipc.open_file(pa.memory_map(self.path))
        for i in range(self.first, self.last):
            with unreadable(self.path, "Feather"):
                batch = file.get_batch(i)
            for start, stop in slices(batch.num_rows, rows):
                yield batch.slice(start, stop - start).select(columns)


@dataclass(frozen=True)
class CsvPart:
    """One CSV file, read in blocks; its columns are numbers or the file is refused."""

    path: str
    how: Written
    booleans: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def tables(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv

        types = {name: pa.string() if name in self.texts else pa.float64() for name in columns}
        convert = self.how.convert(
            include_columns=columns,
            column_types={name: kind for name, kind in types.items() if name not in self.booleans},
        )
        # About 12 characters a number: blocks of roughly the rows asked for.
        block = int(min(max(rows * 12 * (len(columns) + 1), 1 << 16), 1 << 25))
        with unreadable(self.path, "CSV"):
            reader = csv.open_csv(self.path, self.how.read(block, threads=False), self.how.parse(), convert)
        while True:
            with unreadable(self.path, "CSV"):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            for start, stop in slices(batch.num_rows, rows):
                yield batch.slice(start, stop - start)


@dataclass(frozen=True)
class ArrayPart:
    """Some rows of columns in memory or in a mapped npy file (``path``, reopened where it is read)."""

    names: tuple[str, ...]
    start: int
    stop: int
    path: str | None = None
    columns: tuple[np.ndarray | pa.ChunkedArray, ...] = ()

    def tables(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        place = {name: j for j, name in enumerate(self.names)}
        if self.path is not None:
            with unreadable(self.path, "npy"):
                matrix = np.load(self.path, mmap_mode="r", allow_pickle=False)
        else:
            matrix = None
        for start, stop in slices(self.stop - self.start, rows):
            part = slice(self.start + start, self.start + stop)
            if matrix is None:
                arrays = [self.columns[place[name]][part] for name in columns]
            else:
                block = np.array(matrix[part], dtype=float)  # one read of whole rows
                arrays = [block[:, place[name]] for name in columns]
            yield pa.RecordBatch.from_arrays([_held(a) for a in arrays], names=columns)

    def __getstate__(self) -> dict[str, Any]:
        """Only the rows of this part travel to a worker."""
        state = dict(vars(self))
        if self.path is None:
            state["columns"] = tuple(c[self.start : self.stop] for c in self.columns)
            state["start"], state["stop"] = 0, self.stop - self.start
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


def _held(column: np.ndarray | pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    if isinstance(column, np.ndarray):
        return pa.array(np.ascontiguousarray(column, dtype=float))
    return column.combine_chunks()


@dataclass(frozen=True, eq=False)
class DelayedPart:
    """One partition of a Dask collection, computed where it is read."""

    partition: Any  # dask.delayed.Delayed, or the computed block inside a worker
    names: tuple[str, ...]

    def tables(self, columns: list[str], rows: int) -> Iterator[pa.Table]:
        import pyarrow as pa

        from onehidden.data.held import is_frame, to_arrow

        block: Any = self.partition
        if hasattr(block, "compute"):
            block = block.compute(scheduler="synchronous")
        if isinstance(block, tuple):
            block = np.column_stack([np.asarray(b, float) for b in block])
        chosen = [self.names.index(name) for name in columns]
        if is_frame(block):  # by place: names need not be text there
            table = to_arrow(block.iloc[:, chosen], "the Dask collection")
        else:
            matrix = np.asarray(block, dtype=float)
            table = pa.table([np.ascontiguousarray(matrix[:, j]) for j in chosen], names=columns)
        for start, stop in slices(table.num_rows, rows):
            yield table.slice(start, stop - start)

    def computed(self, block: object) -> DelayedPart:
        """The part with its partition in hand: what a worker reads."""
        return DelayedPart(block, self.names)
