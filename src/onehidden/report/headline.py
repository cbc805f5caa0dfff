"""The two questions a reader has first: whether predictions may be used, and which units interpreted.

Each has one plain sentence of at most 25 words and a mood of its own, the same on every medium. What can be
done comes third, where something can help.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

from onehidden.certify.certificate import Status
from onehidden.certify.units import Cause, UnitStatus, UnitVerdict, why_undetermined
from onehidden.checks import About, decisive_first, reason
from onehidden.report.formula import few_bend, straight
from onehidden.report.subject import Subject
from onehidden.report.wording import part


class Mood(enum.StrEnum):
    """How an answer is coloured: as sound, as something to know, as something not to rely on."""

    GOOD = "good"
    CARE = "care"
    DOUBT = "doubt"

    @property
    def sign(self) -> str:
        """The mood without a colour."""
        return {Mood.GOOD: "✓", Mood.CARE: "~", Mood.DOUBT: "!"}[self]


@dataclass(frozen=True)
class Answer:
    """The answer to one question, in one sentence with its full stop."""

    sentence: str
    mood: Mood


def of_predictions(subject: Subject, weak: float = 0.1) -> Answer:
    """Whether predictions may be used, and how good they are on rows left out, beside a linear model.

    They hardly beat the mean where they explain less than ``weak`` of the variation of y.
    """
    guard, y = subject.recovery.prediction, _target(subject)
    if guard is None or not math.isfinite(guard.r_squared):
        return _without_rows_left_out(subject)
    if guard.alone and subject.recovery.n_samples <= subject.recovery.freedom:
        text = "Nothing is known about predictions: as many parameters as rows reproduce any rows."
        return Answer(text, Mood.DOUBT)
    if guard.r_squared <= 0:
        text = f"Do not rely on predictions: neither network nor linear model explains {y} on unseen rows."
        return Answer(text, Mood.DOUBT)
    own, line = _shares(guard.r_squared, guard.linear_r_squared)
    sound = guard.r_squared >= weak
    use = "Predictions may be used" if sound else f"Predictions hardly beat the mean of {y}"
    of_rows = f"{own} of {f'the variation of {y}' if sound else 'its variation'} on unseen rows"
    if guard.share == 0:
        text = f"a linear model explains {of_rows}; the network adds nothing"
        return Answer(f"{use}: {text}.", Mood.CARE)
    text = f"the network explains {of_rows}, a linear model {line}"
    if not guard.alone:
        text = f"network and linear model together explain {of_rows}, the linear model alone {line}"
    return Answer(f"{use}: {text}.", Mood.GOOD if sound else Mood.CARE)


def _target(subject: Subject) -> str:
    """The name of the target where it is one short word, else y."""
    name = subject.recovery.options.get("target")
    plain = isinstance(name, str) and len(name) <= 20 and name.isprintable() and " " not in name
    return str(name) if plain else "y"


def _without_rows_left_out(subject: Subject) -> Answer:
    """What is known of predictions where no rows were left out: of streams and of black boxes."""
    fitted = subject.recovery.r_squared
    if subject.recovery.queries:
        if subject.recovery.converged:
            text = "The network gives the answers of the black box: predictions may be used where queries"
            return Answer(f"{text} went.", Mood.GOOD)
        return Answer("The network is not known to give the answers of the black box everywhere.", Mood.CARE)
    if not math.isfinite(fitted):
        return Answer("How well the network predicts other rows was not measured.", Mood.CARE)
    text = f"The network explains {_share(fitted)} of the variation of {_target(subject)} on the rows fitted"
    return Answer(text + "; other rows were not tried.", Mood.CARE)


def of_units(subject: Subject) -> Answer:
    """Which units may be interpreted, and in a clause why not the others."""
    status, k = subject.recovery.status, subject.net.n_hidden
    if len(straight(subject)) == k:
        text = "On these rows the network is a linear function: there is no unit to interpret."
        if few_bend(subject):
            text = "The network is a linear function but for a few rows, too few to interpret a unit."
        return Answer(text, Mood.CARE)
    if status in (Status.EXACT, Status.CONSISTENT):
        return Answer(_sound(subject, status), Mood.GOOD)
    if status == Status.APPROXIMATE:
        them = "it explains" if k == 1 else "they explain"
        text = f"Interpret {_all(k)} only as an approximation: the rows show more than {them}."
        return Answer(text, Mood.CARE)
    if status == Status.NOT_IDENTIFIABLE:
        return _not_identifiable(subject)
    why = next(map(reason, decisive_first(subject.recovery.checks)), "")
    if not why and status == Status.DOUBTFUL:
        why = "the time ended before other networks were compared"
    return Answer(f"Do not interpret {_all(k)}" + (f": {why}." if why else "."), Mood.DOUBT)


def _sound(subject: Subject, status: str) -> str:
    """All units may be interpreted, and why."""
    k = subject.net.n_hidden
    who = f"{'The unit' if k == 1 else 'Both units' if k == 2 else f'All {k} units'} of the network"
    it = "it reproduces" if k == 1 else "they reproduce"
    if subject.recovery.queries:
        why = f"{it} the answers of the black box"
    elif status == Status.EXACT:
        why = f"{it} every row"
    else:
        why = "no other network of this kind fits equally well, and the rest of y looks like noise"
    return f"{who} may be interpreted: {why}."


def _not_identifiable(subject: Subject) -> Answer:
    """The units that may be interpreted where the rows leave something open."""
    k, units = subject.net.n_hidden, subject.recovery.units
    if subject.net.activation.polynomial:
        text = "with this activation many other sets of units give the same function"
        return Answer(f"Do not interpret {_all(k)}: {text}.", Mood.DOUBT)
    checks = decisive_first(subject.recovery.checks)
    if checks and checks[0].about is About.COLUMNS:
        text = "Do not interpret single weights: some columns can be computed from others."
        return Answer(text, Mood.DOUBT)
    open_ = [unit for unit in units if unit.status == UnitStatus.UNDETERMINED]
    sound = [unit for unit in units if unit.status == UnitStatus.DETERMINED]
    causes = [unit.cause for unit in open_]
    why = max(causes, key=causes.count, default=None)  # of equally frequent ones that of the first unit
    if not (sound and open_):
        if k == 1 and why is Cause.SPARE:
            return Answer(
                f"Do not interpret {_all(k)}: a linear function explains the rows equally well.", Mood.DOUBT
            )
        return Answer(f"Do not interpret {_all(k)}: {why_undetermined(why, k > 1)}.", Mood.DOUBT)
    can, cannot = _named(sound, k), _named(open_, k)
    clause = why_undetermined(why, len(open_) > 1)
    return Answer(f"{can} may be interpreted, {cannot.lower()} may not: {clause}.", Mood.CARE)


def _named(units: Sequence[UnitVerdict], k: int, most: int = 3) -> str:
    """These units by their numbers, or their count where they are many."""
    numbers = [str(unit.index + 1) for unit in units]
    if len(numbers) == 1:
        return f"Unit {numbers[0]}"
    if len(numbers) > most:
        return f"{len(numbers)} of the {k} units"
    return f"Units {', '.join(numbers[:-1])} and {numbers[-1]}"


def _all(k: int) -> str:
    return "the network's unit" if k == 1 else f"the network's {k} units"


def _shares(own: float, line: float) -> tuple[str, str]:
    """Two shares in words, with as many digits as tell them apart."""
    texts = _share(own), _share(line)
    if texts[0] == texts[1] and abs(own - line) > 5e-4:
        return f"{100 * own:.1f} %", f"{100 * line:.1f} %"
    return texts


def _share(value: float) -> str:
    """A share of the variation of y in per cent; near all, what is missing."""
    left = 1 - value
    if left < 1e-12:
        return "all"
    if left < 1e-3:
        return f"all but {part(left)}"
    if value <= 0:
        return "nothing"
    return f"{100 * value:.1f} %" if value >= 0.9 else part(value)
