"""Files that are not what they seem: cut, misnamed, packed beyond all proportion, of too many columns."""

from __future__ import annotations

import gzip
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from hostile.case import NAMES, READERS, SUFFIXES, Case, reading, table, write
from pyarrow import parquet


def truncated(rng: random.Random) -> Iterator[Case]:
    """Files of every format cut at random bytes; a CSV inside a row, else it is a shorter CSV."""
    for suffix in SUFFIXES:
        for _ in range(6):
            share = rng.random()

            def make(folder: Path, suffix: str = suffix, share: float = share) -> None:
                path = folder / f"cut{suffix}"
                write(path, table())
                whole = path.read_bytes()
                if suffix == ".csv":
                    lines = whole.decode().splitlines()
                    at = 1 + int(share * (len(lines) - 2))
                    path.write_text("\n".join([*lines[:at], lines[at].rsplit(",", 2)[0], ""]))
                else:
                    path.write_bytes(whole[: 1 + int(share * (len(whole) - 20))])

            yield reading(f"cut {suffix}", f"cut{suffix}", make, rng)


def misnamed(rng: random.Random) -> Iterator[Case]:
    """One format under the name of another, and files that are no tables at all."""
    foreign = {
        "elf": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 20,
        "png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
        "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n",
        "html": b"<!doctype html><html><body><table><tr><td>1</td></tr></table></body></html>\n",
        "json": b'{"a": [1, 2, 3], "y": [1, 2, 3]}\n',
        "zip": b"PK\x05\x06" + b"\x00" * 18,
        "noise": random.Random(3).randbytes(4000),
        "nothing": b"",
        "newline": b"\n",
        "mark": b"\xef\xbb\xbf",
        "quotes": b'a,b,c,y\n"1,2,3,4\n5,6,7,8\n',
        "nul": b"a,b,c,y\n1,2,\x00,4\n",
    }
    for name, content in foreign.items():
        for suffix in rng.sample([s for s in SUFFIXES if s != ".csv.gz"], 2):

            def make(folder: Path, suffix: str = suffix, content: bytes = content) -> None:
                (folder / f"f{suffix}").write_bytes(content)

            yield reading(f"{name} as {suffix}", f"f{suffix}", make, rng)
    for _ in range(16):
        inside, outside = rng.sample(SUFFIXES, 2)
        if (inside, outside) == (".xlsx", ".npz"):
            continue

        def make(folder: Path, inside: str = inside, outside: str = outside) -> None:
            write(folder / f"x{inside}", table())
            (folder / f"x{inside}").rename(folder / f"f{outside}")

        yield reading(f"{inside} as {outside}", f"f{outside}", make, rng)


def bombs(rng: random.Random) -> Iterator[Case]:
    """Small files that claim or unpack to gigabytes."""
    zeros = np.zeros(1 << 22)

    def packed_parquet(folder: Path) -> None:
        schema = pa.schema([(name, pa.float64()) for name in NAMES])
        with parquet.ParquetWriter(folder / "f.parquet", schema) as file:
            for _ in range(64):
                file.write_table(pa.table({name: zeros for name in NAMES}))

    def packed_folder(folder: Path) -> None:
        packed_parquet(folder)
        (folder / "f").mkdir()
        (folder / "f.parquet").rename(folder / "f" / "0.parquet")

    def packed_feather(folder: Path) -> None:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(
            str(folder / "f.feather"), pa.schema([(n, pa.float64()) for n in NAMES]), options=options
        ) as file:
            for _ in range(32):
                file.write_table(pa.table({name: zeros for name in NAMES}))

    def packed_csv(folder: Path) -> None:
        with gzip.open(folder / "f.csv.gz", "wb", compresslevel=9) as file:
            file.write(b"a,b,c,y\n")
            for _ in range(512):
                file.write(b"0,0,0,0\n" * (1 << 17))

    def packed_npz(folder: Path) -> None:
        with zipfile.ZipFile(folder / "f.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("X.npy", "w", force_zip64=True) as file:
                file.write(_npy_header((1 << 27, 3)))
                for _ in range(3 << 7):
                    file.write(bytes(1 << 23))

    def packed_sheet(folder: Path) -> None:
        with zipfile.ZipFile(folder / "f.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
                for _ in range(1 << 9):
                    file.write(b" " * (1 << 22))

    def one_line(folder: Path) -> None:
        with gzip.open(folder / "f.csv.gz", "wb") as file:
            for _ in range(1 << 9):
                file.write(b"a" * (1 << 22))

    def claimed(suffix: str, shape: tuple[int, ...]) -> Callable[[Path], None]:
        def make(folder: Path) -> None:
            content = _npy_header(shape) + bytes(4096)
            if suffix == ".npy":
                (folder / "f.npy").write_bytes(content)
            else:
                with zipfile.ZipFile(folder / "f.npz", "w") as archive:
                    archive.writestr("X.npy", content)

        return make

    for name, file, make in (
        ("parquet", "f.parquet", packed_parquet), ("folder", "f", packed_folder),
        ("feather", "f.feather", packed_feather), ("csv", "f.csv.gz", packed_csv),
        ("npz", "f.npz", packed_npz), ("xlsx", "f.xlsx", packed_sheet), ("one line", "f.csv.gz", one_line),
    ):  # fmt: skip
        yield reading(f"bomb {name}", file, make, rng, cheap=False)
    for suffix in (".npy", ".npz"):
        for shape in ((1 << 40, 4), (1 << 62, 1 << 62), (1 << 28, 4), (-1, 4)):
            yield reading(f"claims {shape}", f"f{suffix}", claimed(suffix, shape), rng)


def _npy_header(shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def wide(rng: random.Random) -> Iterator[Case]:
    """A hundred thousand columns and a handful of rows."""
    for suffix in (".csv", ".parquet", ".npy", ".npz"):
        for reader in rng.sample(READERS[:5], 2):

            def make(folder: Path, suffix: str = suffix) -> None:
                values = np.random.default_rng(0).standard_normal((20, 100_000))
                if suffix == ".npy":
                    np.save(folder / "f.npy", values)
                elif suffix == ".npz":
                    np.savez(folder / "f.npz", X=values, y=values[:, 0])
                else:
                    names = [f"v{j}" for j in range(99_999)] + ["y"]
                    columns = [pa.array(column) for column in values.T]
                    write(folder / f"f{suffix}", pa.Table.from_arrays(columns, names=names))

            arguments = reader(f"f{suffix}")
            yield Case(f"wide {suffix}: {arguments[0]}", arguments, make, cheap=False)
