"""Smooth units along a line far away: their transitions are kinks or steps, each alone in its zone.

From a distance R the transition of a unit, of width about 1/|a|, is a point on a line, and those of k units
lie about R/k apart: every unit is seen alone. One of GELU or softplus is a kink: the gradients on both sides
give its row up to a factor, and the shape of the transition across the hyperplane gives the factor. A step
(tanh) is inverted: inside it the argument of g is linear in x. ``Tail`` says what a unit looks like from far
away, where an activation is linear or constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from onehidden.activations import Activation
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS, PerUnit
from onehidden.oracle.lines import Kinks, Line
from onehidden.oracle.pieces import Pieces, kinks_of, straight_pieces


@dataclass(frozen=True)
class Tail:
    """g(z) = (jump / 2) |z|^degree sign(z)^(1 - degree) + h(z) far from zero, h its orientation part."""

    activation: Activation = field(repr=False)
    degree: int  # 0 for a step (tanh), 1 for a kink (ReLU, softplus)
    jump: float
    sharp: bool  # whether the tails reach up to zero itself

    def unoriented(self, z: np.ndarray) -> np.ndarray:
        """(g - h) / jump, what a unit of strength one adds in either orientation: |z| / 2 for ReLU."""
        return self.activation.on_host(self.activation.symmetrised, z) / self.jump

    def inverse(self, heights: np.ndarray) -> np.ndarray:
        """z where the unoriented part of a step is as high; NaN outside of its range."""
        low, high = np.full(np.shape(heights), -40.0), np.full(np.shape(heights), 40.0)
        z = bisected(low, high, lambda z: self.unoriented(z) > heights)
        return np.where(np.abs(heights) < 0.5, z, np.nan)


def bisected(
    low: np.ndarray,
    high: np.ndarray,
    above: Callable[[np.ndarray], np.ndarray],
    steps: int = 80,
    enough: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Where ``above`` changes from False to True between low and high, elementwise, to ``enough``."""
    for _ in range(steps if len(low) else 0):
        middle = 0.5 * (low + high)
        if np.all((middle == low) | (middle == high) | (high - low <= enough)):
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


def units_along(box: BlackBox, line: Line, tail: Tail, known: Kinks, most: int = 512) -> Kinks:
    """Smooth units, but those ``known``, whose transition is alone in its zone of a line.

    More zones than ``most`` mean another activation, or units that are no points from this distance.
    """
    pieces = straight_pieces(box, line, 2048, 2 if tail.degree else 12, most, tail.degree)
    if pieces is None or len(pieces.place) == 0:
        return Kinks.none(box.d, box.q)
    found = _kinks(box, pieces, tail, known) if tail.degree else _steps(box, pieces, tail)
    # Those recognised on another line, and whose argument near the centre is off by less than 0.1.
    size, far = np.linalg.norm(found.weights, axis=1), np.linalg.norm(found.point, axis=1)
    return found.at(np.flatnonzero((found.error < _row_error(box)) & (found.error * far * size < 0.1)))


def _row_error(box: BlackBox) -> float:
    """The largest relative error of a row with which a unit is recognised on another line."""
    return 1e-5 * float(box.rounding / EPS) ** 0.25


def _kinks(box: BlackBox, pieces: Pieces, tail: Tail, known: Kinks) -> Kinks:
    """Units whose two tails are linear."""
    kinks, at = kinks_of(box, pieces, ~pieces.explained(known, box.mix))
    if len(kinks) == 0:
        return kinks
    along = np.abs(kinks.weights @ pieces.line.direction)
    width = 0.5 * (pieces.low[at + 1] - pieces.high[at]) * along
    slope, fits = _slopes(box, kinks, width, tail, np.maximum(pieces.error[at], pieces.error[at + 1]))
    kinks, slope = kinks.at(fits), slope[fits][:, None]
    weights, output = slope * kinks.weights, kinks.output / slope
    return replace(kinks, weights=weights, bias=slope[:, 0] * kinks.bias, output=output)


