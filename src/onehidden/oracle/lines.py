"""Lines along which the box is queried, and the kinks that they show."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Float

from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import Points


@dataclass(frozen=True)
class Line:
    """x = start + t direction, queried over |t| <= ``limit``, at a distance ``radius`` from the centre."""

    start: np.ndarray
    direction: np.ndarray
    radius: float
    limit: float

    def at(self, t: np.ndarray) -> np.ndarray:
        """Points (…, d)."""
        return self.start + t[..., None] * self.direction

    def grid(self, cells: int) -> np.ndarray:
        """Ends of cells that are equal in the angle atan(t / radius)."""
        return self.radius * np.tan(np.linspace(-1, 1, cells + 1) * np.arctan(self.limit / self.radius))

    def growth(self, t: np.ndarray, degree: int) -> np.ndarray:
        """How the function, and with it its rounding, grows along the line."""
        return (1 + np.abs(t) / self.radius) ** degree


def distant_line(box: BlackBox, radius: float, span: float) -> Line:
    """A line at this distance from the centre, ``span`` radii to either side as far as the box answers."""
    v = box.rng.standard_normal(box.d)
    v /= np.linalg.norm(v)
    p = box.rng.standard_normal(box.d)
    p -= (p @ v) * v
    p = p * (radius / float(np.linalg.norm(p))) if box.d > 1 else 0 * p
    limit = span * radius
    if np.isfinite(box.reach):  # with room to move sideways
        limit = min(limit, float(np.min((0.85 * box.reach - np.abs(p)) / np.maximum(np.abs(v), 1e-300))))
    return Line(p, v, radius, limit)


def random_line(box: BlackBox, radius: float, span: float = 1e3, through: Points | None = None) -> Line:
    """A line at this distance from the centre, or a chord of a bounded domain, through one of some places.

    A chord goes through two places of the domain: a random direction soon meets one of d bounds.
    """
    if not box.domain.bounded:
        return distant_line(box, radius, span)
    low, high = ((end - box.center) / box.scale for end in (box.domain.low, box.domain.high))
    # To both sides: queries beside the line stay inside. Places in a corner are reached with little room.
    room = (0.1 if through is None else 1e-3) * np.minimum(high - low, 4.0)
    places = box.answered(2)[0] if box.share < 1 else box.typical(2)
    places = places if len(places) == 2 else box.typical(2)
    if through is not None:
        places[0] = box.rng.choice(through)
    one, two = np.clip(places, low + 2 * room, high - 2 * room)
    v = np.where(box.domain.free, two - one, 0.0)
    v /= np.linalg.norm(v)
    p = 0.5 * (one + two)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(low + room - p) / v, (high - room - p) / v]), axis=0)
    begin = float(np.max(ends[0], initial=-span * radius))
    end = float(np.min(ends[1], initial=span * radius))
    half = 0.5 * (end - begin)
    return Line(p + 0.5 * (begin + end) * v, v, min(radius, half), half)


@dataclass(frozen=True, eq=False)
class Kinks:
    """Hyperplanes <a_i, u> + b_i = 0 with the strengths of their units; orientations are open."""

    weights: Float[np.ndarray, "r d"]  # rows, of length one where g is homogeneous
    bias: Float[np.ndarray, " r"]
    output: Float[np.ndarray, "r q"]  # strengths
    error: Float[np.ndarray, " r"]  # relative error of the row
    bias_error: Float[np.ndarray, " r"]  # error of bias / |a|
    point: Float[np.ndarray, "r d"]  # where the kink was found

    def __len__(self) -> int:
        return len(self.bias)

    @staticmethod
    def none(d: int, q: int) -> Kinks:
        rows, numbers = np.zeros((0, d)), np.zeros(0)
        return Kinks(rows, numbers, np.zeros((0, q)), numbers, numbers, rows)

    def at(self, index: np.ndarray) -> Kinks:
        return Kinks(*(getattr(self, one.name)[index] for one in fields(self)))

    def merged(self, other: Kinks, closeness: float = 1e-9, errors: float = 30.0) -> Kinks:
        """Both collections, each hyperplane once with the smaller errors of the two.

        Two are one hyperplane within ``closeness`` and so many times their errors.
        """
        parts = zip(*([getattr(one, f.name) for f in fields(one)] for one in (self, other)), strict=True)
        both = Kinks(*(np.concatenate(pair) for pair in parts))
        size = np.linalg.norm(both.weights, axis=1)
        rows, offset = both.weights / size[:, None], both.bias / size
        kept: list[int] = []
        for i in np.argsort(both.error + both.bias_error):
            near = np.array(kept, int)
            sign = np.where(rows[near] @ rows[i] < 0, -1.0, 1.0)
            tilt = np.linalg.norm(rows[near] - sign[:, None] * rows[i], axis=1)
            shift = np.abs(offset[near] - sign * offset[i])
            same = tilt <= closeness + errors * (both.error[near] + both.error[i])
            same &= shift <= closeness * (10 + np.abs(offset[i])) + errors * (
                both.bias_error[near] + both.bias_error[i]
            )
            if not same.any():
                kept.append(int(i))
        return both.at(np.array(sorted(kept), int))
