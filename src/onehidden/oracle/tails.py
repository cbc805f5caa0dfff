"""What an activation looks like from far away: a polynomial on either side, and a transition between.

From a distance R the transition of a unit, of width about 1/|a|, is a point on a line, and the transitions
of different units lie about R/k apart. There every unit is seen alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial.polynomial import polypow, polyval

from onehidden.activations import Activation


@dataclass(frozen=True)
class Tail:
    """g(z) = P_-(z) for z << 0 and P_+(z) for z >> 0, with P_+ - P_- = jump (z - root)^degree."""

    activation: Activation = field(repr=False)
    degree: int  # 0 for a step (tanh), 1 for a kink (ReLU, softplus), 2, 3 for powers of ReLU
    jump: float
    root: float  # of a step: where g is halfway
    sharp: bool  # whether the polynomials reach up to the root itself
    left: np.ndarray  # coefficients of P_- by rising power
    right: np.ndarray

    def excess(self, z: np.ndarray) -> np.ndarray:
        """g minus its two asymptotes, which change over at the root."""
        return self.activation(z) - np.where(z > self.root, polyval(z, self.right), polyval(z, self.left))

    def inverse(self, heights: np.ndarray) -> np.ndarray:
        """z with g(z) = heights for a monotone step; NaN outside the range."""
        low, high = np.full(np.shape(heights), -40.0), np.full(np.shape(heights), 40.0)
        z = bisected(low, high, lambda z: (self.activation(z) > heights) == (self.jump > 0))
        share = (heights - self.left[0]) / self.jump
        return np.where((share > 0) & (share < 1), z, np.nan)


def bisected(low: np.ndarray, high: np.ndarray, above: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Where ``above`` changes from False to True between low and high, elementwise."""
    for _ in range(80):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        up = above(middle)
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return 0.5 * (low + high)


def tail_of(activation: Activation) -> Tail | None:
    """The tail of g by its values far out; None where g is no polynomial there, or one polynomial."""
    far = np.geomspace(60, 3000, 40)
    for degree in range(4):
        left, right = (_fitted_polynomial(activation, sign * far, degree) for sign in (-1, 1))
        if left is None or right is None:
            continue
        change = right - left
        jump = float(change[degree])
        if abs(jump) < 1e-6:
            return None
        if degree == 0:
            root = _halfway(activation, 0.5 * float(left[0] + right[0]), jump > 0)
        else:
            root = float(-change[degree - 1] / (degree * jump))
            pure = jump * polypow([-root, 1.0], degree)
            if np.max(np.abs(pure - change)) > 1e-6 * abs(jump):
                return None
        tail = Tail(activation, degree, jump, root, False, left, right)
        near = root + np.concatenate([-np.geomspace(1e-3, 30, 30), np.geomspace(1e-3, 30, 30)])
        sharp = bool(np.max(np.abs(tail.excess(near))) < 1e-12 * 30**degree)
        return Tail(activation, degree, jump, root, sharp, left, right)
    return None


def _halfway(activation: Activation, level: float, rising: bool) -> float:
    """Where a step is halfway."""
    ends = np.array([-60.0]), np.array([60.0])
    root = float(bisected(*ends, lambda z: (activation(z) > level) == rising)[0])
    return 0.0 if abs(root) < 1e-12 else root


def _fitted_polynomial(activation: Activation, z: np.ndarray, degree: int) -> np.ndarray | None:
    """Coefficients of the polynomial through g at z, if there is one of this degree."""
    y, unit = activation(z), 60.0
    powers = np.vander(z / unit, degree + 1, increasing=True)
    weight = 1 / (np.abs(z) / unit) ** degree  # far values are large: fit them relatively
    solved = np.linalg.lstsq(powers * weight[:, None], y * weight, rcond=None)[0]
    size = max(float(np.max(np.abs(y * weight))), 1e-3)
    if np.max(np.abs(powers @ solved - y) * weight) > 1e-12 * size:
        return None
    coefficients = solved / unit ** np.arange(degree + 1)
    return np.where(np.abs(coefficients) < 1e-9, 0.0, coefficients)
