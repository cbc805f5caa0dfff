"""From hyperplanes to a network: orientations and intercept, and how much of the function they explain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.fit.form import Form
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.rounding import Rounding
from onehidden.network import OneHiddenNet
from onehidden.oracle import design
from onehidden.oracle.box import BlackBox
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.tails import Tail, values
from onehidden.oracle.units import Units
from onehidden.solvers import LevenbergMarquardt

_WEIGHED = 0.5  # relative: how far the output of a unit may be from the one that its switch has shown
NEAR = 1e-2  # a network off by less than this share of std(y) is worth finishing


@dataclass(frozen=True)
class Region:
    """Typical queries: rows of u with their answers."""

    U: np.ndarray
    y: np.ndarray

    @property
    def spread(self) -> float:
        return float(self.y.std())


def typical(box: BlackBox, count: int, rng: np.random.Generator) -> Region:
    """Typical queries that were answered."""
    U = box.typical(count, rng)
    y = box.ask(U)
    good = np.isfinite(y)
    return Region(U[good], y[good])


def assemble(
    units: Units, tail: Tail, region: Region, box: BlackBox, rng: np.random.Generator
) -> OneHiddenNet | None:
    """The network of these units in the coordinates of u; None where they do not add up to the function."""
    if tail.activation.sign_free:
        told = values(tail.activation, region.U @ units.weights.T + units.bias) @ units.output
        level = float(np.mean(region.y - told))
        net = OneHiddenNet(units.weights, units.output, units.bias, level, tail.activation)
        if misfit(net, region) >= NEAR:
            net = _weighed(units, tail, region)
        return net if net is not None and misfit(net, region) < NEAR else None
    if tail.degree == 1 and _free_misfit(units, tail, region) >= NEAR:
        return None  # units are missing: orientations cannot help
    digits = max(1.0, (box.rounding / 1e-15) ** 0.5)
    net = _oriented(units, tail, region, min((1e-8 if tail.sharp else 1e-5) * digits, 0.3))
    if net is None and tail.degree == 1:
        # The sign of a faint unit drowns in the errors of the others: sharpen all of them first. Then a bound
        # as loose as chance allows: the finish tells right from wrong.
        free = len(units) - box.d
        loose = 0.3 if free <= 0 else 1e-3 if free <= 14 else 1e-7
        net = _oriented(_sharpened(units, tail, box, rng), tail, region, loose)
    return net if net is not None and misfit(net, region) < NEAR else None


def _weighed(units: Units, tail: Tail, region: Region) -> OneHiddenNet | None:
    """The units whose output, solved for together, is the one that their own switch has shown.

    What looked like a unit and is none would be given another output by the typical region.
    """
    kept = np.arange(len(units))
    for _ in range(len(units)):
        level = values(tail.activation, region.U @ units.weights[kept].T + units.bias[kept])
        if len(kept) == 0 or len(level) <= len(kept) + 1:
            return None
        columns = np.column_stack([level, np.ones(len(level))])
        *output, constant = np.linalg.lstsq(columns, region.y, rcond=None)[0]
        off = np.abs(np.array(output) / units.output[kept] - 1)
        if np.max(off) <= _WEIGHED:
            return OneHiddenNet(
                units.weights[kept], np.array(output), units.bias[kept], float(constant), tail.activation
            )
        kept = np.delete(kept, int(np.argmax(off)))
    return None


def _parts(units: Units, tail: Tail, region: Region) -> tuple[np.ndarray, np.ndarray]:
    """(n, k) what orientation changes, and (n,) what is left without it.

    g = (g - h) + h: turned by s a unit adds m (g - h)(z) + s m h(z).
    """
    g = tail.activation
    z = region.U @ units.weights.T + units.bias
    turned = np.polynomial.polynomial.polyval(z, np.array(g.orientation_part))
    rest = region.y - (values(g, z) - turned) @ units.output
    return turned * units.output, rest


def _oriented(units: Units, tail: Tail, region: Region, tolerance: float) -> OneHiddenNet | None:
    g = tail.activation
    assert g.reflection is not None
    columns, rest = _parts(units, tail, region)
    signs = solve_signs(columns - columns.mean(axis=0), rest - rest.mean(), tolerance)
    if signs is None:
        return None
    output = np.where(signs < 0, g.reflection.parity, 1) * units.output
    level = float(np.mean(rest - columns @ signs))
    return OneHiddenNet(units.weights * signs[:, None], output, units.bias * signs, level, g)


def _free_misfit(units: Units, tail: Tail, region: Region) -> float:
    """Share of std(y) left when the linear part is fitted freely: small where only orientations are open."""
    rest = _parts(units, tail, region)[1]
    linear = np.column_stack([np.ones(len(rest)), region.U])
    rest = rest - linear @ np.linalg.lstsq(linear, rest, rcond=None)[0]
    return float(np.sqrt(np.mean(rest**2))) / region.spread


def _sharpened(units: Units, tail: Tail, box: BlackBox, rng: np.random.Generator) -> Units:
    """The units after a descent in the form that knows no orientations but has a linear part of its own."""
    g, (k, d) = tail.activation, units.weights.shape
    net = OneHiddenNet(units.weights, units.output, units.bias, 0.0, g)
    U = design.queries(net, tail, box, rng)
    y = box.ask(U)
    form = Form(g, d, k, bias=True, intercept=True, skip=True, symmetrised=True)
    rest = _parts(units, tail, Region(U, y))[1]
    linear = np.column_stack([np.ones(len(rest)), U])
    solved = np.linalg.lstsq(linear, rest, rcond=None)[0]
    scale = float(y.std())
    theta = form.pack(units.weights, units.output / scale, units.bias, solved[1:] / scale, solved[0] / scale)
    fit = NetworkFit(form, U, y / scale)
    found = LevenbergMarquardt(30, Rounding().floor(fit.n), damping=1e-6, patience=4).solve(fit, theta)
    weights, output, bias, _, _ = form.unpack(found.theta)
    return replace(units, weights=weights, bias=bias, output=output * scale)


def misfit(net: OneHiddenNet, region: Region) -> float:
    """Root mean squared residual as a share of std(y)."""
    told = values(net.activation, region.U @ net.weights.T + net.bias) @ net.output + net.intercept
    return float(np.sqrt(np.mean((told - region.y) ** 2))) / region.spread
