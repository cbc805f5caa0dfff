"""Far from zero an activation is linear or constant: what a unit looks like from far away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from onehidden.activations import Activation


@dataclass(frozen=True)
class Tail:
    """g(z) = (jump / 2) |z|^degree sign(z)^(1 - degree) + h(z) far from zero, h its orientation part."""

    activation: Activation = field(repr=False)
    degree: int  # 0 for a step (tanh), 1 for a kink (ReLU, softplus)
    jump: float
    sharp: bool  # whether the tails reach up to zero itself

    @property
    def level(self) -> float:
        """The constant of h, 0 for a kink."""
        return (*self.activation.orientation_part, 0.0)[0]

    @property
    def slope(self) -> float:
        """Of h, the linear part that changes its sign when a unit is reversed; 0 for a step."""
        return (*self.activation.orientation_part, 0.0, 0.0)[1]

    def unoriented(self, z: np.ndarray) -> np.ndarray:
        """(g - h) / jump, what a unit of strength one adds in either orientation: |z| / 2 for ReLU."""
        return self.activation.on_host(self.activation.symmetrised, z) / self.jump

    def inverse(self, heights: np.ndarray) -> np.ndarray:
        """z where the unoriented part of a step is as high; NaN outside of its range."""
        low, high = np.full(np.shape(heights), -40.0), np.full(np.shape(heights), 40.0)
        z = bisected(low, high, lambda z: self.unoriented(z) > heights)
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
    if g.reversal is None or g.reversal.degree > 1:
        return None
    degree, far = int(g.reversal.parity > 0), np.geomspace(60, 3000, 40)
    level = g.on_host(g.symmetrised, far)
    size = float((level[-1] - level[0]) / (far[-1] - far[0]) if degree else level[-1])
    off = level - level[-1] - degree * size * (far - far[-1])
    if not np.max(np.abs(off) / far**degree) <= 1e-11 or abs(size) < 1e-6:
        return None
    return Tail(g, degree, 2 * size, degree == 1 and g.homogeneity == 1)
