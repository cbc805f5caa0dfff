"""A recovery as text: the first screen, the summary with every number, and the numbers as a table."""

from __future__ import annotations

import csv
import enum
import io
import textwrap
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.report.formula import effects
from onehidden.report.headline import Mood
from onehidden.report.screen import Screen, screen
from onehidden.report.subject import gather
from onehidden.report.wording import Mark, left_open, mark, parameter

if TYPE_CHECKING:
    from onehidden.report.subject import Recovered

COLUMNS = ("unit", "parameter", "estimate", "standard_error", "effect_of_one_sd", "effect_error", "verdict")
Row = tuple[int | None, str, float, float, float, float, str]


class Tone(enum.Enum):
    """How a line of text is shown, by media that have colours."""

    TITLE = enum.auto()
    GOOD = enum.auto()
    CARE = enum.auto()
    DOUBT = enum.auto()
    FORMULA = enum.auto()
    QUIET = enum.auto()
    PLAIN = enum.auto()


_STYLES = {
    Tone.TITLE: "font-weight: bold", Tone.GOOD: "color: #3a8a55; font-weight: bold",
    Tone.CARE: "color: #a3700f; font-weight: bold", Tone.DOUBT: "color: #d0453a; font-weight: bold",
    Tone.FORMULA: "color: #4a8fd0",
    Tone.QUIET: "opacity: 0.7", Tone.PLAIN: "",
}  # fmt: skip
TONES = {Mood.GOOD: Tone.GOOD, Mood.CARE: Tone.CARE, Mood.DOUBT: Tone.DOUBT}
Lines = list[tuple[Tone, str]]


def first_screen(recovery: Recovered) -> str:
    """The first screen."""
    return _joined(lines(screen(gather(recovery))))


def summary(recovery: Recovered, width: int = 100) -> str:
    """The first screen, then every number with its standard error, failed checks and alternatives."""
    subject = gather(recovery)
    net, names, shown = subject.net, subject.names, screen(subject)
    column = max(len(name) for name in (*names, "output w"))
    made = [_joined(lines(shown)), "", f"{'parameter':<{column + 10}} estimate ± standard error"]
    made.append(f"{'intercept':<{column + 10}} {parameter(net.intercept, subject.error('intercept'))}")
    for name, value, error in subject.slopes:
        made.append(f"{_one_line(name):<{column + 10}} {parameter(value, error)}")
    for i, label in enumerate(subject.units):
        rows = [("output w", net.output[i], subject.error("output", i))]
        rows += [("bias b", net.bias[i], subject.error("bias", i))] if subject.has_bias else []
        rows += [(name, net.weights[i, j], subject.error("weights", (i, j))) for j, name in enumerate(names)]
        for name, value, error in rows:
            text = parameter(float(value), error, subject.unit(i))
            made.append(f"{label:<9} {_one_line(name):<{column}} {text}")
    for check in shown.failed:
        made += ["", *_wrapped(f"{mark(check)}: {check.name}: {check.advice}", width)]
    for other in subject.get("alternatives", ()):
        made += ["", f"not ruled out: {other.label} ({other.distance})"]
    return "\n".join(made)


def lines(shown: Screen, width: int = 100) -> Lines:
    """The first screen, line by line, each no longer than ``width``."""
    made: Lines = []

    def add(text: str, tone: Tone = Tone.PLAIN, first: str = "", rest: str = "") -> None:
        made.extend((tone, line) for line in _wrapped(text, width, first, rest))

    def gap() -> None:
        made.append((Tone.PLAIN, ""))

    add(shown.title, Tone.TITLE)
    for label, answer in shown.answers:
        add(f"{label}: {answer.sentence}", TONES[answer.mood])
    if shown.advice:
        add(f"next: {shown.advice}")
    gap()
    for one in shown.formula:
        add(one, Tone.FORMULA, "    ", "          ")
    gap()
    add("; ".join(f"{label} {value}" for label, value in shown.facts))
    add(shown.predictions)
    gap()
    made.append((Tone.QUIET, f"unit   {shown.head}, the strongest first"))
    indent = " " * 7
    for unit in shown.units:
        share = f"{unit.share} of {shown.whole}" if unit.share else ""
        head = ", ".join(filter(None, (share, f"w {unit.output}", unit.judged)))
        add(head, Tone.PLAIN, f"{unit.index + 1:>4}   ", indent)
        add(unit.named, Tone.PLAIN, indent, indent)
    if shown.more_units:
        made.append((Tone.QUIET, f"{indent}and {shown.more_units} more units"))
    add(" ".join(shown.legend), Tone.QUIET, indent, indent)
    gap()
    add(shown.sentence)
    for outcome in (Mark.FAILED, Mark.NOT_EVALUATED):
        if named := shown.named(outcome):
            add(f"{outcome}: {named}")
    made.append((Tone.QUIET, shown.passed))
    if shown.assumed:
        add(f"taken as given: {shown.assumed}", Tone.QUIET)
    return made


