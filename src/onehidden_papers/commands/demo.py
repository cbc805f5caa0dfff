"""onehidden demo: a built-in hidden layer recovered and compared with the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onehidden.cli import examples

if TYPE_CHECKING:
    from rich.table import Table

    from onehidden.network import OneHiddenNet


@click.command(
    name="demo",
    epilog=examples("onehidden demo", "onehidden demo --problem tanh-20x10 --seed 3 --out tanh-run"),
)
@click.option("--problem", default="demo", show_default=True, help="A name from `onehidden problems`.")
@click.option("--rows", type=int, help="Sample size; the problem's own without it.")
@click.option("--seed", default=0, show_default=True, help="Draws the teacher, the samples and the starts.")
@click.option(
    "--out", type=click.Path(path_type=Path), default="demo-run", show_default=True, help="Run folder."
)
@click.option("--force", is_flag=True, help="Give up a run that the folder holds.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout.")
def command(problem: str, rows: int | None, seed: int, out: Path, force: bool, as_json: bool) -> int:
    """Recover a built-in hidden layer, compare it with the truth, write a page."""
    from dataclasses import replace

    from rich.console import Console

    from onehidden.cli import progress, runs
    from onehidden.matching import match
    from onehidden.recovery import recover
    from onehidden.report.text import show
    from onehidden_papers import problems

    chosen = problems.get(problem)
    folder = runs.free_folder(out, force)
    X, y, truth = chosen.sample(rows, seed)
    with progress.live(first=chosen.title) as listener:
        asked: dict[str, Any] = {"activation": chosen.activation, "bias": chosen.bias, "seed": seed}
        recovery = recover(X, y, chosen.n_hidden, **asked, progress=listener)
    errors = match(recovery.network, truth.canonical())
    rerun = f"onehidden demo --problem {problem} --seed {seed}" + (f" --rows {rows}" if rows else "")
    recovery = replace(recovery, options={**recovery.options, "command": rerun})
    runs.write(recovery, folder, X, y)
    if as_json:
        extra = {"max_error": errors.max_error, "output_error": errors.output_error}
        click.echo(json.dumps({**recovery.to_dict(), **extra}, allow_nan=False))
    else:
        console = Console()
        console.print(found_against_true(recovery.network, truth))
        show(recovery, console)
    click.echo(f"{chosen.title}; {len(X)} samples", err=True)
    click.echo(f"open {folder / 'report.html'} in a browser", err=True)
    exact = max(errors.max_error, errors.output_error) <= 1e-8 or chosen.noise > 0
    return 0 if recovery.converged and exact else 1


def found_against_true(found: OneHiddenNet, truth: OneHiddenNet, most: int = 60) -> Table:
    """One row a true unit: the unit paired with it, both outputs and biases, the error of its weights."""
    import numpy as np
    from rich import box
    from rich.table import Table

    from onehidden.matching import match
    from onehidden.report.wording import short

    found, truth = found.canonical(), truth.canonical()
    pairs = match(found, truth)
    worst = (short(error, 2) for error in (pairs.max_error, pairs.output_error, pairs.bias_error))
    table = Table(
        *("true", "found", "error of weights", "w true", "w found", "b true", "b found"),
        title="found against true: worst unit {}, worst output {}, worst bias {}".format(*worst),
        box=box.SIMPLE_HEAD,
    )
    for i, j in enumerate(pairs.permutation[:most].tolist()):
        a, w, b = truth.weights[i], float(truth.output[i]), float(truth.bias[i])
        if j < 0:
            cells = ["none", "∞", short(w), "–", short(b), "–"]
        else:
            gap = float(np.linalg.norm(found.weights[j] - a) / np.linalg.norm(a))
            outputs, biases = (w, float(found.output[j])), (b, float(found.bias[j]))
            cells = [str(j + 1), short(gap, 2), *map(short, (*outputs, *biases))]
        table.add_row(str(i + 1), *cells)
    return table
