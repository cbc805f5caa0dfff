"""Kinks of a piecewise linear function along a line, the straight pieces between, and the units behind.

Along x = p + t v every unit has one kink, at t_i = -(<a_i, p> + b_i) / <a_i, v>. A grid uniform in the angle
atan(t / R) shows a kink as a second difference above the rounding. Straight lines fitted left and right of it
meet where the kink lies, and an answer there shows whether it was one kink or several. On a straight piece
the function is affine around it, too. Its gradient changes across a kink by w_i a_i, row and strength of the
unit in one; k + 1 gradients give k units: d queries per unit and side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import PerPoint
from onehidden.oracle.lines import Kinks, Line

# Standard errors that count as real; a second difference has 2.4 of its own: one false kink in 1e9 windows.
SIGNIFICANT = 8.0


@dataclass(frozen=True, eq=False)
class Pieces:
    """The m straight pieces of a line and the m - 1 kinks between neighbours."""

    line: Line
    low: Float[np.ndarray, " m"]  # ends of the pieces
    high: Float[np.ndarray, " m"]
    value: Float[np.ndarray, " m"]  # at the middle of each piece
    slope: Float[np.ndarray, " m"]
    error: Float[np.ndarray, " m"]  # standard error of an answer there
    place: Float[np.ndarray, " b"]  # where neighbours meet
    single: Bool[np.ndarray, " b"]  # whether that is one kink and nothing else
    unanswered: Bool[np.ndarray, " b"]  # whether the box does not answer between

    @property
    def change(self) -> Float[np.ndarray, " b"]:
        """Change of the slope at each kink."""
        return np.diff(self.slope)

    def explained(self, kinks: Kinks, mix: Float[np.ndarray, " q"]) -> Bool[np.ndarray, " b"]:
        """Which kinks of the line are known ones: at their place, and of their strength."""
        found = np.zeros(len(self.place), bool)
        if len(kinks) == 0 or len(found) == 0:
            return found
        along, radius = kinks.weights @ self.line.direction, self.line.radius
        strength = (kinks.output @ mix) * np.abs(along)
        half = 0.5 * np.diff(np.array([self.low[0], *self.place, self.high[-1]], float))
        slope_error = self.error / np.maximum(self.high - self.low, 1e-300)
        slack = SIGNIFICANT * (slope_error[:-1] + slope_error[1:])
        with np.errstate(divide="ignore"):
            place = -(kinks.weights @ self.line.start + kinks.bias) / along
            doubt = 100 * (kinks.bias_error + kinks.error * radius) / np.abs(along)
            place_error = SIGNIFICANT * (self.error[:-1] + self.error[1:]) / np.abs(self.change)
        for i, at in enumerate(self.place):
            room = np.minimum(doubt * (1 + np.abs(at) / radius), min(half[i], half[i + 1]))
            same = np.abs(place - at) <= np.maximum(room, place_error[i])
            same &= np.abs(strength - self.change[i]) <= 0.01 * np.abs(strength) + slack[i]
            found[i] = same.any()
        return found


def straight_pieces(
    box: BlackBox,
    line: Line,
    cells: int = 1024,
    zooms: int = 4,
    most: int = 4096,
    degree: int | None = None,
    core: float = 0.0,
    known: Kinks | None = None,
    reach: float = 0.0,
) -> Pieces | None:
    """The pieces of the mixture along a line; None where it is curved everywhere.

    The ``cells`` of the first grid are halved until kinks have room, and zones of more than one kink refined
    ``zooms`` times. A function of more than ``most`` kinks is curved, or random. From far away the transition
    of a smooth unit is a kink, of which answers within ``core`` of its zone say nothing. From nearby it has a
    width, ``degree`` 1 for kinks and 0 for steps: every zone is refined down to it. Of a box of which a part
    is subtracted the zones are searched alone; the pieces are those of the whole, cut at the kinks ``known``,
    whose arguments go to ``reach`` on both sides.
    """
    sharp, grows = degree is None, 1 if degree is None else degree
    t = line.grid(cells)
    y = box.mixture(line.at(t))
    while True:
        answered = np.flatnonzero(np.isfinite(y))
        if len(answered) < 12:
            none, nothing = np.zeros(0), np.full(1, np.nan)
            return Pieces(line, nothing, nothing, nothing, nothing, nothing, none, none > 0, none > 0)
        level = float(np.nanmax(np.abs(y) / line.growth(t, grows)))
        own = box.level / np.sqrt(box.d)  # of the whole answer, where a known part of it was subtracted

        def error(where: np.ndarray, level: float = level, own: float = own) -> np.ndarray:
            far = np.hypot(np.linalg.norm(line.start), where)
            # The rounding of smooth units differs from piece to piece.
            size = np.maximum(level * line.growth(where, grows), own * far**grows)
            return np.hypot((1 if sharp else 4) * box.precision.at(size), box.known_error * far)

        ends = float(t[answered[0]]), float(t[answered[-1]])
        before = np.flatnonzero(np.diff(answered) > 1)
        gaps = t[answered[before]], t[answered[before + 1]]
        # Over longer arms the tails of a smooth transition would be kinks of their own.
        arms = (1, 4, 16, 64) if sharp else (1,)
        low, high = _kinked_zones(t, y, error(t), gaps, arms)
        crowded = np.sum(np.searchsorted(t, high) - np.searchsorted(t, low)) > 0.2 * len(t)
        if not (sharp and crowded and len(t) <= most):
            break
        finer = line.grid(2 * (len(t) - 1))
        finer[::2], seen = t, np.repeat(y, 2)[:-1]
        seen[1::2] = box.mixture(line.at(finer[1::2]))
        t, y = finer, seen
    nothing, fits = np.zeros(0), {}
    refined = np.isin(low, gaps[0])  # gaps, and zones that are filled by what they hold
    for zoom in range(zooms + 1):
        if len(low) > most:
            return None
        again = ~refined & (1.04 / 48 * (high - low) > 1e-14 * np.maximum(np.abs(low), np.abs(high)))
        if sharp or zoom == zooms or not again.any():
            unanswered = np.isin(low, gaps[0])
            checked = np.full(len(low), sharp) if core == 0 else ~refined
            pieces = _fitted_pieces(box, line, ends, low, high, unanswered, error, checked, core, fits)
            again &= ~pieces.single
            if not sharp or zoom == zooms or not again.any():
                if known is None or box.known is None or box.low_precision:
                    return pieces
                box.known, box.known_error = None, 0.0
                low, high, new = _cut(line, ends, low, high, known, reach)
                return _fitted_pieces(box, line, ends, low, high, new & False, error, new, core, {})
        parts, done = [(low[[i]], high[[i]]) for i in range(len(low))], [[one] for one in refined]
        rows = np.flatnonzero(again)
        width = high[rows] - low[rows]
        inner = low[rows][:, None] + width[:, None] * np.linspace(-0.02, 1.02, 49)
        seen = box.mixture(line.at(inner))
        for row, i in enumerate(rows):
            found = _kinked_zones(inner[row], seen[row], error(inner[row]), (nothing, nothing), arms)
            finer = len(found[0]) > 0 and np.max(found[1] - found[0]) < 0.5 * width[row]
            parts[i], done[i] = (found, [False] * len(found[0])) if finer else (parts[i], [True])
        low, high = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
        refined = np.concatenate(done)
    return None


def _cut(
    line: Line, ends: tuple[float, float], low: PerPoint, high: PerPoint, known: Kinks, reach: float
) -> tuple[PerPoint, PerPoint, Bool[np.ndarray, " b"]]:
    """Ends of these zones and of those of known kinks, overlaps as one zone, and which have no known kink."""
    along, size = known.weights @ line.direction, np.linalg.norm(known.weights, axis=1)
    place = -(known.weights @ line.start + known.bias) / along
    doubt = known.bias_error + known.error * np.hypot(line.radius, place)
    half = (reach + SIGNIFICANT * size * doubt) / np.abs(along)
    there = (place - half > ends[0]) & (place + half < ends[1])
    begin, end = np.append(low, (place - half)[there]), np.append(high, (place + half)[there])
    new, order = np.arange(len(begin)) < len(low), np.argsort(begin)
    begin, end, new = begin[order], end[order], new[order]
    first = np.flatnonzero(np.append(True, begin[1:] > np.maximum.accumulate(end)[:-1])[: len(begin)])
    if len(first) == 0:
        return begin, end, new
    return begin[first], np.maximum.reduceat(end, first), np.logical_and.reduceat(new, first)


def _kinked_zones(
    t: PerPoint, y: PerPoint, error: PerPoint, gaps: tuple[np.ndarray, np.ndarray], arms: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of gaps and of zones outside of which the samples lie on straight lines.

    A weak kink shows over longer arms, which may not reach over a kink that was found already.
    """
    low, high = gaps
    for arm in arms:
        left, mid, right = t[: -2 * arm], t[arm:-arm], t[2 * arm :]
        share = (mid - left) / (right - left)
        bend = y[arm:-arm] - (1 - share) * y[: -2 * arm] - share * y[2 * arm :]
        kinked = np.abs(bend) > 1.5 * SIGNIFICANT * np.maximum(error[2 * arm :], error[: -2 * arm])
        kinked &= np.searchsorted(high, left, side="right") == np.searchsorted(low, right, side="left")
        left, right = left[kinked], right[kinked]
        start = np.flatnonzero(np.append(True, left[1:] >= right[:-1])[: len(left)])  # overlaps are one zone
        low = np.concatenate([low, left[start]])
        high = np.concatenate([high, right[np.append(start[1:] - 1, len(left) - 1)[: len(start)]]])
        order = np.argsort(low)
        low, high = low[order], high[order]
    return low, high


