"""The first screen: what a reader learns before anything else, the same on every medium.

It holds the verdict in a sentence, the formula with its numbers, the fit next to that of a linear function,
each unit by the effects of its inputs, the checks that failed, and the one thing to do next.
"""

from __future__ import annotations

import math

import numpy as np

from onehidden.certify.certificate import Status
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import ORDER, About, Check, decisive_first
from onehidden.report.blocks import Block, Facts, Formula, Grid
from onehidden.report.formula import formula, heading, straight
from onehidden.report.headline import of_predictions, of_units
from onehidden.report.subject import Subject, strongest
from onehidden.report.wording import (
    Mark,
    by_urgency,
    explained,
    left_open,
    mark,
    more,
    part,
    plural,
    short,
    with_error,
)

UNKNOWN = "?"  # stands for an undetermined number where words would crowd the line


def screen(subject: Subject, few: int = 6, many: int = 12) -> tuple[Block, ...]:
    """The first screen of a recovery; of more than ``many`` units the strongest ``few``."""
    k, shares = subject.net.n_hidden, np.zeros(subject.net.n_hidden)
    for unit in subject.recovery.units:
        shares[unit.index] = np.nan_to_num(unit.share, posinf=0.0, neginf=0.0)
    most_inputs, chosen = 6 if k <= few else 3, strongest(shares, k if k <= many else few)
    guard, checks = subject.recovery.prediction, subject.recovery.checks
    named = {one: [check.name for check in checks if mark(check) is one] for one in Mark}
    noted, passed = len(named[Mark.NOTED]), len(named[Mark.PASSED])
    blocks: list[Block] = [
        *answers(subject),
        Formula(formula(subject, sorted(chosen), most_inputs)),
        Facts(facts(subject)),
        "" if guard is None or guard.alone else guard.message,
        _units(subject, chosen, most_inputs),
        sentence(subject),
    ]
    for outcome in (Mark.FAILED, Mark.NOT_EVALUATED):
        blocks.append(f"{outcome}: {', '.join(named[outcome])}" if named[outcome] else "")
    blocks.append(f"{passed} {plural(passed, 'check')} passed" + (f", {noted} noted" if noted else ""))
    if assumptions := subject.recovery.assumptions:
        blocks.append(f"taken as given: {' '.join(assumptions)}")
    return tuple(block for block in blocks if block)


def answers(subject: Subject) -> list[Block]:
    """The answers to the two questions of a reader, and what to do next."""
    advice = next_step(subject, by_urgency(subject.recovery.checks))
    found: list[Block] = [of_predictions(subject), of_units(subject)]
    return [*found, f"next: {advice}"] if advice else found


def sentence(subject: Subject) -> str:
    """The status and what it means."""
    return ": ".join(filter(None, (subject.recovery.status, subject.recovery.message)))


def unmet(subject: Subject) -> list[Check]:
    """The checks that failed, then those that were not evaluated."""
    checks = by_urgency(subject.recovery.checks)
    return [check for check in checks if mark(check) in (Mark.FAILED, Mark.NOT_EVALUATED)]


def title(subject: Subject) -> str:
    """The units found, the target and the file."""
    net, options, q = subject.net, subject.recovery.options, subject.recovery.network.n_outputs
    what = f"{net.n_hidden} {net.activation.name} {plural(net.n_hidden, 'unit')}"
    what += f" of {q} outputs" if q > 1 else ""
    source, target = options.get("source"), options.get("target")
    if target:
        named = " and ".join(filter(None, (", ".join(subject.outputs[:-1]), subject.outputs[-1])))
        what += f" behind {target if subject.recovery.classes else named}"
    return what + (f" in {str(source).rstrip('/').rpartition('/')[2]}" if source else "")


def facts(subject: Subject) -> tuple[tuple[str, str], ...]:
    """The fit next to that of a linear function, on the rows fitted and on rows left out; noise and rows."""
    found: list[tuple[str, str]] = []
    share = "R²" if subject.recovery.family is None else "share of the deviance"
    for label, name in ((f"network: {share}", "r_squared"), (f"{share} of a linear fit", "linear_r_squared")):
        value = getattr(subject.recovery, name)
        found += [(label, explained(value))] if math.isfinite(value) else []
    guard = subject.recovery.prediction
    if guard is not None and math.isfinite(guard.r_squared):
        # A fit to rounding with as many parameters as rows shows nothing about other rows.
        free = guard.alone and subject.recovery.n_samples <= subject.recovery.freedom
        model = "ridge" if subject.recovery.family is None else "a penalised linear model"
        found.append((f"{share} on rows left out", "–" if free else explained(guard.r_squared)))
        found.append((f"{share} of {model}, same rows", explained(guard.linear_r_squared)))
    if subject.recovery.family is not None:
        found += [("family", subject.recovery.family.name), ("link", subject.recovery.family.link)]
    else:
        found.append(("noise sd", short(math.sqrt(max(subject.recovery.noise_variance, 0.0)), 3)))
    found.append(("rows", f"{subject.recovery.n_samples:,}".replace(",", " ")))
    if subject.recovery.freedom:
        found.append(("free parameters", str(subject.recovery.freedom)))
    return tuple(found)


def _share(subject: Subject, unit: UnitVerdict) -> float:
    """The share of a unit in var(y); of a family, whose y has another scale, in all units."""
    if subject.recovery.family is None:
        return unit.share
    return unit.share / (sum(one.share for one in subject.recovery.units) or 1.0)


