"""Where a piecewise linear function bends along a line, and the straight pieces between.

Along x = p + t v every unit with a kink bends the function once, at t_i = -(<a_i, p> + b_i) / <a_i, v>. A
grid uniform in the angle atan(t / R) shows a bend as a second difference above the rounding; straight lines
fitted left and right of it meet where the kink lies, and an answer there tells whether it was one bend or
several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from onehidden.oracle.box import BlackBox
from onehidden.oracle.lines import Line

_CELLS = 4096
_PARTS = 48  # cells of a zoom into a zone that holds more than one bend
_ZOOMS = 4
_STRIDES = (1, 4, 16, 64)  # of second differences, in cells: a weak bend shows over a longer arm
_LOUD = 8.0  # standard errors of a second difference (its own are 2.4): one false bend in 1e9 windows
_NODES = 6  # answers that a straight piece is fitted to
_NOWHERE = (np.zeros(0), np.zeros(0))
_MOST = 4096  # bends of a line; a function with more is curved, or random


@dataclass(frozen=True, eq=False)
class Pieces:
    """Straight pieces of a line and the bends between neighbours.

    Attributes
    ----------
    line : the line. low, high : (m,) ends of the pieces. value, slope : (m,) of each at its middle.
    noise : (m,) standard error of an answer there.
    place : (m - 1,) where neighbours meet. single : (m - 1,) whether that is one bend and nothing else.
    lost : (m - 1,) whether the box does not answer between them.
    """

    line: Line
    low: Float[np.ndarray, " m"]
    high: Float[np.ndarray, " m"]
    value: Float[np.ndarray, " m"]
    slope: Float[np.ndarray, " m"]
    noise: Float[np.ndarray, " m"]
    place: Float[np.ndarray, " b"]
    single: Bool[np.ndarray, " b"]
    lost: Bool[np.ndarray, " b"]

    @property
    def middle(self) -> Float[np.ndarray, " m"]:
        return 0.5 * (self.low + self.high)

    @property
    def change(self) -> Float[np.ndarray, " b"]:
        """Of the slope, at each bend."""
        return np.diff(self.slope)

    @property
    def slack(self) -> Float[np.ndarray, " b"]:
        """How far a change of slope may be wrong."""
        error = self.noise / np.maximum(self.high - self.low, 1e-300)
        return _LOUD * (error[:-1] + error[1:])

    @property
    def tolerance(self) -> Float[np.ndarray, " b"]:
        """How far a place may be wrong."""
        with np.errstate(divide="ignore"):
            return _LOUD * (self.noise[:-1] + self.noise[1:]) / np.abs(self.change)


def straight_pieces(box: BlackBox, line: Line) -> Pieces | None:
    """The pieces of the mixture along a line; None where it bends everywhere."""
    angle = np.linspace(-1, 1, _CELLS + 1) * np.arctan(line.limit / line.radius)
    t = line.radius * np.tan(angle)
    y = box.ask(line.at(t))
    if np.sum(np.isfinite(y)) < 2 * _NODES:
        none, nothing = np.zeros(0), np.full(1, np.nan)
        return Pieces(line, nothing, nothing, nothing, nothing, nothing, none, none > 0, none > 0)
    level = float(np.nanmax(np.abs(y) / line.growth(t, 1)))

    # Where something known was taken off the answers they are small, but as coarse as before.
    own = box.level / np.sqrt(box.d)

    def noise(where: np.ndarray) -> np.ndarray:
        far = np.hypot(np.linalg.norm(line.start), where)
        return box.error(np.maximum(level * line.growth(where, 1), own * far))

    ends, gaps = _gaps(t, y)
    low, high = _bends(t, y, noise(t), gaps)
    for zoom in range(_ZOOMS + 1):
        if len(low) > _MOST:
            return None
        pieces = _fitted(box, line, ends, low, high, np.isin(low, gaps[0]), noise)
        again = np.flatnonzero(~pieces.single & ~pieces.lost)
        if len(again) == 0 or zoom == _ZOOMS:
            return pieces
        # Only zones that hold more than one bend are looked at more closely.
        inner = low[again][:, None] + (high - low)[again][:, None] * np.linspace(-0.02, 1.02, _PARTS + 1)
        fine = np.diff(inner[:, :2], axis=1)[:, 0] > 1e-14 * np.maximum(np.abs(low), np.abs(high))[again]
        again, inner = again[fine], inner[fine]
        if len(again) == 0:
            return pieces
        seen = box.ask(line.at(inner))
        parts = [(low[[i]], high[[i]]) for i in range(len(low))]
        changed = False
        for row, i in enumerate(again):
            found = _bends(inner[row], seen[row], noise(inner[row]), _NOWHERE)
            if len(found[0]) and np.max(found[1] - found[0]) < 0.5 * (high[i] - low[i]):
                parts[i], changed = found, True
        if not changed:
            return pieces
        low, high = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return None


def _gaps(
    t: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]
) -> tuple[tuple[float, float], tuple[np.ndarray, np.ndarray]]:
    """First and last place that was answered, and the ends of stretches between that were not."""
    good = np.flatnonzero(np.isfinite(y))
    before = np.flatnonzero(np.diff(good) > 1)
    return (float(t[good[0]]), float(t[good[-1]])), (t[good[before]], t[good[before + 1]])


def _bends(
    t: Float[np.ndarray, " n"],
    y: Float[np.ndarray, " n"],
    noise: Float[np.ndarray, " n"],
    gaps: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of gaps and of zones outside of which the samples lie on straight lines; short arms first."""
    low, high = gaps
    for stride in _STRIDES:
        if 2 * stride >= len(t):
            break
        left, mid, right = t[: -2 * stride], t[stride:-stride], t[2 * stride :]
        share = (mid - left) / (right - left)
        bend = y[stride:-stride] - (1 - share) * y[: -2 * stride] - share * y[2 * stride :]
        loud = np.abs(bend) > _LOUD * 1.5 * noise[2 * stride :].clip(noise[: -2 * stride])
        # A longer arm may not reach over a bend that was seen already.
        free = np.searchsorted(high, left, side="right") == np.searchsorted(low, right, side="left")
        found = _runs(left, right, loud & free)
        low, high = np.concatenate([low, found[0]]), np.concatenate([high, found[1]])
        order = np.argsort(low)
        low, high = low[order], high[order]
    return low, high


