"""Units that leave no trace: told apart, left out, named."""

from __future__ import annotations

import numpy as np

from onehidden.checks import About, Check, at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.oracle.assembly import Region
from onehidden.oracle.tails import Tail, values

DEAD = 1e-11  # of std(y): what a unit must contribute somewhere to be kept
FAINT = 1e-7  # below this share of std(y) a unit is kept, but its own digits are few


def contributions(net: OneHiddenNet, tail: Tail, region: Region) -> np.ndarray:
    """(k,) what each unit of a network in u adds to the function, as a share of std(y).

    A step counts with its whole height, wherever it lies; a kink with what it does within the typical
    region or, when it lies outside, within one scale of its own hyperplane.
    """
    if tail.degree == 0:
        size = np.abs(net.output * tail.jump)
    else:
        within = values(net.activation, region.U @ net.weights.T + net.bias).std(axis=0)
        size = np.abs(net.output) * np.maximum(within, np.linalg.norm(net.weights, axis=1) ** tail.degree)
    return size / region.spread


def silent(net: OneHiddenNet, region: Region) -> list[int]:
    """Units of a network in u that are constant over the typical region, though not elsewhere."""
    units = values(net.activation, region.U @ net.weights.T + net.bias) * net.output
    return [int(i) for i in np.flatnonzero(units.std(axis=0) < 1e-9 * region.spread)]


def dead_check(hidden: int | None, found: int, faint: list[str]) -> Check:
    """A record of the units that were left out; with ``hidden`` None only those that were seen at all."""
    absent = 0 if hidden is None else max(hidden - found - len(faint), 0)
    parts = []
    if faint:
        parts.append(f"below {DEAD:g} of std(y) and left out: " + "; ".join(faint))
    if absent:
        parts.append(
            f"{absent} of the {hidden} units asked for leave no trace in any query: zero output, zero "
            "weights, or the same hyperplane as another"
        )
    return Check(
        "dead units", float(len(faint) + absent), float("inf"), True, "; ".join(parts) or "every unit speaks"
    )


def counts(found: int, hidden: int | None, left_out: list[str]) -> list[Check]:
    """The units that leave no trace, and the number of those found held against the one asked for."""
    checks = [dead_check(hidden, found, left_out)]
    if hidden is not None:
        advice = "units that switch, against those asked for: ask for more"
        checks.append(at_most("units", float(found), float(hidden), advice, About.FIT))
    return checks


def faintest_check(share: np.ndarray) -> Check:
    """The faintest unit: a black box is asked where a unit switches, so a faint one has fewer digits."""
    faint = [f"{s:.1e}" for s in share if s < FAINT]
    advice = "smallest contribution of a unit, as a share of std(y)"
    if faint:
        advice += f"; faint units, with digits to about 1e-15 over their share: {', '.join(faint)}"
    return at_least("faintest unit", float(np.min(share)), DEAD, advice)
