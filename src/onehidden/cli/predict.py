"""onehidden predict MODEL FILE: the network at the rows of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onehidden.cli import examples, reading

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery

MODEL_NAME = "model.safetensors"


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
    **reading.TARGETS,
    help="Columns of known outcomes: left out of the features, compared on stderr.",
)
@click.option(
    "--interval",
    type=click.Choice(["mean", "observation"]),
    help="Ends of a band beside each prediction: of the mean of y, or of a new observation.",
)
@click.option("--level", type=float, default=0.95, show_default=True, help="How sure each band is.")
@reading.options("columns", "drop", "nulls", "na", "decimal", "encoding")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write .csv, .parquet, .feather, .npz or .npy here."
)
@click.option("--force", is_flag=True, help="Replace the file that --out names.")
@click.option("--json", "as_json", is_flag=True, help="Predictions as JSON on stdout.")
def command(
    model: Path,
    file: Path,
    targets: list[str],
    interval: str | None,
    level: float,
    out: Path | None,
    force: bool,
    as_json: bool,
    **typed: Any,
) -> int:
    """Predict with the network in MODEL (a .safetensors file or a run folder) at the rows of FILE.

    A run folder knows its columns: they are found by name and treated as in the run. A folder of Parquet
    files is streamed. With --nulls drop, rows with gaps keep their place: nan in text, null in JSON
    and in tables. Of several outputs there is a column each; --interval adds a lower and an upper end.
    """
    from onehidden import data
    from onehidden.cli import predictions, runs

    runs.must_differ(out, file, model)
    if out is not None:
        runs.free_file(out, predictions.FORMATS, force)
    made_with, inputs, saved = _opened(model)
    if interval and not hasattr(made_with, "predict_interval"):
        raise ValueError("bands need the standard errors of a run: give its folder, not the model alone")
    how = {**saved, **reading.given(**typed, target=targets)}
    table = data.open(file, **how)
    if table.n_inputs != inputs:
        raise ValueError(
            f"the model takes {inputs} features but {file} has {table.n_inputs}: name the target with "
            "--target, or the features with --columns"
        )
    made = predictions.Predictions(made_with, table, interval, level)
    if out is not None:
        count = predictions.write(made, out)
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

    if not model.is_dir():
        net = OneHiddenNet.load(model)
        return net, net.n_inputs, {}
    if not (model / MODEL_NAME).is_file():
        raise ValueError(f"{model} holds no {MODEL_NAME}: give a run folder or a .safetensors file")
    if not (model / "recovery.json").is_file():
        net = OneHiddenNet.load(model / MODEL_NAME)
        return net, net.n_inputs, {}
    recovery = load_recovery(model)
    return recovery, recovery.network.n_inputs, reading.as_recovered(recovery, {})
