"""The answer for a box whose units lines show: the layer found, oriented, and its certificate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.certify.certificate import Certificate
from onehidden.checks import About, Check, at_most
from onehidden.options import Options
from onehidden.oracle.box import BlackBox
from onehidden.oracle.certificate import cut_short_check, layer_certificate, parameter_errors
from onehidden.oracle.layer import Layer
from onehidden.oracle.search import FoundLayer, found_layer
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.tails import Tail, with_slope
from onehidden.refused import Refused

_LINEAR = 1e-3  # share by which the linear part of the box may differ from that of its oriented units


def expected_queries(n_inputs: int, hidden: int, activation: str = "relu") -> int:
    """About how many queries a box takes, as measured on random ReLU networks; smooth units take more.

    Two lines of 9000 with their checks, 6000 before and after them, and some per parameter.
    """
    each = 5 if activation in ("relu", "leaky_relu", "abs") else 12
    return 6000 + 2 * 9000 + 30 * hidden + n_inputs + each * hidden * (n_inputs + 2)


def line_answer(box: BlackBox, tail: Tail, options: Options) -> Certificate | list[Check]:
    """The certificate of what was found; where nothing was, the checks that say what was found instead."""
    box.caller.reserve()
    found = found_layer(box, tail, options.hidden)
    box.caller.release()
    if found is None or found.layer.k == 0 or not (tail.sharp or found.cut_short or found.left < 1e-2):
        if found is None or not tail.sharp:
            return []
        check = _one_layer_check(found, options.g.name)
        if not found.curved and not found.broken:
            raise Refused(f"no {options.g.name} unit was found: {check.advice}")
        return [check]
    g, checks = options.g, list[Check]()
    facing = oriented(found.layer, tail)
    if tail.sharp:
        checks.append(_one_layer_check(found, g.name))
    if tail.degree:
        advice = (
            "the linear part of the box against that of its units, oriented as fits best; above the bound "
            "there is a linear part beside the units, or units are missing"
        )
        off = np.inf if facing is None else facing[1]
        checks.append(at_most("linear part", off, _LINEAR, advice, About.FIT))
    if found.cut_short:
        checks.append(cut_short_check(found.cut_short))
    layer = replace(found.layer, output=found.layer.output / tail.jump, linear=None)
    layer = layer if facing is None else facing[0]
    queries, errors = None if box.run.expired() else found.queries, None
    if queries is not None:
        errors = parameter_errors(box, layer, queries, with_slope(g), tail.sharp)
    layer = layer.restricted(box, options.bias, options.intercept)
    return layer_certificate(layer, queries, errors, g, box, options.hidden, checks)


def oriented(layer: Layer, tail: Tail) -> tuple[Layer, float] | None:
    """The layer as one of g alone, with its units oriented; and how far its linear part is from the box's.

    g(z) = jump e(z) + h(z): the linear part, slope sum_i s_i w_i n_i over all outputs, gives the signs.
    """
    output, signs, off = layer.output / tail.jump, np.ones(layer.k), 0.0
    if layer.linear is not None and tail.slope == 0:
        off = float(np.max(np.abs(layer.linear))) / max(float(np.max(np.abs(layer.output))), 1e-300)
    elif layer.linear is not None:
        columns = tail.slope * np.einsum("kq,kd->qdk", output, layer.weights).reshape(-1, layer.k)
        target = layer.linear.T.reshape(-1)
        found = solve_signs(columns, target, 1e-12, 1e-9, 1e-6, 1e-3, 0.3)
        if found is None:
            return None
        signs, off = found, float(np.linalg.norm(columns @ found - target) / np.linalg.norm(target))
    facing = replace(layer, weights=layer.weights * signs[:, None], bias=layer.bias * signs, linear=None)
    constant = layer.constant - output.T @ (tail.level + tail.slope * facing.bias)
    return replace(facing, output=output, constant=constant), off


def _one_layer_check(found: FoundLayer, name: str) -> Check:
    """Whether the kinks of the box are those of one hidden layer of this activation."""
    curved, broken, crowded = found.curved, found.broken, found.crowded
    seen = {
        f"{curved} of {found.lines} lines are curved everywhere: no {name} units": curved,
        f"{broken} kinks do not go on along a hyperplane: two hidden layers, a maximum, or pooling": broken,
        f"{crowded} places of the last line are no single kinks: a curve, a jump, or close kinks": crowded,
    }
    parts = [text for text, count in seen.items() if count]
    if not parts and found.layer.k == 0:
        parts = [f"{found.lines} lines are straight: the function is linear as far as it was queried"]
    wrong = curved + broken + (0 if found.quiet else crowded) + (found.layer.k == 0)
    advice = "; ".join(parts) or "every kink goes on along its hyperplane"
    return at_most("one hidden layer", float(wrong), 0.0, advice, About.FIT)
