"""onehidden predict MODEL FILE: the network at the rows of a table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onehidden.cli import examples

if TYPE_CHECKING:
    import numpy as np

    from onehidden.data import Table
    from onehidden.network import OneHiddenNet

MODEL_NAME = "model.safetensors"
FORMATS = (".csv", ".parquet", ".feather", ".npz", ".npy")


@click.command(
    name="predict",
    epilog=examples(
        "onehidden predict my-run new.csv --out predictions.csv",
        "onehidden predict my-run/model.safetensors test.csv --target y --json",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--target", help="Column with known outcomes: left out of the features, compared on stderr.")
@click.option("--columns", help="Feature columns, comma-separated, in the order of the model's inputs.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write .csv, .parquet, .feather, .npz or .npy here."
)
@click.option("--json", "as_json", is_flag=True, help="Predictions as JSON on stdout.")
def command(
    model: Path, file: Path, target: str | None, columns: str | None, out: Path | None, as_json: bool
) -> int:
    """Predict with the network in MODEL (a .safetensors file or a run folder) at the rows of FILE."""
    from onehidden import data
    from onehidden.cli import runs
    from onehidden.network import OneHiddenNet

    runs.must_differ(out, file, model)
    if out is not None:
        runs.free_file(out, FORMATS)
    net = OneHiddenNet.load(_model_file(model))
    chosen = [name.strip() for name in columns.split(",")] if columns else _names_of_run(model, net)
    table = data.open(file, target=target, columns=chosen, stream=False)
    if table.n_inputs != net.n_inputs:
        raise ValueError(
            f"the model takes {net.n_inputs} features but {file} has {table.n_inputs}: name the target with "
            "--target, or the features with --columns"
        )
    values = net.predict(table.X)
    if out is not None:
        _write(values, out)
        click.echo(f"{len(values)} predictions in {out}", err=True)
    if as_json:
        click.echo(json.dumps({"predictions": values.tolist()}))
    elif out is None:
        click.echo("prediction\n" + "\n".join(repr(float(v)) for v in values))
    if target is not None:
        _compare(values, table)
    return 0


def _model_file(model: Path) -> Path:
    if not model.is_dir():
        return model
    if not (model / MODEL_NAME).is_file():
        raise ValueError(f"{model} holds no {MODEL_NAME}: give a run folder or a .safetensors file")
    return model / MODEL_NAME


def _names_of_run(model: Path, net: OneHiddenNet) -> list[str] | None:
    """The feature names that a run folder recorded, so that columns are found by name, in any order."""
    if not model.is_dir():
        return None
    for path in sorted(model.glob("*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        names = record.get("feature_names") if isinstance(record, dict) else None
        if isinstance(names, list) and len(names) == net.n_inputs:
            return [str(name) for name in names]
    return None


def _write(values: np.ndarray, out: Path) -> None:
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    column = pa.table({"prediction": values})
    writers = {
        ".csv": lambda: csv.write_csv(column, out),
        ".parquet": lambda: parquet.write_table(column, out),
        ".feather": lambda: feather.write_feather(column, str(out)),
        ".npz": lambda: np.savez(out, prediction=values),
        ".npy": lambda: np.save(out, values),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    writers[out.suffix.lower()]()


def _compare(values: np.ndarray, table: Table) -> None:
    import numpy as np

    assert table.y is not None
    error = float(np.mean((table.y - values) ** 2))
    spread = float(np.var(table.y))
    share = f", R² {1 - error / spread:.4f}" if spread > 0 else ""
    click.echo(f"mean squared error {error:.4g}{share} on {len(values)} rows", err=True)
