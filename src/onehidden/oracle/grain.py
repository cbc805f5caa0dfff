"""How coarsely a box answers, measured from repeated and neighbouring questions before anything else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

EPS = float(np.finfo(float).eps)
COARSE = 1e-12  # relative error of an answer from which a box has fewer digits than a double


@dataclass(frozen=True)
class Grain:
    """Standard error of an answer: a part in proportion to the size of answers, and one that is not.

    Single precision is the first kind, rounding to decimals or added noise the second.
    """

    relative: float = EPS
    absolute: float = 0.0

    def at(self, size: npt.ArrayLike) -> np.ndarray:
        """Standard error where answers are of this size."""
        return np.hypot(self.relative * np.asarray(size, float), self.absolute)

    def coarse(self, level: float) -> bool:
        """Whether a box of answers of this size has fewer digits than a double."""
        return float(self.at(level)) > COARSE * level


def stored(y: Float[np.ndarray, " n"]) -> Grain:
    """The grain of the format that answers are written in: single, half, or decimals; else of a double.

    Answers that all have a place on a coarser grid are rounded to it; a change of units may have left them
    a few roundings of a double away.
    """

    def there(grid: Float[np.ndarray, " n"]) -> bool:
        return bool(np.all(np.abs(grid - y) <= 4 * EPS * np.abs(y)))

    for kind in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            if there(y.astype(kind).astype(float)):
                return Grain(relative=float(np.finfo(kind).eps) / np.sqrt(12))
    for decimals in range(13):
        if there(np.round(y, decimals)):
            return Grain(absolute=10.0**-decimals / np.sqrt(12))
    return Grain()


def third_differences(y: Float[np.ndarray, "s n"]) -> Float[np.ndarray, " n"]:
    """(n,) standard errors from answers at s equal tiny steps: anything smooth leaves h³."""
    third = np.diff(y, n=3, axis=0)  # of variance 1 + 9 + 9 + 1
    return np.sqrt(np.mean(third**2, axis=0) / 20)
