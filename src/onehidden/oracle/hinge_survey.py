"""Lines through a piecewise linear box until the hinges they show explain the box."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.oracle.box import BlackBox
from onehidden.oracle.hinges import Hinges
from onehidden.oracle.lines import Line
from onehidden.oracle.pieces import straight_pieces
from onehidden.oracle.rows import bending_units, continued
from onehidden.run import Run

_SPAN = 1e3  # a line reaches this many radii to either side: one unit in 1500 bends beyond
_LINES = 8  # most lines of one distance
_QUIET = 2  # lines without a bend that is not known, after which no more are asked
_WIDTH = 4.0  # scales: of a closed domain, and what counts as the width of an open one
_CHORDS = 32  # most chords of a bounded domain, of which each meets some units only
_CONTINUED = 0.5  # share of places of a hyperplane where its kink must be seen


@dataclass(frozen=True, eq=False)
class Sighting:
    """What lines have shown so far.

    Attributes
    ----------
    hinges : those seen.
    broken : (m, d) places of bends whose hyperplane did not go on.
    crowded : (c, d) places of the last line where bends are not seen alone.
    lines : lines asked. curved : lines that bend everywhere.
    """

    hinges: Hinges
    broken: Float[np.ndarray, "m d"]
    crowded: Float[np.ndarray, "c d"]
    lines: int = 0
    curved: int = 0
    quiet: int = 0


def radii(box: BlackBox) -> list[float]:
    """Distances of lines from the centre, in scales.

    Noise that does not grow with the answers is small beside them from far away; else the typical region and
    its surroundings show all.
    """
    near = float(np.sqrt(box.d))
    found = [near * box.farther, near * 30 * box.farther, near * 1e3 * box.farther]
    return found if np.isinf(box.reach) else [near]


def a_line(box: BlackBox, radius: float, rng: np.random.Generator) -> Line:
    """A line at this distance from the centre in a random direction, or a chord of the domain."""
    if not box.domain.bounded:
        v = rng.standard_normal(box.d)
        v /= np.linalg.norm(v)
        p = rng.standard_normal(box.d)
        p = p - (p @ v) * v if box.d > 1 else 0 * p
        size = float(np.linalg.norm(p))
        return Line(p * (radius / size) if size > 0 else p, v, radius, _SPAN * radius)
    low, high = ((end - box.center) / box.scale for end in (box.domain.low, box.domain.high))
    # A tenth of the width is left to both sides: around the line questions are asked sideways.
    room = 0.1 * np.minimum(high - low, _WIDTH)
    # Through two places of the domain: a random direction soon meets one of d bounds.
    places = box.answered(2, rng)[0] if box.share < 1 else box.typical(2, rng)
    places = places if len(places) == 2 else box.typical(2, rng)
    one, two = np.clip(places, low + 2 * room, high - 2 * room)
    v = np.where(box.domain.free, two - one, 0.0)
    v /= np.linalg.norm(v)
    p = 0.5 * (one + two)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([(low + room - p) / v, (high - room - p) / v]), axis=0)
    begin = float(np.max(ends[0], initial=-_SPAN * radius))
    end = float(np.min(ends[1], initial=_SPAN * radius))
    half = 0.5 * (end - begin)
    return Line(p + 0.5 * (begin + end) * v, v, min(radius, half), half)


def sightings(box: BlackBox, run: Run, rng: np.random.Generator) -> Iterator[Sighting]:
    """What is known after each line; the caller stops when it is enough."""
    basis = np.linalg.qr(rng.standard_normal((box.d, box.d)))[0]
    hinges, lines, curved = Hinges.none(box.d, box.q), 0, 0
    broken = crowded = np.zeros((0, box.d))
    for radius in radii(box):
        quiet = 0
        for _ in range(_CHORDS if box.domain.bounded else _LINES):
            if lines and box.coarse:
                box.mix_anew(rng)  # a unit that this mixture hides shows in another
            line = a_line(box, radius, rng)
            pieces = straight_pieces(box, line)
            lines += 1
            if pieces is None:
                curved += 1
                yield Sighting(hinges, broken, crowded, lines, curved)
                continue
            known = hinges.explains(pieces, box.mix)
            crowded = line.at(pieces.place[~pieces.single & ~known & ~pieces.lost])
            new = bending_units(box, pieces, ~known, basis)
            share = continued(box, new, float(np.linalg.norm(line.start)), rng)
            real = ~(share < _CONTINUED)
            broken = np.concatenate([broken, new.point[~real]])
            hinges = hinges.joined(new.at(np.flatnonzero(real))).distinct()
            quiet = quiet + 1 if len(new) == 0 and len(crowded) == 0 else 0
            run.report(f"line {lines}, {len(hinges)} units", box.queries, float("nan"))
            yield Sighting(hinges, broken, crowded, lines, curved, quiet)
            if quiet >= (_CHORDS // 3 if box.domain.bounded else _QUIET):
                break


def affine_part(
    box: BlackBox, hinges: Hinges, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "d q"], Float[np.ndarray, " q"]]:
    """L and c of f(u) = c + L u + sum_i m_i |<n_i, u> + o_i| / 2, by least squares on 5/4 d questions.

    Asked from where noise that does not grow is small, and biases that are badly known matter little.
    """
    count, far = box.d + 8 + box.d // 4, box.farther
    U, y = box.answered(count, rng, far)
    if len(U) < count and far > 1:  # it does not answer there
        far = 1.0
        U, y = box.answered(count, rng)
    rest = y - 0.5 * np.abs(U @ hinges.weights.T + hinges.bias) @ hinges.output
    solved = np.linalg.lstsq(np.column_stack([U / far, np.ones(len(U))]), rest, rcond=None)[0]
    return solved[:-1] / far, solved[-1]
