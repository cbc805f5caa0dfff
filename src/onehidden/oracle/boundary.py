"""Flat pieces of a decision boundary, from labels alone: points by bisection, normals from many of them.

A box of two classes that answers with the sign of f(u) = c + sum_i w_i g(<a_i, u> + b_i) shows where f = 0.
For ReLU that set is flat wherever no unit has its kink. On a piece with normal n the boundary over x + h t
lies at height -h <n, t> / <n, m> along m: d heights give the normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS, Vector
from onehidden.oracle.transitions import bisected

# Bisections end at this share of the size of a query.
_LAST = 4.0 * EPS
# A step aside of this share of the distance from the centre crosses a hyperplane that is known to 1e-13.
_ASIDE = 1e-11


@dataclass(frozen=True, eq=False)
class Piece:
    """A flat piece: <normal, u> + offset = 0 around ``point``; the label is +1 where that is positive.

    ``error`` is about that of the normal: bisections end at the rounding of a query, over the arms.
    """

    normal: Vector
    offset: float
    point: Vector
    error: float

    @property
    def plane(self) -> Float[np.ndarray, " e"]:
        """(d + 1,) normal and offset, of length one: an offset far from the centre would hide the normal."""
        plane = np.append(self.normal, self.offset)
        return plane / np.linalg.norm(plane)

    def height(self, point: Vector) -> float:
        """Distance from the hyperplane."""
        return float(point @ self.normal) + self.offset

    def contains(self, point: Vector) -> bool:
        """Whether a point lies on the hyperplane, to ten times the error of a traced point."""
        size = np.sqrt(len(point)) + float(np.linalg.norm(point))
        return abs(self.height(point)) <= (10 * _ASIDE + 100 * self.error) * size


class Labels:
    """The label at rows of u as +1 or -1, 0 where the box does not answer; its level counts as +1."""

    def __init__(self, box: BlackBox) -> None:
        self.box = box

    def __call__(self, U: Float[np.ndarray, "... d"]) -> Int[np.ndarray, ...]:
        y = self.box.mixture(U)
        return np.where(np.isfinite(y), np.where(y == self.box.level, 1, -1), 0)

    def crossing(
        self,
        base: Float[np.ndarray, "m d"],
        along: Float[np.ndarray, "m d"],
        low: Float[np.ndarray, " m"],
        high: Float[np.ndarray, " m"],
        steps: int = 64,
    ) -> Float[np.ndarray, " m"]:
        """t with the boundary at base + t along, by bisection; NaN unless -1 at low turns to +1 at high."""
        ends = self(np.stack([base + low[:, None] * along, base + high[:, None] * along]))
        good, found = np.flatnonzero((ends[0] == -1) & (ends[1] == 1)), np.full(len(base), np.nan)
        base, along = base[good], along[good]
        enough = _LAST * np.maximum(np.linalg.norm(base, axis=1) / np.sqrt(self.box.d), 1e-300)

        def up(t: np.ndarray) -> np.ndarray:
            return self(base + t[:, None] * along) == 1

        found[good] = bisected(low[good], high[good], up, steps, enough)
        return found

    def height(
        self,
        base: Float[np.ndarray, "m d"],
        along: Vector,
        reach: Float[np.ndarray, " m"],
        rounds: int,
        steps: int = 64,
    ) -> Float[np.ndarray, " m"]:
        """The same to both sides of base, from ``reach`` on four times as far in each round."""
        found, ways = np.full(len(base), np.nan), np.broadcast_to(along, base.shape)
        for number in range(rounds):
            w = np.flatnonzero(~np.isfinite(found))
            if len(w) == 0:
                break
            far = 4.0**number * reach[w]
            found[w] = self.crossing(base[w], ways[w], -far, far, steps)
        return found


def flat_piece(labels: Labels, point: Vector, along: Vector, arm: float) -> Piece | None:
    """The piece of the boundary at a point, where the label rises along a direction; None if it is not flat.

    Queries go ``arm`` to the sides at first; arms that meet a kink are shortened.
    """
    # The first normal is measured close to the point, to about 1e-4.
    d, first = len(point), 1e-4 * arm
    axes = np.linalg.qr(labels.box.rng.standard_normal((d, d)))[0]
    rough = -labels.height(point + first * axes, along, np.full(d, 64 * first), 9, 18) @ axes
    size = float(np.linalg.norm(rough))  # NaN where a height was not found
    if not size > 0:
        return None
    rough *= np.sign(rough @ along) / size
    axes = np.linalg.qr(np.column_stack([rough, labels.box.rng.standard_normal((d, d - 1))]))[0].T[1:]
    everywhere, beside = np.repeat(rough[None], d - 1, axis=0), 0.02
    on = labels.crossing(point[None], rough[None], np.array([-beside * first]), np.array([beside * first]))
    if not np.isfinite(on[0]):
        return None
    point = point + on[0] * rough
    rounding = _LAST * max(1.0, float(np.linalg.norm(point)) / np.sqrt(d))
    step, tilt = np.full(d - 1, arm), np.full(d - 1, np.nan)
    for _ in range(9):
        j = np.flatnonzero(~np.isfinite(tilt))
        if len(j) == 0:
            break
        h = step[j]
        up, down = (
            labels.crossing(point + (s * h)[:, None] * axes[j], everywhere[j], -beside * h, beside * h)
            for s in (1.0, -1.0)
        )
        with np.errstate(invalid="ignore"):  # heights on both sides that differ by more have met a kink
            good = np.abs(up + down) <= 1e-12 * h + 8 * rounding
        tilt[j[good]] = (0.5 * (up - down) / h)[good]
        step[j[~good]] /= 4
    if not np.all(np.isfinite(tilt)):
        return None
    normal = rough - tilt @ axes
    normal /= np.linalg.norm(normal)
    return Piece(normal, -float(normal @ point), point, rounding * float(np.linalg.norm(1 / step)))


def kinks_along(
    labels: Labels, piece: Piece, tangents: Float[np.ndarray, "m d"], scale: float, farthest: float
) -> Float[np.ndarray, " m"]:
    """How far the boundary stays on the hyperplane of a piece along tangents; infinite if it does not end."""

    def held(t: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the label changes across the hyperplane at distance t; and whether that was answered."""
        U = piece.point + t[:, None] * tangents[rows]
        aside = _ASIDE * (scale + np.linalg.norm(U, axis=1))[:, None] * piece.normal
        seen = labels(np.stack([U + aside, U - aside]))
        return (seen[0] == 1) & (seen[1] == -1), np.all(seen != 0, axis=0)

    m = len(tangents)
    low, high = np.zeros(m), np.full(m, np.inf)
    rows, t = np.arange(m), 0.01 * scale
    while len(rows) and t < farthest:
        there, answered = held(np.full(len(rows), t), rows)
        low[rows[there]] = t
        high[rows[~there & answered]] = t
        rows, t = rows[there], 2 * t
    rows = np.flatnonzero(np.isfinite(high))
    high[rows] = bisected(low[rows], high[rows], lambda t: ~held(t, rows)[0], 40)
    return high


