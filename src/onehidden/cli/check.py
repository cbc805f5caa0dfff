"""onehidden check RUN: the certificate of a finished run, and how it does on other rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from onehidden.cli import examples, reading


@click.command(
    name="check",
    epilog=examples(
        "onehidden check data-run",
        "onehidden check data-run --json",
        "onehidden check data-run --data later.csv --target y",
    ),
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--data",
    "file",
    type=click.Path(path_type=Path),
    help="Rows to hold the answer against (a folder is streamed).",
)
@click.option("--target", help="Their column of outcomes [default: the run's].")
@reading.options("nulls", "na", "decimal", "encoding")
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON on stdout.")
def command(run: Path, file: Path | None, target: str | None, as_json: bool, **typed: Any) -> int:
    """Show the checks of a run folder; exit 1 when the answer is not to be trusted.

    With --data its error on those rows is told beside the noise that the run found; that decides nothing.
    """
    from onehidden.recovery import load_recovery

    recovery = load_recovery(run)
    found = None
    if file is not None:
        from onehidden import data
        from onehidden.cli.predictions import Predictions

        named = target or str(recovery.options.get("target", "y"))
        how = reading.as_recovered(recovery, reading.given(**typed))
        made = Predictions(recovery.network, data.open(file, target=named, **how))
        for _ in made:
            pass
        found = made.error
    if as_json:
        record = recovery.to_dict()
        shown = {key: record[key] for key in ("status", "message", "checks", "noise_variance")}
        if found is not None:
            shown["data"] = {"rows": found.n, "mean_squared_error": found.mean, "r_squared": found.r_squared}
        click.echo(json.dumps(shown))
    else:
        from rich.console import Console

        from onehidden.cli import tables

        console = Console()
        console.print(tables.checks(recovery))
        console.print(tables.status(recovery))
        if found is not None:
            click.echo(f"{file}: {found.sentence()}; noise variance of the run {recovery.noise_variance:.4g}")
    return 0 if recovery.converged else 1
