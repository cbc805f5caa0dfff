"""onehidden predict MODEL FILE: the network at the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from onehidden.cli import examples, options

if TYPE_CHECKING:
    from onehidden.data import Source, Table
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery


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
@click.option("--out", type=click.Path(path_type=Path), help="Write .csv, .parquet, .feather or .npz here.")
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
        runs.free_file(out, (".csv", ".parquet", ".feather", ".npz"), force)
    made_with, inputs, saved = _opened(model, targets)
    if interval and not hasattr(made_with, "predict_interval"):
        raise ValueError("bands need the standard errors of a run: give its folder, not the model alone")
    table = data.open(file, **{**saved, **options.given(**typed, target=targets)})
    if table.n_inputs != inputs:
        raise ValueError(
            f"the model takes {inputs} features but {file} has {table.n_inputs}: name the target with "
            "--target, or the features with --columns"
        )
    made = predictions(made_with, table, interval, level)
    if out is not None:
        made.write(out)
        click.echo(f"{len(made.values)} predictions in {out}", err=True)
    elif as_json:
        click.echo(json.dumps(made.to_dict()))
    else:
        rows = (",".join(map(repr, row)) for row in made.values.tolist())
        click.echo("\n".join([",".join(made.names), *rows]))
    if targets:
        click.echo(made.compared, err=True)
    if gaps := int(np.isnan(made.values[:, 0]).sum()):
        click.echo(f"{gaps} rows with gaps have no prediction", err=True)
    return 0


def _opened(model: Path, targets: list[str]) -> tuple[OneHiddenNet | Recovery, int, dict[str, Any]]:
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
    return recovery, recovery.network.n_inputs, options.as_recovered(recovery, {}, targets or None)


@dataclass(frozen=True)
class Predictions:
    """Predictions in the order of the rows, NaN at gaps, and how far they are from outcomes.

    Each output has a column, and with bands two more, the lower and the upper end.
    """

    names: list[str]
    values: np.ndarray  # (n, columns)
    compared: str  # mean squared error and R² of each output where outcomes are known

    def to_dict(self) -> dict[str, Any]:
        """The predictions as plain values, None at gaps."""
        plain = [[None if v != v else v for v in row] for row in self.values.tolist()]
        if len(self.names) == 1:
            return {"predictions": [row[0] for row in plain]}
        return {"columns": self.names, "predictions": plain}

    def write(self, out: Path) -> None:
        """Write a file whole or not at all; a gap in CSV is nan, since an empty line would be skipped."""
        import pyarrow as pa
        from pyarrow import csv, feather, parquet

        from onehidden.atomic import atomic_file

        suffix, columns = out.suffix.lower(), dict(zip(self.names, self.values.T, strict=True))
        with atomic_file(out) as place:
            if suffix == ".npz":
                with place.open("wb") as file:  # to a name that ends in .NPZ NumPy would add another .npz
                    np.savez(file, **columns)  # pyright: ignore[reportArgumentType]
                return
            gaps = suffix != ".csv"
            table = pa.table({name: pa.array(one, from_pandas=gaps) for name, one in columns.items()})
            form: Any = {".csv": csv.write_csv, ".parquet": parquet.write_table}
            form.get(suffix, feather.write_feather)(table, str(place))


def predictions(
    net: OneHiddenNet | Recovery, table: Table | Source, interval: str | None = None, level: float = 0.95
) -> Predictions:
    """Predict at all rows of a table, with ends of bands where ``interval`` is "mean" or "observation"."""
    from onehidden.report.subject import as_indicators, output_names

    made_with: Any = net  # of a network alone no bands are asked for
    outputs = output_names(net)
    ends = ("", "_lower", "_upper") if interval else ("",)
    names = [f"{name}{end}" for name in outputs for end in ends]
    if len(outputs) == 1:
        names = ["prediction", "lower", "upper"][: len(ends)]
    blocks, known, found = [np.zeros((0, len(names)))], [], []
    for batch in table.batches():
        blocks.append(np.full((batch.read, len(names)), np.nan))
        if not len(batch):
            continue
        offset = {} if batch.offset is None else {"offset": batch.offset}
        values = made_with.predict(batch.X, **offset)
        bands = made_with.predict_interval(batch.X, level, interval, batch.offset) if interval else ()
        parts = [part.reshape(len(batch), -1) for part in (values, *bands)]
        blocks[-1][batch.row - batch.first] = np.stack(parts, axis=2).reshape(len(batch), -1)
        y = as_indicators(batch.y, getattr(net, "classes", ()))
        if y is not None and y.size == values.size:
            y = y if batch.trials is None else (y.T / batch.trials).T
            known.append(y.reshape(len(batch), -1))
            found.append(parts[0])
    return Predictions(names, np.concatenate(blocks), _compared(outputs, known, found))


def _compared(names: Sequence[str], known: list[np.ndarray], found: list[np.ndarray]) -> str:
    """How far predictions are from known outcomes, each a list of blocks with a column an output."""
    if not sum(map(len, known)):
        return "no row with a known outcome and no gaps"
    y, parts = np.concatenate(known), []
    missed, spread = np.mean((y - np.concatenate(found)) ** 2, axis=0), np.var(y, axis=0)
    for name, error, variance in zip(names, missed, spread, strict=True):
        share = f", R² {1 - error / variance:.4f}" if variance > 0 else ""
        parts.append(f"{f'{name}: ' * (len(names) > 1)}mean squared error {error:.4g}{share}")
    return f"{'; '.join(parts)} on {len(y)} rows"
