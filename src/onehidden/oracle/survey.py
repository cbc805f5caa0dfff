"""Lines through the black box until the units they show add up to the function."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.oracle.assembly import Region, assemble, misfit
from onehidden.oracle.box import EPS, BlackBox
from onehidden.oracle.kinks import kink_units
from onehidden.oracle.lines import find_zones, random_line
from onehidden.oracle.tails import Tail
from onehidden.oracle.units import Units, joined, none, step_units
from onehidden.recovery.clock import Clock

_LINES = 6  # lines at one distance
_NEAR = 1e-2  # a network off by less than this share of std(y) is worth finishing


def radii(tail: Tail, box: BlackBox) -> list[float]:
    """Distances to look from, in scales of the input: a smooth unit must look like a point from there."""
    if tail.sharp:
        wanted = [2.0, 1e3] if tail.degree == 1 else [2.0, 20.0]
    else:
        # Rounding of the argument, radius |a| eps, must stay small beside 1.
        wanted = [radius * min(1.0, (1e3 * EPS / box.rounding) ** 0.5) for radius in (1e5, 1e7, 1e3)]
    return sorted({min(radius, box.reach / 3) for radius in wanted}, key=[
        min(radius, box.reach / 3) for radius in wanted
    ].index)  # fmt: skip


def networks(
    box: BlackBox, tail: Tail, region: Region, clock: Clock, rng: np.random.Generator
) -> Iterator[tuple[OneHiddenNet, Units]]:
    """Networks in u that come close to the function, and the units they were made of, line after line."""
    units = none(box.d)
    for radius in radii(tail, box):
        for number in range(_LINES):
            if clock.expired():
                return
            line = random_line(box.d, radius, box.reach, rng)
            zones = find_zones(box, line, tail.degree, rng)
            look = step_units if tail.degree == 0 else kink_units
            units = joined(units, look(box, line, zones, tail))
            clock.report(f"line, {len(units)} units", number, float("nan"))
            if number == 0 and units.seen.sum() <= len(units):
                continue  # nothing seen twice yet
            yield from _close(units, tail, region, clock)


def _close(units: Units, tail: Tail, region: Region, clock: Clock) -> Iterator[tuple[OneHiddenNet, Units]]:
    """Networks of the units seen twice, or of all, that come close to the function."""
    certain = units.at(np.flatnonzero(units.seen > 1))
    for chosen in (certain, units) if len(certain) < len(units) else (units,):
        if len(chosen) == 0:
            continue
        net = assemble(chosen, tail, region)
        error = np.inf if net is None else misfit(net, region)
        clock.report(f"{len(chosen)} units assembled", 0, error**2)
        if net is not None and error < _NEAR:
            yield net, chosen