def fragment(recovery: Recovered) -> str:
    """The first screen as HTML for notebooks, with the advice of failed checks; every name is escaped."""
    shown = screen(gather(recovery))
    made = lines(shown)
    for check in shown.failed:
        made += [(Tone.PLAIN, line) for line in _wrapped(f"{check.name}: {check.advice}", 100)]
    spans = (f"<span style='{_STYLES[tone]}'>{escape(line)}</span>" for tone, line in made)
    return "<pre>" + "\n".join(spans) + "</pre>"


def _joined(made: Lines) -> str:
    return "\n".join(line for _, line in made)


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    # A number stays with its per cent sign.
    text = _one_line(text).replace(" %", "\N{NO-BREAK SPACE}%")
    found = textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in found]


def _one_line(text: str) -> str:
    """Text on one line, without control characters that a terminal would obey."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def rows(recovery: Recovered) -> list[Row]:
    """One row a number: intercept, linear part, mean slopes, then output, bias and weights of each unit.

    Of several outputs each has its own intercept, linear part and output weights; effects are on the first.
    Errors are NaN where they are not known and infinite where the data leave the number open; effects are
    those of an input, w a sd, and NaN for the other numbers.
    """
    subject = gather(recovery)
    net, whole, found, nan = subject.net, recovery.network, effects(subject), float("nan")
    errors, single = getattr(recovery, "standard_errors", None), subject.n_outputs == 1
    made: list[Row] = []

    def add(
        name: str, label: str, index: tuple[int, ...], unit: int | None = None, effect: tuple = (nan, nan)
    ) -> None:
        """The number at this index of the parameter called ``name``."""
        verdict = None if unit is None else subject.unit(unit)
        known = None if errors is None else getattr(errors, name, None)
        error = np.inf if left_open(verdict) else nan if known is None else float(np.asarray(known)[index])
        value, number = float(np.asarray(getattr(whole, name))[index]), None if unit is None else unit + 1
        made.append((number, label, value, error, *effect, "" if verdict is None else str(verdict.status)))

    def add_each(name: str, label: str, index: tuple[int, ...], unit: int | None = None) -> None:
        """A number that each output has one of."""
        for j, output in enumerate(subject.outputs):
            add(name, label if single else f"{label} of {output}", index if single else (*index, j), unit)

    add_each("intercept", "intercept", ())
    if whole.has_linear:
        for j, name in enumerate(subject.names):
            add_each("linear", f"linear {name}", (j,))
    if (mean := subject.get("mean_slopes")) is not None:
        values, its = (np.asarray(one).reshape(-1) for one in (mean.estimate, mean.error))
        labels = [
            f"mean slope {name}" + ("" if single else f" of {output}")
            for name in subject.names
            for output in subject.outputs
        ]
        made += [
            (None, label, float(value), float(error), nan, nan, "")
            for label, value, error in zip(labels, values, its, strict=True)
        ]
    for i in range(net.n_hidden):
        add_each("output", "output", (i,), i)
        if subject.has_bias:
            add("bias", "bias", (i,), i)
        open_ = left_open(subject.unit(i))
        for j, name in enumerate(subject.names):
            error = np.inf if open_ else nan if found.errors is None else float(found.errors[i, j])
            add("weights", name, (i, j), i, (float(found.values[i, j]), error))
    return made


def to_frame(recovery: Recovered) -> Any:
    """The rows as a pandas data frame."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("to_frame needs pandas: install it, or read units.csv of the run folder") from None

    return pd.DataFrame(rows(recovery), columns=list(COLUMNS)).astype({"unit": "Int64"})


def to_csv(recovery: Recovered) -> str:
    """The rows as comma-separated values; names that a spreadsheet would take for a formula are quoted."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for unit, name, *numbers, verdict in rows(recovery):
        cells = ["" if np.isnan(value) else repr(value) for value in numbers]
        safe = f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name
        writer.writerow(["" if unit is None else unit, safe, *cells, verdict])
    return stream.getvalue()
