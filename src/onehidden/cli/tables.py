"""What the terminal shows: the first screen, the checks, and found against true."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from onehidden.cli.wording import as_typed
from onehidden.report.marks import Mark, by_urgency, mark
from onehidden.report.numbers import short

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from onehidden.matching import Match
    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery

MAX_UNITS = 60
_LINES = {"TITLE": "bold", "GOOD": "bold green", "DOUBT": "bold red", "FORMULA": "cyan", "QUIET": "dim"}
_STYLES = {Mark.FAILED: "bold red", Mark.NOT_ASKED: "yellow", Mark.NOTED: "default", Mark.PASSED: "green"}


def show(recovery: Recovery, console: Console) -> None:
    """Print the first screen: everything a terminal user needs to judge the answer."""
    from rich.text import Text

    from onehidden.report.as_text import lines
    from onehidden.report.screen import screen
    from onehidden.report.subject import gather

    shown = screen(gather(recovery))
    shown = replace(shown, message=as_typed(shown.message), advice=as_typed(shown.advice))
    for kind, line in lines(shown, console.width):
        # Text, not markup: a feature called [red] must be shown, not obeyed.
        console.print(Text(line, style=_LINES.get(kind.name, "")), soft_wrap=True)


def checks(recovery: Recovery) -> RenderableType:
    """A line a check with its advice below; failures first, then what could not be asked."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    made = by_urgency(getattr(recovery, "checks", None) or ())
    if not made:
        return Text("no checks were made", style="yellow")
    named, marked = max(len(check.name) for check in made), max(len(mark(check)) for check in made)
    lines: list[RenderableType] = [Text("checks", style="bold")]
    for check in made:
        word = mark(check)
        line = Text(" ").append(f"{word:<{marked}}", style=_STYLES[word]).append(f"  {check.name:<{named}}")
        if check.asked:
            line.append(f"  {short(check.value):>10}   bound {short(check.threshold)}")
        lines.append(line)
        quiet = "dim" if word is Mark.PASSED else ""
        lines.append(Padding(Text(as_typed(check.advice), style=quiet), (0, 0, 0, marked + 3)))
    return Group(*lines, Text())


def status(recovery: Recovery) -> RenderableType:
    """The verdict: one word and the sentence behind it."""
    from rich.text import Text

    line = Text(str(recovery.status), style="bold green" if recovery.converged else "bold red")
    message = getattr(recovery, "message", "")
    return line.append(f": {message}", style="default") if message else line


def found_against_true(network: OneHiddenNet, truth: OneHiddenNet, match: Match) -> RenderableType:
    """One row a true unit: the unit paired with it, both outputs and biases, the error of its weights."""
    from onehidden.matching import match as pair

    title = (
        f"found against true: worst unit {short(match.max_error, 2)}, worst output "
        f"{short(match.output_error, 2)}, worst bias {short(match.bias_error, 2)}"
    )
    has_bias = bool(np.any(truth.bias != 0) or np.any(network.bias != 0))
    heads = ["true", "found", "error of weights", "w true", "w found"]
    table = _table(heads + (["b true", "b found"] if has_bias else []))
    for i, j in enumerate(match.permutation[:MAX_UNITS]):
        true = _one_unit(truth, i)
        row = [str(i + 1)]
        if j < 0:
            biases = [short(_canonical_bias(true)), "–"] if has_bias else []
            _add(table, [*row, "none", "∞", short(_canonical_output(true)), "–", *biases])
            continue
        found = _turned(_one_unit(network, int(j)), int(match.signs[i]))
        row += [str(int(j) + 1), short(pair(found, true).max_error, 2)]
        # At unit length, so that both columns are in one gauge where the activation leaves the length free.
        row += [short(_canonical_output(true)), short(_canonical_output(found))]
        if has_bias:
            row += [short(_canonical_bias(true)), short(_canonical_bias(found))]
        _add(table, row)
    if len(match.permutation) > MAX_UNITS:
        table.caption = f"{len(match.permutation) - MAX_UNITS} more units"
    return _titled(title, table)


def _one_unit(net: OneHiddenNet, i: int) -> OneHiddenNet:
    from onehidden.network import OneHiddenNet

    return OneHiddenNet(
        net.weights[i : i + 1], net.output[i : i + 1], net.bias[i : i + 1], 0.0, net.activation
    )


def _turned(unit: OneHiddenNet, sign: int) -> OneHiddenNet:
    """The unit as the match turned it, so that its output and bias stand beside the true ones."""
    from onehidden.network import OneHiddenNet

    reflection = unit.activation.reflection
    if sign > 0 or reflection is None:
        return unit
    return OneHiddenNet(-unit.weights, reflection.parity * unit.output, -unit.bias, 0.0, unit.activation)


def _length(unit: OneHiddenNet) -> float:
    if unit.activation.homogeneity is None:
        return 1.0
    return float(np.linalg.norm(unit.weights)) or 1.0


def _canonical_output(unit: OneHiddenNet) -> float:
    return float(unit.output[0]) * _length(unit) ** (unit.activation.homogeneity or 0)


def _canonical_bias(unit: OneHiddenNet) -> float:
    return float(unit.bias[0]) / _length(unit)


def _table(numbers: list[str]) -> Table:
    """Columns of numbers, which stay whole."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in numbers:
        table.add_column(Text(head), justify="right", no_wrap=True)
    return table


def _titled(title: str, table: Table) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(Text(title, style="bold"), table)


def _add(table: Table, cells: list[str]) -> None:
    from rich.text import Text

    # Text, not markup: a feature called [red] must be shown, not obeyed.
    table.add_row(*(Text(cell) for cell in cells))
