"""Numbers, checks and verdicts as people read them."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable
from typing import SupportsFloat

from onehidden.certify.units import UnitStatus, UnitVerdict
from onehidden.checks import About, Check

OPEN = "undetermined"  # stands for a number that the data leave open


class Mark(enum.StrEnum):
    """The outcome of a check, the most urgent first."""

    FAILED = "failed"
    NOT_EVALUATED = "not evaluated"
    NOTED = "noted"
    PASSED = "passed"


def mark(check: Check) -> Mark:
    """The outcome of a check: one that was not evaluated has not passed, a note cannot fail."""
    if not check.evaluated:
        return Mark.NOT_EVALUATED
    if check.passed:
        return Mark.PASSED
    return Mark.NOTED if check.about is About.NOTE else Mark.FAILED


def by_urgency(checks: Iterable[Check]) -> list[Check]:
    """The checks, those that need action first; otherwise in the order given."""
    return sorted(checks, key=lambda check: list(Mark).index(mark(check)))


def left_open(unit: UnitVerdict | None) -> bool:
    """Whether the data do not determine this unit."""
    return unit is not None and unit.status == UnitStatus.UNDETERMINED


def short(value: SupportsFloat | None, digits: int = 4) -> str:
    """The value to ``digits`` significant digits, with a true minus sign."""
    if value is None:
        return "–"
    value = float(value)
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _minus(f"{value:.{digits}g}") if value else "0"


def with_error(value: float, error: float | None) -> str:
    """``value ± error``, the error to two digits and the value to the same place."""
    if error is None or not math.isfinite(error) or error <= 0:
        return short(value)
    places = 1 - math.floor(math.log10(error))
    if abs(value) >= 1e6 or places > 6:
        return _minus(f"{value:.7g} ± {error:.0e}")
    return _minus(f"{value:.{max(places, 0)}f} ± {round(error, places):.{max(places, 0)}f}")


def explained(value: float) -> str:
    """R² in three digits; near one, as 1 - R²."""
    left = 1 - value
    if left < 1e-15:
        return "1"
    return short(value, 3) if left >= 1e-3 else f"1 − {left:.0e}"


def part(share: float) -> str:
    """A share in per cent: two digits, from ten on whole numbers; of parts that cancel, that it is large."""
    if 10 < share < math.inf:
        return "over 1000 %"
    return f"{100 * share:.0f} %" if 10 <= 100 * share < math.inf else f"{short(100 * share, 2)} %"


def plural(count: int, noun: str) -> str:
    """The noun as it stands behind this number."""
    return noun if count == 1 else f"{noun}s"


def more(count: int, noun: str) -> str:
    """The count of what is left out: "3 more units"."""
    return f"{count} more {plural(count, noun)}"


def _minus(text: str) -> str:
    """A true minus sign where a number begins with a hyphen; exponents keep theirs."""
    return re.sub(r"(^|[ \[])-(?=\d)", r"\1−", text)
