"""onehidden recover FILE --target y: the units behind a table, a certificate, a run folder."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from onehidden.cli import examples, options


@click.command(
    name="recover",
    epilog=examples(
        "onehidden recover data.csv --target y",
        "onehidden recover data.parquet --target y --hidden 5 --activation tanh",
        "onehidden recover folder-of-parquet --target y --checkpoint kept",
        "onehidden recover data.csv --target y --columns age,bmi --out my-run --json",
        "onehidden recover daten.csv --target y --decimal , --one-hot --drop id --nulls drop",
        "onehidden recover cells.csv --target left,right --linear",
        "onehidden recover counts.csv --target spikes --family poisson --offset log_exposure",
        "onehidden recover visits.csv --target pressure --groups patient",
    ),
)
@click.argument("file", type=options.PATH)
@click.option(
    "--target",
    "targets",
    **{**options.TARGETS, "default": ["y"]},
    show_default="y",
    help="Column to explain; several share one hidden layer.",
)
@click.option("--weight", help="Column of weights: how much each row counts.")
@options.reading_options()
@options.recovery_options()
@click.option("--offset", help="Column that is added to the network's output, as a log exposure.")
@click.option("--trials", help="Column of trials of a binomial target, which counts the successes.")
@click.option("--groups", help="Column that says which rows belong together, as patients or sites.")
@click.option("--out", type=options.PATH, help="Run folder [default: FILE's name with -run added].")
@click.option("--force", is_flag=True, help="Give up a run that the folder holds.")
@click.option("--checkpoint", type=options.PATH, help="Folder that lets a killed run go on where it was.")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers read a folder of Parquet files.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout.")
def command(
    file: Path, targets: list[str], out: Path | None, force: bool, checkpoint: Path | None,
    scheduler: str | None, as_json: bool, **typed: Any,
) -> int:  # fmt: skip
    """Recover the hidden layer behind a table (CSV, Parquet, Feather, npz, a folder of Parquet files).

    Prints the units with their standard errors, the checks with advice and the status, and writes a run
    folder: model.safetensors, recovery.json, report.html. Exit code 0 when the status is exact or consistent,
    else 1. Ctrl-C ends the search: the best answer so far is written and shown (exit code 130).
    """
    from onehidden import data
    from onehidden.cli import progress, runs
    from onehidden.data.table import targets_in_words
    from onehidden.options import Options
    from onehidden.recovery import recover

    # Checked before the file is read, which may take minutes.
    asked = Options.from_arguments(typed)
    folder = runs.free_folder(out or Path(f"{file.stem}-run"), force)
    target: Any = targets if len(targets) > 1 else targets[0]
    how = options.given(**{name: value for name, value in typed.items() if name not in asked.arguments()})
    # Workers read parts: with a scheduler even a small file is opened as a stream of them.
    table = data.open(file, target=target, **how, constant="drop", stream=True if scheduler else None)
    options.say_notes(table)
    what = f"{table.n_rows} rows, {table.n_inputs} features, {targets_in_words(table.target_names)}"
    hint = "Ctrl-C: the best so far"
    with progress.live(asked.max_seconds, what, hint) as listener, progress.interruptible() as stopped:
        wanted = {**asked.arguments(), "progress": listener}
        recovery = recover(table, **wanted, checkpoint=checkpoint, client=scheduler)
    typed_in = shlex.join(["onehidden", *sys.argv[1:]])
    source = {"source": str(file), "target": target, "constant": "drop", "command": typed_in, **how}
    recovery = replace(recovery, options=source | recovery.options)
    recovery = runs.marked(recovery, stopped)
    runs.write(recovery, folder, table if isinstance(table, data.Table) else None)
    code = runs.shown(recovery, stopped, as_json)
    click.echo(f"{what}; run written to {folder}", err=True)
    return code
