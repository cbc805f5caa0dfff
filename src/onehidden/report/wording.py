"""Numbers, checks and verdicts as people read them."""

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
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


def tally(checks: Sequence[Check]) -> str:
    """The outcomes counted: "all 9 checks passed", "of 9 checks 7 passed, 1 failed, 1 not evaluated"."""
    if not checks:
        return "no checks were made"
    found = Counter(mark(check) for check in checks)
    if found[Mark.PASSED] == len(checks):
        return f"all {len(checks)} checks passed"
    counts = [f"{found[one]} {one}" for one in reversed(Mark) if found[one]]
    return f"of {len(checks)} checks {', '.join(counts)}"


def left_open(unit: UnitVerdict | None) -> bool:
    """Whether the data do not determine this unit."""
    return unit is not None and unit.status == UnitStatus.UNDETERMINED


def parameter(value: float, error: float | None, unit: UnitVerdict | None = None) -> str:
    """A parameter ± its standard error; the value alone where its unit is undetermined."""
    if error is not None and not math.isfinite(error):
        return OPEN
    return short(value) if left_open(unit) else with_error(value, error)


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
    if 0 <= places <= 6 and abs(value) < 1e9:
        return _minus(f"{value:.{places}f} ± {error:.{places}f}")
    if places < 0 and abs(value) < 1e6:  # whole numbers read better than powers of ten
        return _minus(f"{value:.0f} ± {round(error, places):.0f}")
    if places > 6:
        digits = f"{value:.6f}" if abs(value) >= 1e-6 else f"{value:.1g}"
        return _minus(f"{digits} ± {error:.0e}")
    return _minus(f"{value:.4g} ± {error:.2g}")


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


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _minus(text: str) -> str:
    """A true minus sign where a number begins with a hyphen; exponents keep theirs."""
    return re.sub(r"(^|[ \[])-(?=\d)", r"\1−", text)
