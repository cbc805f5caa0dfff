"""A hostile input, and what every one of them is made from."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from fake_recovery import saved_run
from pyarrow import csv, feather, parquet

from onehidden.network import OneHiddenNet

NAMES = ("a", "b", "c", "y")


@dataclass(frozen=True)
class Case:
    """A hostile input: what is made in a folder, and the command that meets it.

    ``cheap`` ones take a fraction of a second and little memory; ``kept`` asks for a checkpoint of t.csv.
    """

    name: str
    arguments: tuple[str, ...]
    make: Callable[[Path], None]
    cheap: bool = True
    kept: bool = False


def home(folder: Path) -> None:
    """What every case finds in its folder: a table, a run, a model."""
    folder.mkdir(parents=True, exist_ok=True)
    csv.write_csv(table(), folder / "t.csv")
    rng = np.random.default_rng(0)
    net = OneHiddenNet(rng.standard_normal((2, 3)), [1.0, -2.0], [0.3, 0.1], 0.5)
    saved_run(folder / "run", net, NAMES[:3], {"target": "y"})
    net.save(folder / "m.safetensors")


def table(n: int = 60, names: tuple[str, ...] = NAMES) -> pa.Table:
    """Rows of a network with noise."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, len(names) - 1))
    y = np.maximum(X @ np.ones(X.shape[1]), 0) + 0.1 * rng.standard_normal(n)
    return pa.table({name: column for name, column in zip(names, [*X.T, y], strict=True)})


def write(path: Path, held: pa.Table) -> None:
    """The table in the format that the suffix names."""
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if suffix == ".csv":
        csv.write_csv(held, path)
    elif suffix == ".csv.gz":
        plain = path.with_suffix("")
        csv.write_csv(held, plain)
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    elif suffix == ".parquet":
        parquet.write_table(held, path)
    elif suffix == ".feather":
        feather.write_feather(held, str(path))
    elif suffix == ".npz":
        np.savez(path, **{name: held.column(name).to_numpy() for name in held.column_names})
    elif suffix == ".npy":
        columns = [held.column(name).to_numpy() for name in held.column_names]
        np.save(path, np.rec.fromarrays(columns, names=list(held.column_names)))
    else:
        from openpyxl import Workbook

        book = Workbook(write_only=True)
        sheet = book.create_sheet("s")
        sheet.append(held.column_names)
        for row in zip(*(held.column(name).to_pylist() for name in held.column_names), strict=True):
            sheet.append(row)
        book.save(path)


SUFFIXES = (".csv", ".csv.gz", ".parquet", ".feather", ".npz", ".npy", ".xlsx")
READERS: tuple[Callable[[str], tuple[str, ...]], ...] = (
    lambda file: ("recover", file, "--hidden", "1", "--out", "new"),
    lambda file: ("predict", "run", file, "--out", "new.csv"),
    lambda file: ("report", "run", "--data", file, "--out", "page.html"),
    lambda file: ("report", "run", "--data", file, "--out", "new.html"),
    lambda file: ("score", file, "--estimator", "gaussian", "--out", "new.parquet"),
    lambda file: ("predict", "m.safetensors", file, "--columns", "a,b,c"),
)


def reading(
    name: str, file: str, make: Callable[[Path], None], rng: random.Random, cheap: bool = True
) -> Case:
    """A case of a random command that reads a table."""
    arguments = rng.choice(READERS)(file)
    return Case(f"{name}: {arguments[0]}", arguments, make, cheap)
