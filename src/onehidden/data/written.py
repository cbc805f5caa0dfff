"""How a text file is written: its encoding, what separates its columns, what stands for a gap."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onehidden.data.faults import Unusable
from onehidden.data.request import Dialect
from onehidden.data.size import must_be_few, must_be_plausible

if TYPE_CHECKING:
    from pyarrow import csv

_DELIMITERS = (",", ";", "\t", "|")
_BLOCK = 1 << 20
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Beside those that Arrow knows (NA, n/a, NaN, null …): statistics packages and hands write these.
GAPS = ("?", "-", "--", "—", "–", ".", "None", "none", "missing")


@dataclass(frozen=True)
class Written:
    """A text file as it is: all that a reader of it must be told; no line has more bytes than ``line``."""

    encoding: str
    delimiter: str
    decimal: str
    na: tuple[str, ...]
    line: int

    def read(self, block: int = _BLOCK, threads: bool = True) -> csv.ReadOptions:
        from pyarrow import csv

        # A line must fit into a block; as UTF-8, into which it is turned, it may grow by half.
        return csv.ReadOptions(
            block_size=max(block, 2 * self.line), use_threads=threads, encoding=self.encoding
        )

    def parse(self) -> csv.ParseOptions:
        from pyarrow import csv

        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)

    def convert(self, **columns: object) -> csv.ConvertOptions:
        from pyarrow import csv

        usual = csv.ConvertOptions().null_values
        return csv.ConvertOptions(
            decimal_point=self.decimal,
            null_values=[*usual, *GAPS, *self.na],
            strings_can_be_null=True,
            timestamp_parsers=[csv.ISO8601, "%d.%m.%Y"],  # days with dots are dates, as those of ISO are
            **columns,
        )  # pyright: ignore[reportArgumentType]


def written(path: Path, dialect: Dialect) -> tuple[Written, tuple[str, ...]]:
    """How a file is written, and what had to be guessed; a file that is not text is refused."""
    encoding, notes = _encoding(path, dialect)
    longest = _longest_line(path)
    with _opened(path) as file:
        head = codecs.getincrementaldecoder(encoding)("replace").decode(file.read(longest))
    lines = head.removeprefix("\ufeff").splitlines() or [""]
    first = re.sub(r'"[^"]*"', "", lines[0])  # a mark inside a quoted name separates nothing
    marks = _DELIMITERS[1:] + _DELIMITERS[:1] if dialect.decimal == "," else _DELIMITERS
    delimiter = max(marks, key=lambda mark: (first.count(mark), mark == marks[0]))
    if first.count(delimiter) == 0:
        delimiter = ","
    must_be_few(first.count(delimiter) + 1, str(path))
    return Written(encoding, delimiter, dialect.decimal, dialect.na, longest), notes


def _opened(path: Path):
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, in blocks; more than is plausible is refused."""
    packed, read = path.stat().st_size, 0
    with _opened(path) as file:
        while block := file.read(_BLOCK):
            read += len(block)
            must_be_plausible(path, packed, read)
            yield block


def _longest_line(path: Path) -> int:
    """Bytes of the longest line."""
    longest = since = 0  # bytes after the last line break so far
    for block in blocks(path):
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        if len(ends):
            longest = max(longest, since + int(ends[0]), int(np.diff(ends).max(initial=0)))
            since = len(block) - int(ends[-1])
        else:
            since += len(block)
    return min(max(longest, since) + 1, 1 << 29)


def _encoding(path: Path, dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """The encoding that was named, or UTF-8, UTF-16 with its mark, else cp1252: with a note of a guess."""
    with _opened(path) as file:
        start = file.read(4)
    encoding = dialect.encoding or ("utf-16" if start.startswith(_UTF16) else "utf-8")
    if _decodes(path, encoding):
        return ("utf-8" if encoding == "utf-8" else encoding), ()
    if dialect.encoding is None and encoding == "utf-8" and _decodes(path, "cp1252"):
        return "cp1252", (f"{path} is not UTF-8 and was read as cp1252; name another with --encoding",)
    said = f"its bytes are no {encoding}" if dialect.encoding else "its bytes are neither UTF-8 nor cp1252"
    raise Unusable(f"{path} cannot be read as text: {said}; name its encoding with encoding= (--encoding)")


def _decodes(path: Path, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    try:
        for block in blocks(path):
            if "\x00" in decoder.decode(block):
                raise Unusable(
                    f"{path} is a binary file, not text: expected CSV with a header line; "
                    "save it as CSV, Parquet, Feather or npz"
                )
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True
