"""Flat pieces of a decision boundary, from labels alone: points by bisection, normals from many of them.

A box of two classes that answers with the sign of f(u) = c + sum_i w_i g(<a_i, u> + b_i) shows where f = 0.
For ReLU that set is flat wherever no unit switches. On a piece with normal n the boundary over x + h t lies
at height -h <n, t> / <n, m> along m: d heights tell the normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from onehidden.oracle.box import BlackBox

_ROUGH_ARM = 1e-4  # of the arm: the first look at a normal stays beside the point
_ROUGH_STEPS = 18  # bisections of the first look: a normal to about 1e-4
_ROOM = 64.0  # arms that the first look searches to either side
_BESIDE = 0.02  # arms: where the second look searches, with the normal known to 1e-4
_SHRINK = 4.0
_TRIES = 9
_FLAT = 1e-12  # of the arm: heights on both sides that differ by more have met a bend
_ASIDE = 1e-11  # of the distance from the centre: a hyperplane known to 1e-13 is crossed by such a step
_MEETS = 1e-10  # of the distance from the centre: ten times what a walk to a bend leaves open
_STRAIGHT = 1e-7  # of a height: half the way behind a bend must be half as high
_WAYS = (0.5, 0.1, 0.02, 4e-3, 8e-4, 1.6e-4, 3e-5)  # of the way to a bend: how far behind it is looked
_LAST = 4.0 * float(np.finfo(float).eps)  # bisections end at this share of the size of a question


@dataclass(frozen=True, eq=False)
class Piece:
    """A flat piece: <normal, u> + offset = 0 around ``point``; the label is +1 where that is positive.

    ``error`` is about that of the normal: bisections end at the rounding of a question, over the arms.
    """

    normal: Float[np.ndarray, " d"]
    offset: float
    point: Float[np.ndarray, " d"]
    error: float

    @property
    def plane(self) -> Float[np.ndarray, " e"]:
        """(d + 1,) normal and offset."""
        return np.append(self.normal, self.offset)

    def height(self, point: Float[np.ndarray, " d"]) -> float:
        """Distance from the hyperplane."""
        return float(point @ self.normal) + self.offset

    def meets(self, point: Float[np.ndarray, " d"]) -> bool:
        """Whether a point lies on the hyperplane, as well as both are known."""
        size = np.sqrt(len(point)) + float(np.linalg.norm(point))
        return abs(self.height(point)) <= _MEETS * size + 100 * self.error * size


class Sides:
    """The label at rows of u as +1 or -1, 0 where the box does not answer.

    Parameters
    ----------
    box : what is asked. high : the label that counts as +1.
    """

    def __init__(self, box: BlackBox, high: float) -> None:
        self.box, self._high = box, high

    def __call__(self, U: Float[np.ndarray, "... d"]) -> Int[np.ndarray, ...]:
        y = self.box.ask(U)
        return np.where(np.isfinite(y), np.where(y == self._high, 1, -1), 0)

    def crossing(
        self,
        base: Float[np.ndarray, "m d"],
        along: Float[np.ndarray, "m d"],
        low: Float[np.ndarray, " m"],
        high: Float[np.ndarray, " m"],
        steps: int = 64,
    ) -> Float[np.ndarray, " m"]:
        """t with the boundary at base + t along, by bisection; NaN unless it lies between low and high.

        The label must be -1 at low and +1 at high.
        """
        ends = self(np.stack([base + low[:, None] * along, base + high[:, None] * along]))
        low, high = low.copy(), high.copy()
        good = (ends[0] == -1) & (ends[1] == 1)
        enough = _LAST * np.maximum(np.linalg.norm(base, axis=1) / np.sqrt(self.box.d), 1e-300)
        open_ = np.flatnonzero(good)
        for _ in range(steps):
            open_ = open_[(high - low)[open_] > enough[open_]]
            if len(open_) == 0:
                break
            middle = 0.5 * (low[open_] + high[open_])
            up = self(base[open_] + middle[:, None] * along[open_]) == 1
            high[open_[up]], low[open_[~up]] = middle[up], middle[~up]
        return np.where(good, 0.5 * (low + high), np.nan)


def flat_piece(
    sides: Sides,
    point: Float[np.ndarray, " d"],
    along: Float[np.ndarray, " d"],
    arm: float,
    rng: np.random.Generator,
) -> Piece | None:
    """The piece of the boundary at a point, where the label rises along a direction; None if it is not flat.

    Parameters
    ----------
    arm : how far questions go to the sides at first; arms that meet a bend are shortened.
    """
    rough = _rough_normal(sides, point, along, _ROUGH_ARM * arm, rng)
    if rough is None:
        return None
    d = len(point)
    axes = np.linalg.qr(np.column_stack([rough, rng.standard_normal((d, d - 1))]))[0].T[1:]
    everywhere = np.repeat(rough[None], d - 1, axis=0)
    room = _BESIDE * _ROUGH_ARM * arm
    on = sides.crossing(point[None], rough[None], np.array([-room]), np.array([room]))
    if not np.isfinite(on[0]):
        return None
    point = point + on[0] * rough
    rounding = _LAST * max(1.0, float(np.linalg.norm(point)) / np.sqrt(d))
    step, tilt = np.full(d - 1, arm), np.full(d - 1, np.nan)
    for _ in range(_TRIES):
        j = np.flatnonzero(~np.isfinite(tilt))
        if len(j) == 0:
            break
        h = step[j]
        height = [
            sides.crossing(point + (s * h)[:, None] * axes[j], everywhere[j], -_BESIDE * h, _BESIDE * h)
            for s in (1.0, -1.0)
        ]
        with np.errstate(invalid="ignore"):
            good = np.abs(height[0] + height[1]) <= _FLAT * h + 8 * rounding
        tilt[j[good]] = (0.5 * (height[0] - height[1]) / h)[good]
        step[j[~good]] /= _SHRINK
    if not np.all(np.isfinite(tilt)):
        return None
    normal = rough - tilt @ axes
    normal /= np.linalg.norm(normal)
    return Piece(normal, -float(normal @ point), point, rounding * float(np.linalg.norm(1 / step)))


def _rough_normal(
    sides: Sides,
    point: Float[np.ndarray, " d"],
    along: Float[np.ndarray, " d"],
    arm: float,
    rng: np.random.Generator,
) -> Float[np.ndarray, " d"] | None:
    """The normal to a few digits, from heights along a direction that may be far from it."""
    d = len(point)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    found, room = np.full(d, np.nan), _ROOM * arm
    for _ in range(_TRIES):
        j = np.flatnonzero(~np.isfinite(found))
        if len(j) == 0:
            break
        reach = np.full(len(j), room)
        base, up = point + arm * axes[j], np.repeat(along[None], len(j), axis=0)
        found[j] = sides.crossing(base, up, -reach, reach, _ROUGH_STEPS)
        room *= _SHRINK
    if not np.all(np.isfinite(found)):
        return None
    normal = -found @ axes
    size = float(np.linalg.norm(normal))
    return None if size == 0 else normal / size * np.sign(normal @ along)


def bends(
    sides: Sides, piece: Piece, tangents: Float[np.ndarray, "m d"], scale: float, farthest: float
) -> Float[np.ndarray, " m"]:
    """How far the boundary stays on the hyperplane of a piece along tangents; infinite if it does not end."""

    def held(t: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the label changes across the hyperplane at distance t; and whether that was answered."""
        U = piece.point + t[:, None] * tangents[rows]
        aside = _ASIDE * (scale + np.linalg.norm(U, axis=1))[:, None] * piece.normal
        seen = sides(np.stack([U + aside, U - aside]))
        return (seen[0] == 1) & (seen[1] == -1), np.all(seen != 0, axis=0)

    m = len(tangents)
    low, high = np.zeros(m), np.full(m, np.inf)
    open_, t = np.arange(m), 0.01 * scale
    while len(open_) and t < farthest:
        there, answered = held(np.full(len(open_), t), open_)
        low[open_[there]] = t
        high[open_[~there & answered]] = t
        open_, t = open_[there], 2 * t
    rows = np.flatnonzero(np.isfinite(high))
    for _ in range(40):
        if len(rows) == 0:
            break
        middle = 0.5 * (low[rows] + high[rows])
        there, _ = held(middle, rows)
        low[rows[there]], high[rows[~there]] = middle[there], middle[~there]
    return np.where(np.isfinite(high), 0.5 * (low + high), np.inf)


