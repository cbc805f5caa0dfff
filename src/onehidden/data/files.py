"""Files: their formats, the dialect and encoding of text, and readers of those that Arrow does not scan."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.table import Request, Unusable, must_be_few

if TYPE_CHECKING:
    import pyarrow as pa

# Formats with what they are called in messages, their suffixes, and how their files begin.
_FORMATS = (
    ("Parquet", (".parquet", ".pq"), b"PAR1"),
    ("Feather", (".feather", ".arrow", ".ipc"), b"ARROW1"),
    ("npy", (".npy",), b"\x93NUMPY"),
    ("npz", (".npz",), b"PK\x03\x04"),
    ("an Excel sheet", (".xlsx",), None),
    ("CSV", (".csv", ".tsv", ".txt"), None),
)

# Statistics packages and people write these, beside those that Arrow knows (NA, n/a, NaN, null …).
MISSING = ("?", "-", "--", "—", "–", ".", "None", "none", "missing")
BLOCK = 1 << 24  # bytes of a CSV file read at once: types are those of the first, and no line may be longer


def format_of(path: Path) -> str:
    """Parquet, Feather, npy, npz, an Excel sheet or CSV, by suffix, else by content."""
    if path.is_dir():
        raise Unusable(f"{path} is a folder: give one CSV, Parquet, Feather, npz or npy file")
    if not path.is_file():
        raise Unusable(f"no file at {path}: check the path")
    with path.open("rb") as file:
        begins = file.read(8)
    if not begins:
        raise Unusable(f"{path} is empty: give a file with a header line and rows")
    suffix = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    if suffix.lower() in (".xls", ".ods"):
        raise Unusable(f"{path} is a spreadsheet: save the sheet as CSV or .xlsx and give that file")
    found = next((name for name, known, _ in _FORMATS if suffix.lower() in known), None)
    if path.suffix.lower() == ".gz" and found not in (None, "CSV"):
        raise Unusable(f"{path} is packed: unpack it first (gunzip {path.name})")
    return found or next((name for name, _, magic in _FORMATS if magic and begins.startswith(magic)), "CSV")


@contextmanager
def unreadable(path: Path | str, kind: str) -> Iterator[None]:
    """Turn whatever a reader of a damaged file raises into one sentence."""
    try:
        yield
    except Unusable:
        raise
    except MemoryError:
        raise Unusable(
            f"{path} asks for more memory than there is: it may be damaged, or too large"
        ) from None
    except Exception as error:
        line = re.sub(r"^Could not open \w+ input source '.*?': ", "", " ".join(str(error).split()))
        line = line if len(line) <= 160 else line[:157] + "..."
        raise Unusable(
            f"{path} cannot be read as {kind} ({line}): it may be damaged, cut short or misnamed"
        ) from None


def must_be_plausible(path: Path | str, unpacked: int) -> None:
    """Refuse a small file that unpacks to gigabytes.

    Deflate reaches a ratio of 1032 at most; tables of numbers reach 10, columns of few categories 50.
    """
    packed = os.path.getsize(path)
    if unpacked > 1 << 28 and unpacked > 200 * packed:
        raise Unusable(
            f"{path} unpacks from {packed:,} to {unpacked:,} bytes or more, which no table does: it may be "
            "damaged or made to fill the memory"
        )


def must_be_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a first line of numbers: it is data, not a header, unless it counts the columns."""
    try:
        values = np.array(list(names), dtype=float)
    except ValueError:
        return
    counted = len(names) > 1 and list(names) in [[str(i + k) for i in range(len(names))] for k in (0, 1)]
    if len(names) and np.isfinite(values).all() and not counted:
        raise Unusable(f"{path} starts with numbers, not with column names: add a header line")