def _fitted_pieces(
    box: BlackBox,
    line: Line,
    ends: tuple[float, float],
    low: Float[np.ndarray, " b"],
    high: Float[np.ndarray, " b"],
    unanswered: Bool[np.ndarray, " b"],
    error_at: Callable[[np.ndarray], np.ndarray],
    checked: Bool[np.ndarray, " b"],
    core: float,
    known: dict[tuple[float, ...], np.ndarray],
) -> Pieces:
    """Straight lines through fresh answers between the zones, and whether each zone is a single kink.

    Answers in ``checked`` zones, beyond ``core`` of them, must lie on the lines beside. In others lines which
    meet within the zone are enough. ``known`` keeps what was seen between the same ends before.
    """
    begin, end = np.append(ends[0], high), np.append(low, ends[1])
    width, middle = end - begin, 0.5 * (begin + end)
    half, node = 0.45 * width, np.cos(np.pi * (np.arange(6) + 0.5) / 6)
    place = middle[:, None] + half[:, None] * node
    y = _remembered(known, np.stack([begin, end], axis=1), lambda new: box.mixture(line.at(place[new])))
    value = y.mean(axis=1)
    slope = (y @ node) / np.sum(node**2) / np.where(half > 0, half, 1.0)
    misfit = np.max(np.abs(y - value[:, None] - slope[:, None] * half[:, None] * node), axis=1)
    error = error_at(np.maximum(np.abs(begin), np.abs(end)))
    straight = (misfit <= SIGNIFICANT * error) & (width > 0)
    change = np.diff(slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        at_left = value[:-1] + slope[:-1] * (low - middle[:-1])
        at_right = value[1:] + slope[1:] * (low - middle[1:])
        place = low + np.where(change != 0, (at_left - at_right) / change, np.inf)
        # The error of a place grows with its distance from the middles of both pieces.
        away = [np.abs(place - middle[part]) / half[part] for part in (slice(None, -1), slice(1, None))]
    doubt = np.nan_to_num(error[:-1] * (1 + away[0]) + error[1:] * (1 + away[1]), nan=np.inf)
    within = (place > low - 0.02 * (high - low)) & (place < high + 0.02 * (high - low))
    single = straight[:-1] & straight[1:] & within & np.isfinite(place) & ~unanswered
    safe = np.where(single, place, 0.5 * (low + high))
    if checked.any():
        share = np.array([core, 0.2, 0.6, 0.85])
        before, behind = share * (safe - low)[:, None], share * (high - safe)[:, None]
        t = np.concatenate([safe[:, None] - before, safe[:, None] + behind], axis=1)
        left = value[:-1, None] + slope[:-1, None] * (t - middle[:-1, None])
        right = value[1:, None] + slope[1:, None] * (t - middle[1:, None])
        zones = np.stack([begin[:-1], low, high, end[1:]], axis=1)
        y = _remembered(known, zones, lambda new: box.mixture(line.at(t[new])))
        off = y - np.where(t <= safe[:, None], left, right)
        with np.errstate(invalid="ignore"):
            worst = np.max(np.abs(off), axis=1) / SIGNIFICANT
            single &= ~checked | (worst <= doubt + error_at(np.abs(t).max(axis=1)))
    place = np.where(np.isfinite(place), place, safe)
    return Pieces(line, begin, end, value, slope, error, place, single, unanswered)


def _remembered(
    known: dict[tuple[float, ...], np.ndarray],
    keys: Float[np.ndarray, "m e"],
    asked: Callable[[np.ndarray], np.ndarray],
) -> Float[np.ndarray, "m p"]:
    """Answers of each row of keys, those ``asked`` before by the same numbers as they are known."""
    rows = [tuple(key) for key in keys.tolist()]
    new = np.array([i for i, row in enumerate(rows) if row not in known], int)
    if len(new):
        known.update(zip((rows[i] for i in new), asked(new), strict=True))
    return np.array([known[row] for row in rows])


def kinks_of(
    box: BlackBox, pieces: Pieces, wanted: Bool[np.ndarray, " b"]
) -> tuple[Kinks, Int[np.ndarray, " r"]]:
    """The units behind the wanted kinks of a line, one each, and the numbers of their kinks."""
    at = np.flatnonzero(wanted & pieces.single)
    if len(at) == 0:
        return Kinks.none(box.d, box.q), at
    which = np.unique(np.concatenate([at, at + 1]))
    basis = np.linalg.qr(box.rng.standard_normal((box.d, box.d)))[0]
    slope, error, found = _gradients(box, pieces, which, basis)
    before, after = np.searchsorted(which, at), np.searchsorted(which, at + 1)
    good = found[before] & found[after]
    at, before, after = at[good], before[good], after[good]
    change = slope[after] - slope[before]  # (r, d, q) in the basis
    normal = change @ box.mix
    if box.q > 1:  # of rank one: all outputs show the row
        normal = np.einsum("rdq,rq->rd", change, np.einsum("rdq,rd->rq", change, normal))
    size = np.linalg.norm(normal, axis=1, keepdims=True)
    normal /= np.where(size > 0, size, 1.0)
    # Rows point along the line: the strength of the mixture has the sign of the change of slope.
    normal *= np.where((normal @ (basis @ pieces.line.direction)) < 0, -1.0, 1.0)[:, None]
    output = np.einsum("rdq,rd->rq", change, normal)
    size = np.linalg.norm(output, axis=1) * np.linalg.norm(box.mix)
    doubt = np.sqrt(np.sum(error[before] ** 2 + error[after] ** 2, axis=1)) / np.where(size > 0, size, 1.0)
    rows = normal @ basis
    point = pieces.line.at(pieces.place[at])
    along = np.abs(pieces.change[at])
    place = (pieces.error[at] + pieces.error[at + 1]) / np.where(along > 0, along, 1.0)
    # Errors of a row point anywhere: d^-1/2 of them along the way to the kink.
    bias_error = 2 * doubt * np.linalg.norm(point, axis=1) / np.sqrt(box.d)
    bias_error += place * np.abs(rows @ pieces.line.direction)
    bias = -np.sum(rows * point, axis=1)
    return Kinks(rows, bias, output, doubt, bias_error, point), at


def _gradients(
    box: BlackBox, pieces: Pieces, which: Int[np.ndarray, " m"], basis: Float[np.ndarray, "d d"]
) -> tuple[Float[np.ndarray, "m d q"], Float[np.ndarray, "m d"], Bool[np.ndarray, " m"]]:
    """Gradients of all outputs in the middle of some pieces, in the basis; standard errors; whether found.

    Along every direction one query is made on either side: their mean must be the answer in the middle, or
    the arm reached over another kink and is shortened.
    """
    line, m, d = pieces.line, len(which), box.d
    low, high = pieces.low[which], pieces.high[which]
    base = line.at(0.5 * (low + high))
    center, error = box.outputs(base), pieces.error[which]
    room = np.minimum(high - low, 2 * line.radius + np.abs(low + high))
    # Short arms seldom reach another kink; long ones average errors.
    arm = (0.3 if box.low_precision else 0.1) * room
    arm = np.minimum(arm, box.margin(base) / np.max(np.abs(basis)))
    step = np.repeat(arm[:, None], d, axis=1)
    slope, unknown = np.zeros((m, d, box.q)), np.ones((m, d), bool)
    for _ in range(9):
        i, j = np.nonzero(unknown)
        if len(i) == 0:
            break
        up = box.star(base, i, step[i, j], basis, j)
        down = box.star(base, i, -step[i, j], basis, j)
        with np.errstate(invalid="ignore"):
            good = np.abs((up + down - 2 * center[i]) @ box.mix) <= 2.5 * SIGNIFICANT * error[i]
        slope[i[good], j[good]] = ((up - down) / (2 * step[i, j])[:, None])[good]
        unknown[i[good], j[good]] = False
        step[i[~good], j[~good]] /= 4.0
    return slope, error[:, None] / (np.sqrt(2) * step), np.all(~unknown, axis=1)


def continued(box: BlackBox, kinks: Kinks, radius: float, probes: int = 6) -> Float[np.ndarray, " r"]:
    """Share of random places of each hyperplane with a kink of the same strength; NaN if none was answered.

    The kink of a unit goes on along its whole hyperplane; that of a second layer or of a maximum ends.
    """
    r, d = kinks.weights.shape
    if r == 0:
        return np.zeros(0)
    strength = kinks.output @ box.mix
    seen = np.zeros((r, probes))
    for probe in range(probes):
        at = box.typical(r) * radius / np.sqrt(d)
        at -= (np.sum(at * kinks.weights, axis=1) + kinks.bias)[:, None] * kinks.weights
        # An arm beside which the error of the row is small, and over which the kink stands out.
        arm = 20 * (kinks.bias_error + kinks.error * radius / np.sqrt(d)) + 1e-9 * radius
        arm += 100 * box.error_at(at) / np.abs(strength)
        steps = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
        y = box.mixture(at[:, None] + (steps * arm[:, None])[..., None] * kinks.weights[:, None])
        bend = (y[:, 3] + y[:, 1] - 2 * y[:, 2]) / (strength * arm)
        straight = np.abs(y[:, [0, 4]] - 2 * y[:, [1, 3]] + y[:, [2, 2]]).max(axis=1) / np.abs(strength * arm)
        # A longer arm meets other kinks: nothing can be said before the row is better known.
        known = (arm < 1e-3 * radius) & np.all(np.isfinite(y), axis=1)
        seen[:, probe] = np.where(known, (np.abs(bend - 1) < 0.15) & (straight < 0.15), np.nan)
    count = np.sum(np.isfinite(seen), axis=1)
    return np.where(count > 0, np.nansum(seen, axis=1) / np.maximum(count, 1), np.nan)