def beyond(
    sides: Sides, piece: Piece, tangents: Float[np.ndarray, "w d"], t: Float[np.ndarray, " w"]
) -> tuple[Float[np.ndarray, "w d"], Float[np.ndarray, " w"]]:
    """A boundary point behind each bend, on the next piece, and how much room it has there; NaN if none.

    Heights over the hyperplane of the piece grow in proportion to the way behind the bend until the next one.
    """
    points, room = np.full(tangents.shape, np.nan), np.full(len(t), np.nan)
    for share in _WAYS:
        w = np.flatnonzero(~np.isfinite(room))
        if len(w) == 0:
            break
        way = share * t[w]
        heights = [
            _height(sides, piece, piece.point + (t[w] + s * way)[:, None] * tangents[w], way)
            for s in (1, 0.5)
        ]
        with np.errstate(invalid="ignore"):
            size = np.linalg.norm(piece.point) + t[w]
            good = np.abs(heights[0] - 2 * heights[1]) <= _STRAIGHT * np.abs(heights[0]) + 10 * _ASIDE * size
        at = w[good]
        points[at] = piece.point + (t[at] + 0.5 * way[good])[:, None] * tangents[at]
        points[at] += heights[1][good][:, None] * piece.normal
        room[at] = 0.25 * way[good]
    return points, room


def _height(
    sides: Sides, piece: Piece, U: Float[np.ndarray, "w d"], way: Float[np.ndarray, " w"]
) -> Float[np.ndarray, " w"]:
    """How far above the hyperplane of a piece the boundary is; NaN where it was not met."""
    here = sides(U)
    found = np.full(len(U), np.nan)
    reach = 1e-6 * way
    for _ in range(14):
        w = np.flatnonzero(~np.isfinite(found) & (here != 0))
        if len(w) == 0:
            break
        reach = reach * 4
        low = np.where(here[w] > 0, -reach[w], 0.0)
        high = np.where(here[w] > 0, 0.0, reach[w])
        found[w] = sides.crossing(U[w], np.repeat(piece.normal[None], len(w), axis=0), low, high)
    return found
