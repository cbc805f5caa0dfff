"""A recovery as text: the first screen, the summary with every number, and the numbers as a table."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onehidden.report.formula import effects
from onehidden.report.headline import Mood
from onehidden.report.screen import Screen, screen
from onehidden.report.subject import Subject, gather
from onehidden.report.wording import OPEN, Mark, by_urgency, left_open, mark, short, with_error

if TYPE_CHECKING:
    from onehidden.report.subject import Recovered


@dataclass(frozen=True)
class Tone:
    """How a line is shown: a style of rich for terminals, of CSS for notebooks."""

    rich: str = ""
    css: str = ""


TITLE, PLAIN, QUIET = Tone("bold", "font-weight: bold"), Tone(), Tone("dim", "opacity: 0.7")
FORMULA = Tone("cyan", "color: #4a8fd0")
TONES = {
    Mood.GOOD: Tone("bold green", "color: #3a8a55; font-weight: bold"),
    Mood.CARE: Tone("bold yellow", "color: #a3700f; font-weight: bold"),
    Mood.DOUBT: Tone("bold red", "color: #d0453a; font-weight: bold"),
}
_MARKS = {
    Mark.FAILED: TONES[Mood.DOUBT], Mark.NOT_EVALUATED: TONES[Mood.CARE], Mark.NOTED: PLAIN,
    Mark.PASSED: TONES[Mood.GOOD],
}  # fmt: skip
Lines = list[tuple[Tone, str]]


def first_screen(recovery: Recovered) -> str:
    """The first screen."""
    return "\n".join(line for _, line in lines(screen(gather(recovery))))


def summary(recovery: Recovered, width: int = 100) -> str:
    """The first screen, then every number with its standard error, failed checks and alternatives."""
    subject = gather(recovery)
    found = numbers(subject)
    column = max(len(one_line(row.parameter)) for row in found)
    made = [first_screen(recovery), "", f"{'unit':<5} {'parameter':<{column}}  estimate ± standard error"]
    for row in found:
        made.append(f"{row.unit or '':<5} {one_line(row.parameter):<{column}}  {row.shown}")
    for check in screen(subject).failed:
        made += ["", *_wrapped(f"{mark(check)}: {check.name}: {check.advice}", width)]
    for other in subject.get("alternatives", ()):
        made += ["", f"not ruled out: {other.label} ({other.distance})"]
    return "\n".join(made)


def lines(shown: Screen, width: int = 100) -> Lines:
    """The first screen, line by line, each no longer than ``width``."""
    made: Lines = []

    def add(text: str, tone: Tone = PLAIN, first: str = "", rest: str = "") -> None:
        made.extend((tone, line) for line in _wrapped(text, width, first, rest))

    def gap() -> None:
        made.append((PLAIN, ""))

    add(shown.title, TITLE)
    for label, answer in shown.answers:
        add(f"{label}: {answer.sentence}", TONES[answer.mood])
    if shown.advice:
        add(f"next: {shown.advice}")
    gap()
    for one in shown.formula:
        add(one, FORMULA, "    ", "          ")
    gap()
    add("; ".join(f"{label} {value}" for label, value in shown.facts))
    add(shown.predictions)
    gap()
    made.append((QUIET, f"unit   {shown.head}, the strongest first"))
    indent = " " * 7
    for unit in shown.units:
        share = f"{unit.share} of {shown.whole}" if unit.share else ""
        head = ", ".join(filter(None, (share, f"w {unit.output}", unit.judged)))
        add(head, PLAIN, f"{unit.index + 1:>4}   ", indent)
        add(unit.inputs, PLAIN, indent, indent)
    add(shown.legend, QUIET, indent, indent)
    gap()
    add(shown.sentence)
    for outcome in (Mark.FAILED, Mark.NOT_EVALUATED):
        if named := shown.named(outcome):
            add(f"{outcome}: {named}")
    made.append((QUIET, shown.passed))
    if shown.assumed:
        add(f"taken as given: {shown.assumed}", QUIET)
    return made


def checks(recovery: Recovered, width: int = 100) -> Lines:
    """The two answers and what to do next, a line a check with its advice below, and the verdict."""
    shown, found = screen(gather(recovery)), by_urgency(getattr(recovery, "checks", None) or ())
    made = [(TONES[answer.mood], f"{label}: {answer.sentence}") for label, answer in shown.answers]
    made += [(PLAIN, f"next: {shown.advice}")] * bool(shown.advice)
    made += [(PLAIN, ""), (TITLE, "checks" if found else "no checks were made")]
    for check in found:
        measured = f"  {short(check.value)}   bound {short(check.threshold)}" if check.evaluated else ""
        made.append((_MARKS[mark(check)], f" {mark(check)}  {check.name}{measured}"))
        indent = " " * 10
        made += [(PLAIN, line) for line in _wrapped(check.advice, width, indent, indent)]
    return [*made, (PLAIN, ""), (TITLE, shown.sentence)]


def fragment(recovery: Recovered) -> str:
    """The first screen as HTML for notebooks, with the advice of failed checks; every name is escaped."""
    shown = screen(gather(recovery))
    advice = ((PLAIN, one_line(f"{check.name}: {check.advice}")) for check in shown.failed)
    spans = (f"<span style='{tone.css}'>{escape(line)}</span>" for tone, line in (*lines(shown), *advice))
    return "<pre style='white-space: pre-wrap'>" + "\n".join(spans) + "</pre>"


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
    recovery, found = subject.recovery, effects(subject)
    net, errors = recovery.network, getattr(recovery, "standard_errors", None)
    made: list[Row] = []

    def add(name: str, label: str, index: tuple[int, ...], unit: int | None = None, **effect: float) -> None:
        verdict = None if unit is None else subject.unit(unit)
        known = None if errors is None else getattr(errors, name, None)
        error = math.nan if known is None else float(np.asarray(known)[index])
        made.append(Row(
            None if unit is None else unit + 1, label, float(np.asarray(getattr(net, name))[index]),
            math.inf if left_open(verdict) else error, **effect,
            verdict="" if verdict is None else str(verdict.status),
        ))  # fmt: skip

    one = [((), "")]
    each = (
        one if subject.n_outputs == 1 else [((j,), f" of {name}") for j, name in enumerate(subject.outputs)]
    )
    for index, of in each:
        add("intercept", f"intercept{of}", index)
    if net.has_linear:
        for j, name in enumerate(subject.names):
            for index, of in each:
                add("linear", f"linear {name}{of}", (j, *index))
    if (mean := subject.get("mean_slopes")) is not None:
        labels = [f"mean slope {name}{of}" for name in subject.names for _, of in each]
        for label, value, error in zip(labels, np.ravel(mean.estimate), np.ravel(mean.error), strict=True):
            made.append(Row(None, label, float(value), float(error)))
    for i in range(net.n_hidden):
        for index, of in each:
            add("output", f"output{of}", (i, *index), i)
        if np.any(net.bias != 0):
            add("bias", "bias", (i,), i)
        for j, name in enumerate(subject.names):
            error = math.nan if found.errors is None else float(found.errors[i, j])
            error = math.inf if left_open(subject.unit(i)) else error
            add("weights", name, (i, j), i, effect_of_one_sd=float(found.values[i, j]), effect_error=error)
    return made


def to_frame(recovery: Recovered) -> Any:
    """The numbers as a pandas data frame."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("to_frame needs pandas: install it, or read units.csv of the run folder") from None

    return pd.DataFrame(numbers(gather(recovery)), columns=list(Row._fields)).astype({"unit": "Int64"})


def to_csv(recovery: Recovered) -> str:
    """The numbers as comma-separated values; names that a spreadsheet would take for a formula are quoted."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(Row._fields)
    for row in numbers(gather(recovery)):
        name = f"'{row.parameter}" if row.parameter[:1] in ("=", "+", "-", "@", "\t", "\r") else row.parameter
        values = ["" if math.isnan(value) else repr(value) for value in row[2:6]]
        writer.writerow(["" if row.unit is None else row.unit, name, *values, row.verdict])
    return stream.getvalue()
