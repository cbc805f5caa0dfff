"""Predictions batch by batch: at the rows of a table held or streamed, written as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.report.subject import as_indicators, label
from onehidden.whole import whole_file

if TYPE_CHECKING:
    from onehidden.data import Batch, Source, Table
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery

FORMATS = (".csv", ".parquet", ".feather", ".npz", ".npy")


class Error:
    """Mean squared error and R² over batches, by sums about running means; one an output where named."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = tuple(names)
        zeros = np.zeros(max(len(self.names), 1))
        self.n, self.squared, self._mean, self._scatter = 0, zeros, zeros, zeros

    def update(self, y: np.ndarray, predicted: np.ndarray) -> None:
        if not len(y):
            return
        y, predicted = y.reshape(len(y), -1), predicted.reshape(len(y), -1)
        total, mean = self.n + len(y), y.mean(axis=0)
        step = mean - self._mean
        self._scatter = self._scatter + np.sum((y - mean) ** 2, axis=0) + step**2 * self.n * len(y) / total
        self._mean = self._mean + step * len(y) / total
        self.squared = self.squared + np.sum((y - predicted) ** 2, axis=0)
        self.n = total

    def sentence(self) -> str:
        if self.n == 0:
            return "no row with a known outcome and no gaps"
        said = []
        for name, one in zip(self.names or ("",), self._each(), strict=True):
            share = "" if one["r_squared"] is None else f", R² {one['r_squared']:.4f}"
            named = f"{name}: " if len(self.names) > 1 else ""
            said.append(f"{named}mean squared error {one['mean_squared_error']:.4g}{share}")
        return f"{'; '.join(said)} on {self.n} rows"

    def figures(self) -> dict[str, Any]:
        """The same as plain values; of several outputs one record each, by name."""
        each = self._each() if self.n else [{"mean_squared_error": None, "r_squared": None}]
        if len(self.names) > 1 and self.n:
            return {"rows": self.n, "outputs": dict(zip(self.names, each, strict=True))}
        return {"rows": self.n, **each[0]}

    def _each(self) -> list[dict[str, float | None]]:
        """Of each output its mean squared error and 1 - sum (y - f)^2 / sum (y - mean)^2, if y varies."""
        return [
            {"mean_squared_error": squared / self.n, "r_squared": 1 - squared / all_ if all_ > 0 else None}
            for squared, all_ in zip(self.squared.tolist(), self._scatter.tolist(), strict=True)
        ]


class Predictions:
    """Blocks of predictions in the order of the rows, NaN at gaps; ``error`` fills on the way.

    A block has a row a row of the table and a column a name: each output, with ``interval`` ("mean" or
    "observation") followed by the lower and the upper end of its band.
    """

    def __init__(
        self,
        net: OneHiddenNet | Recovery,
        table: Table | Source,
        interval: str | None = None,
        level: float = 0.95,
    ) -> None:
        self.net, self.table, self.interval, self.level = net, table, interval, level
        self.outputs = output_names(net)
        ends = ("", "_lower", "_upper") if interval else ("",)
        single = self.outputs == ("prediction",)
        self.names = [f"{name}{end}" for name in self.outputs for end in ends]
        if single:
            self.names = [name.removeprefix("prediction_") for name in self.names]
        self.classes: tuple[Any, ...] = getattr(net, "classes", ())
        self.error, self.gaps = Error(self.outputs if self.classes else table.target_names), 0

    def __iter__(self) -> Iterator[np.ndarray]:
        for batch in self.table.batches():
            block = np.full((len(batch) + batch.dropped, len(self.names)), np.nan)
            if len(batch):
                block[batch.row - batch.first] = self._of(batch)
            self.gaps += batch.dropped
            yield block

    def _of(self, batch: Batch) -> np.ndarray:
        """Predictions of a batch, the ends of their bands beside each."""
        if isinstance(batch.offset, np.ndarray):
            values: np.ndarray = self.net.predict(batch.X, offset=batch.offset)  # pyright: ignore[reportCallIssue]
        else:
            values = self.net.predict(batch.X)
        y = as_indicators(batch.y, self.classes)
        if y is not None and y.size == values.size:
            self.error.update(y if batch.trials is None else (y.T / batch.trials).T, values)
        parts = [values]
        if self.interval:
            run: Any = self.net
            parts += run.predict_interval(batch.X, self.level, self.interval, batch.offset)
        return np.stack([part.reshape(len(batch), -1) for part in parts], axis=2).reshape(len(batch), -1)


def output_names(net: OneHiddenNet | Recovery) -> tuple[str, ...]:
    """What predictions are called: "prediction", or of several outputs the names of their columns."""
    network: Any = getattr(net, "network", net)
    if network.output.ndim == 1:
        return ("prediction",)
    options: dict[str, Any] = getattr(net, "options", {})
    named = [*map(label, getattr(net, "classes", ())[1:])] or options.get("target")
    if isinstance(named, (list, tuple)) and len(named) == network.n_outputs:
        return tuple(map(str, named))
    return tuple(f"y{j}" for j in range(network.n_outputs))


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
        with _writer(out.suffix.lower(), beside, made.names) as put:
            for block in made:
                count += len(block)
                put(block)
    return count


@contextmanager
def _writer(suffix: str, path: Path, names: Sequence[str]) -> Iterator[Any]:
    """A function that takes the next block; arrays are held until the end, tables are not."""
    if suffix in (".npz", ".npy"):
        blocks: list[np.ndarray] = []
        yield blocks.append
        values = np.concatenate([np.zeros((0, len(names))), *blocks])
        with path.open("wb") as file:  # to a name that ends in .NPZ NumPy would add another .npz
            if suffix == ".npy":
                np.save(file, values[:, 0] if len(names) == 1 else values)
            else:
                np.savez(file, **{name: values[:, j] for j, name in enumerate(names)})  # pyright: ignore[reportArgumentType]
        return
    import pyarrow as pa
    from pyarrow import csv, parquet

    schema = pa.schema([(name, pa.float64()) for name in names])
    open_ = {
        ".csv": lambda: csv.CSVWriter(path, schema),
        ".parquet": lambda: parquet.ParquetWriter(path, schema),
        ".feather": lambda: pa.ipc.new_file(str(path), schema),
    }[suffix]
    gaps = suffix != ".csv"  # there a gap would be an empty line, which readers skip: it stays nan
    with open_() as writer:
        yield lambda block: writer.write_table(
            pa.table([pa.array(column.copy(), from_pandas=gaps) for column in block.T], schema=schema)
        )
