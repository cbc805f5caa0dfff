"""Predictions batch by batch: at the rows of a table held or streamed, written as they come."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.whole import whole_file

if TYPE_CHECKING:
    from onehidden.data import Source, Table
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery

FORMATS = (".csv", ".parquet", ".feather", ".npz", ".npy")


class Error:
    """Mean squared error and R² over batches, by sums about running means."""

    def __init__(self) -> None:
        self.n, self.squared, self._mean, self._scatter = 0, 0.0, 0.0, 0.0

    def update(self, y: np.ndarray, predicted: np.ndarray) -> None:
        if not len(y):
            return
        total, mean = self.n + len(y), float(np.mean(y))
        step = mean - self._mean
        self._scatter += float(np.sum((y - mean) ** 2)) + step**2 * self.n * len(y) / total
        self._mean += step * len(y) / total
        self.squared += float(np.sum((y - predicted) ** 2))
        self.n = total

    @property
    def mean(self) -> float:
        return self.squared / self.n

    @property
    def r_squared(self) -> float | None:
        """1 - sum (y - f)^2 / sum (y - mean)^2; None where y does not vary."""
        return 1 - self.squared / self._scatter if self._scatter > 0 else None

    def sentence(self) -> str:
        if self.n == 0:
            return "no row with a known outcome and no gaps"
        share = "" if self.r_squared is None else f", R² {self.r_squared:.4f}"
        return f"mean squared error {self.mean:.4g}{share} on {self.n} rows"


class Predictions:
    """Blocks of predictions in the order of the rows, NaN at gaps; ``error`` fills on the way."""

    def __init__(self, net: OneHiddenNet | Recovery, table: Table | Source) -> None:
        self.net, self.table = net, table
        self.error, self.gaps = Error(), 0

    def __iter__(self) -> Iterator[np.ndarray]:
        for batch in self.table.batches():
            values: np.ndarray = self.net.predict(batch.X) if len(batch) else np.zeros(0)
            if values.ndim > 1:
                raise ValueError(
                    f"the model has {values.shape[1]} outputs, predict writes one: use it in Python"
                )
            if batch.y is not None:
                self.error.update(batch.y, values)
            self.gaps += batch.dropped
            block = np.full(len(batch) + batch.dropped, np.nan)
            block[batch.row - batch.first] = values
            yield block


def scored(net: OneHiddenNet | Recovery, table: Table | Source) -> Error:
    """The error of the predictions on the rows of a table with known outcomes."""
    made = Predictions(net, table)
    for _ in made:
        pass
    return made.error


def write(made: Predictions, out: Path) -> int:
    """Write the predictions whole or not at all; how many they are."""
    count = 0
    with whole_file(out) as beside:
        with _writer(out.suffix.lower(), beside) as put:
            for block in made:
                count += len(block)
                put(block)
    return count


@contextmanager
def _writer(suffix: str, path: Path) -> Iterator[Any]:
    """A function that takes the next block; arrays are held until the end, tables are not."""
    if suffix in (".npz", ".npy"):
        blocks: list[np.ndarray] = []
        yield blocks.append
        values = np.concatenate([np.zeros(0), *blocks])
        with path.open("wb") as file:  # to a name that ends in .NPZ NumPy would add another .npz
            if suffix == ".npy":
                np.save(file, values)
            else:
                np.savez(file, prediction=values)
        return
    import pyarrow as pa
    from pyarrow import csv, parquet

    schema = pa.schema([("prediction", pa.float64())])
    open_ = {
        ".csv": lambda: csv.CSVWriter(path, schema),
        ".parquet": lambda: parquet.ParquetWriter(path, schema),
        ".feather": lambda: pa.ipc.new_file(str(path), schema),
    }[suffix]
    gaps = suffix != ".csv"  # there a gap would be an empty line, which readers skip: it stays nan
    with open_() as writer:
        yield lambda block: writer.write_table(pa.table([pa.array(block, from_pandas=gaps)], schema=schema))
