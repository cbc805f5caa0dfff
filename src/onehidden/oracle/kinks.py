"""Units of piecewise polynomial tails (ReLU, its powers, softplus, GELU): both sides fitted, then subtracted.

Between switches the function is a polynomial P of t. Across the switch of unit i it changes by
P_R - P_L = jump w (alpha t + beta - root)^q: its root is the place of the switch, its leading coefficient the
strength. Lines moved sideways by h e_j move the root by -h a_j / alpha, which gives the whole row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.oracle.box import BlackBox
from onehidden.oracle.lines import Line, Zones
from onehidden.oracle.tails import Tail
from onehidden.oracle.units import BIAS_ERROR, Units, none, row_error

_EXTRA = 3  # points beyond the number of coefficients, to see that it is a polynomial


class _Sides:
    """Sample places in the gaps left and right of each zone, and the change of polynomial between them."""

    def __init__(self, line: Line, zones: Zones, degree: int) -> None:
        before, after = zones.gaps(line.limit)
        self.degree, count = degree, degree + 1 + _EXTRA
        self.center = 0.5 * (zones.low + zones.high)
        # Chebyshev nodes in the part of each gap that lies next to the zone.
        node = 0.5 - 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / count)
        room = 2 * (line.radius + np.abs(self.center))
        left = np.minimum(zones.low - before[:-1], room)
        right = np.minimum(after[1:] - zones.high, room)
        self.clear = np.minimum(left, right)
        inner = 0.1 + 0.8 * node  # keep off the ends: moved lines must stay inside
        self.left = zones.low[:, None] - left[:, None] * inner
        self.right = zones.high[:, None] + right[:, None] * inner
        self.unit = np.maximum(left, right) + 0.5 * (zones.high - zones.low)
        self.growth = line.growth(np.abs(self.center) + room, degree)

    def change(self, y_left: np.ndarray, y_right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients (…, m, q + 1) of P_L and P_R in (t - center) / unit, and the worst misfit (…, m)."""
        fitted, misfit = [], []
        for t, y in ((self.left, y_left), (self.right, y_right)):
            s = (t - self.center[:, None]) / self.unit[:, None]
            powers = s[:, :, None] ** np.arange(self.degree + 1)
            solver = np.linalg.pinv(powers)
            c = np.einsum("mcn,...mn->...mc", solver, y)
            fitted.append(c)
            misfit.append(np.max(np.abs(np.einsum("mnc,...mc->...mn", powers, c) - y), axis=-1))
        return fitted[0], fitted[1], np.maximum(*misfit)

    def root(self, change: np.ndarray) -> np.ndarray:
        """Where jump (…)^q vanishes, in (t - center) / unit."""
        q = self.degree
        with np.errstate(divide="ignore", invalid="ignore"):
            return -change[..., q - 1] / (q * change[..., q])


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a line shows of the switches in its zones.

    Attributes
    ----------
    box, line, zones, sides : where was asked.
    left, right : (m, q + 1) coefficients of P_L and P_R.
    root : (m,) place of each switch in (t - center) / unit.
    """

    box: BlackBox
    line: Line
    zones: Zones
    sides: _Sides
    left: Float[np.ndarray, "m c"]
    right: Float[np.ndarray, "m c"]
    root: Float[np.ndarray, " m"]

    @property
    def change(self) -> Float[np.ndarray, "m c"]:
        """Of the polynomial."""
        return self.right - self.left


def kink_units(box: BlackBox, line: Line, zones: Zones, tail: Tail) -> Units:
    """Units whose switch is alone in its zone."""
    d, q, m = box.d, tail.degree, len(zones.low)
    if m == 0:
        return none(d)
    sides = _Sides(line, zones, q)
    left, right, misfit = sides.change(box.ask(line.at(sides.left)), box.ask(line.at(sides.right)))
    change = right - left
    root = sides.root(change)
    noise = 50 * zones.noise * sides.growth
    half = 0.5 * (zones.high - zones.low) / sides.unit
    with np.errstate(invalid="ignore"):
        good = (misfit <= noise) & (np.abs(root) <= 1.5 * half + 1e-12)
        good &= np.abs(change[:, q]) > 10 * noise
    root = np.where(good, root, 0.0)
    strength = change[:, q] / sides.unit**q / tail.jump  # w alpha^q
    place = sides.center + root * sides.unit
    seen = _Seen(box, line, zones, sides, left, right, root)
    if tail.sharp:
        slope = np.ones(m)
        good &= _is_sharp(seen) <= noise
    else:
        slope, fits = _width(seen, strength, tail)
        good &= fits
    rows = np.flatnonzero(good)
    if len(rows) == 0:
        return none(d)
    normal, found, error = _normals(seen, rows, noise)
    # A row must be known well enough to be told from others, and its bias seen from this distance.
    far = np.maximum(np.linalg.norm(line.at(place[rows]), axis=1), 1.0)
    found &= (error < row_error(box)) & (error * far * slope[rows] < BIAS_ERROR)
    rows, normal, error, far = rows[found], normal[found], error[found], far[found]
    slope = slope[rows]
    if tail.activation.homogeneity is not None:
        slope = 1 / np.linalg.norm(normal, axis=1)  # unit rows
    weights = slope[:, None] * normal
    middle = line.at(place[rows])
    return Units(
        weights,
        tail.root - np.sum(weights * middle, axis=1),
        strength[rows] / slope**q,
        error,
        error * far,
        np.ones(len(rows)),
    )


def _is_sharp(seen: _Seen) -> Float[np.ndarray, " m"]:
    """Worst distance in the zone from P_L before the switch and P_L + change after it."""
    zones, sides = seen.zones, seen.sides
    t = zones.low[:, None] + (zones.high - zones.low)[:, None] * np.linspace(0.02, 0.98, 17)
    s = (t - sides.center[:, None]) / sides.unit[:, None]
    powers = s[:, :, None] ** np.arange(sides.degree + 1)
    told = np.einsum("mnc,mc->mn", powers, seen.left)
    told += np.where(s > seen.root[:, None], np.einsum("mnc,mc->mn", powers, seen.change), 0.0)
    return np.max(np.abs(seen.box.ask(seen.line.at(t)) - told), axis=1)


def _width(
    seen: _Seen, strength: Float[np.ndarray, " m"], tail: Tail
) -> tuple[Float[np.ndarray, " m"], Bool[np.ndarray, " m"]]:
    """alpha of each unit from the excess of the function over its asymptotes, and whether g explains it.

    The excess at distance tau is (strength / alpha) E(alpha tau), E that of g: one unknown.
    """
    zones, sides = seen.zones, seen.sides
    size = 0.5 * (zones.high - zones.low)
    step = np.geomspace(1e-7, 1, 90)
    tau = np.concatenate([-step[::-1], step]) * size[:, None]
    t = (sides.center + seen.root * sides.unit)[:, None] + tau
    s = (t - sides.center[:, None]) / sides.unit[:, None]
    powers = s[:, :, None] ** np.arange(2)
    sided = np.where((tau > 0)[:, :, None], seen.right[:, None, :], seen.left[:, None, :])
    excess = seen.box.ask(seen.line.at(t)) - np.sum(powers * sided, axis=2)
    slope, fits = np.ones(len(size)), np.zeros(len(size), bool)

    def told(alpha: np.ndarray, i: int) -> np.ndarray:
        return strength[i] / alpha[:, None] * tail.excess(alpha[:, None] * tau[i] + tail.root)

    for i in range(len(size)):
        grid = np.geomspace(0.1, 1e8, 180) / size[i]
        for _ in range(24):
            error = np.sum((told(grid, i) - excess[i]) ** 2, axis=1)
            best = int(np.argmin(error))
            slope[i] = grid[best]
            near = grid[[max(best - 2, 0), min(best + 2, len(grid) - 1)]]
            if near[1] / near[0] < 1 + 1e-11:
                break
            grid = np.geomspace(near[0], near[1], 22)  # a fifth of the bracket each time around
        worst = np.max(np.abs(told(slope[i : i + 1], i)[0] - excess[i]))
        loud = np.max(np.abs(excess[i]))
        noise = zones.noise * sides.growth[i]
        fits[i] = loud > 100 * noise and worst <= 1e-3 * loud + 100 * noise
    return slope, fits


def _normals(
    seen: _Seen, rows: Int[np.ndarray, " r"], noise: Float[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, "r d"], Bool[np.ndarray, " r"], Float[np.ndarray, " r"]]:
    """(r, d) a / alpha of the units ``rows`` from lines moved sideways; whether it was found; its error."""
    box, line, sides, root, change = seen.box, seen.line, seen.sides, seen.root, seen.change
    d, q = box.d, sides.degree
    basis = np.linalg.svd(line.direction[None])[2][1:]  # (d - 1, d) across the line
    tilt = np.full((len(rows), d - 1), np.nan)
    move = 0.1 * np.minimum(sides.clear[rows], box.reach)[:, None] * np.ones(d - 1)
    for _ in range(14):
        r, j = np.nonzero(~np.isfinite(tilt))
        if len(r) == 0:
            break
        y = [_moved(box, line.at(t[rows]), r, j, move[r, j], basis) for t in (sides.left, sides.right)]
        part = _subset(sides, rows[r])
        left, right, misfit = part.change(*y)
        moved = right - left
        there = part.root(moved)
        # w alpha^q does not change from line to line, unless another unit switched on the way; and the
        # root moves by as much to one side as to the other.
        limit, size = noise[rows[r]], np.abs(change[rows[r], q])
        same = np.all(np.abs(moved[..., q] - change[rows[r], q]) <= limit, axis=0)
        same &= np.all(misfit <= limit, axis=0)
        with np.errstate(invalid="ignore"):
            same &= np.abs(there[0] + there[1] - 2 * root[rows[r]]) <= 8 * (limit / size + 1e-9)
        value = -(there[0] - there[1]) * part.unit / (2 * move[r, j])
        tilt[r[same], j[same]] = value[same]
        move[r[~same], j[~same]] /= 4
    found = np.all(np.isfinite(tilt), axis=1)
    normal = line.direction + np.where(found[:, None], tilt, 0.0) @ basis
    least = np.min(move, axis=1, initial=np.inf)
    error = noise[rows] / 10 / np.abs(change[rows, q]) * sides.unit[rows] / least
    return normal, found, error / np.linalg.norm(normal, axis=1)


def _moved(
    box: BlackBox,
    places: Float[np.ndarray, "r n d"],
    r: Int[np.ndarray, " o"],
    j: Int[np.ndarray, " o"],
    move: Float[np.ndarray, " o"],
    basis: Float[np.ndarray, "b d"],
) -> Float[np.ndarray, "2 o n"]:
    """Answers at the places of zones r moved by +-move along basis_j, asked for in parts."""
    n = places.shape[1]
    at = (r[:, None] * n + np.arange(n)).ravel()
    flat, along = places.reshape(-1, places.shape[2]), np.repeat(j, n)
    found = [box.star(flat, at, s * np.repeat(move, n), basis, along) @ box.mix for s in (1, -1)]
    return np.stack(found).reshape(2, len(r), n)


def _subset(sides: _Sides, rows: np.ndarray) -> _Sides:
    """The same places for some of the zones, repeated as often as ``rows`` names them."""
    part = object.__new__(_Sides)
    part.degree = sides.degree
    for name in ("center", "left", "right", "clear", "unit", "growth"):
        setattr(part, name, getattr(sides, name)[rows])
    return part
