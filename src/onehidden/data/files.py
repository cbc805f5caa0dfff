"""Files read whole, their formats, and the dialect and encoding of text."""

from __future__ import annotations

import codecs
import csv
import difflib
import gzip
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from onehidden.data.faults import Unusable, must_be_few, must_be_plausible
from onehidden.data.table import Request

if TYPE_CHECKING:
    import pyarrow as pa


# Formats with what they are called in messages, their suffixes, and how their files begin.
_FORMATS = (
    ("Parquet", (".parquet", ".pq"), b"PAR1"),
    ("Feather", (".feather", ".arrow", ".arrows", ".ipc"), b"ARROW1"),
    ("npy", (".npy",), b"\x93NUMPY"),
    ("npz", (".npz",), b"PK\x03\x04"),
    ("an Excel sheet", (".xlsx",), None),
    ("CSV", (".csv", ".tsv", ".txt"), None),
)

# Statistics packages and people write these, beside those that Arrow knows (NA, n/a, NaN, null …).
MISSING = ("?", "-", "--", "—", "–", ".", "None", "none", "missing")


def format_of(path: Path) -> str:
    """Parquet, Feather, npy, npz, an Excel sheet or CSV, by suffix, else by content."""
    begins = first_bytes(path)
    suffixes = [s.lower() for s in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    suffix = next(iter(suffixes[::-1][packed:]), "")
    if suffix in (".xls", ".ods"):
        raise Unusable(f"{path} is a spreadsheet: save the sheet as CSV or .xlsx and give that file")
    found = next((name for name, known, _ in _FORMATS if suffix in known), None)
    if packed and found not in (None, "CSV"):
        raise Unusable(f"{path} is packed: unpack it first (gunzip {path.name})")
    return found or next((name for name, _, magic in _FORMATS if magic and begins.startswith(magic)), "CSV")


def first_bytes(path: Path) -> bytes:
    """The first bytes of a file that there is."""
    if path.is_dir():
        raise Unusable(f"{path} is a folder: give one CSV, Parquet, Feather, npz or npy file")
    if not path.exists():
        raise Unusable(f"no file at {path}: check the path{_neighbours(path)}")
    if not path.is_file():
        raise Unusable(f"{path} is no regular file: save the table to a file and give that")
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise Unusable(f"cannot read {path}: {error.strerror or error}; check its permissions") from None
    if not head:
        raise Unusable(f"{path} is empty: give a file with a header line and rows")
    return head


def _neighbours(path: Path) -> str:
    """Files of a similar name: most missing files are misspelt."""
    try:
        names = sorted(p.name for p in path.parent.iterdir() if p.is_file())[:1000]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, 2, 0.7)
    return f" (there is {' and '.join(near)})" if near else ""


def read_text(path: Path, request: Request) -> tuple[pa.Table, tuple[str, ...]]:
    """The table of a CSV file, and what had to be guessed."""
    from pyarrow.csv import read_csv

    dialect, notes = dialect_of(path, request)
    table = read_csv(path, **dialect.options())
    must_be_names(path, table.column_names)  # decoded here, so that a name outside UTF-8 is caught too
    return table, notes


def must_be_names(path: Path, names: Sequence[str]) -> None:
    """Refuse a first line of numbers: it is data, not a header, unless it counts the columns."""
    try:
        values = np.array(list(names), dtype=float)
    except ValueError:
        return
    counted = len(names) > 1 and list(names) in [[str(i + k) for i in range(len(names))] for k in (0, 1)]
    if len(names) and np.isfinite(values).all() and not counted:
        raise Unusable(f"{path} starts with numbers, not with column names: add a header line")


