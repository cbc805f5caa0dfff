"""A recovery as text: the first screen, the summary with every number, and the numbers as a table."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onehidden.report.blocks import Block, Checks, Facts, Formula, Grid
from onehidden.report.headline import Answer, Mood
from onehidden.report.screen import answers, screen, sentence, title, unmet
from onehidden.report.subject import Subject, gather
from onehidden.report.wording import OPEN, Mark, by_urgency, left_open, mark, short, with_error

if TYPE_CHECKING:
    from rich.console import Console

    from onehidden.recovery import Recovery


# Styles of rich, in colours that are seen on white and on black: notebooks take them as they are.
TITLE, PLAIN, QUIET, FORMULA = "bold", "", "dim", "#4a8fd0"
TONES = {Mood.GOOD: "bold #3a8a55", Mood.CARE: "bold #a3700f", Mood.DOUBT: "bold #d0453a"}
_MARKS = {
    Mark.FAILED: TONES[Mood.DOUBT], Mark.NOT_EVALUATED: TONES[Mood.CARE], Mark.NOTED: PLAIN,
    Mark.PASSED: TONES[Mood.GOOD],
}  # fmt: skip
Lines = list[tuple[str, str]]  # each with its style


def first_screen(recovery: Recovery) -> str:
    """The first screen."""
    return "\n".join(line for _, line in screen_lines(recovery))


def summary(recovery: Recovery, width: int = 100) -> str:
    """The first screen, then every number with its standard error, failed checks and alternatives."""
    subject = gather(recovery)
    found = numbers(subject)
    column = max(len(one_line(row.parameter)) for row in found)
    wide = max(len(row.shown) for row in found)
    made = [first_screen(recovery), "", *_wrapped(inference(subject), width), ""]
    made.append(f"{'unit':<5} {'parameter':<{column}}  {'estimate ± standard error':<{wide}}  95 % interval")
    for row in found:
        ends = f"{short(row.lower)} to {short(row.upper)}" if math.isfinite(row.upper - row.lower) else ""
        line = (
            f"{row.unit or '':<5} {one_line(row.parameter):<{column}}  {row.shown:<{max(wide, 25)}}  {ends}"
        )
        made.append(line.rstrip())
    for check in unmet(subject):
        made += ["", *_wrapped(f"{mark(check)}: {check.name}: {check.advice}", width)]
    for other in subject.recovery.alternatives:
        made += ["", f"not ruled out: {other.label} ({other.distance})"]
    return "\n".join(made)


def inference(subject: Subject) -> str:
    """What intervals rest on: the kind of the standard errors, degrees of freedom, likelihood and AIC."""
    recovery = subject.recovery
    found = [f"standard errors {recovery.covariance_type}"] if recovery.covariance_type else []
    found.append(f"residual degrees of freedom {recovery.residual_freedom}")
    if math.isfinite(recovery.log_likelihood):
        criterion = 2 * recovery.freedom - 2 * recovery.log_likelihood
        found += [f"log-likelihood {short(recovery.log_likelihood, 6)}", f"AIC {short(criterion, 6)}"]
    return "; ".join(found)


def screen_lines(recovery: Recovery, width: int = 100) -> Lines:
    """The first screen, line by line, each no longer than ``width``."""
    subject = gather(recovery)
    head = [(TITLE, line) for line in _wrapped(title(subject), width)]
    return head + lines(screen(subject), width)


def check_lines(recovery: Recovery, width: int = 100) -> Lines:
    """The two answers and what to do next, a line a check with its advice below, and the verdict."""
    subject = gather(recovery)
    checks = Checks(tuple(by_urgency(subject.recovery.checks)))
    shown = checks if checks.checks else "no checks were made"
    return lines((*answers(subject), shown, sentence(subject)), width)


def lines(blocks: Sequence[Block], width: int) -> Lines:
    """Blocks of words and numbers, line by line; formulas, tables and checks stand between empty lines."""
    made: Lines = []

    def add(text: str, tone: str = PLAIN, first: str = "", rest: str = "") -> None:
        made.extend((tone, line) for line in _wrapped(text, width, first, rest))

    for block in blocks:
        apart = [(PLAIN, "")] * isinstance(block, Formula | Grid | Checks)
        made += apart
        match block:
            case str():
                add(block)
            case Answer(text, mood):
                add(f"{mood.sign} {text}", TONES[mood], "", "  ")
            case Facts(items):
                add("; ".join(f"{label} {value}" for label, value in items))
            case Formula(terms):
                for one in terms:
                    add(one, FORMULA, " " * 4, " " * 10)
            case Grid(columns, rows, note):
                indent = " " * 7
                add(columns[-1], QUIET, f"{columns[0]:<7}", indent)
                for name, *cells, last in rows:
                    add(", ".join(filter(None, cells)), PLAIN, f"{name:>4}   ", indent)
                    add(last, PLAIN, indent, indent)
                add(note, QUIET, indent, indent)
            case Checks(checks):
                for check in checks:
                    bound = f"   bound {short(check.threshold)}"
                    measured = f"  {short(check.value)}{bound}" if check.evaluated else ""
                    made.append((_MARKS[mark(check)], f" {mark(check)}  {check.name}{measured}"))
                    add(check.advice, PLAIN, " " * 10, " " * 10)
            case _:  # pictures and text to copy have no place here
                pass
        made += apart
    return made


def show(recovery: Recovery, console: Console | None = None, checks: bool = False) -> None:
    """Print the first screen, or each check with its advice."""
    from rich.console import Console

    console = console or Console()
    _print((check_lines if checks else screen_lines)(recovery, console.width), console)


def fragment(recovery: Recovery) -> str:
    """The first screen as HTML for notebooks, with the advice of failed checks; every name is escaped."""
    from rich.console import Console

    console = Console(record=True, file=io.StringIO(), color_system="truecolor")
    advice = [(PLAIN, one_line(f"{one.name}: {one.advice}")) for one in unmet(gather(recovery))]
    _print([*screen_lines(recovery), *advice], console)
    return console.export_html(
        inline_styles=True, code_format="<pre style='white-space: pre-wrap'>{code}</pre>"
    )


def _print(made: Lines, console: Console) -> None:
    from rich.text import Text

    for tone, line in made:
        # Text, not markup: a feature called [red] must be shown, not obeyed.
        console.print(Text(line, style=tone), soft_wrap=True)


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    # A number stays with its per cent sign.
    text = one_line(text).replace(" %", "\N{NO-BREAK SPACE}%")
    found = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in found]


def one_line(text: str) -> str:
    """Text on one line, without control characters that a terminal would obey."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


