"""When is a fit one to rounding? Said once, for searches, descents and verdicts alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

EPS = float(np.finfo(float).eps)
_DECIMALS = 6  # that numbers are looked at for
_COARSE = 1e-12  # relative rounding from which a target is no double: what fits it is never called exact


@dataclass(frozen=True)
class Rounding:
    """Sizes of residuals, as shares of std(y), that say what is left is rounding.

    Attributes
    ----------
    level : max|y| / std(y), at least 1.
    grain : relative rounding of y: eps, or more for a function that computes in single precision. y is known
        to grain times level.
    noisy : y is known to be random (a count, a class): no fit to it is one to rounding.
    """

    level: float = 1.0
    grain: float = EPS
    noisy: bool = False

    @property
    def coarse(self) -> bool:
        """Whether the target is known to fewer digits than a double has."""
        return self.grain > _COARSE

    @property
    def exact(self) -> float:
        """Root mean square residual of an answer that reproduces y to rounding.

        1e-10 leaves five digits for the sums of a network (measured: exact fits of 50 units end at 1e-15 to
        1e-13, real noise of that size was never met); a target with a large mean, or one in single precision,
        is rounded more coarsely (30 is what the sums of a single-precision network of 64 units leave).
        """
        return 0.0 if self.noisy else max(1e-10, 30 * self.grain * self.level)

    @property
    def near(self) -> float:
        """Root mean square residual of a search that has nothing left to search for.

        Outputs solved with a trace of ridge (1e-8) leave about 1e-5 of an exact fit; the finish removes it.
        """
        return 0.0 if self.noisy else max(1e-5, self.exact)

    def floor(self, n: int) -> float:
        """Sum of squares at which a descent over n rows has come to the end of the digits."""
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


def rounding_of(largest: float, spread: float, grain: float = EPS) -> Rounding:
    """For a target of this largest size and standard deviation, known to a relative ``grain``."""
    return Rounding(max(1.0, largest / spread) if spread > 0 else 1.0, grain)


def decimal_step(y: Float[np.ndarray, " n"]) -> float:
    """The largest of 1, .1, .01, … of which all numbers are multiples; 0 where none down to 1e-6 is.

    What was measured and written down has such a step; what a network computed has not.
    """
    for step in 10.0 ** -np.arange(_DECIMALS + 1):
        multiple = y / step
        if np.all(np.abs(multiple - np.round(multiple)) <= 4 * EPS * np.abs(multiple) + 1e-9):
            return float(step)
    return 0.0
