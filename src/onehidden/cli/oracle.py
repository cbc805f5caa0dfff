"""onehidden oracle: the hidden layer of a model that answers queries: a file or an endpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from onehidden.atomic import atomic_folder
from onehidden.cli import examples, options


@click.command(
    name="oracle",
    epilog=examples(
        "onehidden oracle model.onnx --out run",
        "onehidden oracle --url http://localhost:8000/predict --inputs 784 --answers-file answers.bin",
        "onehidden oracle --inputs 784 --hidden 32 --dry-run  # how many queries that takes",
    ),
)
@click.argument("model", required=False)
@click.option("--url", help='An endpoint: {"inputs": rows} is posted, {"outputs": rows} comes back.')
@click.option(
    "--inputs", "n_inputs", type=click.IntRange(1), help="Number of inputs (of an ONNX file: known)."
)
@options.recovery_options(oracle=True)
@click.option("--answers", default="auto", show_default=True, help="value, probability, label or auto.")
@click.option(
    "--answers-file", type=click.Path(dir_okay=False), help="Answers of the endpoint are kept here."
)
@click.option("--batch", type=click.IntRange(1), help="Most rows of one request.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Most requests a second.")
@click.option("--max-queries", type=click.IntRange(1))
@click.option("--out", type=options.PATH, help="Folder for the network and its certificate.")
@click.option("--force", is_flag=True, help="Give up a run that the folder holds.")
@click.option("--dry-run", is_flag=True, help="Only estimate the number of queries.")
@click.option("--json", "as_json", is_flag=True, help="The certificate as JSON on stdout.")
def command(
    model: str | None, url: str | None, n_inputs: int | None, answers_file: str | None, rate: float | None,
    out: Path | None, force: bool, dry_run: bool, as_json: bool, **typed: Any,
) -> int:  # fmt: skip
    """Recover the hidden layer of MODEL (an ONNX file) or of an endpoint by asking it.

    Exit code 0 if the answer is exact or consistent, else 1. Ctrl-C ends the search: what was found until
    then is written and shown (exit code 130).
    """
    from onehidden.cli import progress, runs
    from onehidden.options import Options
    from onehidden.oracle import recover_oracle
    from onehidden.oracle.adapters import Endpoint, from_onnx
    from onehidden.oracle.search import expected_queries

    chosen = Options.from_arguments(typed)
    if (model is None) == (url is None) and not dry_run:
        raise ValueError("name an ONNX file or an endpoint with --url, one of the two")
    box = None
    if model is not None:
        box, d = from_onnx(model)
        n_inputs = d if n_inputs is None else n_inputs
    if n_inputs is None:
        raise ValueError("an endpoint does not say how many inputs it takes: give --inputs")
    if dry_run:
        about = expected_queries(n_inputs, chosen.hidden or 1, str(chosen.activation))
        each = (
            "" if chosen.hidden else " for one unit, and for each further one about as much as its parameters"
        )
        click.echo(f"{about} queries{each}")
        return 0
    if out is not None:
        runs.free_folder(out, force)
    if box is None:
        box = Endpoint(str(url), answers_file, typed["batch"] or 1024, rate)
    with progress.live(chosen.max_seconds) as listener, progress.interruptible() as stopped:
        recovery = recover_oracle(box, n_inputs, **{**typed, "progress": listener})
    recovery = runs.marked(recovery, stopped)
    if out is not None:
        with atomic_folder(out) as place:
            recovery.save(place)
    code = runs.shown(recovery, stopped, as_json)
    click.echo(f"{recovery.queries} queries, {recovery.seconds:.1f} s", err=True)
    return code
