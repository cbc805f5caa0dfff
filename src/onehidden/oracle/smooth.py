"""The answer for a box of smooth units, or of powers of ReLU: seen from far away, then fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.polynomial.polynomial import polyval

from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.options import Options
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.certificate import cut_short_check, layer_certificate, parameter_errors
from onehidden.oracle.domain import EPS, Outputs, PerUnit, Points
from onehidden.oracle.final_fit import fitted, kink_queries, transition_queries
from onehidden.oracle.layer import Layer, Queries, WithSlope, with_slope
from onehidden.oracle.lines import Kinks, distant_line
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.transitions import Tail, units_along

_CLOSE = 1e-2  # share of std(y): a layer that leaves less is worth fitting


def orientable(g: Activation, tail: Tail) -> bool:
    """Whether the function determines the orientation of units of this activation."""
    return g.sign_free or (g.reversal is not None and g.reversal.degree == tail.degree)


def smooth_answer(box: BlackBox, tail: Tail, options: Options, most: int = 5) -> Certificate | None:
    """The first layer from lines that is certified, else the one that fits best of ``most``."""
    best: Certificate | None = None
    try:
        U, Y = box.answered(1000)
        seen = Y if tail.degree else Y @ box.mix[:, None]  # steps show the mixture alone
        for tried, layer in enumerate(_layers(box, tail, U, seen)):
            found = _fitted_certificate(layer, U, seen, tail, box, options)
            if found is not None and (best is None or _rank(found) < _rank(best)):
                best = found
            if tried + 1 == most or (best is not None and (best.status.certified or box.run.expired())):
                break
    except BudgetExceeded as ended:
        if best is None:
            raise
        best = best.with_checks(cut_short_check(str(ended)))
    return best


def _rank(certificate: Certificate) -> tuple[bool, float]:
    """Certified first, then by fit."""
    return not certificate.status.certified, certificate.mean_square


def _fitted_certificate(
    layer: Layer, U: Points, Y: Outputs, tail: Tail, box: BlackBox, options: Options
) -> Certificate | None:
    """The certificate of a layer of the mixture after a fit of all outputs; None without a live unit."""
    g = tail.activation
    live = _contributions(layer, tail, U) >= 1e-11 * float(np.max(Y.std(axis=0)))
    if not live.any():
        return None
    left_out = [
        f"unit with |a| = {np.linalg.norm(layer.weights[i]):.2g}, w = {layer.output[i, 0]:.2g}"
        for i in np.flatnonzero(~live)
    ]
    layer = layer.units(np.flatnonzero(live))
    queries = kink_queries(box, layer) if tail.sharp else transition_queries(box, layer, tail)
    layer = _with_outputs(layer, queries, with_slope(g))
    layer = fitted(box, layer, queries, with_slope(g), g.homogeneity)
    errors = parameter_errors(box, layer, queries, with_slope(g), g.homogeneity)
    layer = layer.restricted(box, options.bias, options.intercept)
    if box.run.expired():
        box.caller.release()  # a few queries check what the clock has ended
    return layer_certificate(layer, queries, errors, g, box, options.hidden, [], left_out)


def _contributions(layer: Layer, tail: Tail, U: Points) -> PerUnit:
    """What each unit adds to an output, the largest.

    A step counts with its whole height, wherever it lies; a kink with what it does within the typical region
    or, when it lies outside, within one scale of its own hyperplane.
    """
    largest = np.max(np.abs(layer.output), axis=1)
    if tail.degree == 0:
        return largest * abs(tail.jump)
    within = tail.activation(U @ layer.weights.T + layer.bias).std(axis=0)
    return largest * np.maximum(within, np.linalg.norm(layer.weights, axis=1) ** tail.degree)


def _with_outputs(layer: Layer, queries: Queries, g: WithSlope) -> Layer:
    """The layer with all outputs, by linear least squares on a part of the queries."""
    part = slice(0, max(4000, 8 * layer.k))
    level = g(np.asarray(queries.U[part], float) @ layer.weights.T + layer.bias)[0]
    weight = queries.weight[part, None]
    columns = np.column_stack([level, np.ones(len(level))]) * weight
    solved = np.linalg.lstsq(columns, queries.Y[part] * weight, rcond=None)[0]
    return replace(layer, output=solved[:-1], constant=solved[-1])


def _radii(tail: Tail, box: BlackBox) -> list[float]:
    """Distances of lines, in scales: from there a smooth unit looks like a point."""
    if tail.sharp:
        wanted = [2.0, 20.0]
    elif box.low_precision:  # rounding of the argument, radius |a| eps, must stay small beside 1
        first = 1e5 * min(1.0, (1e3 * EPS / box.rounding) ** 0.5)
        wanted = [first, 2 * first, 4 * first]
    else:
        wanted = [1e5, 1e3, 1e7]
    return list(dict.fromkeys(min(radius, box.reach / 3) for radius in wanted))


def _layers(
    box: BlackBox, tail: Tail, U: Points, Y: Outputs, lines: int = 30, quiet_lines: int = 6
) -> Iterator[Layer]:
    """Layers of the mixture in u that come close to the function, line after line; each set of units once."""
    units, tried = Kinks.none(box.d, Y.shape[1]), set[tuple[float, ...]]()
    for distance, radius in enumerate(_radii(tail, box)):
        quiet = 0
        for number in range(lines):
            # Two lines without a unit: no unit shows from here.
            if box.run.expired() or quiet == quiet_lines or (number == 2 and len(units) == 0):
                break
            line = distant_line(box, radius, 20.0)
            before, units = len(units), units.merged(units_along(box, line, tail), 1e-6, 100.0)
            quiet = 0 if len(units) > before else quiet + 1
            box.run.report(f"line, {len(units)} units", number, float("nan"))
            if distance == number == 0:
                continue  # no unit can have been found twice
            # Those found twice first: a transition that only looked like one unit does not come back.
            for chosen in (units.at(np.flatnonzero(units.lines > 1)), units):
                # Sets are distinguished by their strengths, which differ from unit to unit.
                strength = np.sort(chosen.output[:, 0]) / np.abs(chosen.output).max(initial=1e-300)
                key = tuple(np.round(strength, 4))
                if len(chosen) == 0 or key in tried:
                    continue
                tried.add(key)
                layer = _assembled(chosen, tail, U, Y, box)
                box.run.report(f"{len(chosen)} units assembled", int(layer is not None), float("nan"))
                if layer is not None:
                    yield layer


def _assembled(units: Kinks, tail: Tail, U: Points, Y: Outputs, box: BlackBox) -> Layer | None:
    """The layer of these units, oriented; None where they do not add up to the function.

    g = (g - h) + h: oriented by s a unit adds m (g - h)(z) + s m h(z), h a polynomial.
    """
    g, near = tail.activation, _CLOSE * float(np.max(Y.std(axis=0)))  # some outputs may be constant
    layer = Layer(units.weights, units.bias, units.output, np.zeros(Y.shape[1]))
    signs = np.ones(layer.k)
    if not g.sign_free:
        z = U @ layer.weights.T + layer.bias
        h = polyval(z, np.array(g.orientation_part))
        rest = Y - (g(z) - h) @ layer.output
        if tail.degree == 1:
            affine = np.column_stack([np.ones(len(U)), U])
            left = rest - affine @ np.linalg.lstsq(affine, rest, rcond=None)[0]
            if np.any(np.sqrt(np.mean(left**2, axis=0)) >= near):
                return None  # units are missing: orientations cannot help
        columns = ((h - h.mean(axis=0))[:, None] * layer.output.T).reshape(-1, layer.k)
        target = (rest - rest.mean(axis=0)).ravel()
        digits = max(1.0, (box.rounding / 1e-15) ** 0.5)
        tight = min((1e-8 if tail.sharp else 1e-5) * digits, 0.3)
        # Then a bound as loose as chance allows: the final optimisation shows whether the signs are right.
        free = layer.k - box.d * Y.shape[1]
        loose = 0.3 if free <= 0 else 1e-3 if free <= 14 else 1e-7
        signs = solve_signs(columns, target, tight, max(tight, loose))
        if signs is None:
            return None
    parity = np.ones(layer.k) if g.reversal is None else np.where(signs < 0, g.reversal.parity, 1)
    found = replace(
        layer,
        weights=layer.weights * signs[:, None],
        bias=layer.bias * signs,
        output=parity[:, None] * layer.output,
    )
    off = Y - found.predict(U, with_slope(g))
    constant = off.mean(axis=0)
    return replace(found, constant=constant) if np.all(np.std(off, axis=0) < near) else None
