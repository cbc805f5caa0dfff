"""The first screen: what a reader learns before anything else, the same on every medium.

It holds the verdict in a sentence, the formula with its numbers, the fit next to that of a linear function,
each unit by the effects of its inputs, the checks that failed, and the one thing to do next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from onehidden.certify.certificate import Status
from onehidden.certify.reasons import ORDER, decisive_first
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import About, Check
from onehidden.report.formula import Effects, effects, formula, left_hand, straight
from onehidden.report.headline import Answer, Mood, of_predictions, of_units
from onehidden.report.subject import Subject, strongest
from onehidden.report.wording import (
    Mark,
    by_urgency,
    explained,
    left_open,
    mark,
    parameter,
    part,
    plural,
    short,
)

UNKNOWN = "?"  # stands for an undetermined number where words would crowd the line


@dataclass(frozen=True)
class UnitLine:
    """A unit in words: its share, its output weight, its verdict, its strongest inputs with their effects."""

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
        """The verdict with its reason."""
        return f"{self.verdict} ({self.reason})" if self.reason else self.verdict

    @property
    def named(self) -> str:
        """The inputs with their effects in one line."""
        text = ", ".join(f"{name} {value}" for name, value in self.inputs)
        return f"{text}, and {self.more} more" if self.more else text


@dataclass(frozen=True)
class Screen:
    """The first screen, before it is set as text, on a terminal or as a page."""

    title: str
    status: str
    message: str
    good: bool  # the predictions may be used, and every unit may be interpreted
    answers: tuple[tuple[str, Answer], ...]  # to the two questions, each with what it is about
    formula: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    predictions: str
    head: str  # of the effects
    whole: str  # what the shares of the units are of
    units: tuple[UnitLine, ...]
    more_units: int
    legend: tuple[str, ...]
    failed: tuple[Check, ...]  # and those that were not evaluated
    passed: str
    advice: str
    assumed: str  # what the verdict takes as given

    @property
    def sentence(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status

    def named(self, mark_: Mark) -> str:
        """The names of the checks with this outcome."""
        return ", ".join(check.name for check in self.failed if mark(check) is mark_)


def screen(subject: Subject, few: int = 6, many: int = 12) -> Screen:
    """The first screen of a recovery; of more than ``many`` units the strongest ``few``."""
    found, k = effects(subject), subject.net.n_hidden
    most_inputs = 6 if k <= few else 3
    chosen = _by_share(subject)[: k if k <= many else few]
    checks = by_urgency(subject.get("checks", ()))
    guard = subject.get("prediction")
    units = _reasons_once([_unit(subject, found, i, most_inputs) for i in chosen])
    plain = subject.n_outputs == 1 and subject.family is None
    answers = (("Predictions", of_predictions(subject)), ("Units", of_units(subject)))
    noted = sum(mark(check) is Mark.NOTED for check in checks)
    passed = sum(mark(check) is Mark.PASSED for check in checks)
    return Screen(
        title=title(subject),
        status=str(subject.get("status", "no status")),
        message=str(subject.get("message", "")),
        good=all(answer.mood is Mood.GOOD for _, answer in answers),
        answers=answers,
        formula=formula(subject, found, sorted(chosen), most_inputs),
        facts=facts(subject),
        predictions="" if guard is None or guard.alone else guard.message,
        head=found.head if plain else found.head.replace("on y", f"on {left_hand(subject)}"),
        whole="var(y)" if subject.family is None else "all units",
        units=units,
        more_units=k - len(chosen),
        legend=_legend(subject, units),
        failed=tuple(check for check in checks if mark(check) in (Mark.FAILED, Mark.NOT_EVALUATED)),
        passed=f"{passed} {plural(passed, 'check')} passed" + (f", {noted} noted" if noted else ""),
        advice=next_step(subject, checks),
        assumed=" ".join(subject.get("assumptions", ())),
    )


def title(subject: Subject) -> str:
    """The units found, the target and the file."""
    net, options = subject.net, subject.options
    what = f"{net.n_hidden} {net.activation.name} {plural(net.n_hidden, 'unit')}"
    what += f" of {subject.n_outputs} outputs" if subject.n_outputs > 1 else ""
    source, target = options.get("source"), options.get("target")
    if target:
        what += f" behind {target if subject.get('classes') else subject.target}"
    return what + (f" in {str(source).rstrip('/').rpartition('/')[2]}" if source else "")


def facts(subject: Subject) -> tuple[tuple[str, str], ...]:
    """The fit next to that of a linear function, on the rows fitted and on rows left out; noise and rows."""
    found: list[tuple[str, str]] = []
    share = "R²" if subject.family is None else "share of the deviance"
    for label, name in ((f"network: {share}", "r_squared"), (f"{share} of a linear fit", "linear_r_squared")):
        value = subject.get(name, math.nan)
        found += [(label, explained(value))] if math.isfinite(value) else []
    guard = subject.get("prediction")
    if guard is not None and math.isfinite(guard.r_squared):
        # A fit to rounding with as many parameters as rows shows nothing about other rows.
        free = guard.alone and subject.get("n_samples", math.inf) <= subject.get("freedom", 0)
        model = "ridge" if subject.family is None else "a penalised linear model"
        found.append((f"{share} on rows left out", "–" if free else explained(guard.r_squared)))
        found.append((f"{share} of {model}, same rows", explained(guard.linear_r_squared)))
    if subject.family is not None:
        found += [("family", subject.family.name), ("link", subject.family.link)]
    elif (noise := subject.get("noise_variance")) is not None:
        found.append(("noise sd", short(math.sqrt(max(noise, 0.0)), 3)))
    if rows := subject.get("n_samples", subject.n_rows):
        found.append(("rows", f"{rows:,}".replace(",", " ")))
    if subject.get("freedom"):
        found.append(("free parameters", str(subject.get("freedom"))))
    return tuple(found)


def _share(subject: Subject, unit: UnitVerdict) -> float:
    """The share of a unit in var(y); of a family, whose y has another scale, in all units."""
    if subject.family is None:
        return unit.share
    return unit.share / (sum(one.share for one in subject.get("units", ())) or 1.0)


def _by_share(subject: Subject) -> list[int]:
    """The units, those with the largest share first."""
    units = [subject.unit(i) for i in range(subject.net.n_hidden)]
    share = [0.0 if unit is None or not np.isfinite(unit.share) else unit.share for unit in units]
    return strongest(np.array(share), len(share))


def _unit(subject: Subject, found: Effects, i: int, most: int) -> UnitLine:
    unit, net = subject.unit(i), subject.net
    largest, largest_output = float(np.max(np.abs(found.values[i]))), float(np.max(np.abs(net.output)))
    named = []
    for j in strongest(found.values[i], most):
        error = None if found.errors is None else float(found.errors[i, j])
        named.append((subject.names[j], _effect(float(found.values[i, j]), error, unit, largest)))
    return UnitLine(
        index=i,
        share="" if unit is None else part(_share(subject, unit)),
        output=_effect(float(net.output[i]), subject.error("output", i), unit, largest_output),
        verdict="" if unit is None else str(unit.status),
        reason="" if unit is None else unit.reason,
        open=left_open(unit),
        inputs=tuple(named),
        more=net.n_inputs - len(named),
    )


def _reasons_once(units: list[UnitLine]) -> tuple[UnitLine, ...]:
    """The units; a repeated reason refers to the first unit that has it."""
    first = {unit.reason: unit.index for unit in reversed(units)}
    return tuple(
        replace(unit, reason=f"as unit {first[unit.reason] + 1}")
        if unit.reason and first[unit.reason] != unit.index
        else unit
        for unit in units
    )


def _effect(value: float, error: float | None, unit: UnitVerdict | None, scale: float) -> str:
    """A number with its error, alone where the error is rounding, a question mark where it is undetermined.

    Ten errors leave neither digits nor sign, unless the error is small next to ``scale``, the largest number
    of its kind: such a number is known to be near zero.
    """
    if error is not None and not error <= max(10 * abs(value), scale):
        return UNKNOWN
    if error is not None and error <= 1e-9 * abs(value):
        return short(value)
    return parameter(value, error, unit)


def _legend(subject: Subject, units: tuple[UnitLine, ...]) -> tuple[str, ...]:
    """The meaning of the signs that stand next to the units."""
    numbers = [text for unit in units for text in (unit.output, *(value for _, value in unit.inputs))]
    made = ["± is one standard error."] if any("±" in text for text in numbers) else []
    if UNKNOWN in numbers or any(unit.open for unit in units):
        made.append("? is undetermined: the data leave it open; numbers of a unit marked (?) have no error.")
    if sum(_share(subject, unit) for unit in subject.get("units", ())) > 1 + 1e-9:
        made.append("Shares can pass 100 %, one or their sum: units overlap or cancel.")
    return tuple(made)


_CHOOSE = "let the number of units be chosen: leave out hidden (--hidden)"
_ROWS = "bring more rows"
_TIME = "allow more time"
_GROUPS = "add the column that orders or groups the rows (a date as a number), or keep one row of each group"


def next_step(subject: Subject, checks: list[Check]) -> str:
    """The one thing to do next; nothing where the answer is certified.

    Every step leaves a choice to the data or asks for something that only a person can bring, so that
    following the steps comes to an end. More time is asked for only where the time was used up.
    """
    if subject.get("status") in (Status.EXACT, Status.CONSISTENT):
        return ""
    options, unmet = subject.options, decisive_first(checks)
    automatic, short_of_time = options.get("start", "auto") == "auto", _time_was_used(subject)
    kinds = [_concern(check, short_of_time) for check in unmet]
    if automatic and options.get("seed", 0) != 0 and not short_of_time:
        kinds = [one for one in kinds if one is not About.SEARCH]  # another seed was tried
    if not kinds:  # the verdict says it: something is missed, was not compared, or is undetermined
        about = {Status.APPROXIMATE: About.FIT, Status.DOUBTFUL: About.SEARCH}
        kinds = [About.UNITS if unmet else about.get(subject.get("status"), About.UNITS)]
    about = min(kinds, key=ORDER.index)
    fixed, single = options.get("hidden") is not None, subject.net.n_hidden == 1
    if about is About.COLUMNS:
        return "leave out columns that others determine"
    if about is About.DATA:
        return _ROWS if single or not fixed else f"{_ROWS}, or ask for fewer units"
    if about is About.SEARCH:
        if short_of_time:
            return _TIME
        if subject.get("queries"):
            return "allow more queries"
        return "give another seed" if automatic else "let start='auto' race all starts"
    if about is About.MEAN:
        return "give y on the scale, or with the link, that the status below names"
    if about is About.UNITS:
        if _linear_serves(subject):
            return f"use a linear model, or {_ROWS}"
        if fixed and not single:
            return _CHOOSE
        guard = subject.get("prediction")
        nothing = guard is not None and guard.r_squared <= 0
        return f"{_ROWS}, or other columns: these do not explain y" if nothing else _ROWS
    if about is About.ERRORS:
        # Unequal noise counts against classical errors only; dependence counts against all.
        if options.get("errors") == "classical":
            return "ask for errors='robust'"
        return _GROUPS
    if fixed:
        return _CHOOSE
    if options.get("activation") != "auto":
        return "let activation='auto' choose the activation"
    return "use the predictions for what they are, or look for an input that is missing"


def _concern(check: Check, short_of_time: bool) -> About:
    """What would help: time or rows, where a check of the fit or of the units could not be evaluated."""
    if check.evaluated or check.about not in (About.FIT, About.UNITS):
        return check.about
    return About.SEARCH if short_of_time else About.DATA


def _time_was_used(subject: Subject) -> bool:
    """Whether a time limit was given and most of the time is gone."""
    limit = subject.options.get("max_seconds")
    return limit is not None and 2 * subject.get("seconds", math.inf) > float(limit)


def _linear_serves(subject: Subject) -> bool:
    """Whether the rows do not show that any unit is needed beside a linear function."""
    units, k = subject.get("units", ()), subject.net.n_hidden
    spare = k == 1 and bool(units) and all(unit.cause is Cause.SPARE for unit in units)
    return spare or len(straight(subject)) == k
