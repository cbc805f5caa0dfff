"""How large a packed file may become: a small file that unpacks to gigabytes is no table."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from onehidden.data.faults import Unusable

if TYPE_CHECKING:
    import pyarrow as pa

# Unpacked sizes from which the ratio counts, and the ratio. Deflate reaches 1032 at most; tables of numbers
# reach 10, columns of few categories 50.
LARGE, RATIO = 1 << 28, 200
COMFORTABLE = 0.25  # share of the machine's memory that a table may fill before it is streamed


# Columns that are read at most: a recovery holds a matrix of columns x columns, 3 GB for these.
MOST_COLUMNS = 20_000


def must_be_few(columns: int, where: str) -> None:
    """Refuse more columns than a recovery can hold."""
    if columns > MOST_COLUMNS:
        raise Unusable(
            f"{where} has {columns} columns, more than the {MOST_COLUMNS} that can be used: list those to "
            "use, or save them to a file of their own"
        )


def memory() -> float:
    """Bytes of the machine; infinite where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (OSError, ValueError, AttributeError):
        return float("inf")


def must_be_plausible(path: Path | str, packed: int, unpacked: int) -> None:
    """Refuse what grows beyond all proportion when it is unpacked."""
    if unpacked > LARGE and unpacked > RATIO * packed:
        raise Unusable(
            f"{path} unpacks from {packed:,} to {unpacked:,} bytes or more, which no table does: it may be "
            "damaged or made to fill the memory"
        )


def unpacked_zip(path: Path) -> int:
    """Bytes of all members of a zip archive as it declares them; no reader unpacks more."""
    with zipfile.ZipFile(path) as archive:
        return sum(member.file_size for member in archive.infolist())


def rows_of_messages(file: pa.NativeFile) -> int:
    """Rows of an Arrow stream by the headers of its messages, without unpacking their bodies."""
    import pyarrow as pa

    rows = 0
    try:
        for message in pa.ipc.MessageReader.open_stream(file):
            if message.type == "record batch":
                rows += _length(message.metadata.to_pybytes())
    except (pa.ArrowException, struct.error, EOFError):
        return rows  # what is damaged there is for the reader to say
    return rows


def _length(header: bytes) -> int:
    """The field ``length`` of the RecordBatch in a message: a table of a table in FlatBuffers."""

    def field(table: int, number: int) -> int:
        vtable = table - struct.unpack_from("<i", header, table)[0]
        return table + struct.unpack_from("<H", header, vtable + 4 + 2 * number)[0]

    def follow(at: int) -> int:
        return at + struct.unpack_from("<I", header, at)[0]

    batch = follow(field(follow(0), 2))  # Message.header
    return struct.unpack_from("<q", header, field(batch, 0))[0]
