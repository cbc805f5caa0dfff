"""Tables of odd columns: names, numbers, types, and folders of which one part is odd."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from hostile.case import NAMES, READERS, Case, reading, table, write
from pyarrow import csv, parquet

ESCAPES = (
    "\x1b[2J\x1b[31mred",
    "\x1b]0;title\x07",
    "bell\x07",
    "back\x08\x08",
    "\u202egnp.exe",
    "\x9b31m",
    "\x7f",
)
HTML = ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "'\"><svg/onload=1>")


def named(rng: random.Random) -> Iterator[Case]:
    """Names that steer a terminal are refused; those of HTML appear in sentences as they are, inert."""
    for name in ESCAPES:
        for suffix in rng.sample((".csv", ".parquet", ".npz"), 2):

            def make(folder: Path, name: str = name, suffix: str = suffix) -> None:
                write(folder / f"f{suffix}", table(names=("a", name, "c", "y")))

            yield reading(f"name {name!r}", f"f{suffix}", make, rng)
    for name in HTML:

        def make(folder: Path, name: str = name) -> None:
            write(folder / "f.parquet", table(names=("a", name, "c", "z")))

        arguments = rng.choice(READERS[:4])("f.parquet")
        yield Case(f"name {name!r}: {arguments[0]}", arguments, make)

    def levels(folder: Path) -> None:
        rows = pa.table({"a": ["\x1b[31m", "u"] * 30, "y": np.arange(60.0)})
        parquet.write_table(rows, folder / "f.parquet")

    yield Case("category that steers", ("recover", "f.parquet", "--one-hot", "--out", "new"), levels)

    def file_name(folder: Path) -> None:
        write(folder / "\x1b[31mf.csv", table(names=("a", "b", "c", "z")))

    yield Case("file name that steers", ("recover", "\x1b[31mf.csv", "--out", "new"), file_name)
    long = ("x" * 5000, "y" * 5000)

    def lengthy(folder: Path) -> None:
        write(folder / "f.parquet", table(names=(*long, "c", "z")))

    yield Case("long names", ("recover", "f.parquet", "--out", "new"), lengthy)


def numbers(rng: random.Random) -> Iterator[Case]:
    """The ends of float64, and what is no finite number."""
    largest, tiny = np.finfo(float).max, 5e-324
    n = 60
    turns = np.where(np.arange(n) % 2, 1.0, -1.0)
    step = np.arange(n, dtype=float)
    columns: dict[str, dict[str, object]] = {
        "largest": {"a": turns * largest},
        "largest y": {"y": turns * largest},
        "nearly largest": {"a": step / n * largest},
        "large and small": {"a": np.where(step == 3, 1e300, step)},
        "infinite": {"b": np.where(step == 7, np.inf, step)},
        "minus infinite": {"y": np.where(step == 7, -np.inf, step)},
        "nan": {"c": np.where(step == 7, np.nan, step)},
        "all nan": {"c": np.full(n, np.nan)},
        "denormal": {"a": step * tiny, "b": step[::-1] * tiny, "c": turns * tiny},
        "all constant": {"a": np.ones(n), "b": np.ones(n), "c": np.ones(n)},
        "constant beyond rounding": {"a": 1e16 + np.zeros(n), "b": np.full(n, -largest), "c": np.zeros(n)},
    }
    for name, changed in columns.items():
        for suffix in rng.sample((".csv", ".parquet", ".npz", ".feather"), 2):

            def make(folder: Path, changed: dict = changed, suffix: str = suffix) -> None:
                held = {k: table().column(k).to_numpy() for k in NAMES}
                write(folder / f"f{suffix}", pa.table({**held, **changed}))

            yield Case(f"{name} {suffix}", ("recover", f"f{suffix}", "--hidden", "1", "--out", "new"), make)
    for text in ("1e400", "-1e999", "infinity", "0x1p-3", "1_000", "١٢", "1e", "--5", "1.2.3", "+-1"):

        def make(folder: Path, text: str = text) -> None:
            lines = ["a,b,c,y", *(f"{i},{i * i % 7},{i % 5},{i % 3}" for i in range(40)), f"{text},1,2,3"]
            (folder / "f.csv").write_text("\n".join(lines) + "\n")

        yield reading(f"number {text}", "f.csv", make, rng)
    for weight in (-1.0, np.nan, 0.0):

        def make(folder: Path, weight: float = weight) -> None:
            write(folder / "f.parquet", table().append_column("w", pa.array(np.full(60, weight))))

        yield Case(f"weights {weight}", ("recover", "f.parquet", "--weight", "w", "--out", "new"), make)


def mixed(rng: random.Random) -> Iterator[Case]:
    """Columns that are no numbers, of every type of Arrow."""
    n = 60
    kinds: dict[str, pa.Array] = {
        "text": pa.array([f"t{i}" for i in range(n)]),
        "large text": pa.array([f"t{i % 3}" for i in range(n)], pa.large_string()),
        "half text": pa.array([str(i) if i % 2 else "x" for i in range(n)]),
        "dates": pa.array(range(n), pa.date32()),
        "times": pa.array(range(n), pa.timestamp("ns")),
        "spans": pa.array(range(n), pa.duration("s")),
        "bytes": pa.array([b"\xff\xfe"] * n),
        "lists": pa.array([[1.0, 2.0]] * n),
        "records": pa.array([{"p": 1.0}] * n),
        "maps": pa.array([[("k", 1.0)]] * n, pa.map_(pa.string(), pa.float64())),
        "codes": pa.array(["u", "v"] * (n // 2)).dictionary_encode(),
        "gaps": pa.nulls(n),
    }
    for name, column in kinds.items():
        for suffix in (".parquet", ".feather"):
            place = rng.choice(NAMES[:3])

            def make(
                folder: Path, column: pa.Array = column, suffix: str = suffix, place: str = place
            ) -> None:
                held = table()
                write(folder / f"f{suffix}", held.set_column(held.column_names.index(place), place, column))

            yield reading(f"{name} {suffix}", f"f{suffix}", make, rng)
    lines = {
        "ragged": "a,b,c,y\n1,2,3,4\n1,2,3\n",
        "twice": "a,a,c,y\n1,2,3,4\n2,3,4,5\n",
        "no header": "1.5,2,3,4\n2,3,4,5\n",
        "no rows": "a,b,c,y\n",
        "index": ",a,b,c,y\n0,1,2,3,4\n1,2,3,4,6\n",
        "late text": "a,b,c,y\n" + "1,2,3,4\n2,1,4,3\n" * 3000 + "oops,2,3,4\n",
        "one row": "a,b,c,y\n1,2,3,4\n",
        "currency": "a,b,c,y\n" + "$1,2,3,4\n$2,1,4,3\n" * 20,
        "percent": "a,b,c,y\n" + "1%,2,3,4\n2%,1,4,3\n" * 20,
        "decimal commas": "a;b;c;y\n" + "1,5;2;3;4\n2,5;1;4;3\n" * 20,
        "formula": "a,b,c,y\n" + "=cmd|' /C calc'!A0,2,3,4\n1,1,4,3\n" * 20,
    }
    for name, text in lines.items():

        def make(folder: Path, text: str = text) -> None:
            (folder / "f.csv").write_text(text)

        arguments = ("recover", "f.csv", "--hidden", "1", "--out", "new")
        yield Case(f"{name} in CSV", arguments, make)
    for name, content in (
        ("objects", np.array([[1, "a"], [None, 2.0]], dtype=object)),
        ("complex", np.ones((9, 4)) * 1j),
        ("words", np.array([["a", "b"], ["c", "d"]])),
        ("line", np.ones(9)),
        ("cube", np.ones((3, 3, 3))),
        ("scalar", np.array(3.0)),
        ("no rows", np.ones((0, 4))),
        ("no columns", np.ones((9, 0))),
    ):

        def make(folder: Path, content: np.ndarray = content) -> None:
            np.save(folder / "f.npy", content, allow_pickle=True)

        yield reading(f"{name} in npy", "f.npy", make, rng)


def folders(rng: random.Random) -> Iterator[Case]:
    """Folders of Parquet with one bad part."""

    def good(folder: Path) -> Path:
        (folder / "f").mkdir()
        for i in range(3):
            write(folder / "f" / f"{i}.parquet", table())
        return folder / "f" / "9.parquet"

    def cut(path: Path) -> None:
        write(path, table())
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    def tail(path: Path) -> None:
        write(path, table(3000))
        content = bytearray(path.read_bytes())
        content[8 : len(content) // 2] = bytes(len(content) // 2 - 8)
        path.write_bytes(bytes(content))

    faults: dict[str, Callable[[Path], None]] = {
        "cut": cut,
        "damaged inside": tail,
        "lacks a column": lambda p: write(p, table().drop_columns(["b"])),
        "another column": lambda p: write(p, table().append_column("z", pa.array(np.ones(60)))),
        "text": lambda p: write(p, table().set_column(1, "b", pa.array(["u"] * 60))),
        "dates": lambda p: write(p, table().set_column(1, "b", pa.array(range(60), pa.date32()))),
        "gap": lambda p: write(p, table().set_column(1, "b", pa.array([None] + [1.0] * 59))),
        "infinite": lambda p: write(p, table().set_column(2, "c", pa.array([np.inf] + [1.0] * 59))),
        "empty": lambda p: p.write_bytes(b""),
        "CSV": lambda p: csv.write_csv(table(), p),
        "noise": lambda p: p.write_bytes(random.Random(1).randbytes(3000)),
    }
    for name, fault in faults.items():
        for reader in rng.sample(READERS[:4], 2):

            def make(folder: Path, fault: Callable[[Path], None] = fault) -> None:
                fault(good(folder))

            arguments = reader("f")
            yield Case(f"part: {name}: {arguments[0]}", arguments, make)
    for name, make in (
        ("no files", lambda folder: (folder / "f").mkdir()),
        (
            "only hidden files",
            lambda folder: ((folder / "f").mkdir(), write(folder / "f" / "_0.parquet", table())),
        ),
        ("folder named parquet", lambda folder: (folder / "f" / "0.parquet").mkdir(parents=True)),
    ):
        yield reading(f"folder: {name}", "f", make, rng)
