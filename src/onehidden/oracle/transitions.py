"""Smooth units along a line far away: their transitions are kinks or steps, each alone in its zone.

From a distance R the transition of a unit, of width about 1/|a|, is a point on a line, and those of k units
lie about R/k apart: every unit is seen alone. One of GELU, softplus or ELU is a kink, and found as those of
ReLU are: the gradients on both sides give its row up to a factor, and the shape of the transition across the
hyperplane gives the factor. A step (tanh) is inverted: inside it the argument of g is linear in x. ``Tail``
says what a unit looks like from far away, where an activation is linear or constant.
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

# Distances, in scales: up to this one transitions have a width; and how far across one it is looked at.
NEARBY, _FARTHEST = 1e6, 1e3


@dataclass(frozen=True)
class Tail:
    """g(z) = (jump / 2) |z|^degree sign(z)^(1 - degree) + h(z) far from zero, h its orientation part."""

    activation: Activation = field(repr=False)
    degree: int  # 0 for a step (tanh), 1 for a kink (ReLU, softplus)
    jump: float
    sharp: bool  # whether the tails reach up to zero itself
    crossing: float = 0.0  # where the tails of a kink meet

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

    A smooth unit must add the same whichever way it is oriented, but for a linear part; or be a kink whose
    shape shows its side.
    """
    if g.reversal is not None and g.reversal.degree > 1:
        return None
    far = np.geomspace(60, 3000, 40)
    degree = int(g.reversal is None or g.reversal.parity > 0)
    sides = np.array([g.on_host(g.symmetrised, side * far) for side in (1.0, -1.0)])
    if not np.all(np.isfinite(sides)):
        return None
    slope = [float((y[-1] - y[0]) / (far[-1] - far[0])) if degree else 0.0 for y in sides]
    off = [y - y[-1] - one * (far - far[-1]) for y, one in zip(sides, slope, strict=True)]
    size = slope[0] + slope[1] if degree else float(sides[0][-1] - sides[1][-1])
    if not np.max(np.abs(off) / far**degree) <= 1e-11 or abs(size) < 1e-6:
        return None
    right, left = (y[-1] - one * far[-1] for y, one in zip(sides, slope, strict=True))
    crossing = 0.0 if g.reversal is not None else float(left - right) / size
    return Tail(g, degree, size, degree == 1 and g.homogeneity == 1, crossing)


def units_along(box: BlackBox, line: Line, tail: Tail, known: Kinks, most: int = 512) -> Kinks:
    """Smooth units, but those ``known``, whose transition is alone in its zone of a line.

    More zones than ``most`` mean another activation, or units that are no points from this distance.
    """
    if tail.degree and line.radius > NEARBY:
        pieces = straight_pieces(box, line, core=0.02, known=known, reach=40.0)
    else:
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
    slope, fits = _slopes(box, kinks, width, tail)
    kinks, slope = kinks.at(fits), slope[fits]
    weights, output = slope[:, None] * kinks.weights, kinks.output / np.abs(slope)[:, None]
    return replace(kinks, weights=weights, bias=slope * kinks.bias, output=output)


def _slopes(
    box: BlackBox, kinks: Kinks, width: PerUnit, tail: Tail
) -> tuple[PerUnit, Bool[np.ndarray, " k"]]:
    """The length of each row, from the answers across its hyperplane, and whether g fits them.

    Beside a linear function the answer at distance tau is (strength / alpha) g(alpha tau): the strength is
    known to some digits, alpha is not. It is negative where g is reversed, if g shows that.
    """
    from scipy.optimize import minimize_scalar

    step = np.geomspace(1e-4, 1, 24) if box.low_precision else np.geomspace(1e-6, 1, 12)
    step = np.concatenate([-step[::-1], [0.0], step])
    tau = step * np.minimum(width, _FARTHEST)[:, None]
    strength = np.linalg.norm(kinks.output, axis=1)
    rounding = 100 * box.error_at(kinks.point) / np.linalg.norm(box.mix)
    y = box.outputs(kinks.point[:, None] + tau[:, :, None] * kinks.weights[:, None])
    y = np.einsum("knq,kq->kn", y, kinks.output / strength[:, None])
    lines = np.linalg.qr(np.column_stack([np.ones(len(step)), step]))[0]

    def curved(values: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n"]:
        return values - (values @ lines) @ lines.T

    # The minimum of the sum of squares lies in a valley of the logarithm that a grid finds.
    grid = np.geomspace(0.1, 1e6, 140)
    grid = grid if tail.activation.reversal else np.concatenate([grid, -grid])
    slope, fits, bend = np.ones(len(kinks)), np.zeros(len(kinks), bool), curved(y)
    for i in range(len(kinks)):

        def fitted(alpha: np.ndarray, i: int = i) -> tuple[np.ndarray, np.ndarray]:
            """Strengths by least squares, and what each leaves."""
            own = curved(tail.unoriented(alpha * tau[i] + tail.crossing) / np.abs(alpha))
            found = np.sum(own * bend[i], axis=-1, keepdims=True) / np.sum(own**2, axis=-1, keepdims=True)
            return found, found * own - bend[i]

        tried = grid / tau[i, -1]
        best = tried[int(np.argmin(np.sum(fitted(tried[:, None])[1] ** 2, axis=1)))]
        found: Any = minimize_scalar(
            lambda log, best=best, fitted=fitted: np.sum(fitted(np.array(best * np.exp(log)))[1] ** 2),
            bounds=(-0.25, 0.25),
            options={"xatol": 1e-12},
        )
        slope[i] = best * np.exp(found.x)
        own, off = fitted(np.array(slope[i]))
        largest = np.max(
            np.abs(bend[i] - curved(0.5 * own * np.abs(tau[i])))
        )  # beside a kink of this strength
        fits[i] = largest > rounding[i] and np.max(np.abs(off)) <= 1e-3 * largest + rounding[i]
        fits[i] &= abs(float(own[0]) - strength[i]) < 0.01 * strength[i]
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
    if len(rows) == 0:
        return Kinks.none(d, box.q)
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
