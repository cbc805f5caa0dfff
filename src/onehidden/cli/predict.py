"""onehidden predict MODEL FILE: the network at the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
@click.argument("model", type=options.PATH)
@click.argument("file", type=options.PATH)
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
@click.option("--out", type=options.PATH, help="Write .csv or .parquet here.")
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
        runs.free_file(out, runs.TABLES, force)
    made_with, inputs, saved = _opened(model, targets)
    if interval and not hasattr(made_with, "predict_interval"):
        raise ValueError("bands need the standard errors of a run: give its folder, not the model alone")
    table = data.open(file, **{**saved, **options.given(**typed, target=targets)})
    if table.n_inputs != inputs:
        raise ValueError(
            f"the model takes {inputs} features but {file} has {table.n_inputs}: name the target with "
            "--target, or the features with --columns"
        )
    made, compared = predictions(made_with, table, interval, level)
    rows = np.column_stack(list(made.values())).tolist()
    if out is not None:
        runs.write_columns(out, made)
        click.echo(f"{len(rows)} predictions in {out}", err=True)
    elif as_json:
        plain = [[None if value != value else value for value in row] for row in rows]  # gaps are NaN
        held = {"columns": list(made), "predictions": plain}
        click.echo(json.dumps(held if len(made) > 1 else {"predictions": [value for (value,) in plain]}))
    else:
        click.echo("\n".join([",".join(made), *(",".join(map(repr, row)) for row in rows)]))
    if targets:
        click.echo(compared, err=True)
    if gaps := int(np.isnan(next(iter(made.values()))).sum()):
        click.echo(f"{gaps} rows with gaps have no prediction", err=True)
    return 0


def _opened(model: Path, targets: list[str]) -> tuple[OneHiddenNet | Recovery, int, dict[str, Any]]:
    """What predicts, from how many inputs, and how a run folder says that a table is to be read for it."""
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import load_recovery
    from onehidden.recovery.target import reading_of

    weights = model / "model.safetensors" if model.is_dir() else model
    if model.is_dir() and not weights.is_file():
        raise ValueError(f"{model} holds no {weights.name}: give a run folder or a .safetensors file")
    if not (model / "recovery.json").is_file():
        net = OneHiddenNet.load(weights)
        return net, net.n_inputs, {}
    recovery = load_recovery(model)
    return recovery, recovery.network.n_inputs, reading_of(recovery, targets or None)


def predictions(
    net: OneHiddenNet | Recovery, table: Table | Source, interval: str | None = None, level: float = 0.95
) -> tuple[dict[str, np.ndarray], str]:
    """Columns of predictions in the order of the rows, NaN at gaps, and how far they are from outcomes.

    Each output has a column; where ``interval`` is "mean" or "observation" two more, the ends of its band.
    """
    from onehidden.report.subject import as_indicators, output_names

    made_with: Any = net  # of a network alone no bands are asked for
    outputs = output_names(net)
    ends = ("", "_lower", "_upper") if interval else ("",)
    names = [f"{name}{end}" for name in outputs for end in ends]
    if len(outputs) == 1:
        names = ["prediction", "lower", "upper"][: len(ends)]
    blocks, known = [np.zeros((0, len(names)))], [np.zeros((2, 0, len(outputs)))]
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
            known.append(np.stack([y.reshape(len(batch), -1), parts[0]]))
    columns = dict(zip(names, np.concatenate(blocks).T, strict=True))
    return columns, _compared(outputs, *np.concatenate(known, axis=1))


def _compared(names: Sequence[str], y: np.ndarray, found: np.ndarray) -> str:
    """How far predictions are from known outcomes, each with a column an output."""
    if not len(y):
        return "no row with a known outcome and no gaps"
    missed, spread, parts = np.mean((y - found) ** 2, axis=0), np.var(y, axis=0), []
    for name, error, variance in zip(names, missed, spread, strict=True):
        share = f", R² {1 - error / variance:.4f}" if variance > 0 else ""
        parts.append(f"{f'{name}: ' * (len(names) > 1)}mean squared error {error:.4g}{share}")
    return f"{'; '.join(parts)} on {len(y)} rows"
