"""A recovery in plain text: the first screen, and the table that people read regressions in."""

from __future__ import annotations

import enum
import textwrap
from typing import TYPE_CHECKING

from onehidden.report.marks import number
from onehidden.report.numbers import short
from onehidden.report.screen import Screen, screen
from onehidden.report.subject import gather

if TYPE_CHECKING:
    from onehidden.report.subject import Recovered

WIDTH = 100


class Kind(enum.Enum):
    """What a line of text is, for those who can show it."""

    TITLE = enum.auto()
    GOOD = enum.auto()
    DOUBT = enum.auto()
    FORMULA = enum.auto()
    QUIET = enum.auto()
    PLAIN = enum.auto()


Lines = list[tuple[Kind, str]]


def first_lines(recovery: Recovered) -> str:
    """The first screen."""
    return _joined(lines(screen(gather(recovery))))


def summary(recovery: Recovered) -> str:
    """The first screen, then every number with its standard error, what failed and what fits as well."""
    subject = gather(recovery)
    net, names = subject.net, subject.names
    shown = screen(subject)
    width = max(len(name) for name in (*names, "output w"))
    made = [_joined(lines(shown)), "", f"{'parameter':<{width + 10}} estimate ± standard error"]
    made.append(f"{'intercept':<{width + 10}} {number(net.intercept, subject.error('intercept'))}")
    for i, label in enumerate(subject.units):
        unit = subject.unit(i)
        rows = [("output w", net.output[i], subject.error("output", i))]
        rows += [("bias b", net.bias[i], subject.error("bias", i))] if subject.has_bias else []
        rows += [(name, net.weights[i, j], subject.error("weights", (i, j))) for j, name in enumerate(names)]
        for name, value, error in rows:
            made.append(f"{label:<9} {_line(name):<{width}} {number(float(value), error, unit)}")
    for check in shown.failed:
        word = "failed" if check.asked else "not asked"
        made += ["", *_wrapped(f"{word}: {check.name}: {check.advice}", WIDTH)]
    for other in subject.get("alternatives", ()):
        made += ["", f"fits as well: {other.label} ({short(other.behind, 2)} of n log(loss) behind)"]
    return "\n".join(made)


def lines(shown: Screen, width: int = WIDTH) -> Lines:
    """The first screen, line by line, each no longer than ``width`` (long formulas excepted)."""
    made: Lines = [(Kind.TITLE, line) for line in _wrapped(shown.title, width)]
    made += [(Kind.GOOD if shown.good else Kind.DOUBT, line) for line in _wrapped(shown.sentence, width)]
    made.append((Kind.PLAIN, ""))
    for one in shown.formula:
        made += [(Kind.FORMULA, line) for line in _wrapped(one, width, "    ", "          ")]
    made.append((Kind.PLAIN, ""))
    made += _plain("; ".join(f"{label} {value}" for label, value in shown.facts), width)
    made += _plain(shown.predictions, width)
    made += [(Kind.PLAIN, ""), (Kind.QUIET, f"unit   {shown.head}, the strongest first")]
    for unit in shown.units:
        output = f"w {unit.output}"
        share = f"{unit.share} of {shown.whole}" if unit.share else ""
        head = ", ".join(filter(None, (share, output, unit.judged)))
        made += [(Kind.PLAIN, line) for line in _wrapped(head, width, f"{unit.index + 1:>4}   ", " " * 7)]
        named = ", ".join(f"{name} {value}" for name, value in unit.inputs)
        named += f", and {unit.more} more" if unit.more else ""
        made += [(Kind.PLAIN, line) for line in _wrapped(named, width, " " * 7, " " * 7)]
    if shown.more_units:
        made.append((Kind.QUIET, f"       and {shown.more_units} more units"))
    made += [(Kind.QUIET, line) for line in _wrapped(" ".join(shown.legend), width, " " * 7, " " * 7)]
    made.append((Kind.PLAIN, ""))
    failed = [check.name for check in shown.failed if check.asked]
    unasked = [check.name for check in shown.failed if not check.asked]
    made += [(Kind.DOUBT, line) for line in _wrapped(f"failed: {', '.join(failed)}" if failed else "", width)]
    made += _plain(f"not asked: {', '.join(unasked)}" if unasked else "", width)
    made.append((Kind.QUIET, shown.passed))
    made += _plain(f"next: {shown.advice}" if shown.advice else "", width)
    return made


def _plain(text: str, width: int) -> Lines:
    return [(Kind.PLAIN, line) for line in _wrapped(text, width)]


def _joined(made: Lines) -> str:
    return "\n".join(line for _, line in made)


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(_line(text), width, initial_indent=first, subsequent_indent=rest)


def _line(text: str) -> str:
    """Text on one line, without what a terminal would obey."""
    return " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
