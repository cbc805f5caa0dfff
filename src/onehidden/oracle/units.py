"""From a zone with a single switch to the unit behind it: the whole row, not only its part along the line."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.oracle.box import EPS, BlackBox
from onehidden.oracle.lines import Line, Zones
from onehidden.oracle.tails import Tail, inverse, values

ROW_ERROR = 1e-5  # of a row, relative: beyond, the same unit seen twice looks like two
BIAS_ERROR = 0.1  # of a unit's argument near the centre, as the start of a descent


@dataclass(frozen=True)
class Units:
    """Hyperplanes with their strengths, orientation open: f has m_i (g - h)(<a_i, u> + b_i) in it.

    Attributes
    ----------
    weights : (m, d); unit rows where g is homogeneous.
    bias, output : (m,).
    error : (m,) estimated relative error of the row, from rounding.
    blur : (m,) estimated error of bias / |a|.
    seen : (m,) on how many lines.
    """

    weights: np.ndarray
    bias: np.ndarray
    output: np.ndarray
    error: np.ndarray
    blur: np.ndarray
    seen: np.ndarray

    def __len__(self) -> int:
        return len(self.bias)

    def at(self, index: np.ndarray) -> Units:
        return Units(*(getattr(self, part)[index] for part in _PARTS))

    def unit_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """(weights, bias) over |weights|."""
        norm = np.linalg.norm(self.weights, axis=1)
        return self.weights / norm[:, None], self.bias / norm


_PARTS = ("weights", "bias", "output", "error", "blur", "seen")


def none(d: int) -> Units:
    """No units."""
    return Units(np.zeros((0, d)), *(np.zeros(0) for _ in range(5)))


def row_error(box: BlackBox) -> float:
    """The largest relative error of a row that is let through; single precision cannot do as well."""
    return ROW_ERROR * float(box.rounding / EPS) ** 0.25


def joined(first: Units, second: Units) -> Units:
    """Both collections, each hyperplane once: the sharper of two sightings stays."""
    both = Units(*(np.concatenate([getattr(first, p), getattr(second, p)]) for p in _PARTS))
    rows, offset = both.unit_rows()
    seen, kept = both.seen.copy(), []
    for i in np.argsort(both.blur):
        near = np.array(kept, int)
        sign = np.where(rows[near] @ rows[i] < 0, -1.0, 1.0)
        # Units closer than 1e-6 would not have been seen apart, from any distance that is used.
        tilt = np.linalg.norm(rows[i] - sign[:, None] * rows[near], axis=1)
        same = tilt <= np.maximum(1e-6, 100 * (both.error[i] + both.error[near]))
        shift = np.abs(offset[i] - sign * offset[near])
        same &= shift <= 1e-6 * (10 + np.abs(offset[i])) + 100 * (both.blur[i] + both.blur[near])
        if same.any():
            seen[near[np.argmin(np.where(same, tilt, np.inf))]] += seen[i]
        else:
            kept.append(int(i))
    return replace(both, seen=seen).at(np.array(sorted(kept), int))


def step_units(box: BlackBox, line: Line, zones: Zones, tail: Tail) -> Units:
    """Units of a saturating g: inside an isolated step g can be inverted, and its argument is linear in x."""
    low, high, d = zones.low, zones.high, box.d
    if len(low) == 0:
        return none(d)
    ends = box.ask(line.at(np.stack([low, high])))
    height = ends[1] - ends[0]
    center = _crossing(box, line, low, high, ends.mean(axis=0), height > 0)

    def argument(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """z where the answers next to the steps ``rows`` are y; the step is read as rising."""
        share = (y - ends[0, rows]) / height[rows]
        return inverse(tail, tail.left[0] + tail.jump * share) - tail.root

    everyone = np.arange(len(low))
    reach = (high - low) / 100
    slope = argument(box.ask(line.at(np.stack([center - reach, center + reach]))), everyone)
    slope = (slope[1] - slope[0]) / (2 * reach)
    with np.errstate(invalid="ignore"):
        good = np.isfinite(slope) & (slope > 0) & (np.abs(height) > 100 * zones.noise)
    # One unit and nothing else: g along the line must be g.
    steps = np.linspace(-6, 6, 25)[:, None]
    safe = np.where(good, slope, 1.0)
    seen = box.ask(line.at(center + steps / safe))
    told = ends[0] + height * (values(tail.activation, steps + tail.root) - tail.left[0]) / tail.jump
    # Far away the argument itself is rounded, and nearer the tails of others are in it.
    good &= np.max(np.abs(seen - told), axis=0) <= row_error(box) * np.abs(height) + 10 * zones.noise
    rows = np.flatnonzero(good)
    if len(rows) == 0:
        return none(d)
    middle, slope = line.at(center[rows]), slope[rows]
    axes, i, j = np.eye(d), *np.divmod(np.arange(len(rows) * d), d)

    def gradient(reach: np.ndarray) -> np.ndarray:
        up, down = (argument(box.star(middle, i, s * reach[i], axes, j) @ box.mix, rows[i]) for s in (1, -1))
        return (up - down).reshape(len(rows), d) / (2 * reach)[:, None]

    weights = np.full((len(rows), d), np.nan)
    reach = 0.3 / slope
    for _ in range(10):  # |a| may be far larger than its part along the line
        lost = ~np.all(np.isfinite(weights), axis=1)
        if not lost.any():
            break
        weights = np.where(lost[:, None], gradient(reach), weights)
        reach = reach / 5
    size = np.linalg.norm(weights, axis=1)
    with np.errstate(invalid="ignore"):
        weights = gradient(np.where(size > 0, 1 / size, reach))
    size, far = np.linalg.norm(weights, axis=1), np.linalg.norm(middle, axis=1)
    with np.errstate(invalid="ignore"):
        error = 4 * zones.noise / np.abs(height[rows]) + box.rounding * far * size
        found = (size > 0) & (error < row_error(box)) & (error * far * size < BIAS_ERROR)
    bias = tail.root - np.sum(weights * middle, axis=1)
    units = Units(weights, bias, height[rows] / tail.jump, error, error * far, np.ones(len(rows)))
    return units.at(found)


def _crossing(
    box: BlackBox, line: Line, low: np.ndarray, high: np.ndarray, level: np.ndarray, rising: np.ndarray
) -> np.ndarray:
    """Where the function passes ``level`` between low and high, by bisection on all zones at once."""
    low, high = low.copy(), high.copy()
    for _ in range(60):
        middle = 0.5 * (low + high)
        above = (box.ask(line.at(middle)) > level) == rising
        low, high = np.where(above, low, middle), np.where(above, middle, high)
        if np.all(high - low <= 2e-16 * np.maximum(np.abs(low), np.abs(high))):
            break
    return 0.5 * (low + high)