class Row(NamedTuple):
    """A number of the network; errors are NaN where not known, infinite where the data leave it open."""

    unit: int | None
    parameter: str
    estimate: float
    standard_error: float
    lower: float = math.nan  # end of the 95 % interval
    upper: float = math.nan
    effect_of_one_sd: float = math.nan  # of an input, w a sd, of the first output
    effect_error: float = math.nan
    verdict: str = ""

    @property
    def shown(self) -> str:
        """The estimate ± its standard error."""
        text = with_error(self.estimate, self.standard_error)
        return f"{short(self.estimate)} ({OPEN})" if math.isinf(self.standard_error) else text


def numbers(subject: Subject) -> list[Row]:
    """Intercept, linear part, mean slopes, then output, bias and weights of each unit.

    Of several outputs each has its own intercept, linear part and output weights.
    """
    recovery, effects, errors, made = subject.recovery, subject.effects, subject.effect_errors, list[Row]()
    net, known = recovery.network, (recovery.standard_errors, *recovery.interval())

    def add(name: str, label: str, index: tuple[int, ...], unit: int | None = None, **effect: float) -> None:
        verdict = None if unit is None else subject.unit(unit)
        values = [getattr(one, name) for one in known]
        error, lower, upper = (math.nan if one is None else float(np.asarray(one)[index]) for one in values)
        made.append(Row(
            None if unit is None else unit + 1, label, float(np.asarray(getattr(net, name))[index]),
            *((math.inf, -math.inf, math.inf) if left_open(verdict) else (error, lower, upper)), **effect,
            verdict="" if verdict is None else str(verdict.status),
        ))  # fmt: skip

    each: list[tuple[tuple[int, ...], str]] = [((), "")]
    if len(subject.outputs) > 1:
        each = [((j,), f" of {name}") for j, name in enumerate(subject.outputs)]
    for index, of in each:
        add("intercept", f"intercept{of}", index)
    if net.has_linear:
        for j, name in enumerate(subject.names):
            for index, of in each:
                add("linear", f"linear {name}{of}", (j, *index))
    if (mean := subject.recovery.mean_slopes) is not None:
        labels = [f"mean slope {name}{of}" for name in subject.names for _, of in each]
        values = map(np.ravel, (mean.estimate, mean.error, mean.lower, mean.upper))
        for label, value, error, lower, upper in zip(labels, *values, strict=True):
            made.append(Row(None, label, float(value), float(error), float(lower), float(upper)))
    for i in range(net.n_hidden):
        for index, of in each:
            add("output", f"output{of}", (i, *index), i)
        if np.any(net.bias != 0):
            add("bias", "bias", (i,), i)
        for j, name in enumerate(subject.names):
            error = math.inf if left_open(subject.unit(i)) else float(errors[i, j])
            add("weights", name, (i, j), i, effect_of_one_sd=float(effects[i, j]), effect_error=error)
    return made


def to_frame(recovery: Recovery) -> Any:
    """The numbers as a pandas data frame."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("to_frame needs pandas: install it, or read units.csv of the run folder") from None

    return pd.DataFrame(numbers(gather(recovery)), columns=list(Row._fields)).astype({"unit": "Int64"})


def to_csv(recovery: Recovery) -> str:
    """The numbers as comma-separated values; names that a spreadsheet would take for a formula are quoted."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(Row._fields)
    for row in numbers(gather(recovery)):
        name = f"'{row.parameter}" if row.parameter[:1] in ("=", "+", "-", "@", "\t", "\r") else row.parameter
        values = ["" if math.isnan(value) else repr(value) for value in row[2:8]]
        writer.writerow(["" if row.unit is None else row.unit, name, *values, row.verdict])
    return stream.getvalue()
