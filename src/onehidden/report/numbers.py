"""Numbers as people read them: few digits, errors beside values."""

from __future__ import annotations

import math
from typing import SupportsFloat


def short(value: SupportsFloat | None, digits: int = 4) -> str:
    """The value to ``digits`` significant digits, with a true minus sign."""
    if value is None:
        return "–"
    value = float(value)
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    return _minus(f"{value:.{digits}g}")


def with_error(value: float, error: float | None) -> str:
    """``value ± error``, the error to two digits and the value to the same place."""
    if error is None or not math.isfinite(error) or error <= 0:
        return short(value)
    places = 1 - math.floor(math.log10(error))
    if 0 <= places <= 6 and abs(value) < 1e9:
        return _minus(f"{value:.{places}f} ± {error:.{places}f}")
    if places < 0 and abs(value) < 1e6:  # whole numbers read better than powers of ten
        return _minus(f"{value:.0f} ± {round(error, places):.0f}")
    if places > 6:  # tighter than anyone reads: the value in full, the error as a power
        return _minus(f"{value:.6f} ± {error:.0e}")
    return _minus(f"{value:.4g} ± {error:.2g}")


def between(low: float, high: float) -> str:
    """An interval, both ends to the digit that its width supports."""
    width = high - low
    if not math.isfinite(width) or width <= 0:
        return f"[{short(low)}, {short(high)}]"
    places = min(max(1 - math.floor(math.log10(width)), 0), 10)
    if abs(low) >= 1e9 or abs(high) >= 1e9:
        return f"[{short(low)}, {short(high)}]"
    return _minus(f"[{low:.{places}f}, {high:.{places}f}]")


def seconds(value: float | None) -> str:
    if value is None:
        return "–"
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def plural(count: int, noun: str) -> str:
    """The noun as it stands behind this number."""
    return noun if count == 1 else f"{noun}s"


def percent(level: float) -> str:
    return f"{100 * level:g} %"


def part(share: float) -> str:
    """A share in per cent: two digits, from ten on whole numbers."""
    return f"{100 * share:.0f} %" if 10 <= 100 * share < math.inf else f"{short(100 * share, 2)} %"


def _minus(text: str) -> str:
    """A minus sign where a number begins with a hyphen; exponents keep theirs."""
    for before in ("", " ", "["):
        for digit in "0123456789":
            if before:
                text = text.replace(f"{before}-{digit}", f"{before}−{digit}")
            elif text.startswith(f"-{digit}"):
                text = f"−{text[1:]}"
    return text
