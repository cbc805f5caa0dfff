"""Smooth units, and powers of ReLU, along a line far away: their transitions are kinks or steps.

From a distance R the transition of a unit, of width about 1/|a|, is a point on a line, and those of k units
lie about R/k apart: every unit is seen alone. One of GELU or softplus is a kink: the gradients on both sides
give its row up to a factor, and the shape of the transition across the hyperplane gives the factor. A power
q of ReLU has a kink in its differences of order q - 1. A step (tanh) is inverted: inside it the argument of g
is linear in x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float
from numpy.polynomial.polynomial import polyval

from onehidden.activations import Activation
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS, PerUnit
from onehidden.oracle.examine import third_differences
from onehidden.oracle.lines import Kinks, Line
from onehidden.oracle.pieces import Pieces, kinks_of, straight_pieces


@dataclass(frozen=True)
class Tail:
    """g(z) = P_-(z) for z << 0 and P_+(z) for z >> 0, with P_+ - P_- = jump z^degree."""

    activation: Activation = field(repr=False)
    degree: int  # 0 for a step (tanh), 1 for a kink (ReLU, softplus), 2, 3 for powers of ReLU
    jump: float
    sharp: bool  # whether the polynomials reach up to zero itself
    left: np.ndarray  # coefficients of P_- by rising power
    right: np.ndarray

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
        if abs(jump) < 1e-6 or np.any(np.abs(change[:degree]) > 1e-6 * abs(jump)):
            return None
        near = np.concatenate([-np.geomspace(1e-3, 30, 30), np.geomspace(1e-3, 30, 30)])
        excess = activation(near) - np.where(near > 0, polyval(near, right), polyval(near, left))
        sharp = bool(np.max(np.abs(excess)) < 1e-12 * 30**degree)
        return Tail(activation, degree, jump, sharp, left, right)
    return None


def _fitted_polynomial(activation: Activation, z: np.ndarray, degree: int) -> np.ndarray | None:
    """Coefficients of the polynomial through g at z, if there is one of this degree."""
    y, unit = activation(z), 60.0
    powers = np.vander(z / unit, degree + 1, increasing=True)
    weight = (unit / np.abs(z)) ** degree  # far values are large: fit them relatively
    solved = np.linalg.lstsq(powers * weight[:, None], y * weight, rcond=None)[0]
    size = max(float(np.max(np.abs(y * weight))), 1e-3)
    if np.max(np.abs(powers @ solved - y) * weight) > 1e-12 * size:
        return None
    coefficients = solved / unit ** np.arange(degree + 1)
    return np.where(np.abs(coefficients) < 1e-9, 0.0, coefficients)


def units_along(box: BlackBox, line: Line, tail: Tail, most: int = 512, share: float = 1e-2) -> Kinks:
    """Units of the mixture whose transition is alone in its zone of a line.

    More zones than ``most`` mean another activation, or units that are no points from this distance. Powers
    of ReLU are seen through differences over a ``share`` of the distance of the line.
    """
    if tail.degree == 0:
        return _steps(box, line, tail, most)
    step = share * line.radius
    with box.differenced(step * line.direction, tail.degree - 1):
        return _kinks(box, line, tail, most, step)


def _zones(
    box: BlackBox, line: Line, degree: int, most: int, zooms: int, count: int = 16
) -> tuple[Pieces | None, Callable[[np.ndarray], np.ndarray]]:
    """The pieces of a line between transitions, and the rounding of answers, measured at ``count`` places."""
    cells = 2048 // max(degree, 1)  # a difference of answers is ``degree`` queries
    t = box.rng.choice(line.grid(cells), count, replace=False)
    U, growth = line.at(t), line.growth(t, degree)
    v = box.rng.standard_normal(U.shape)
    size = np.maximum(1e-8 * np.linalg.norm(U, axis=1), 1e-5)
    v *= (size / np.linalg.norm(v, axis=1))[:, None]
    own, y = third_differences(box, U, v) / growth, np.abs(box.mixture(U)) / growth
    if np.sum(np.isfinite(own)) < count // 4:
        return None, np.zeros_like
    # Rounding differs from piece to piece: a large one is taken, but not one inside a transition.
    rounding = max(float(np.nanquantile(own, 0.85)), box.rounding * float(np.nanmax(y)))

    def error(t: np.ndarray) -> np.ndarray:
        return rounding * line.growth(t, degree)

    return straight_pieces(box, line, cells, zooms, most, lambda t: 4 * error(t)), error


def _recognised(box: BlackBox, kinks: Kinks) -> Kinks:
    """Those recognised on another line, and whose argument near the centre is off by less than 0.1."""
    size = np.linalg.norm(kinks.weights, axis=1)
    far = np.linalg.norm(kinks.point, axis=1)
    return kinks.at(np.flatnonzero((kinks.error < _row_error(box)) & (kinks.error * far * size < 0.1)))


def _row_error(box: BlackBox) -> float:
    """The largest relative error of a row with which a unit is recognised on another line."""
    return 1e-5 * float(box.rounding / EPS) ** 0.25


def _kinks(box: BlackBox, line: Line, tail: Tail, most: int, step: float) -> Kinks:
    """Units whose two tails are polynomials of degree one or more."""
    pieces, error = _zones(box, line, tail.degree, most, 2)
    if pieces is None:
        return Kinks.none(box.d, box.q)
    basis = np.linalg.qr(box.rng.standard_normal((box.d, box.d)))[0]
    kinks, at = kinks_of(box, pieces, np.ones(len(pieces.place), bool), basis)
    if len(kinks) == 0:
        return kinks
    along, order, place = kinks.weights @ line.direction, tail.degree, pieces.place[at]
    share = 1 / (tail.jump * math.factorial(order) * along ** (order - 1))
    if tail.sharp:
        slope = np.ones(len(kinks))
        # Differences over a step round a kink off by so much where it lies alone.
        signs = [(-1) ** j * math.comb(order - 1, j) for j in range(order)]
        height = signs @ np.maximum(0.5 * (order - 1) - np.arange(order), 0.0) ** order
        off = box.mixture(line.at(place)) - pieces.value[at] - pieces.slope[at] * (place - pieces.middle[at])
        bump = height / math.factorial(order) * step * pieces.change[at]
        fits = np.abs(off - bump) <= 1e-3 * np.abs(bump) + 100 * error(place)
    else:
        width = 0.5 * (pieces.low[at + 1] - pieces.high[at]) * np.abs(along)
        slope, fits = _slopes(box, kinks, share * (kinks.output @ box.mix), width, tail, error(place))
    kinks, slope, share = kinks.at(fits), slope[fits], share[fits]
    kinks = replace(
        kinks,
        weights=slope[:, None] * kinks.weights,
        bias=slope * kinks.bias,
        output=kinks.output * (share / slope**order)[:, None],
    )
    return _recognised(box, kinks)


def _slopes(
    box: BlackBox,
    kinks: Kinks,
    strength: PerUnit,
    width: PerUnit,
    tail: Tail,
    rounding: PerUnit,
    each: int = 24,
) -> tuple[PerUnit, Bool[np.ndarray, " k"]]:
    """The length of each row, from the answers across its hyperplane, and whether g fits them.

    Beside a linear function the answer at distance tau is (strength / alpha) g(alpha tau): one unknown.
    """
    step = np.geomspace(1e-4, 1, each)
    tau = np.concatenate([-step[::-1], [0.0], step]) * width[:, None]
    y = box.mixture(kinks.point[:, None] + tau[:, :, None] * kinks.weights[:, None])
    slope, fits = np.ones(len(kinks)), np.zeros(len(kinks), bool)
    for i in range(len(kinks)):
        lines = np.linalg.qr(np.column_stack([np.ones(len(step) * 2 + 1), tau[i]]))[0]

        def curved(values: Float[np.ndarray, "a n"], lines: np.ndarray = lines) -> np.ndarray:
            return values - (values @ lines) @ lines.T

        bend = curved(y[i])

        def off(alpha: np.ndarray, i: int = i, bend: np.ndarray = bend) -> np.ndarray:
            level = tail.activation(alpha[:, None] * tau[i])
            return curved(strength[i] / alpha[:, None] * level) - bend

        # The minimum of the sum of squares lies in a valley of the logarithm that a grid finds.
        grid = np.geomspace(0.1, 1e5, 180) / width[i]
        for _ in range(24):
            best = int(np.argmin(np.sum(off(grid) ** 2, axis=1)))
            slope[i] = grid[best]
            near = grid[[max(best - 2, 0), min(best + 2, len(grid) - 1)]]
            if near[1] / near[0] < 1 + 1e-11:
                break
            grid = np.geomspace(near[0], near[1], 22)
        worst, largest = np.max(np.abs(off(slope[[i]]))), np.max(np.abs(bend))
        fits[i] = largest > 100 * rounding[i] and worst <= 1e-3 * largest + 100 * rounding[i]
    return slope, fits


def _steps(box: BlackBox, line: Line, tail: Tail, most: int) -> Kinks:
    """Units of a saturating g."""
    pieces, error = _zones(box, line, 0, most, 12)
    if pieces is None or len(pieces.place) == 0:
        return Kinks.none(box.d, 1)
    low, high, d, rounding = pieces.high[:-1], pieces.low[1:], box.d, float(error(np.zeros(1))[0])
    ends = box.mixture(line.at(np.stack([low, high])))
    height = ends[1] - ends[0]
    level, rising = ends.mean(axis=0), height > 0
    center = bisected(low, high, lambda t: (box.mixture(line.at(t)) > level) == rising)

    def argument(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """z where the answers next to the steps ``rows`` are y; the step is read as rising."""
        share = (y - ends[0, rows]) / height[rows]
        return tail.inverse(tail.left[0] + tail.jump * share)

    arm = (high - low) / 100
    beside = argument(box.mixture(line.at(np.stack([center - arm, center + arm]))), np.arange(len(low)))
    slope = (beside[1] - beside[0]) / (2 * arm)
    with np.errstate(invalid="ignore"):
        good = np.isfinite(slope) & (slope > 0) & (np.abs(height) > 100 * rounding)
    # One unit and nothing else: the function along the line must be g.
    z = np.linspace(-6, 6, 25)[:, None]
    off = box.mixture(line.at(center + z / np.where(good, slope, 1.0)))
    off -= ends[0] + height * (tail.activation(z) - tail.left[0]) / tail.jump
    # Far away the argument itself is rounded, and nearer the tails of others add to it.
    good &= np.max(np.abs(off), axis=0) <= _row_error(box) * np.abs(height) + 10 * rounding
    rows = np.flatnonzero(good)
    if len(rows) == 0:
        return Kinks.none(d, 1)
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
    kept = size > 0
    error_of_row = 4 * rounding / np.abs(height[rows]) + box.rounding * far * size
    bias = -np.sum(weights * middle, axis=1)
    output = (height[rows] / tail.jump)[:, None]
    kinks = Kinks(weights, bias, output, error_of_row, error_of_row * far, middle, np.ones(len(rows)))
    return _recognised(box, kinks.at(np.flatnonzero(kept)))
