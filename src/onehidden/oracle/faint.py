"""Units that leave no trace: told apart, left out, named."""

from __future__ import annotations

import numpy as np

from onehidden.checks import Check
from onehidden.network import OneHiddenNet
from onehidden.oracle.assembly import Region
from onehidden.oracle.tails import Tail, values

FAINT = 1e-9  # of std(y): what a unit must contribute somewhere to count


def is_faint(net: OneHiddenNet, tail: Tail, region: Region) -> np.ndarray:
    """(k,) whether a unit changes the function by less than FAINT std(y).

    A step counts with its whole height, wherever it lies; a kink with what it does within the typical
    region or, when it lies outside, within one scale of its own hyperplane.
    """
    if tail.degree == 0:
        size = np.abs(net.output * tail.jump)
    else:
        z = region.U @ net.weights.T + net.bias
        within = values(net.activation, z).std(axis=0)
        size = np.abs(net.output) * np.maximum(within, np.linalg.norm(net.weights, axis=1) ** tail.degree)
    slope = np.linalg.norm(net.weights, axis=1)
    # A step of tiny slope is a line of tiny slope: it must show within its reach of typical x.
    return (size < FAINT * region.spread) | (slope < FAINT)


def silent(net: OneHiddenNet, region: Region) -> list[int]:
    """Units of a network in u that are constant over the typical region, though not elsewhere."""
    units = values(net.activation, region.U @ net.weights.T + net.bias) * net.output
    return [int(i) for i in np.flatnonzero(units.std(axis=0) < FAINT * region.spread)]


def dead_check(hidden: int | None, found: int, faint: list[str]) -> Check:
    """A record of the units that were left out; with ``hidden`` None only those that were seen at all."""
    absent = 0 if hidden is None else max(hidden - found - len(faint), 0)
    parts = []
    if faint:
        parts.append(f"below {FAINT:g} of std(y) and left out: " + "; ".join(faint))
    if absent:
        parts.append(
            f"{absent} of the {hidden} units asked for leave no trace in any query: zero output, zero weights, "
            "or the same hyperplane as another"
        )
    return Check(
        "dead units", float(len(faint) + absent), float("inf"), True, "; ".join(parts) or "every unit speaks"
    )
