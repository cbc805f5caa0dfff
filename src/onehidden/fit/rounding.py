"""Tolerances that follow from rounding: when a fit is exact, for searches, descents and verdicts alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

EPS = float(np.finfo(float).eps)
# Smallest eigenvalue of a correlation, as a share of the largest, of a direction in which rows vary.
DEPENDENT = 1e-10


@dataclass(frozen=True)
class Rounding:
    """Tolerances of a target: sizes of residuals, as shares of std(y), that are rounding."""

    level: float = 1.0  # max|y| / std(y), at least 1
    precision: float = EPS  # relative rounding of y, which is known to precision times level
    noisy: bool = False  # y is random by its nature (a count, a class): no fit to it is one to rounding

    @property
    def below_double(self) -> bool:
        """Whether the target is known to fewer digits than a double has: no fit to it is called exact."""
        return self.precision > 1e-12

    @property
    def exact(self) -> float:
        """Root mean square residual of an answer that reproduces y to rounding.

        1e-10 leaves five digits for the sums of a network: exact fits of 50 units end at 1e-15 to 1e-13. A
        target with a large mean, or in single precision, is rounded more; 30 is what the sums of a
        single-precision network of 64 units leave.
        """
        return 0.0 if self.noisy else max(1e-10, 30 * self.precision * self.level)

    @property
    def near(self) -> float:
        """Root mean square residual at which a search ends.

        Outputs solved with a ridge of 1e-8 leave about 1e-5; the final optimisation removes it.
        """
        return 0.0 if self.noisy else max(1e-5, self.exact)

    def floor(self, n: int) -> float:
        """Sum of squares of rounding alone over n rows."""
        return n * (max(15.0, self.level) * EPS) ** 2

    def search_floor(self, n: int) -> float:
        """Sum of squares at which a descent inside a search may stop: a hundredth of ``near``."""
        return n * (1e-2 * self.near) ** 2

    def reproduces(self, mean_square: float) -> bool:
        """Whether this mean squared residual, in units of var(y), is rounding."""
        return mean_square <= self.exact**2

    def found(self, mean_square: float) -> bool:
        """Whether a search that left this mean squared residual need not go on."""
        return mean_square <= self.near**2


def rounding_of(largest: npt.ArrayLike, spread: npt.ArrayLike, precision: float = EPS) -> Rounding:
    """For a target of this largest size and standard deviation, known to a relative ``precision``.

    Of several outputs it is that of the one known least precisely.
    """
    size, deviation = np.atleast_1d(largest).astype(float), np.atleast_1d(spread)
    ratio = np.divide(size, deviation, out=np.ones_like(size), where=deviation > 0)
    return Rounding(max(1.0, float(np.max(ratio))), precision)


def decimal_step(y: Float[np.ndarray, " n"], decimals: int = 6) -> float:
    """The largest of 1, .1, .01, … of which all numbers are multiples; 0 where none is.

    Measured numbers that were written down have such a step; what a network computes has not.
    """
    for step in 10.0 ** -np.arange(decimals + 1):
        multiple = y / step
        if np.all(np.abs(multiple - np.round(multiple)) <= 4 * EPS * np.abs(multiple) + 1e-9):
            return float(step)
    return 0.0
