"""onehidden check RUN: the certificate of a finished run, and how it does on other rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from onehidden.cli import examples, options


@click.command(
    name="check",
    epilog=examples(
        "onehidden check data-run",
        "onehidden check data-run --json",
        "onehidden check data-run --data later.csv --target y",
    ),
)
@click.argument("run", type=click.Path(path_type=Path))
@options.samples_options("Rows to hold the answer against (a folder is streamed).")
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON on stdout.")
def command(run: Path, file: Path | None, targets: list[str], as_json: bool, **typed: Any) -> int:
    """Show the checks of a run folder; exit 1 when the answer is not to be trusted.

    With --data the error of its predictions on those rows is shown; that decides nothing.
    """
    from onehidden.cli import tables
    from onehidden.cli.predict import predictions
    from onehidden.recovery import load_recovery

    recovery, found = load_recovery(run), None
    if file is not None:
        from onehidden import data

        how = options.as_recovered(recovery, options.given(**typed), targets)
        found = predictions(recovery, data.open(file, **how))
    if as_json:
        record = recovery.to_dict()
        shown = {key: record[key] for key in ("status", "message", "checks", "noise_variance")}
        shown |= {"predictions": recovery.predictions_in_words, "units": recovery.units_in_words}
        click.echo(json.dumps(shown if found is None else {**shown, "data": found.figures()}))
    else:
        tables.show_checks(recovery)
        if found is not None:
            click.echo(f"{file}: {found.compared()}")
    return 0 if recovery.converged else 1
