"""Where a box may be asked: bounds for every input, and whether only whole numbers are understood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float

# Of x = center + scale u and back: a few roundings of numbers as large as x, and as the widths behind them.
_ROUNDING = 16 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Domain:
    """low <= x <= high, (d,) each, infinite where there is no bound; ``whole`` for whole numbers only."""

    low: Float[np.ndarray, " d"]
    high: Float[np.ndarray, " d"]
    whole: bool = False

    @staticmethod
    def everywhere(d: int) -> Domain:
        return Domain(np.full(d, -np.inf), np.full(d, np.inf))

    @property
    def bounded(self) -> bool:
        return bool(np.any(np.isfinite(self.low)) or np.any(np.isfinite(self.high)))

    @property
    def free(self) -> Bool[np.ndarray, " d"]:
        """Which inputs may vary at all."""
        return self.high > self.low

    def narrowed(self, low: np.ndarray, high: np.ndarray) -> Domain:
        """What lies within these bounds, too."""
        low, high = np.maximum(self.low, low), np.minimum(self.high, high)
        return Domain(np.ceil(low), np.floor(high), True) if self.whole else Domain(low, high)

    def near(self, X: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
        """Which rows of x lie inside, but for the rounding of x; where an input is fixed does not matter."""
        if not self.bounded:
            return np.ones(len(X), bool)
        X = np.rint(X) if self.whole else X
        width = self.high - self.low
        slack = _ROUNDING * (np.abs(X) + np.where(np.isfinite(width), width, 0.0))
        inside = (X >= self.low - slack) & (X <= self.high + slack)
        return np.all(inside[:, self.free], axis=1)

    def within(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Rows of x with the last digit of a bound corrected, and whole where they must be."""
        X = np.rint(X) if self.whole else X
        return np.clip(X, self.low, self.high) if self.bounded else X

    def contains(self, X: Float[np.ndarray, "n d"]) -> np.ndarray:
        """(n,) which rows of x may be asked."""
        inside = np.all((X >= self.low) & (X <= self.high), axis=1)
        return inside & np.all(np.rint(X) == X, axis=1) if self.whole else inside


def checked_domain(domain: object, d: int) -> Domain:
    """A domain from what a caller gave: None, a pair (low, high) of numbers or rows of d, or "integer".

    (low, high, "integer") is both.
    """
    if domain is None:
        return Domain.everywhere(d)
    if isinstance(domain, Domain):
        return domain
    shape = f'domain must be (low, high), each a number or {d} of them, and "integer" beside them if so'
    whole = isinstance(domain, str) and domain == "integer"
    if whole:
        return Domain(*_ends(-np.inf, np.inf, d, shape), True)
    if not isinstance(domain, (tuple, list)) or len(domain) not in (2, 3):
        raise ValueError(f"{shape}, got {domain!r}")
    if len(domain) == 3 and domain[2] != "integer":
        raise ValueError(f"{shape}, got {domain[2]!r} as the third")
    whole = len(domain) == 3
    low, high = _ends(domain[0], domain[1], d, shape)
    if whole:
        low, high = np.ceil(low), np.floor(high)
    if np.any(low > high):
        j = int(np.argmax(low - high))
        raise ValueError(f"the domain is empty: input {j} would lie between {low[j]:g} and {high[j]:g}")
    if np.all(low == high):
        raise ValueError("the domain has no volume: low and high agree in every input")
    return Domain(low, high, whole)


def _ends(low: npt.ArrayLike, high: npt.ArrayLike, d: int, shape: str) -> tuple[np.ndarray, np.ndarray]:
    ends = []
    for end in (low, high):
        try:
            values = np.asarray(end, float)
            ends.append(np.array(np.broadcast_to(values, (d,))))
        except (TypeError, ValueError):
            raise ValueError(f"{shape}, got {np.shape(end)} numbers or none") from None
        if np.any(np.isnan(ends[-1])):
            raise ValueError("domain holds NaN: use -inf and inf where there is no bound")
    return ends[0], ends[1]