def _units(subject: Subject, chosen: list[int], most: int) -> Grid:
    """A row a unit: its share, its output weight, its verdict, its strongest inputs with their effects."""
    net, effects, errors, rows = subject.net, subject.effects, subject.effect_errors, []
    whole = "var(y)" if subject.recovery.family is None else "all units"
    largest_output = float(np.max(np.abs(net.output)))
    for i in chosen:
        unit, largest = subject.unit(i), float(np.max(np.abs(effects[i])))
        named = [
            f"{subject.names[j]} {_effect(effects[i, j], errors[i, j], unit, largest)}"
            for j in strongest(effects[i], most)
        ]
        if net.n_inputs > most:
            named.append(f"and {net.n_inputs - most} more")
        share = judged = ""
        if unit is not None:
            share = f"{part(_share(subject, unit))} of {whole}"
            judged = f"{unit.status} ({unit.reason})" if unit.reason else str(unit.status)
        output = _effect(float(net.output[i]), float(subject.output_errors[i]), unit, largest_output)
        rows.append((str(i + 1), share, f"w {output}", judged, ", ".join(named)))
    columns = ("unit", "share", "output", "verdict", f"{heading(subject)}, the strongest first")
    return Grid(columns, tuple(rows), _legend(subject, chosen, rows), frozenset({3, 4}))


def _effect(value: float, error: float, unit: UnitVerdict | None, scale: float) -> str:
    """A number with its error, alone where the error is rounding, a question mark where it is undetermined.

    Ten errors leave neither digits nor sign, unless the error is small next to ``scale``, the largest number
    of its kind: such a number is known to be near zero.
    """
    if not error <= max(10 * abs(value), scale):
        return UNKNOWN
    alone = error <= 1e-9 * abs(value) or left_open(unit)
    return short(value) if alone else with_error(value, error)


def _legend(subject: Subject, chosen: list[int], rows: list[tuple[str, ...]]) -> str:
    """The meaning of the signs that stand next to the units, and how many units are left out."""
    shown = " ".join(f"{row[2]} {row[4]}" for row in rows)
    made = ["± is one standard error."] if "±" in shown else []
    if any(left_open(subject.unit(i)) for i in chosen) or f" {UNKNOWN}" in shown:
        made.append("? is undetermined: the data leave it open; numbers of a unit marked (?) have no error.")
    if sum(_share(subject, unit) for unit in subject.recovery.units) > 1 + 1e-9:
        made.append("Shares can pass 100 %, one or their sum: units overlap or cancel.")
    if left := subject.net.n_hidden - len(rows):
        made.append(f"{more(left, 'weaker unit').capitalize()} under the details.")
    return " ".join(made)


_ROWS = "bring more rows"
_CHOOSE = "let the number of units be chosen: leave out hidden (--hidden)"


def next_step(subject: Subject, checks: list[Check]) -> str:
    """The one thing to do next; nothing where the answer is certified.

    Every step leaves a choice to the data or asks for something that only a person can bring, so that
    following the steps comes to an end. More time is asked for only where the time was used up.
    """
    status, options, failed = subject.recovery.status, subject.recovery.options, decisive_first(checks)
    if status.certified:
        return ""
    limit, guard = options.get("max_seconds"), subject.recovery.prediction
    short_of_time = limit is not None and 2 * subject.recovery.seconds > float(limit)
    automatic, choose = options.get("start", "auto") == "auto", options.get("hidden") is not None
    kinds = [_concern(check, short_of_time) for check in failed]
    if automatic and options.get("seed", 0) != 0 and not short_of_time:
        kinds = [one for one in kinds if one is not About.SEARCH]  # another seed was tried
    if not kinds:  # the verdict says it: something is missed, was not compared, or is undetermined
        about = {Status.APPROXIMATE: About.FIT, Status.DOUBTFUL: About.SEARCH}
        kinds = [About.UNITS if failed else about.get(status, About.UNITS)]
    several = choose and subject.net.n_hidden > 1
    search = "give another seed" if automatic else "race all starts with start='auto' (--start auto)"
    errors = (
        "ask for errors='robust' (--errors robust)"
        if options.get("errors") == "classical"  # which unequal noise alone makes wrong
        else "name what rows share (groups=, --groups COLUMN), or add the column that orders them"
    )
    fit = (
        "let the activation be chosen: activation='auto' (--activation auto)"
        if options.get("activation") != "auto"
        else "use the predictions for what they are, or look for an input that is missing"
    )
    # The rows do not show that a unit is needed beside a linear function.
    k, causes = subject.net.n_hidden, [unit.cause for unit in subject.recovery.units]
    spare = k == 1 and causes == [Cause.SPARE]
    units = f"{_ROWS}, or other columns: these do not explain y"
    units = units if guard is not None and guard.r_squared <= 0 else _ROWS
    return {
        About.COLUMNS: "leave out columns that others determine",
        About.DATA: f"{_ROWS}, or ask for fewer units" if several else _ROWS,
        About.SEARCH: "allow more time" if short_of_time else search,
        About.MEAN: "give y on the scale, or with the link, that the status below names",
        About.FIT: _CHOOSE if choose else fit,
        About.UNITS: f"use a linear model, or {_ROWS}"
        if spare or len(straight(subject)) == k
        else (_CHOOSE if several else units),
        About.ERRORS: errors,
    }[min(kinds, key=ORDER.index)]


def _concern(check: Check, short_of_time: bool) -> About:
    """What would help: time or rows, where a check of the fit or of the units could not be evaluated."""
    if check.evaluated or check.about not in (About.FIT, About.UNITS):
        return check.about
    return About.SEARCH if short_of_time else About.DATA
