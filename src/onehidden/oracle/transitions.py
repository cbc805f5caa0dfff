"""From a zone that holds a single transition to the unit behind it, with its whole row.

A step (tanh) is inverted: inside it the argument of g is linear in x. For piecewise polynomial tails (powers
of ReLU, softplus, GELU) the function is a polynomial P of t on either side, and changes by
P_R - P_L = jump w (alpha t + beta - root)^q: its root is the place of the transition, its leading coefficient
the strength. Lines moved sideways by h e_j move the root by -h a_j / alpha, which gives the whole row.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS
from onehidden.oracle.lines import Kinks, Line
from onehidden.oracle.tails import Tail, bisected, values
from onehidden.oracle.zones import Zones


def units_in_zones(box: BlackBox, line: Line, zones: Zones, tail: Tail) -> Kinks:
    """Units of the mixture whose transition is alone in its zone."""
    if len(zones.low) == 0:
        return Kinks.none(box.d, 1)
    return (_steps if tail.degree == 0 else _polynomial_kinks)(box, line, zones, tail)


def _row_error(box: BlackBox) -> float:
    """The largest relative error of a row with which a unit is recognised on another line."""
    return 1e-5 * float(box.rounding / EPS) ** 0.25


def _usable(box: BlackBox, error: np.ndarray, far: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Rows that are recognised, and whose argument near the centre is off by less than 0.1."""
    return (error < _row_error(box)) & (error * far * size < 0.1)