def _slopes(
    box: BlackBox, kinks: Kinks, width: PerUnit, tail: Tail, rounding: PerUnit, each: int = 24
) -> tuple[PerUnit, Bool[np.ndarray, " k"]]:
    """The length of each row, from the answers across its hyperplane, and whether g fits them.

    Beside a linear function the answer at distance tau is (strength / alpha) g(alpha tau): one unknown.
    """
    from scipy.optimize import minimize_scalar

    step, strength = np.geomspace(1e-4, 1, each), kinks.output @ box.mix
    tau = np.concatenate([-step[::-1], [0.0], step]) * width[:, None]
    y = box.mixture(kinks.point[:, None] + tau[:, :, None] * kinks.weights[:, None])
    slope, fits = np.ones(len(kinks)), np.zeros(len(kinks), bool)
    for i in range(len(kinks)):
        lines = np.linalg.qr(np.column_stack([np.ones(len(step) * 2 + 1), tau[i]]))[0]

        def curved(values: Float[np.ndarray, " n"], lines: np.ndarray = lines) -> np.ndarray:
            return values - lines @ (lines.T @ values)

        bend = curved(y[i])

        def off(alpha: float, i: int = i, bend: np.ndarray = bend) -> np.ndarray:
            return curved(strength[i] / alpha * tail.unoriented(alpha * tau[i])) - bend

        # The minimum of the sum of squares lies in a valley of the logarithm that a grid finds.
        grid = np.geomspace(0.1, 1e5, 180) / width[i]
        best = int(np.argmin([np.sum(off(alpha) ** 2) for alpha in grid]))
        near = np.log(grid[[max(best - 2, 0), min(best + 2, len(grid) - 1)]])
        found: Any = minimize_scalar(
            lambda a, off=off: np.sum(off(np.exp(a)) ** 2), bounds=near, options={"xatol": 1e-12}
        )
        slope[i] = np.exp(found.x)
        worst, largest = np.max(np.abs(off(slope[i]))), np.max(np.abs(bend))
        fits[i] = largest > 25 * rounding[i] and worst <= 1e-3 * largest + 25 * rounding[i]
    return slope, fits


def _steps(box: BlackBox, pieces: Pieces, tail: Tail) -> Kinks:
    """Units of a saturating g."""
    line, d, rounding = pieces.line, box.d, float(pieces.error.max())
    low, high = pieces.high[:-1], pieces.low[1:]
    ends = box.outputs(line.at(np.stack([low, high])))
    heights, (first, last) = ends[1] - ends[0], ends @ box.mix
    height, level, rising = last - first, 0.5 * (first + last), last > first
    center = bisected(low, high, lambda t: (box.mixture(line.at(t)) > level) == rising)

    def argument(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """z where the answers next to the steps ``rows`` are y; the step is read as rising."""
        return tail.inverse((y - first[rows]) / height[rows] - 0.5)

    arm = (high - low) / 100
    beside = argument(box.mixture(line.at(np.stack([center - arm, center + arm]))), np.arange(len(low)))
    slope = (beside[1] - beside[0]) / (2 * arm)
    with np.errstate(invalid="ignore"):
        good = np.isfinite(slope) & (slope > 0) & (np.abs(height) > 25 * rounding)
    # One unit and nothing else: the function along the line must be g.
    z = np.linspace(-6, 6, 25)[:, None]
    off = box.mixture(line.at(center + z / np.where(good, slope, 1.0)))
    off -= first + height * (tail.unoriented(z) + 0.5)
    # Far away the argument itself is rounded, and nearer the tails of others add to it.
    good &= np.max(np.abs(off), axis=0) <= _row_error(box) * np.abs(height) + 2.5 * rounding
    rows = np.flatnonzero(good)
    middle, arm = line.at(center[rows]), 0.3 / slope[rows]
    axes, i, j = np.eye(d), *np.divmod(np.arange(len(rows) * d), d)

    def gradient(arm: np.ndarray) -> np.ndarray:
        up, down = (argument(box.star(middle, i, s * arm[i], axes, j) @ box.mix, rows[i]) for s in (1, -1))
        return (up - down).reshape(len(rows), d) / (2 * arm)[:, None]

    weights = np.full((len(rows), d), np.nan)
    for _ in range(10):  # |a| may be far larger than its part along the line
        unknown = ~np.all(np.isfinite(weights), axis=1)
        if not unknown.any():
            break
        weights = np.where(unknown[:, None], gradient(arm), weights)
        arm = arm / 5
    size = np.linalg.norm(weights, axis=1)
    with np.errstate(invalid="ignore"):
        weights = gradient(np.where(size > 0, 1 / size, arm))
    size, far = np.linalg.norm(weights, axis=1), np.linalg.norm(middle, axis=1)
    doubt = rounding / np.abs(height[rows]) + box.rounding * far * size
    bias = -np.sum(weights * middle, axis=1)
    return Kinks(weights, bias, heights[rows], doubt, doubt * far, middle).at(np.flatnonzero(size > 0))