def read_stream(path: Path) -> pa.Table:
    """An Arrow file without a footer, as it was streamed."""
    import pyarrow as pa

    batches, rows = [], 0
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for batch in reader:
            rows += batch.num_rows
            must_be_plausible(path, 8 * rows)
            batch.validate()
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file."""
    with _archive(path) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                _must_be_plain(member, path)
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)


def read_npy(path: Path) -> np.ndarray:
    """The array of an npy file, mapped."""
    with path.open("rb") as file:
        _must_be_plain(file, path)
    with np.errstate(over="ignore"):  # shapes beyond all integers
        return np.asarray(npy.open_memmap(path, mode="r"))


def _archive(path: Path) -> zipfile.ZipFile:
    """A zip archive; one that declares too much is refused, and no reader unpacks more than it declares."""
    archive = zipfile.ZipFile(path)
    must_be_plausible(path, sum(member.file_size for member in archive.infolist()))
    return archive


def _must_be_plain(file: IO[bytes], path: Path) -> None:
    """Refuse arrays of Python objects: to unpickle them would run what is in the file."""
    if file.read(len(npy.MAGIC_PREFIX)) != npy.MAGIC_PREFIX:
        return  # no array: the reader reports it
    file.seek(0)
    # Version 3 differs from 2 in the encoding of the names of fields alone.
    first = npy.read_magic(file) == (1, 0)
    _, _, dtype = npy.read_array_header_1_0(file) if first else npy.read_array_header_2_0(file)
    if dtype.hasobject:
        raise Unusable(
            f"{path} holds Python objects, not plain numbers: save numeric arrays (X.astype(float)) instead"
        )


def read_sheet(path: Path, request: Request) -> tuple[pa.Table, tuple[str, ...]]:
    """The first sheet of an Excel file, read as the CSV file that it would be saved as.

    Its first row that is not empty has the names; formulas count by their values.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise Unusable(
            f"{path} is an Excel sheet, which needs openpyxl: pip install 'onehidden[excel]', or save the "
            "sheet as CSV and give that file"
        ) from None
    import pyarrow as pa
    from pyarrow.csv import read_csv

    _archive(path).close()
    book = load_workbook(path, read_only=True, data_only=True)
    try:
        names = book.sheetnames
        cells = [row for row in book[names[0]].iter_rows(values_only=True) if any(c is not None for c in row)]
    finally:
        book.close()
    if not cells:
        raise Unusable(f"{path} has an empty first sheet {names[0]!r}: put the table there")
    width = max(i for row in cells for i, cell in enumerate(row) if cell is not None) + 1
    text = io.StringIO()
    rows = csv.writer(text)
    for row in cells:
        full = (*row, *[None] * width)[:width]
        marked = request.decimal == ","
        rows.writerow(repr(c).replace(".", ",") if marked and isinstance(c, float) else c for c in full)
    content = text.getvalue().encode()
    missing = (*request.na, "#DIV/0!", "#VALUE!", "#REF!", "#NUM!")
    dialect = Dialect("utf-8", ",", request.decimal, missing, min(len(content), 1 << 29))
    notes = (f"{path} has {len(names)} sheets, of which {names[0]!r} was read",) if len(names) > 1 else ()
    return read_csv(pa.BufferReader(content), **dialect.options()), notes


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; no line has more bytes than ``line``."""

    encoding: str
    delimiter: str
    decimal: str
    na: tuple[str, ...]
    line: int

    def options(self, block: int = 1 << 20, threads: bool = True) -> dict[str, Any]:
        """The options of Arrow's readers."""
        from pyarrow import csv

        # A line must fit into a block; as UTF-8, into which it is turned, it may grow by half.
        block = max(block, 2 * self.line)
        convert = csv.ConvertOptions(
            decimal_point=self.decimal,
            null_values=[*csv.ConvertOptions().null_values, *MISSING, *self.na],
            strings_can_be_null=True,
            timestamp_parsers=[csv.ISO8601, "%d.%m.%Y"],  # days with dots are dates, as those of ISO are
        )
        return {
            "read_options": csv.ReadOptions(block_size=block, use_threads=threads, encoding=self.encoding),
            "parse_options": csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": convert,
        }


def dialect_of(path: Path, request: Request) -> tuple[Dialect, tuple[str, ...]]:
    """How a file is written, and what had to be guessed; a file that is not text is refused."""
    encoding, longest, notes = _encoding(path, request.encoding)
    with _opened(path) as file:
        head = codecs.getincrementaldecoder(encoding)("replace").decode(file.read(longest))
    lines = head.removeprefix("\ufeff").splitlines() or [""]
    first = re.sub(r'"[^"]*"', "", lines[0])  # a mark inside a quoted name separates nothing
    marks = ";\t|," if request.decimal == "," else ",;\t|"
    delimiter = max(marks, key=lambda mark: (first.count(mark), mark == marks[0]))
    if first.count(delimiter) == 0:
        delimiter = ","
    must_be_few(first.count(delimiter) + 1, str(path))
    return Dialect(encoding, delimiter, request.decimal, tuple(request.na), longest), notes


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def unpacked(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, in blocks; more than is plausible is refused."""
    read = 0
    with _opened(path) as file:
        while block := file.read(1 << 20):
            read += len(block)
            must_be_plausible(path, read)
            yield block


def _encoding(path: Path, named: str | None) -> tuple[str, int, tuple[str, ...]]:
    """The encoding that was named, or UTF-8, UTF-16 with its mark, else cp1252, with a note of a guess.

    Beside it stand the bytes of the longest line.
    """
    with _opened(path) as file:
        marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    encoding = named or ("utf-16" if marked else "utf-8")
    if longest := _longest_line(path, encoding):
        return encoding, longest, ()
    if named is None and not marked and (longest := _longest_line(path, "cp1252")):
        note = f"{path} is not UTF-8 and was read as cp1252; name another with --encoding"
        return "cp1252", longest, (note,)
    said = f"its bytes are no {encoding}" if named else "its bytes are neither UTF-8 nor cp1252"
    raise Unusable(f"{path} cannot be read as text: {said}; name its encoding with encoding= (--encoding)")


def _longest_line(path: Path, encoding: str) -> int:
    """Bytes of the longest line; 0 where the bytes are no text of this encoding."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    longest = since = 0  # bytes after the last line break so far
    try:
        for block in unpacked(path):
            if "\x00" in decoder.decode(block):
                raise Unusable(
                    f"{path} is a binary file, not text: expected CSV with a header line; "
                    "save it as CSV, Parquet, Feather or npz"
                )
            ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
            if len(ends):
                longest = max(longest, since + int(ends[0]), int(np.diff(ends).max(initial=0)))
                since = -int(ends[-1])
            since += len(block)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return 0
    return min(max(longest, since) + 1, 1 << 29)