def _steps(box: BlackBox, line: Line, zones: Zones, tail: Tail) -> Kinks:
    """Units of a saturating g."""
    low, high, d = zones.low, zones.high, box.d
    ends = box.mixture(line.at(np.stack([low, high])))
    height = ends[1] - ends[0]
    level, rising = ends.mean(axis=0), height > 0
    center = bisected(low, high, lambda t: (box.mixture(line.at(t)) > level) == rising)

    def argument(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """z where the answers next to the steps ``rows`` are y; the step is read as rising."""
        share = (y - ends[0, rows]) / height[rows]
        return tail.inverse(tail.left[0] + tail.jump * share) - tail.root

    arm = (high - low) / 100
    beside = argument(box.mixture(line.at(np.stack([center - arm, center + arm]))), np.arange(len(low)))
    slope = (beside[1] - beside[0]) / (2 * arm)
    with np.errstate(invalid="ignore"):
        good = np.isfinite(slope) & (slope > 0) & (np.abs(height) > 100 * zones.rounding)
    # One unit and nothing else: the function along the line must be g.
    z = np.linspace(-6, 6, 25)[:, None]
    off = box.mixture(line.at(center + z / np.where(good, slope, 1.0)))
    off -= ends[0] + height * (values(tail.activation, z + tail.root) - tail.left[0]) / tail.jump
    # Far away the argument itself is rounded, and nearer the tails of others add to it.
    good &= np.max(np.abs(off), axis=0) <= _row_error(box) * np.abs(height) + 10 * zones.rounding
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
        error = 4 * zones.rounding / np.abs(height[rows]) + box.rounding * far * size
        usable = np.flatnonzero((size > 0) & _usable(box, error, far, size))
    bias = tail.root - np.sum(weights * middle, axis=1)
    output = (height[rows] / tail.jump)[:, None]
    return Kinks(weights, bias, output, error, error * far, middle, np.ones(len(rows))).at(usable)


@dataclass(frozen=True, eq=False)
class _Sides:
    """Sample places (m, n) in the gaps left and right of each zone, and the scale of its polynomials."""

    center: np.ndarray
    left: np.ndarray
    right: np.ndarray
    clear: np.ndarray
    unit: np.ndarray
    growth: np.ndarray

    @staticmethod
    def of(line: Line, zones: Zones, degree: int) -> _Sides:
        before, after = zones.gaps(line.limit)
        count = degree + 4  # three points beyond the coefficients show that it is a polynomial
        center = 0.5 * (zones.low + zones.high)
        # Chebyshev nodes in the part of each gap next to the zone, off the ends: moved lines stay inside.
        node = 0.5 - 0.4 * np.cos(np.pi * (np.arange(count) + 0.5) / count)
        room = 2 * (line.radius + np.abs(center))
        left = np.minimum(zones.low - before[:-1], room)
        right = np.minimum(after[1:] - zones.high, room)
        return _Sides(
            center,
            zones.low[:, None] - left[:, None] * node,
            zones.high[:, None] + right[:, None] * node,
            np.minimum(left, right),
            np.maximum(left, right) + 0.5 * (zones.high - zones.low),
            line.growth(np.abs(center) + room, degree),
        )

    def at(self, rows: Int[np.ndarray, " r"]) -> _Sides:
        return _Sides(*(getattr(self, one.name)[rows] for one in fields(self)))

    def scaled(self, t: np.ndarray) -> np.ndarray:
        return (t - self.center[:, None]) / self.unit[:, None]

    def polynomials(
        self, y_left: np.ndarray, y_right: np.ndarray, degree: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients (…, m, q + 1) of P_L and P_R in (t - center) / unit, and the worst misfit (…, m)."""
        fitted, misfit = [], []
        for t, y in ((self.left, y_left), (self.right, y_right)):
            powers = self.scaled(t)[:, :, None] ** np.arange(degree + 1)
            c = np.einsum("mcn,...mn->...mc", np.linalg.pinv(powers), y)
            fitted.append(c)
            misfit.append(np.max(np.abs(np.einsum("mnc,...mc->...mn", powers, c) - y), axis=-1))
        return fitted[0], fitted[1], np.maximum(*misfit)


def _root(change: np.ndarray) -> np.ndarray:
    """Where a change c (s - root)^q of the polynomial vanishes."""
    q = change.shape[-1] - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        return -change[..., q - 1] / (q * change[..., q])


def _polynomial_kinks(box: BlackBox, line: Line, zones: Zones, tail: Tail) -> Kinks:
    """Units whose two tails are polynomials of degree one or more."""
    d, q = box.d, tail.degree
    sides = _Sides.of(line, zones, q)
    left, right, misfit = sides.polynomials(
        box.mixture(line.at(sides.left)), box.mixture(line.at(sides.right)), q
    )
    change = right - left
    root = _root(change)
    noise = 50 * zones.rounding * sides.growth
    half = 0.5 * (zones.high - zones.low) / sides.unit
    with np.errstate(invalid="ignore"):
        good = (misfit <= noise) & (np.abs(root) <= 1.5 * half + 1e-12)
        good &= np.abs(change[:, q]) > 10 * noise
    root = np.where(good, root, 0.0)
    strength = change[:, q] / sides.unit**q / tail.jump  # w alpha^q
    place = sides.center + root * sides.unit
    if tail.sharp:
        slope = np.ones(len(place))
        t = zones.low[:, None] + (zones.high - zones.low)[:, None] * np.linspace(0.02, 0.98, 17)
        good &= np.max(np.abs(_excess(box, line, sides, left, right, root, t)), axis=1) <= noise
    else:
        step = np.geomspace(1e-7, 1, 90)
        tau = np.concatenate([-step[::-1], step]) * 0.5 * (zones.high - zones.low)[:, None]
        excess = _excess(box, line, sides, left, right, root, place[:, None] + tau)
        slope, fits = _slopes_along(tail, tau, excess, strength, zones.rounding * sides.growth)
        good &= fits
    rows = np.flatnonzero(good)
    if len(rows) == 0:
        return Kinks.none(d, 1)
    normal, found, error = _normals(box, line, sides, root, change, rows, noise)
    far = np.maximum(np.linalg.norm(line.at(place[rows]), axis=1), 1.0)
    found &= _usable(box, error, far, slope[rows])
    rows, normal, error, far = rows[found], normal[found], error[found], far[found]
    slope = slope[rows]
    if tail.activation.homogeneity is not None:
        slope = 1 / np.linalg.norm(normal, axis=1)  # unit rows
    weights, middle = slope[:, None] * normal, line.at(place[rows])
    bias = tail.root - np.sum(weights * middle, axis=1)
    output = (strength[rows] / slope**q)[:, None]
    return Kinks(weights, bias, output, error, error * far, middle, np.ones(len(rows)))


def _excess(
    box: BlackBox,
    line: Line,
    sides: _Sides,
    left: np.ndarray,
    right: np.ndarray,
    root: np.ndarray,
    t: np.ndarray,
) -> Float[np.ndarray, "m n"]:
    """The function at t minus P_L before the root and P_R after it."""
    s = sides.scaled(t)
    powers = s[:, :, None] ** np.arange(left.shape[1])
    coefficients = np.where((s > root[:, None])[:, :, None], right[:, None, :], left[:, None, :])
    return box.mixture(line.at(t)) - np.sum(powers * coefficients, axis=2)


def _slopes_along(
    tail: Tail, tau: np.ndarray, excess: np.ndarray, strength: np.ndarray, rounding: np.ndarray
) -> tuple[Float[np.ndarray, " m"], Bool[np.ndarray, " m"]]:
    """Slope alpha of each argument, from the excess of the function over its asymptotes; whether g fits it.

    The excess at distance tau is (strength / alpha) E(alpha tau), E that of g: one unknown.
    """
    slope, fits = np.ones(len(tau)), np.zeros(len(tau), bool)
    for i in range(len(tau)):
        # The minimum of the sum of squares lies in a valley of the logarithm that a grid finds.
        grid = np.geomspace(0.1, 1e8, 180) / np.max(tau[i])

        def off(alpha: np.ndarray, i: int = i) -> np.ndarray:
            z = alpha[:, None] * tau[i] + tail.root
            return strength[i] / alpha[:, None] * tail.excess(z) - excess[i]

        for _ in range(24):
            best = int(np.argmin(np.sum(off(grid) ** 2, axis=1)))
            slope[i] = grid[best]
            near = grid[[max(best - 2, 0), min(best + 2, len(grid) - 1)]]
            if near[1] / near[0] < 1 + 1e-11:
                break
            grid = np.geomspace(near[0], near[1], 22)
        worst, largest = np.max(np.abs(off(slope[[i]]))), np.max(np.abs(excess[i]))
        fits[i] = largest > 100 * rounding[i] and worst <= 1e-3 * largest + 100 * rounding[i]
    return slope, fits


def _normals(
    box: BlackBox,
    line: Line,
    sides: _Sides,
    root: Float[np.ndarray, " m"],
    change: Float[np.ndarray, "m c"],
    rows: Int[np.ndarray, " r"],
    noise: Float[np.ndarray, " m"],
) -> tuple[Float[np.ndarray, "r d"], Bool[np.ndarray, " r"], Float[np.ndarray, " r"]]:
    """(r, d) a / alpha of the units ``rows`` from lines moved sideways; whether it was found; its error."""
    d, q = box.d, change.shape[1] - 1
    basis = np.linalg.svd(line.direction[None])[2][1:]  # (d - 1, d) across the line
    tilt = np.full((len(rows), d - 1), np.nan)
    move = 0.1 * np.minimum(sides.clear[rows], box.reach)[:, None] * np.ones(d - 1)
    for _ in range(14):
        r, j = np.nonzero(~np.isfinite(tilt))
        if len(r) == 0:
            break
        part, h = sides.at(rows[r]), move[r, j]
        answers = [_moved(box, line.at(t), h, basis, j) for t in (part.left, part.right)]
        left, right, misfit = part.polynomials(answers[0], answers[1], q)
        moved = right - left
        there = _root(moved)
        # w alpha^q is the same on every line unless another unit changes on the way, and the root moves by
        # as much to one side as to the other.
        limit, size = noise[rows[r]], np.abs(change[rows[r], q])
        same = np.all(np.abs(moved[..., q] - change[rows[r], q]) <= limit, axis=0)
        same &= np.all(misfit <= limit, axis=0)
        with np.errstate(invalid="ignore"):
            same &= np.abs(there[0] + there[1] - 2 * root[rows[r]]) <= 8 * (limit / size + 1e-9)
        value = -(there[0] - there[1]) * part.unit / (2 * h)
        tilt[r[same], j[same]] = value[same]
        move[r[~same], j[~same]] /= 4
    found = np.all(np.isfinite(tilt), axis=1)
    normal = line.direction + np.where(found[:, None], tilt, 0.0) @ basis
    least = np.min(move, axis=1, initial=np.inf)
    error = noise[rows] / 10 / np.abs(change[rows, q]) * sides.unit[rows] / least
    return normal, found, error / np.linalg.norm(normal, axis=1)


def _moved(
    box: BlackBox,
    places: Float[np.ndarray, "o n d"],
    move: Float[np.ndarray, " o"],
    basis: Float[np.ndarray, "b d"],
    j: Int[np.ndarray, " o"],
) -> Float[np.ndarray, "2 o n"]:
    """Answers at the places of each row moved by +-move along basis_j."""
    o, n = places.shape[:2]
    flat, steps = places.reshape(o * n, -1), np.repeat(move, n)
    at, along = np.arange(o * n), np.repeat(j, n)
    return np.stack([box.star(flat, at, s * steps, basis, along) @ box.mix for s in (1, -1)]).reshape(2, o, n)