def beyond(
    labels: Labels, piece: Piece, tangents: Float[np.ndarray, "w d"], t: Float[np.ndarray, " w"]
) -> tuple[Float[np.ndarray, "w d"], Float[np.ndarray, " w"]]:
    """A boundary point behind each kink, on the next piece, and how much room it has there; NaN if none.

    Heights over the hyperplane of the piece grow in proportion to the way behind the kink until the next one.
    """
    points, room = np.full(tangents.shape, np.nan), np.full(len(t), np.nan)
    size = np.linalg.norm(piece.point) + t
    for share in (0.5, 0.1, 0.02, 4e-3, 8e-4, 1.6e-4, 3e-5):  # of the way to the kink
        w = np.flatnonzero(~np.isfinite(room))
        if len(w) == 0:
            break
        way = share * t[w]
        whole, half = (
            labels.height(piece.point + (t[w] + s * way)[:, None] * tangents[w], piece.normal, 4e-6 * way, 14)
            for s in (1, 0.5)
        )
        with np.errstate(invalid="ignore"):
            good = np.abs(whole - 2 * half) <= 1e-7 * np.abs(whole) + 10 * _ASIDE * size[w]
        at = w[good]
        points[at] = piece.point + (t[at] + 0.5 * way[good])[:, None] * tangents[at]
        points[at] += half[good][:, None] * piece.normal
        room[at] = 0.25 * way[good]
    return points, room
