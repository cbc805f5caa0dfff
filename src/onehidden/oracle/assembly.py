"""From hyperplanes to a network: orientations and intercept, and how much of the function they explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.tails import Tail, values
from onehidden.oracle.units import Units


@dataclass(frozen=True)
class Region:
    """Typical queries: rows of u with their answers."""

    U: np.ndarray
    y: np.ndarray

    @property
    def spread(self) -> float:
        return float(self.y.std())


def typical(box: BlackBox, count: int, rng: np.random.Generator) -> Region:
    """Gaussian queries, within reach."""
    U = np.clip(rng.standard_normal((count, box.d)), -box.reach, box.reach)
    return Region(U, box.ask(U))


def assemble(units: Units, tail: Tail, region: Region) -> OneHiddenNet | None:
    """The network of these units in the coordinates of u; None where no orientations fit."""
    g = tail.activation
    z = region.U @ units.weights.T + units.bias
    if g.sign_free:
        level = float(np.mean(region.y - values(g, z) @ units.output))
        return OneHiddenNet(units.weights, units.output, units.bias, level, g)
    assert g.reflection is not None
    # g = (g - h) + h: turned by s the unit adds m (g - h)(z) + s m h(z).
    even = np.polynomial.polynomial.polyval(z, np.array(g.orientation_part))
    rest = region.y - (values(g, z) - even) @ units.output
    columns = even * units.output
    signs = solve_signs(columns - columns.mean(axis=0), rest - rest.mean())
    if signs is None:
        return None
    output = np.where(signs < 0, g.reflection.parity, 1) * units.output
    level = float(np.mean(rest - columns @ signs))
    return OneHiddenNet(units.weights * signs[:, None], output, units.bias * signs, level, g)


def misfit(net: OneHiddenNet, region: Region) -> float:
    """Root mean squared residual as a share of std(y)."""
    told = values(net.activation, region.U @ net.weights.T + net.bias) @ net.output + net.intercept
    return float(np.sqrt(np.mean((told - region.y) ** 2))) / region.spread
