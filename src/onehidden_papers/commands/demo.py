"""onehidden demo: a built-in hidden layer recovered and compared with the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onehidden.cli import examples

if TYPE_CHECKING:
    from rich.console import Group

    from onehidden.matching import Match
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery


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

    from onehidden.cli import progress, runs
    from onehidden.matching import match
    from onehidden.recovery import recover
    from onehidden_papers import problems

    chosen = problems.get(problem)
    folder = runs.free_folder(out, force)
    X, y, truth = chosen.sample(rows, seed)
    with progress.live(first=chosen.title) as listener:
        recovery = recover(
            X,
            y,
            chosen.n_hidden,
            activation=chosen.activation,
            bias=chosen.bias,
            seed=seed,
            progress=listener,
        )
    errors = match(recovery.network, truth.canonical())
    rerun = f"onehidden demo --problem {problem} --seed {seed}" + (f" --rows {rows}" if rows else "")
    recovery = replace(recovery, options={**recovery.options, "command": rerun})
    runs.write(recovery, folder, X, y, truth.canonical())
    if as_json:
        extra = {"max_error": errors.max_error, "output_error": errors.output_error}
        click.echo(json.dumps({**recovery.to_dict(), **extra}, allow_nan=False))
    else:
        _show(recovery, truth.canonical(), errors)
    click.echo(f"{chosen.title}; {len(X)} samples", err=True)
    click.echo(f"open {folder / 'report.html'} in a browser", err=True)
    exact = max(errors.max_error, errors.output_error) <= 1e-8 or chosen.noise > 0
    return 0 if recovery.converged and exact else 1


def _show(recovery: Recovery, truth: OneHiddenNet, errors: Match) -> None:
    from rich.console import Console

    from onehidden.cli import tables

    console = Console()
    console.print(found_against_true(recovery.network, truth, errors))
    tables.show(recovery, console)


def found_against_true(network: OneHiddenNet, truth: OneHiddenNet, match: Match, most: int = 60) -> Group:
    """One row a true unit: the unit paired with it, both outputs and biases, the error of its weights."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from onehidden.matching import match as pair
    from onehidden.report.wording import short

    title = (
        f"found against true: worst unit {short(match.max_error, 2)}, worst output "
        f"{short(match.output_error, 2)}, worst bias {short(match.bias_error, 2)}"
    )
    biased = bool(truth.bias.any() or network.bias.any())
    heads = ["true", "found", "error of weights", "w true", "w found", *["b true", "b found"] * biased]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for i, j in enumerate(match.permutation[:most].tolist()):
        error, found = "∞", ("–", "–")
        if j >= 0:
            error = short(pair(_unit(network, j), _unit(truth, i)).max_error, 2)
            found = tuple(map(short, _output_and_bias(network, j, match.signs[i])))
        true = tuple(map(short, _output_and_bias(truth, i)))
        outputs_and_biases = [cell for pair_ in zip(true, found, strict=True) for cell in pair_]
        row = [str(i + 1), str(j + 1) if j >= 0 else "none", error, *outputs_and_biases]
        table.add_row(*(Text(cell) for cell in row[: len(heads)]))
    if len(match.permutation) > most:
        table.caption = f"{len(match.permutation) - most} more units"
    return Group(Text(title, style="bold"), table)


def _unit(net: OneHiddenNet, i: int) -> OneHiddenNet:
    """Return a network of one of the units."""
    from onehidden.network import OneHiddenNet

    one = slice(i, i + 1)
    return OneHiddenNet(net.weights[one], net.output[one], net.bias[one], 0.0, net.activation)


def _output_and_bias(net: OneHiddenNet, i: int, sign: int = 1) -> tuple[float, float]:
    """Output and bias of a unit, at unit length where g leaves that free, and with the sign of the match."""
    import numpy as np

    degree, reversal = net.activation.homogeneity, net.activation.reversal
    length = 1.0 if degree is None else float(np.linalg.norm(net.weights[i])) or 1.0
    output, bias = float(net.output[i]) * length ** (degree or 0), float(net.bias[i]) / length
    return (output, bias) if sign > 0 or reversal is None else (reversal.parity * output, -bias)
