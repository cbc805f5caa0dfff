"""Where smooth units change along a line: zones outside of which the function is a polynomial.

A grid over the line, uniform in the angle atan(t / R), shows every transition as a divided difference that
does not vanish; zooming separates transitions that share a cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.oracle.box import BlackBox
from onehidden.oracle.examine import third_differences
from onehidden.oracle.lines import Line

_PARTS = 64  # cells of a zoom


@dataclass(frozen=True)
class Zones:
    """Intervals [low, high] (m,) that hold all transitions of a line, and the rounding at its points."""

    low: np.ndarray
    high: np.ndarray
    rounding: float

    def gaps(self, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends (m + 1,) of the intervals between, before and after the zones."""
        return np.append(-limit, self.high), np.append(self.low, limit)


def find_zones(
    box: BlackBox,
    line: Line,
    degree: int,
    rng: np.random.Generator,
    cells: int = 2048,
    most: int = 512,
    zooms: int = 12,
) -> Zones:
    """The zones of a line for a function that is a polynomial of this degree between transitions.

    More zones than ``most`` mean another activation, or units that are no points from this distance: none
    are returned.
    """
    t = line.grid(cells)
    y = box.mixture(line.at(t))
    growth = line.growth(t, degree)
    answered = np.flatnonzero(np.isfinite(y))
    if len(answered) < 24:
        return Zones(np.zeros(0), np.zeros(0), float("inf"))
    places = rng.choice(answered, 24, replace=False)
    # Rounding differs from piece to piece: take a large one, but not one inside a transition.
    own = _rounding(box, line.at(t[places]), rng) / growth[places]
    rounding = float(np.nan_to_num(np.nanquantile(own, 0.85)))
    rounding = max(rounding, box.rounding * float(np.nanmax(np.abs(y) / growth)))
    low, high = _active(t, y, degree, rounding, line)
    for _ in range(zooms if degree == 0 else zooms // 6):
        if len(low) == 0 or len(low) > most:
            break
        t = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _PARTS + 1)
        if np.any(t[:, 1] - t[:, 0] <= 1e-15 * np.maximum(np.abs(low), np.abs(high))):
            break
        y = box.mixture(line.at(t))
        parts = [_active(t[i], y[i], degree, rounding, line) for i in range(len(t))]
        # A zone that fills its window is a transition seen at its own width: it is kept as it is.
        filled = [
            len(a) == 0 or float(np.max(b - a)) > 0.25 * w
            for (a, b), w in zip(parts, high - low, strict=True)
        ]
        if all(filled):
            break
        parts = [(low[[i]], high[[i]]) if filled[i] else part for i, part in enumerate(parts)]
        low, high = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    if len(low) > most:
        low, high = np.zeros(0), np.zeros(0)
    return Zones(low, high, rounding)


def _rounding(box: BlackBox, U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n,) rounding error around the rows of U, from third differences over a tiny step."""
    v = rng.standard_normal(U.shape)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    step = 1e-5 * np.maximum(np.linalg.norm(U, axis=1, keepdims=True) * 1e-3, 1.0)
    return third_differences(box.mixture(np.stack([U + j * step * v for j in range(16)])))


def _active(
    t: np.ndarray, y: np.ndarray, degree: int, rounding: float, line: Line
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of a row of samples where divided differences exceed 24 roundings."""
    width = degree + 2
    windows = np.lib.stride_tricks.sliding_window_view(t, width)
    samples = np.lib.stride_tricks.sliding_window_view(y, width)
    # Weights of the divided difference of order degree + 1, scaled to sum |c| = 1.
    span = windows[:, -1:] - windows[:, :1]
    gaps = (windows[:, :, None] - windows[:, None, :]) / span[:, :, None]
    gaps[:, np.arange(width), np.arange(width)] = 1.0
    weight = 1 / np.prod(gaps, axis=2)
    weight /= np.sum(np.abs(weight), axis=1, keepdims=True)
    growth = line.growth(np.max(np.abs(windows), axis=1), degree)
    with np.errstate(invalid="ignore"):  # nothing is found where the box does not answer
        active = np.abs(np.sum(weight * samples, axis=1)) > 24 * rounding * growth
    edge = np.diff(np.concatenate([[0], active.astype(int), [0]]))
    low = t[np.flatnonzero(edge == 1)]
    high = t[np.flatnonzero(edge == -1) - 1 + width - 1]
    start = np.flatnonzero(np.append(True, low[1:] > high[:-1])[: len(low)])  # overlapping runs are one zone
    return low[start], high[np.append(start[1:] - 1, len(low) - 1)[: len(start)]]