def read_arrays(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    """The array of an npy file, or those of an npz file; pickled objects are never loaded."""
    if zipfile.is_zipfile(path):
        _must_unpack_to_little(path)
    with path.open("rb") as file, np.errstate(over="ignore"):  # shapes beyond all integers
        found = np.load(file, allow_pickle=False)
        return found if isinstance(found, np.ndarray) else dict(found)


def _must_unpack_to_little(path: Path) -> None:
    """Refuse a zip archive that declares too much; no reader unpacks more than it declares."""
    with zipfile.ZipFile(path) as archive:
        must_be_plausible(path, sum(member.file_size for member in archive.infolist()))


def read_sheet(path: Path, request: Request) -> pa.Table:
    """The first sheet of an Excel file, read as the CSV file that it would be saved as."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise Unusable(
            f"{path} is an Excel sheet, which needs openpyxl: pip install 'onehidden[excel]', or save the "
            "sheet as CSV and give that file"
        ) from None
    import pyarrow as pa
    from pyarrow.csv import read_csv

    _must_unpack_to_little(path)
    text = io.StringIO()
    width = 0  # the cells of the first row that is not empty: rows may have more or fewer
    with closing(load_workbook(path, read_only=True, data_only=True)) as book:
        for row in book.worksheets[0].iter_rows(values_only=True):
            if any(cell is not None for cell in row):
                width = width or max(i for i, cell in enumerate(row, start=1) if cell is not None)
                cells = [repr(c).replace(".", request.decimal) if isinstance(c, float) else c for c in row]
                csv.writer(text).writerow((*cells, *[None] * width)[:width])
    if not text.getvalue():
        raise Unusable(f"{path} has an empty first sheet: put the table there")
    how = _csv_options("utf-8", ",", request.decimal, (*request.na, "#DIV/0!", "#VALUE!", "#REF!", "#NUM!"))
    return read_csv(pa.BufferReader(text.getvalue().encode()), **how)


def _csv_options(encoding: str, delimiter: str, decimal: str, na: Sequence[str]) -> dict[str, Any]:
    """The options of Arrow's readers for a text file."""
    from pyarrow import csv

    convert = csv.ConvertOptions(
        decimal_point=decimal,
        null_values=[*csv.ConvertOptions().null_values, *MISSING, *na],
        strings_can_be_null=True,
        timestamp_parsers=[csv.ISO8601, "%d.%m.%Y"],  # days with dots are dates, as those of ISO are
    )
    return {
        "read_options": csv.ReadOptions(block_size=BLOCK, use_threads=False, encoding=encoding),
        "parse_options": csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": convert,
    }


def dialect_of(path: Path, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
    """How a file is written, as options of Arrow's readers, and a note of what was guessed.

    A file that is not text is refused. The encoding is the one that was named, or UTF-16 with its mark,
    UTF-8, else cp1252.
    """
    with _unpacked(path) as file:
        marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    tried = [request.encoding] if request.encoding else ["utf-16"] if marked else ["utf-8", "cp1252"]
    encoding = next((one for one in tried if _is_text(path, one)), None)
    if encoding is None:
        raise Unusable(
            f"{path} cannot be read as text: its bytes are no {' and no '.join(tried)}; name its encoding "
            "with encoding= (--encoding)"
        )
    guess = f"{path} is not UTF-8 and was read as cp1252; name another with --encoding"
    with io.TextIOWrapper(_unpacked(path), encoding) as file:
        line = file.readline(BLOCK).removeprefix("\ufeff")
    line = re.sub(r'"[^"]*"', "", line)  # a mark inside a quoted name separates nothing
    marks = ";\t|," if request.decimal == "," else ",;\t|"
    delimiter = max(marks, key=lambda mark: (line.count(mark), mark == marks[0])) if line else ","
    if delimiter not in line:
        delimiter = " " if " " in line.strip() else ","
    must_be_few(line.count(delimiter) + 1, str(path))
    how = _csv_options(encoding, delimiter, request.decimal, request.na)
    return how, (guess,) * (encoding == "cp1252" and request.encoding is None)


def _unpacked(path: Path) -> Any:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def _is_text(path: Path, encoding: str) -> bool:
    """Whether all bytes of a file are text of this encoding; binary files and bombs are refused."""
    size = 0
    with io.TextIOWrapper(_unpacked(path), encoding) as file:
        try:
            while block := file.read(1 << 20):
                size += len(block)
                must_be_plausible(path, size)
                if "\x00" in block:
                    raise Unusable(
                        f"{path} is a binary file, not text: expected CSV with a header line; "
                        "save it as CSV, Parquet, Feather or npz"
                    )
        except UnicodeError:
            return False
    return True
