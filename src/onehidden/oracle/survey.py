"""Lines through the black box until the units they show add up to the function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.oracle.assembly import Region, assemble
from onehidden.oracle.box import EPS, BlackBox
from onehidden.oracle.kinks import kink_units
from onehidden.oracle.lines import find_zones, random_line
from onehidden.oracle.tails import Tail
from onehidden.oracle.units import joined, none, step_units
from onehidden.run import Run

_QUIET = 6  # lines at one distance without a new unit, after which no more are asked
_LINES = 30  # most lines at one distance


def radii(tail: Tail, box: BlackBox) -> list[float]:
    """Distances to look from, in scales of the input: a smooth unit must look like a point from there."""
    if tail.sharp:
        wanted = [2.0, 1e3, 1e6] if tail.degree == 1 else [2.0, 20.0]
    else:
        # Rounding of the argument, radius |a| eps, must stay small beside 1.
        shrink = min(1.0, (1e3 * EPS / box.rounding) ** 0.5)
        wanted = [1e5 * shrink, 2e5 * shrink, 4e5 * shrink] if box.coarse else [1e5, 1e3, 1e7]
    return list(dict.fromkeys(min(radius, box.reach / 3) for radius in wanted))


def networks(
    box: BlackBox, tail: Tail, region: Region, run: Run, rng: np.random.Generator
) -> Iterator[OneHiddenNet]:
    """Networks in u that come close to the function, line after line; each set of units once."""
    units = none(box.d)
    tried: set[tuple[float, ...]] = set()
    for radius in radii(tail, box):
        quiet = 0
        for number in range(_LINES):
            if run.expired():
                return
            if quiet == _QUIET:
                break
            if number == 2 and len(units) == 0:
                break  # nothing to be seen from here
            line = random_line(box.d, radius, box.reach, rng)
            zones = find_zones(box, line, tail.degree, rng)
            look = step_units if tail.degree == 0 else kink_units
            before, units = len(units), joined(units, look(box, line, zones, tail))
            quiet = 0 if len(units) > before else quiet + 1
            run.report(f"line, {len(units)} units", number, float("nan"))
            if radius == radii(tail, box)[0] and number == 0:
                continue  # nothing can have been seen twice
            certain = units.at(np.flatnonzero(units.seen > 1))
            # Those seen twice first: a switch that only looked like one unit does not come back.
            for chosen in (certain, units):
                # Sets are told apart by their strengths, which differ from unit to unit.
                key = tuple(np.round(np.sort(chosen.output) / np.abs(chosen.output).max(initial=1e-300), 4))
                if len(chosen) == 0 or key in tried:
                    continue
                net = assemble(chosen, tail, region, box, rng)
                run.report(f"{len(chosen)} units assembled", int(net is not None), float("nan"))
                tried.add(key)
                if net is not None:
                    yield net