def _runs(left: np.ndarray, right: np.ndarray, loud: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping loud windows as one zone each."""
    left, right = left[loud], right[loud]
    if len(left) == 0:
        return left, right
    new = np.append(True, left[1:] >= right[:-1])
    start = np.flatnonzero(new)
    return left[start], right[np.append(start[1:] - 1, len(left) - 1)]


def _fitted(
    box: BlackBox,
    line: Line,
    ends: tuple[float, float],
    low: Float[np.ndarray, " b"],
    high: Float[np.ndarray, " b"],
    lost: Bool[np.ndarray, " b"],
    noise: Callable[[np.ndarray], np.ndarray],
) -> Pieces:
    """Straight lines through fresh answers in every gap, and what is seen where neighbours meet."""
    begin, end = np.append(ends[0], high), np.append(low, ends[1])
    width = end - begin
    node = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    middle, half = 0.5 * (begin + end), 0.45 * width
    y = box.ask(line.at(middle[:, None] + half[:, None] * node))
    value = y.mean(axis=1)
    slope = (y @ node) / np.sum(node**2) / np.where(half > 0, half, 1.0)
    told = value[:, None] + slope[:, None] * half[:, None] * node
    error = noise(np.maximum(np.abs(begin), np.abs(end)))
    straight = (np.max(np.abs(y - told), axis=1) <= _LOUD * error) & (width > 0)
    change = np.diff(slope)
    # How far the place may be wrong goes with its distance from the middles that it is told from.
    with np.errstate(divide="ignore", invalid="ignore"):
        at_left = value[:-1] + slope[:-1] * (low - middle[:-1])
        at_right = value[1:] + slope[1:] * (low - middle[1:])
        place = low + np.where(change != 0, (at_left - at_right) / change, np.inf)
        away = [
            np.abs(place - mid) / part for mid, part in ((middle[:-1], half[:-1]), (middle[1:], half[1:]))
        ]
    doubt = np.nan_to_num(error[:-1] * (1 + away[0]) + error[1:] * (1 + away[1]), nan=np.inf)
    within = (place > low - 0.02 * (high - low)) & (place < high + 0.02 * (high - low))
    single = straight[:-1] & straight[1:] & within & np.isfinite(place) & ~lost
    safe = np.where(single, place, 0.5 * (low + high))
    share = np.array([0.2, 0.6, 0.85])
    t = np.concatenate(
        [
            safe[:, None],
            safe[:, None] - share * (safe - low)[:, None],
            safe[:, None] + share * (high - safe)[:, None],
        ],
        axis=1,
    )
    if len(low):
        seen = box.ask(line.at(t))
        left = value[:-1, None] + slope[:-1, None] * (t - middle[:-1, None])
        right = value[1:, None] + slope[1:, None] * (t - middle[1:, None])
        told = np.where(t <= safe[:, None], left, right)
        with np.errstate(invalid="ignore"):
            worst = np.max(np.abs(seen - told), axis=1) / _LOUD
            single &= worst <= doubt + noise(np.abs(t).max(axis=1))
    place = np.where(np.isfinite(place), place, safe)
    return Pieces(line, begin, end, value, slope, error, place, single, lost)
