"""Far from zero an activation is linear or constant: what a unit looks like from far away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from onehidden.activations import Activation

# g with its slope, elementwise.
WithSlope = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def with_slope(g: Activation) -> WithSlope:
    """An activation with its slope."""
    return lambda z: (g(z), g.derivative(z))


@dataclass(frozen=True)
class Tail:
    """g(z) = P_-(z) for z << 0 and P_+(z) for z >> 0, with P_+ - P_- = jump z^degree."""

    activation: Activation = field(repr=False)
    degree: int  # 0 for a step (tanh), 1 for a kink (ReLU, softplus)
    jump: float
    sharp: bool  # whether the tails reach up to zero itself
    mean: Float[np.ndarray, " m"]  # coefficients of (P_- + P_+) / 2 by rising power, up to the degree

    @property
    def slope(self) -> float:
        """Of the linear part that changes its sign when a unit is reversed; 0 for a step."""
        return float(self.mean[1]) if self.degree else 0.0

    def unoriented(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(g - mean) / jump, what a unit adds in either orientation, and its slope: |z| / 2 for ReLU."""
        if self.sharp:
            return 0.5 * np.abs(z), 0.5 * np.sign(z)
        level = self.activation(z) - self.mean[0] - self.slope * z
        return level / self.jump, (self.activation.derivative(z) - self.slope) / self.jump

    def inverse(self, heights: np.ndarray) -> np.ndarray:
        """z where the unoriented part of a step is as high; NaN outside of its range."""
        low, high = np.full(np.shape(heights), -40.0), np.full(np.shape(heights), 40.0)
        z = bisected(low, high, lambda z: self.unoriented(z)[0] > heights)
        return np.where(np.abs(heights) < 0.5, z, np.nan)


def bisected(
    low: np.ndarray, high: np.ndarray, above: Callable[[np.ndarray], np.ndarray], steps: int = 80
) -> np.ndarray:
    """Where ``above`` changes from False to True between low and high, elementwise."""
    for _ in range(steps if len(low) else 0):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high)):
            break
        up = above(middle)
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return 0.5 * (low + high)


def tail_of(g: Activation) -> Tail | None:
    """The tail of g by its values far out; None where lines do not show its units, or not their sides.

    A smooth unit must add the same whichever way it is oriented, but for a linear part.
    """
    far = np.geomspace(60, 3000, 40)
    for degree in (0, 1):
        ends, off = np.zeros((2, degree + 1)), np.zeros(2)
        for side, sign in enumerate((-1.0, 1.0)):
            one, two = (float(g(np.array(sign * place))) for place in (1024.0, 2048.0))
            slope = degree * (two - one) / (sign * 1024.0)
            ends[side] = [one - slope * sign * 1024.0, slope][: degree + 1]
            line = ends[side, 0] + slope * sign * far
            off[side] = np.max(np.abs(line - g(sign * far)) / far**degree)
        if not np.max(off) <= 1e-11:
            continue
        change, mean = ends[1] - ends[0], ends.mean(axis=0)
        if abs(change[degree]) < 1e-6 or np.any(np.abs(change[:degree]) > 1e-6 * abs(change[degree])):
            return None
        tail = Tail(g, degree, float(change[degree]), False, mean)
        z = np.geomspace(1e-3, 30, 30)
        above, below = tail.unoriented(z)[0], tail.unoriented(-z)[0]
        if np.max(np.abs(above - (below if degree else -below))) > 1e-9:
            return None
        sharp = bool(degree == 1 and np.max(np.abs(above - 0.5 * z)) < 1e-11)
        return Tail(g, degree, tail.jump, sharp, mean)
    return None
