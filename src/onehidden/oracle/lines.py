"""Where units switch along a line: zones outside of which the function is a polynomial.

Along x = p + t v a unit switches once, at t_i = -(<a_i, p> + b_i) / <a_i, v>. A grid over the line, uniform
in the angle atan(t / R), sees every switch as a divided difference that does not vanish; zooming separates
switches that share a cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.oracle.box import BlackBox

_CELLS = 2048
_PARTS = 64  # cells of a zoom
_LEVELS = 12
_MOST = 512  # zones of a line; units beyond that number are not looked for
_SPAN = 20.0  # t/R reaches from -_SPAN to _SPAN
_LOUD = 24.0  # differences above this many roundings are real


@dataclass(frozen=True)
class Line:
    """x = start + t direction, looked at over |t| <= ``limit``, from a distance ``radius``."""

    start: np.ndarray
    direction: np.ndarray
    radius: float
    limit: float

    def at(self, t: np.ndarray) -> np.ndarray:
        """Points (…, d)."""
        return self.start + t[..., None] * self.direction

    def growth(self, t: np.ndarray, degree: int) -> np.ndarray:
        """How the function, and with it its rounding, grows along the line."""
        return (1 + np.abs(t) / self.radius) ** degree


def random_line(d: int, radius: float, reach: float, rng: np.random.Generator) -> Line:
    """A line at distance about ``radius`` from the centre, in a random direction."""
    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)
    p = rng.standard_normal(d)
    if d > 1:
        p -= (p @ v) * v
        p *= radius / np.linalg.norm(p)
    else:
        p *= 0.0
    limit = _SPAN * radius
    if np.isfinite(reach):
        # |start + t v| within reach in every coordinate, with room to move sideways
        limit = min(limit, float(np.min((0.85 * reach - np.abs(p)) / np.maximum(np.abs(v), 1e-300))))
    return Line(p, v, radius, limit)


@dataclass(frozen=True)
class Zones:
    """Intervals [low, high] (m,) that hold all switches of a line, and the rounding at its points."""

    low: np.ndarray
    high: np.ndarray
    noise: float

    def gaps(self, limit: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends (m + 1,) of the intervals between, before and after the zones."""
        return np.append(-limit, self.high), np.append(self.low, limit)


def find_zones(box: BlackBox, line: Line, degree: int, rng: np.random.Generator) -> Zones:
    """The zones of a line for a function that is a polynomial of this degree between switches."""
    angle = np.linspace(-1, 1, _CELLS + 1) * np.arctan(line.limit / line.radius)
    t = line.radius * np.tan(angle)
    y = box.ask(line.at(t))
    growth = line.growth(t, degree)
    answered = np.flatnonzero(np.isfinite(y))
    if len(answered) < 24:
        return Zones(np.zeros(0), np.zeros(0), float("inf"))
    places = rng.choice(answered, 24, replace=False)
    # The size of rounding differs from piece to piece: take a loud one, but not one inside a transition.
    seen = float(np.nan_to_num(np.nanquantile(box.noise(line.at(t[places]), rng) / growth[places], 0.85)))
    noise = max(seen, box.rounding * float(np.nanmax(np.abs(y) / growth)))
    low, high = _active(t[None], y[None], degree, noise, line)
    for _ in range(_LEVELS if degree == 0 else 2):
        if len(low) == 0 or len(low) > _MOST:
            break
        t = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _PARTS + 1)
        if np.any(t[:, 1] - t[:, 0] <= 1e-15 * np.maximum(np.abs(low), np.abs(high))):
            break
        y = box.ask(line.at(t))
        finer = [_active(t[i : i + 1], y[i : i + 1], degree, noise, line) for i in range(len(t))]
        # A zone that fills its window is a transition seen at its own width: looking closer adds nothing.
        width = high - low
        filled = [
            len(a) == 0 or float(np.max(b - a)) > 0.25 * w for (a, b), w in zip(finer, width, strict=True)
        ]
        if all(filled):
            break
        # A zone that fills its window is kept as it is, and looked at again with the others.
        parts = [(low[i : i + 1], high[i : i + 1]) if filled[i] else finer[i] for i in range(len(finer))]
        low, high = (np.concatenate([p[side] for p in parts]) for side in (0, 1))
    if len(low) > _MOST:  # not a network of this activation, or no distance at which its units are points
        low, high = np.zeros(0), np.zeros(0)
    return Zones(low, high, noise)


def _active(
    t: np.ndarray, y: np.ndarray, degree: int, noise: float, line: Line
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of one row of samples where divided differences do not vanish."""
    t, y = t[0], y[0]
    width = degree + 2
    windows = np.lib.stride_tricks.sliding_window_view(t, width)
    values = np.lib.stride_tricks.sliding_window_view(y, width)
    # Weights of the divided difference of order degree + 1, scaled to sum |c| = 1.
    span = windows[:, -1:] - windows[:, :1]
    gaps = (windows[:, :, None] - windows[:, None, :]) / span[:, :, None]
    gaps[:, np.arange(width), np.arange(width)] = 1.0
    weight = 1 / np.prod(gaps, axis=2)
    weight /= np.sum(np.abs(weight), axis=1, keepdims=True)
    growth = line.growth(np.max(np.abs(windows), axis=1), degree)
    with np.errstate(invalid="ignore"):  # where the box does not answer nothing is seen
        loud = np.abs(np.sum(weight * values, axis=1)) > _LOUD * noise * growth
    if not loud.any():
        return np.zeros(0), np.zeros(0)
    edge = np.diff(np.concatenate([[0], loud.astype(int), [0]]))
    first, last = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1) - 1
    low, high = t[first], t[last + width - 1]
    # Windows overlap: runs closer than one window are one zone.
    joined = np.append(True, low[1:] > high[:-1])
    start = np.flatnonzero(joined)
    end = np.append(start[1:] - 1, len(low) - 1)
    return low[start], high[end]
