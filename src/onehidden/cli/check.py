"""onehidden check RUN: the certificate of a finished run, and how it does on other rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onehidden.cli import examples, options

if TYPE_CHECKING:
    from onehidden.cli.predict import Error


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
@click.option("--target", "targets", **options.TARGETS, help="Their outcomes [default: the run's].")
@options.reading_options("nulls", "na", "decimal", "encoding")
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON on stdout.")
def command(run: Path, file: Path | None, targets: list[str], as_json: bool, **typed: Any) -> int:
    """Show the checks of a run folder; exit 1 when the answer is not to be trusted.

    With --data the error of its predictions on those rows is shown with the noise that the run found, and
    that of the network alone where the predictions are not the network's; that decides nothing.
    """
    from onehidden.cli.predict import scored
    from onehidden.recovery import load_recovery

    recovery = load_recovery(run)
    found: dict[str, Error] = {}
    if file is not None:
        from onehidden import data

        table = data.open(file, **options.as_recovered(recovery, options.given(**typed), targets))
        found["predictions"] = scored(recovery, table)
        if not recovery.classes and recovery.prediction is not None and not recovery.prediction.alone:
            found["network"] = scored(recovery.network, table)
    if as_json:
        record = recovery.to_dict()
        shown = {key: record[key] for key in ("status", "message", "checks", "noise_variance")}
        shown |= {"predictions": recovery.predictions_in_words, "units": recovery.units_in_words}
        if found:
            shown["data"] = found["predictions"].figures()
        if "network" in found:
            shown["data"]["network"] = found["network"].figures()
        click.echo(json.dumps(shown))
    else:
        from rich.console import Console

        from onehidden.cli import tables

        console = Console()
        console.print(tables.headline(recovery), soft_wrap=True)
        console.print(tables.checks(recovery))
        console.print(tables.status(recovery))
        # Of a family the noise hangs on the mean: there is no one number for it.
        noise = "" if recovery.family else f"; noise variance of the run {recovery.noise_variance:.4g}"
        for of, error in found.items():
            click.echo(f"{file}, {of}: {error.sentence()}{noise}")
    return 0 if recovery.converged else 1
