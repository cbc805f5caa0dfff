"""Files to Arrow tables: CSV, Parquet, Feather, npz and npy; what cannot be read is one sentence.

Readers of damaged files raise whatever their parser met first (tokenizer, zip and decoding errors among
them), so every failure inside a reader is caught here and said in our words.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".npz": "npz",
    ".npy": "npy",
}
_CALLED = {
    "csv": "CSV",
    "parquet": "Parquet",
    "feather": "Feather",
    "npz": "npz",
    "npy": "npy",
}
_BY_MAGIC = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"FEA1", "feather"),
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
)
_DELIMITERS = (",", ";", "\t", "|")


def read(path: Path) -> pa.Table | dict[str, np.ndarray] | np.ndarray:
    """The table of a file, or the arrays of an npz or npy."""
    head = _head(path)
    kind = _kind(path, head)
    return {"csv": _csv, "parquet": _arrow, "feather": _arrow, "npz": _npz, "npy": _npy}[kind](
        path, head, kind
    )


def kind_of(path: Path) -> str:
    """csv, parquet, feather, npz or npy, by suffix, else by content."""
    return _kind(path, _head(path))


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give one CSV, Parquet, Feather, npz or npy file")
    if not path.exists():
        raise ValueError(f"no file at {path}: check the path{_neighbours(path)}")
    try:
        with path.open("rb") as file:
            head = file.read(1 << 16)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}; check its permissions") from None
    if not head:
        raise ValueError(f"{path} is empty: give a file with a header line and rows")
    return head


def _kind(path: Path, head: bytes) -> str:
    suffixes = [s.lower() for s in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".xls", ".xlsx", ".ods"):
        raise ValueError(f"{path} is a spreadsheet: save the sheet as CSV and give that file")
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    return next((kind for magic, kind in _BY_MAGIC if head.startswith(magic)), "csv")


def _neighbours(path: Path) -> str:
    """Files beside a missing one whose names are near: most missing files are misspelt."""
    import difflib

    try:
        beside = sorted(p.name for p in path.parent.iterdir() if p.is_file())[:1000]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, beside, 2, 0.7)
    return f" (there is {' and '.join(near)})" if near else ""


def _unreadable(path: Path, kind: str, why: object) -> ValueError:
    line = " ".join(str(why).split())
    line = line if len(line) <= 160 else line[:157] + "..."
    return ValueError(
        f"{path} cannot be read as {_CALLED[kind]} ({line}): it may be damaged, cut short or misnamed"
    )


def csv_delimiter(path: Path) -> str:
    """What separates the columns; a file that is not text is refused."""
    return _delimiter(path, _head(path), "csv")


def _delimiter(path: Path, head: bytes, kind: str) -> str:
    if path.suffix.lower() == ".gz":
        try:
            with gzip.open(path) as file:
                head = file.read(1 << 16)
        except (OSError, EOFError) as error:
            raise _unreadable(path, kind, error) from None
    if b"\x00" in head:
        raise ValueError(
            f"{path} is a binary file, not UTF-8 text: expected CSV with a header line; "
            "save it as CSV, Parquet, Feather or npz"
        )
    first = head.decode("utf-8-sig", "replace").splitlines()[0]
    return max(_DELIMITERS, key=lambda mark: (first.count(mark), mark == ","))


def _csv(path: Path, head: bytes, kind: str) -> pa.Table:
    from pyarrow import csv

    delimiter = _delimiter(path, head, kind)
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter))
        names = table.column_names  # decoded here, so that a name outside UTF-8 is caught too
    except Exception as error:
        raise _unreadable(path, kind, error) from None
    must_be_names(path, names)
    return table


def must_be_names(path: Path, names: list[str]) -> None:
    """A first line of numbers is data, not a header."""
    if _all_numbers(names) and not _are_counted(names):
        raise ValueError(f"{path} starts with numbers, not with column names: add a header line")


def _all_numbers(names: list[str]) -> bool:
    try:
        return bool(names) and all(np.isfinite(float(name)) for name in names)
    except ValueError:
        return False


def _are_counted(names: list[str]) -> bool:
    """0, 1, 2, … or 1, 2, 3, …: numbers that are names."""
    counts = [[str(i + start) for i in range(len(names))] for start in (0, 1)]
    return len(names) > 1 and list(names) in counts


def _arrow(path: Path, head: bytes, kind: str) -> pa.Table:
    from pyarrow import feather, parquet

    try:
        # One file, never a dataset: a folder name with '=' in it must not add a column.
        table = parquet.ParquetFile(path).read() if kind == "parquet" else feather.read_table(path)
        _ = table.column_names
        return table
    except Exception as error:
        raise _unreadable(path, kind, error) from None


def _npz(path: Path, head: bytes, kind: str) -> dict[str, np.ndarray]:
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                raise ValueError("it holds one bare array, as npy files do")
            with loaded as archive:
                return {name: archive[name] for name in archive.files}
    except Exception as error:
        raise _pickled_or_unreadable(path, kind, error) from None


def _npy(path: Path, head: bytes, kind: str) -> np.ndarray:
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except Exception as error:
        raise _pickled_or_unreadable(path, kind, error) from None


def _pickled_or_unreadable(path: Path, kind: str, error: Exception) -> ValueError:
    if "Python objects" in str(error) or "allow_pickle" in str(error):
        return ValueError(
            f"{path} holds Python objects, not plain numbers: save numeric arrays (X.astype(float)) instead"
        )
    return _unreadable(path, kind, error)
