"""Files to Arrow tables: CSV, Parquet, Feather, Excel, npz and npy; what cannot be read is one sentence."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.lib import format as form

from onehidden.data.faults import Unusable, unreadable
from onehidden.data.request import Dialect
from onehidden.data.size import must_be_plausible, rows_of_messages, unpacked_zip
from onehidden.data.written import written

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet as pq

_BY_SUFFIX = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".feather", ".arrow", ".arrows", ".ipc"), "feather"),
    ".xlsx": "xlsx",
    ".npz": "npz",
    ".npy": "npy",
}
CALLED = {
    "csv": "CSV", "parquet": "Parquet", "feather": "Feather", "xlsx": "an Excel sheet", "npz": "npz",
    "npy": "npy",
}  # fmt: skip
_BY_MAGIC = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
)

_PLAIN = Dialect()


def read(
    path: Path, dialect: Dialect = _PLAIN
) -> tuple[pa.Table | dict[str, np.ndarray] | np.ndarray, tuple[str, ...]]:
    """The table of a file, or the arrays of an npz or npy; and what had to be guessed, a sentence each."""
    kind = kind_of(path)
    with unreadable(str(path), CALLED[kind]):
        if kind == "csv":
            return _csv(path, dialect)
        if kind == "xlsx":
            from onehidden.data.sheets import read_sheet

            return read_sheet(path, dialect)
        return {"parquet": _arrow, "feather": _arrow, "npz": _npz, "npy": _npy}[kind](path, kind), ()


def kind_of(path: Path) -> str:
    """csv, parquet, feather, xlsx, npz or npy, by suffix, else by content."""
    return _kind(path, _head(path))


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise Unusable(f"{path} is a folder: give one CSV, Parquet, Feather, npz or npy file")
    if not path.exists():
        raise Unusable(f"no file at {path}: check the path{_neighbours(path)}")
    if not path.is_file():
        raise Unusable(f"{path} is no regular file: save the table to a file and give that")
    try:
        with path.open("rb") as file:
            head = file.read(1 << 10)
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror or error}; check its permissions") from None
    if not head:
        raise Unusable(f"{path} is empty: give a file with a header line and rows")
    return head


def _kind(path: Path, head: bytes) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    if packed:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".xls", ".ods"):
        raise Unusable(f"{path} is a spreadsheet: save the sheet as CSV or .xlsx and give that file")
    found = _BY_SUFFIX.get(suffix)
    if packed and found not in (None, "csv"):
        raise Unusable(f"{path} is packed: unpack it first (gunzip {path.name})")
    return found or next((kind for magic, kind in _BY_MAGIC if head.startswith(magic)), "csv")


def _neighbours(path: Path) -> str:
    """Files beside a missing one whose names are near: most missing files are misspelt."""
    import difflib

    try:
        beside = sorted(p.name for p in path.parent.iterdir() if p.is_file())[:1000]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, beside, 2, 0.7)
    return f" (there is {' and '.join(near)})" if near else ""


def _csv(path: Path, dialect: Dialect) -> tuple[pa.Table, tuple[str, ...]]:
    from pyarrow import csv

    how, notes = written(path, dialect)
    table = csv.read_csv(path, how.read(), how.parse(), how.convert())
    must_be_names(path, table.column_names)  # decoded here, so that a name outside UTF-8 is caught too
    return table, notes


def must_be_names(path: Path, names: list[str]) -> None:
    """A first line of numbers is data, not a header."""
    if _all_numbers(names) and not _are_counted(names):
        raise Unusable(f"{path} starts with numbers, not with column names: add a header line")


def _all_numbers(names: list[str]) -> bool:
    try:
        return bool(names) and all(np.isfinite(float(name)) for name in names)
    except ValueError:
        return False


def _are_counted(names: list[str]) -> bool:
    """0, 1, 2, … or 1, 2, 3, …: numbers that are names."""
    counts = [[str(i + start) for i in range(len(names))] for start in (0, 1)]
    return len(names) > 1 and list(names) in counts


def _arrow(path: Path, kind: str) -> pa.Table:
    from pyarrow import parquet

    if kind == "parquet":
        # One file, never a dataset: a folder name with '=' in it must not add a column.
        file = parquet.ParquetFile(path)
        must_be_plausible(path, path.stat().st_size, unpacked_parquet(file.metadata))
        table = file.read()
    else:
        table = _ipc(path)
    table.validate()
    _ = table.column_names
    return table


def unpacked_parquet(metadata: pq.FileMetaData) -> int:
    """Bytes of the numbers of a Parquet file once they are held; strings count as pointers."""
    return 8 * metadata.num_rows * metadata.num_columns


def _ipc(path: Path) -> pa.Table:
    """An Arrow file of either form: with a footer (Feather), or as it was streamed."""
    import pyarrow as pa
    from pyarrow import feather

    if has_footer(path):
        must_unpack_plausibly(path)
        return feather.read_table(path)
    must_unpack_plausibly(path, skip=0)
    with pa.memory_map(str(path)) as file:
        return pa.ipc.open_stream(file).read_all()


def has_footer(path: Path) -> bool:
    """Whether an Arrow file can be read at any place, not from its beginning alone."""
    return _head(path).startswith(b"ARROW1")


def must_unpack_plausibly(path: Path, skip: int = 8) -> None:
    """Refuse an Arrow file whose batches claim more rows than its bytes can hold; ``skip`` its magic."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        file.seek(skip)
        must_be_plausible(path, path.stat().st_size, 8 * rows_of_messages(file))


def _npz(path: Path, kind: str) -> dict[str, np.ndarray]:
    must_be_plausible(path, path.stat().st_size, unpacked_zip(path))
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                _must_be_plain(member, path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _npy(path: Path, kind: str) -> np.ndarray:
    with path.open("rb") as file:
        _must_be_plain(file, path)
    with np.errstate(over="ignore"):  # shapes beyond all integers
        return np.asarray(form.open_memmap(path, mode="r"))


def _must_be_plain(file: IO[bytes], path: Path) -> None:
    """Arrays of Python objects would have to be unpickled, which runs what is in the file: never done."""
    if file.read(len(form.MAGIC_PREFIX)) != form.MAGIC_PREFIX:
        return  # no array: what it is, is for the reader to say
    file.seek(0)
    # Version 3 differs from 2 in the encoding of the names of fields alone.
    first = form.read_magic(file) == (1, 0)
    _, _, dtype = form.read_array_header_1_0(file) if first else form.read_array_header_2_0(file)
    if dtype.hasobject:
        raise Unusable(
            f"{path} holds Python objects, not plain numbers: save numeric arrays (X.astype(float)) instead"
        )
