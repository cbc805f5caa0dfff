"""onehidden recover FILE --target y: the units behind a table, a certificate, a run folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from onehidden.cli import examples, reading
from onehidden.cli.wording import as_typed


def _activations(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For tab completion only: the names live behind the import of JAX."""
    from onehidden import activations

    return [name for name in ("auto", *activations.names()) if name.startswith(incomplete)]


def _families(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For tab completion only, likewise."""
    from onehidden import families

    return [name for name in families.names() if name.startswith(incomplete)]


def _starts(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """For tab completion only, likewise."""
    from onehidden.starts.plan import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


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
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--target",
    "targets",
    **{**reading.TARGETS, "default": ["y"]},
    show_default="y",
    help="Column to explain; several share one hidden layer.",
)
@click.option("--weight", help="Column of weights: how much each row counts.")
@reading.options()
@click.option("--hidden", type=int, help="Number of units; chosen from the data without it.")
@click.option(
    "--activation",
    default="relu",
    show_default=True,
    shell_complete=_activations,
    help="Of the units; auto chooses it by held-out likelihood.",
)
@click.option(
    "--family",
    shell_complete=_families,
    help="What the target is: gaussian, poisson, bernoulli, binomial, negative_binomial, gamma, softmax "
    "(numbered classes).",
)
@click.option("--link", help="From the mean of the target to the network's output [default: the family's].")
@click.option("--linear", is_flag=True, help="A linear part of the inputs beside the units.")
@click.option("--offset", help="Column that is added to the network's output, as a log exposure.")
@click.option("--trials", help="Column of trials of a binomial target, which counts the successes.")
@click.option("--bias/--no-bias", default=True, show_default=True, help="Whether units have biases.")
@click.option("--intercept/--no-intercept", default=True, show_default=True, help="Whether c is free.")
@click.option(
    "--start",
    default="auto",
    show_default=True,
    shell_complete=_starts,
    help="auto, random, linear, tensor, localised, landscape, reflections, wide, thinned or population.",
)
@click.option(
    "--score", default="auto", show_default=True, help="Input model of the moments: auto or gaussian."
)
@click.option(
    "--errors", default="auto", show_default=True, help="Standard errors: auto, classical or robust."
)
@click.option("--seed", default=0, show_default=True, help="Same seed, same answer.")
@click.option("--max-seconds", type=float, help="Time budget; the best answer so far is returned.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Run folder [default: FILE's name with -run added]."
)
@click.option("--force", is_flag=True, help="Give up a run that the folder holds.")
@click.option(
    "--checkpoint", type=click.Path(path_type=Path), help="Folder that lets a killed run go on where it was."
)
@click.option("--scheduler", help="Address of a Dask scheduler whose workers read a folder of Parquet files.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout.")
def command(
    file: Path,
    targets: list[str],
    weight: str | None,
    offset: str | None,
    trials: str | None,
    hidden: int | None,
    activation: str,
    family: str | None,
    link: str | None,
    linear: bool,
    bias: bool,
    intercept: bool,
    errors: str,
    start: str,
    score: str,
    seed: int,
    max_seconds: float | None,
    out: Path | None,
    force: bool,
    checkpoint: Path | None,
    scheduler: str | None,
    as_json: bool,
    **typed: Any,
) -> int:
    """Recover the hidden layer behind a table (CSV, Parquet, Feather, npz, a folder of Parquet files).

    Prints the units with their standard errors, the checks with advice and the status, and writes a run
    folder: model.safetensors, recovery.json, report.html. Exit code 0 when the status is exact or consistent,
    else 1. Ctrl-C ends the search: the best answer so far is written and shown (exit code 130).
    """
    from dataclasses import replace

    from onehidden import data, families
    from onehidden.cli import interrupts, progress, runs
    from onehidden.data.table import targets_in_words
    from onehidden.recovery import recover
    from onehidden.recovery.options import checked_options

    # Before the file is read: a table of gigabytes is no place to learn of a wrong name.
    asked: dict[str, Any] = {
        "hidden": hidden, "activation": activation, "bias": bias, "intercept": intercept, "score": score,
        "start": start, "errors": errors, "seed": seed, "max_seconds": max_seconds, "family": family,
        "link": link, "linear": linear,
    }  # fmt: skip
    checked_options(**asked)
    folder = runs.free_folder(out or Path(f"{file.stem}-run"), force)
    target: Any = targets if len(targets) > 1 else targets[0]
    how = reading.given(**typed, weight=weight, offset=offset, trials=trials)
    # Workers read parts: with a scheduler even a small file is opened as a stream of them.
    table = data.open(file, target=target, **how, constant="drop", stream=True if scheduler else None)
    reading.say(table)
    held = table if isinstance(table, data.Table) else None
    if held is not None:
        if family is None and (noticed := families.notice(held.y)) is not None:
            click.echo(f"note: {as_typed(noticed.sentence)}", err=True)
    what = f"{table.n_rows} rows, {table.n_inputs} features, {targets_in_words(table.target_names)}"
    hint = "Ctrl-C: the best so far"
    with progress.live(max_seconds, what, hint) as listener, interrupts.gentle() as stopped:
        recovery = recover(
            table, **asked, **reading.beside(table), progress=listener, checkpoint=checkpoint,
            client=scheduler,
        )  # fmt: skip
    if stopped.is_set():
        recovery = replace(recovery, message=f"stopped by hand, the best answer so far: {recovery.message}")
    levels = {"one_hot": {name: list(found) for name, found in table.levels.items()}} if table.levels else {}
    source = {"source": str(file), "target": target, "constant": "drop", **how, **levels}
    recovery = replace(recovery, options={**recovery.options, **source})
    runs.write(recovery, folder, held)
    if as_json:
        click.echo(json.dumps(recovery.to_dict(), allow_nan=False))
    else:
        runs.show(recovery)
    click.echo(f"{what}; run written to {folder}", err=True)
    if stopped.is_set():
        return 130
    return 0 if recovery.converged else 1
