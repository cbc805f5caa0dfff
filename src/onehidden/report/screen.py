"""The first screen: what a reader learns before anything else, the same on every medium.

The sentence; the formula with its numbers; how well it fits beside a linear function; each unit by the
effects of its inputs; what failed, and the one thing to do next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onehidden.certify.status import Status
from onehidden.certify.units import UnitVerdict
from onehidden.checks import About, Check
from onehidden.report.effects import Effects, effects
from onehidden.report.formula import formula, left_hand
from onehidden.report.marks import Mark, by_urgency, left_open, mark, number
from onehidden.report.numbers import part, plural, short
from onehidden.report.subject import Subject

FEW = 6  # units of which all is shown; of more, fewer inputs each
MANY = 12  # units beyond which the strongest few are shown
UNKNOWN = "?"  # stands for a number that the data leave open, where words would crowd the line
_DROWNED = 10.0  # errors of so many times a number leave neither its digits nor its sign
_ROUNDING = 1e-9  # of a number: an error below it says nothing to a reader


@dataclass(frozen=True)
class UnitLine:
    """A unit in words: its number, what it adds, its verdict, and (input, effect) of its strongest inputs."""

    index: int
    share: str
    output: str
    verdict: str
    reason: str
    open: bool
    inputs: tuple[tuple[str, str], ...]
    more: int

    @property
    def judged(self) -> str:
        """The verdict with what is behind it."""
        return f"{self.verdict} ({self.reason})" if self.reason else self.verdict


@dataclass(frozen=True)
class Screen:
    """The first screen, before it is set as text, on a terminal or as a page."""

    title: str
    status: str
    message: str
    good: bool
    formula: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    predictions: str
    head: str
    whole: str  # what the shares of the units are of
    units: tuple[UnitLine, ...]
    more_units: int
    legend: tuple[str, ...]
    failed: tuple[Check, ...]
    passed: str
    advice: str

    @property
    def sentence(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


def screen(subject: Subject) -> Screen:
    """The first screen of a recovery."""
    found = effects(subject)
    k = subject.net.n_hidden
    most_units, most_inputs = k if k <= MANY else FEW, 6 if k <= FEW else 3
    strongest = _by_share(subject)[:most_units]
    checks = by_urgency(subject.get("checks", ()))
    guard = subject.get("prediction")
    units = _told_once([_unit(subject, found, i, most_inputs) for i in strongest])
    return Screen(
        title=title(subject),
        status=str(subject.get("status", "no status")),
        message=str(subject.get("message", "")),
        good=bool(subject.get("converged", False)),
        formula=formula(subject, found, sorted(strongest), most_inputs),
        facts=facts(subject),
        predictions="" if guard is None or guard.alone else guard.message,
        head=_head(subject, found),
        whole="var(y)" if subject.family is None else "all units",
        units=units,
        more_units=subject.net.n_hidden - len(strongest),
        legend=_legend(subject, units),
        failed=tuple(check for check in checks if mark(check) in (Mark.FAILED, Mark.NOT_ASKED)),
        passed=_passed(checks),
        advice=next_step(subject, checks),
    )


def _head(subject: Subject, found: Effects) -> str:
    """What the effects are on: y, of several outputs the first, of a family what its link makes of y."""
    plain = subject.n_outputs == 1 and subject.family is None
    return found.head if plain else found.head.replace("on y", f"on {left_hand(subject, 0)}")


def title(subject: Subject) -> str:
    """What was found, of what, in which file."""
    net, options = subject.net, dict(subject.get("options", {}))
    what = f"{net.n_hidden} {net.activation.name} {plural(net.n_hidden, 'unit')}"
    what += f" of {subject.n_outputs} outputs" if subject.n_outputs > 1 else ""
    source = options.get("source")
    target = options.get("target")
    named = str(target) if subject.get("classes") else subject.target
    what += f" behind {named}" if target else ""
    return what + (f" in {str(source).rstrip('/').rpartition('/')[2]}" if source else "")


def facts(subject: Subject) -> tuple[tuple[str, str], ...]:
    """The fit beside that of a linear function; on rows left out where some were."""
    found: list[tuple[str, str]] = []
    share = "R²" if subject.family is None else "share of the deviance"
    for label, name in (
        (f"network: {share}", "r_squared"), (f"{share} of a linear fit", "linear_r_squared"),
    ):  # fmt: skip
        value = subject.get(name, math.nan)
        found += [(label, explained(value))] if math.isfinite(value) else []
    guard = subject.get("prediction")
    if guard is not None and math.isfinite(guard.r_squared):
        # A fit to rounding by as many parameters as rows says nothing of others.
        free = guard.alone and subject.get("n_samples", math.inf) <= subject.get("freedom", 0)
        found.append(("R² on rows left out", "–" if free else explained(guard.r_squared)))
        found.append(("R² of ridge there", explained(guard.linear_r_squared)))
    noise = subject.get("noise_variance")
    if subject.family is not None:
        found += [("family", subject.family.name), ("link", subject.family.link)]
    elif noise is not None:
        found.append(("noise sd", short(float(np.sqrt(max(noise, 0.0))), 3)))
    rows = subject.get("n_samples", subject.n_rows)
    if rows:
        found.append(("rows", f"{rows:,}".replace(",", " ")))
    if subject.get("freedom"):
        found.append(("free parameters", str(subject.get("freedom"))))
    return tuple(found)


def explained(value: float) -> str:
    """R² in three digits; near one, 1 - R² is what can still be read."""
    left = 1 - value
    if left < 1e-15:
        return "1"
    return short(value, 3) if left >= 1e-3 else f"1 − {left:.0e}"


def _share(subject: Subject, unit: UnitVerdict) -> float:
    """What a unit adds as a share of var(y); of a family, whose y lies on another scale, of all units."""
    if subject.family is None:
        return unit.share
    return unit.share / (sum(one.share for one in subject.get("units", ())) or 1.0)


def _by_share(subject: Subject) -> list[int]:
    """The units, those that add most first."""
    units = [subject.unit(i) for i in range(subject.net.n_hidden)]
    share = [0.0 if unit is None or not np.isfinite(unit.share) else unit.share for unit in units]
    return np.argsort(-np.array(share), kind="stable").tolist()


def _unit(subject: Subject, found: Effects, i: int, most: int) -> UnitLine:
    unit, net = subject.unit(i), subject.net
    largest, strongest = float(np.max(np.abs(found.values[i]))), float(np.max(np.abs(net.output)))
    named = []
    for j in found.largest(i, most):
        error = None if found.errors is None else float(found.errors[i, j])
        named.append((subject.names[j], _effect(float(found.values[i, j]), error, unit, largest)))
    return UnitLine(
        index=i,
        share="" if unit is None else part(_share(subject, unit)),
        output=_effect(float(net.output[i]), subject.error("output", i), unit, strongest),
        verdict="" if unit is None else str(unit.status),
        reason="" if unit is None else unit.reason,
        open=left_open(unit),
        inputs=tuple(named),
        more=net.n_inputs - len(named),
    )


def _told_once(units: list[UnitLine]) -> tuple[UnitLine, ...]:
    """The units; a reason that a unit above has is not told again."""
    first = {unit.reason: unit.index for unit in reversed(units)}
    return tuple(
        replace(unit, reason=f"as unit {first[unit.reason] + 1}")
        if unit.reason and first[unit.reason] != unit.index
        else unit
        for unit in units
    )


def _effect(value: float, error: float | None, unit: UnitVerdict | None, scale: float) -> str:
    """A number with its error; a question mark where it is open; alone where the error is rounding.

    Open is also what has an error many times its size, unless that is small beside ``scale``, the largest
    number of its kind: then it is known to be near zero.
    """
    if error is not None and not error <= max(_DROWNED * abs(value), scale):
        return UNKNOWN
    if error is not None and error <= _ROUNDING * abs(value):
        return short(value)
    return number(value, error, unit)


def _legend(subject: Subject, units: tuple[UnitLine, ...]) -> tuple[str, ...]:
    """What the signs beside the units mean, where they stand there."""
    numbers = [text for unit in units for text in (unit.output, *(value for _, value in unit.inputs))]
    made = ["± is one standard error."] if any("±" in text for text in numbers) else []
    if UNKNOWN in numbers or any(unit.open for unit in units):
        made.append("? is undetermined: the data leave it open; numbers of a unit marked (?) have no error.")
    verdicts = [subject.unit(i) for i in range(subject.net.n_hidden)]
    if sum(_share(subject, unit) for unit in verdicts if unit is not None) > 1 + 1e-9:
        made.append("Shares can pass 100 %, one or their sum: units overlap or cancel.")
    return tuple(made)


def _passed(checks: list[Check]) -> str:
    passed = sum(mark(check) is Mark.PASSED for check in checks)
    noted = sum(mark(check) is Mark.NOTED for check in checks)
    text = f"{passed} {plural(passed, 'check')} passed"
    return text + (f", {noted} noted" if noted else "")


# What is looked at first makes the later ones moot.
_ORDER = (About.COLUMNS, About.SEARCH, About.DATA, About.FIT, About.UNITS, About.ERRORS)
_CHOOSE = "let the number of units be chosen: leave out hidden (--hidden)"
_ROWS = "bring more rows"
_GROUPS = "add the column that orders or groups the rows (a date as a number), or keep one row of each group"


def next_step(subject: Subject, checks: list[Check]) -> str:
    """The one thing to do next; nothing where the answer stands.

    Every step gives the data a choice that was made for them, or asks for what a person alone can bring:
    whoever follows them comes to an end, and never back to where they were.
    """
    if subject.get("status") in (Status.EXACT, Status.CONSISTENT):
        return ""
    unmet = [check for check in checks if not check.passed]
    if any(not check.asked and check.about is not About.NOTE for check in unmet) and not any(
        check.asked and check.about is not About.NOTE for check in unmet
    ):
        return "allow more time: a question could not be asked"
    kinds = {check.about for check in unmet}
    options = dict(subject.get("options", {}))
    searched = options.get("start", "auto") == "auto" and options.get("seed", 0) != 0
    settled = {About.SEARCH} if searched and options.get("max_seconds") is None else set()
    about = next((one for one in _ORDER if one in kinds - settled), None)
    if about is None:  # told by the verdict alone: something is missed, or units are not determined
        about = About.FIT if subject.get("status") == Status.APPROXIMATE else About.UNITS
    fixed, single = options.get("hidden") is not None, subject.net.n_hidden == 1
    if about is About.COLUMNS:
        return "leave out columns that others determine"
    if about is About.SEARCH:
        if options.get("max_seconds") is not None:
            return "allow more time"
        return (
            "give another seed"
            if options.get("start", "auto") == "auto"
            else "let start='auto' race all starts"
        )
    if about is About.DATA:
        return _ROWS if single or not fixed else f"{_ROWS}, or ask for fewer units"
    if about is About.FIT:
        if fixed:
            return _CHOOSE
        if options.get("activation") != "auto":
            return "let activation='auto' choose the activation"
        return "take the predictions for what they are, or look for an input that is missing"
    if about is About.UNITS:
        return _CHOOSE if fixed and not single else _ROWS
    if about is About.ERRORS:
        # Unequal noise counts against classical errors alone; what counts against the others is dependence.
        return "ask for errors='robust'" if options.get("errors") == "classical" else _GROUPS
    return _ROWS
