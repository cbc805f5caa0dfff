"""How checks and units stand on a page or a terminal: one word each."""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Sequence

from onehidden.certify.units import UnitStatus, UnitVerdict
from onehidden.checks import About, Check
from onehidden.report.numbers import short, with_error

OPEN = "undetermined"  # stands for a number that the data leave open


class Mark(enum.StrEnum):
    """What became of a question, the most urgent first."""

    FAILED = "failed"
    NOT_ASKED = "not asked"
    NOTED = "noted"
    PASSED = "passed"


def mark(check: Check) -> Mark:
    """A question that could not be asked has not passed; one that decides nothing does not fail."""
    if not check.asked:
        return Mark.NOT_ASKED
    if check.passed:
        return Mark.PASSED
    return Mark.NOTED if check.about is About.NOTE else Mark.FAILED


def by_urgency(checks: Iterable[Check]) -> list[Check]:
    """What the reader must act on comes first; otherwise in the order given."""
    return sorted(checks, key=lambda check: list(Mark).index(mark(check)))


def tally(checks: Sequence[Check]) -> str:
    """The marks counted: "all 9 checks passed", "of 9 checks 7 passed, 1 failed, 1 not asked"."""
    if not checks:
        return "no checks were made"
    found = Counter(mark(check) for check in checks)
    if found[Mark.PASSED] == len(checks):
        return f"all {len(checks)} checks passed"
    counts = [f"{found[one]} {one}" for one in reversed(Mark) if found[one]]
    return f"of {len(checks)} checks {', '.join(counts)}"


def number(value: float, error: float | None, unit: UnitVerdict | None = None) -> str:
    """A parameter ± its standard error; without, where the unit is left open: it would say too much."""
    if error is not None and not math.isfinite(error):
        return OPEN
    return short(value) if left_open(unit) else with_error(value, error)


def left_open(unit: UnitVerdict | None) -> bool:
    """Whether the data do not determine this unit."""
    return unit is not None and unit.status == UnitStatus.UNDETERMINED


def standing(unit: UnitVerdict) -> str:
    """The verdict on a unit, with its reason."""
    return f"{unit.status}: {unit.reason}" if unit.reason else str(unit.status)
