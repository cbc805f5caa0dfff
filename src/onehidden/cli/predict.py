"""onehidden predict MODEL FILE: the network at the rows of a table, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from onehidden.cli import examples, options

if TYPE_CHECKING:
    from onehidden.data import Batch, Source, Table
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery

FORMATS = (".csv", ".parquet", ".feather", ".npz", ".npy")


@click.command(
    name="predict",
    epilog=examples(
        "onehidden predict my-run new.csv --out predictions.csv",
        "onehidden predict my-run folder-of-parquet --out predictions.parquet",
        "onehidden predict my-run new.csv --interval observation --level 0.9",
        "onehidden predict my-run/model.safetensors test.csv --target y --json",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    "targets",
    **options.TARGETS,
    help="Columns of known outcomes: left out of the features, compared on stderr.",
)
@click.option(
    "--interval",
    type=click.Choice(["mean", "observation"]),
    help="Ends of a band with each prediction: of the mean of y, or of a new observation.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="How sure each band is.")
@options.reading_options("columns", "drop", "nulls", "na", "decimal", "encoding")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write .csv, .parquet, .feather, .npz or .npy here."
)
@click.option("--force", is_flag=True, help="Replace the file that --out names.")
@click.option("--json", "as_json", is_flag=True, help="Predictions as JSON on stdout.")
def command(
    model: Path, file: Path, targets: list[str], interval: str | None, level: float, out: Path | None,
    force: bool, as_json: bool, **typed: Any,
) -> int:  # fmt: skip
    """Predict with the network in MODEL (a .safetensors file or a run folder) at the rows of FILE.

    A run folder knows its columns: they are found by name and treated as in the run. A folder of Parquet
    files is streamed. With --nulls drop, rows with gaps keep their place: nan in text, null in JSON
    and in tables. Of several outputs there is a column each; --interval adds a lower and an upper end.
    """
    from onehidden import data
    from onehidden.cli import runs

    runs.must_differ(out, file, model)
    if out is not None:
        runs.free_file(out, FORMATS, force)
    made_with, inputs, saved = _opened(model)
    if interval and not hasattr(made_with, "predict_interval"):
        raise ValueError("bands need the standard errors of a run: give its folder, not the model alone")
    how = {**saved, **options.given(**typed, target=targets)}
    table = data.open(file, **how)
    if table.n_inputs != inputs:
        raise ValueError(
            f"the model takes {inputs} features but {file} has {table.n_inputs}: name the target with "
            "--target, or the features with --columns"
        )
    made = Predictions(made_with, table, interval, level)
    if out is not None:
        count = write(made, out)
        click.echo(f"{count} predictions in {out}", err=True)
    else:
        rows = [row for block in made for row in block.tolist()]
        if as_json:
            plain = [[None if v != v else v for v in row] for row in rows]
            single = len(made.names) == 1
            shown: dict[str, Any] = {"predictions": [row[0] for row in plain] if single else plain}
            click.echo(json.dumps(shown if single else {"columns": made.names, **shown}))
        else:
            click.echo("\n".join([",".join(made.names), *(",".join(map(repr, row)) for row in rows)]))
    if targets:
        click.echo(made.error.sentence(), err=True)
    if made.gaps:
        click.echo(f"{made.gaps} rows with gaps have no prediction", err=True)
    return 0


def _opened(model: Path) -> tuple[OneHiddenNet | Recovery, int, dict[str, Any]]:
    """What predicts, from how many inputs, and how a run folder says that a table is to be read for it."""
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import load_recovery

    weights = model / "model.safetensors" if model.is_dir() else model
    if model.is_dir() and not weights.is_file():
        raise ValueError(f"{model} holds no {weights.name}: give a run folder or a .safetensors file")
    if not (model / "recovery.json").is_file():
        net = OneHiddenNet.load(weights)
        return net, net.n_inputs, {}
    recovery = load_recovery(model)
    return recovery, recovery.network.n_inputs, options.as_recovered(recovery, {})


class Error:
    """Mean squared error and R² over batches, by sums about running means; one per output where named."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = tuple(names)
        zeros = np.zeros(max(len(self.names), 1))
        self.n, self.squared, self._mean, self._scatter = 0, zeros, zeros, zeros

    def update(self, y: np.ndarray, predicted: np.ndarray) -> None:
        """Add rows with their predictions."""
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
        """The figures for a person."""
        if self.n == 0:
            return "no row with a known outcome and no gaps"
        parts = []
        for name, one in zip(self.names or ("",), self._each(), strict=True):
            share = "" if one["r_squared"] is None else f", R² {one['r_squared']:.4f}"
            named = f"{name}: " if len(self.names) > 1 else ""
            parts.append(f"{named}mean squared error {one['mean_squared_error']:.4g}{share}")
        return f"{'; '.join(parts)} on {self.n} rows"

    def figures(self) -> dict[str, Any]:
        """The same as plain values; of several outputs one record each, by name."""
        each = self._each()
        if len(self.names) > 1 and self.n:
            return {"rows": self.n, "outputs": dict(zip(self.names, each, strict=True))}
        return {"rows": self.n, **each[0]}

    def _each(self) -> list[dict[str, float | None]]:
        """Of each output its mean squared error and 1 - sum (y - f)^2 / sum (y - mean)^2, if y varies."""
        return [
            {"mean_squared_error": squared / self.n if self.n else None,
             "r_squared": 1 - squared / whole if whole > 0 else None}
            for squared, whole in zip(self.squared.tolist(), self._scatter.tolist(), strict=True)
        ]  # fmt: skip


class Predictions:
    """Blocks of predictions in the order of the rows, NaN at gaps; ``error`` fills on the way.

    A block has a row per row of the table and a column per name: each output, with ``interval`` ("mean" or
    "observation") followed by the lower and the upper end of its band.
    """

    def __init__(
        self, net: OneHiddenNet | Recovery, table: Table | Source, interval: str | None = None,
        level: float = 0.95,
    ) -> None:  # fmt: skip
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
        """Predictions of a batch, each with the ends of its band."""
        from onehidden.report.subject import as_indicators

        run: Any = self.net
        offset = {} if batch.offset is None else {"offset": batch.offset}
        values: np.ndarray = run.predict(batch.X, **offset)
        y = as_indicators(batch.y, self.classes)
        if y is not None and y.size == values.size:
            self.error.update(y if batch.trials is None else (y.T / batch.trials).T, values)
        parts = [values]
        if self.interval:
            parts += run.predict_interval(batch.X, self.level, self.interval, batch.offset)
        return np.stack([part.reshape(len(batch), -1) for part in parts], axis=2).reshape(len(batch), -1)


def output_names(net: OneHiddenNet | Recovery) -> tuple[str, ...]:
    """What predictions are called: "prediction", or of several outputs the names of their columns."""
    from onehidden.report.subject import named_outputs

    network: Any = getattr(net, "network", net)
    if network.output.ndim == 1:
        return ("prediction",)
    return named_outputs(net, network.n_outputs) or tuple(f"y{j}" for j in range(network.n_outputs))


def scored(net: OneHiddenNet | Recovery, table: Table | Source) -> Error:
    """The error of the predictions on the rows of a table with known outcomes."""
    made = Predictions(net, table)
    for _ in made:
        pass
    return made.error


def write(made: Predictions, out: Path) -> int:
    """Write the predictions whole or not at all; how many they are."""
    from onehidden.atomic import atomic_file

    count = 0
    with atomic_file(out) as place:
        with _writer(out.suffix.lower(), place, made.names) as put:
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
