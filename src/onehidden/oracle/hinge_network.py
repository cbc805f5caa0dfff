"""A piecewise linear box from its hinges: fitted, looked at again without them, and turned the right way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.oracle.attainable import attainable
from onehidden.oracle.box import BlackBox
from onehidden.oracle.caller import Spent
from onehidden.oracle.descent import descended
from onehidden.oracle.doubles import once_each
from onehidden.oracle.fit_queries import hinge_queries
from onehidden.oracle.hinge_survey import Sighting, affine_part, sightings
from onehidden.oracle.hinges import Hinges
from onehidden.oracle.layer import Asked, Layer, told
from onehidden.oracle.places import placed
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.tails import Tail
from onehidden.oracle.weighed import ENOUGH, weighed
from onehidden.run import Run

_DROWNED = 0.3  # relative error of a unit that is none
_ROUNDS = 3  # times that what is left of the box is looked at again
_ROUGH = 0.3  # share of the spread that may be left for a fit to be tried
_CLOSE = 0.05  # share of the spread left from which a fit to a coarse box leads to its units
_IDLE = (
    3  # lines without a gain after which a rough start is fitted: least squares came from 0.35 to the noise
)
_BETTER = 0.8  # of what was left before: a line that leaves more has shown nothing new
_COMPLETE = 1e-6  # share of the spread left by which a chord without new units may be the last
_FLOOR = 3.0  # times the rounding of the answers: where a fit of a box in double precision may end
_AT_NOISE = 3.0  # times the coarseness of the answers: a fit that leaves no more has all units


@dataclass(frozen=True, eq=False)
class Found:
    """A layer in u, f(u) = c + L u + sum_i m_i |<n_i, u> + o_i| / 2, and how it came about.

    Attributes
    ----------
    layer : the parameters. asked : what it was fitted to, None where it was not.
    seen : what lines have shown. spent : why it was cut short, "" if it was not.
    """

    layer: Layer
    asked: Asked | None
    seen: Sighting
    spent: str = ""


def hinge(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|z| / 2 and its slope."""
    return 0.5 * np.abs(z), 0.5 * np.sign(z)


def hinge_layer(box: BlackBox, hidden: int | None, run: Run, rng: np.random.Generator) -> Found | None:
    """Every hinge of the box that can be found within its limits; None if there is none."""
    found: Found | None = None
    try:
        region, known = box.answered(max(1000, 2 * box.d) if box.coarse else 1000, rng)
        for _ in range(_ROUNDS):
            left, idle, coarse = np.inf, 0, box.coarse
            for looked in _surveyed(box, found, hidden, run, rng):
                if coarse and len(region) > box.d + 100:
                    looked = replace(looked, layer=_confirmed(box, looked, region, known))
                now = _left_over(looked.layer, region, known)
                run.report(f"{len(looked.layer.bias)} units of lines", looked.seen.lines, now**2)
                # A coarse box shows some units better than others, and a unit twice where it is shown badly.
                idle = 0 if now < _BETTER * left else idle + 1
                if idle == 0 or not coarse:
                    found, left = looked, now
                if coarse and ((left < _CLOSE and idle > 1) or (left < _ROUGH and idle > _IDLE)):
                    break
                if box.domain.bounded and looked.seen.quiet and left < _COMPLETE:
                    break
            if found is None or len(found.layer.bias) == 0 or left > _ROUGH:
                return found
            found = _fitted(box, found, run, rng)
            if _left_over(found.layer, region, known) <= _AT_NOISE * _coarseness(box, known):
                return found
    except Spent as spent:
        if found is None:
            raise
        found = replace(found, spent=str(spent))
    finally:
        box.known = None
    return found


def _confirmed(
    box: BlackBox, looked: Found, U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"]
) -> Layer:
    """What lines of a coarse box have shown, as far as typical answers confirm it."""
    layer, hinges = looked.layer, looked.seen.hinges
    if box.farther == 1 and len(U) >= ENOUGH * (box.d + 1 + len(layer.bias)):
        return weighed(layer, U, Y, hinge)
    # Far away, where noise that does not grow is small, places are badly seen: each is looked for first.
    layer = once_each(layer, U, Y, hinge)
    if box.farther > 1 and len(layer.bias) == len(hinges):
        return placed(layer, hinges.blur, U, Y)
    return layer


def _coarseness(box: BlackBox, y: Float[np.ndarray, "n q"]) -> float:
    """Error of an answer as a share of the spread of the outputs."""
    return max(1e-11, box.rounding * float(np.max(np.abs(y) / np.maximum(y.std(axis=0), 1e-300))))


def _left_over(layer: Layer, U: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n q"]) -> float:
    """Share of the spread of an output, the largest, that the layer leaves at typical questions."""
    spread = y.std(axis=0)
    rest = np.sqrt(np.mean((told(layer, U, hinge) - y) ** 2, axis=0))
    return float(np.max(np.where(spread > 0, rest / np.where(spread > 0, spread, 1.0), 0.0)))


def _surveyed(
    box: BlackBox, before: Found | None, hidden: int | None, run: Run, rng: np.random.Generator
) -> Iterator[Found]:
    """Found after every line of what the layer before leaves of the box."""
    base = None if before is None else before.layer
    box.known = None if base is None else (lambda U: told(base, U, hinge))
    for seen in sightings(box, run, rng):
        more = seen.hinges
        if base is not None:
            zero = np.zeros(len(base.bias))
            old = Hinges(base.weights, base.bias, base.output, zero, zero, np.zeros(base.weights.shape))
            more = old.joined(more).distinct()
        box.known, held = None, box.known
        linear, constant = affine_part(box, more, rng)
        box.known = held
        layer = Layer(more.weights, more.bias, more.output, constant, linear)
        yield Found(layer, None if before is None else before.asked, replace(seen, hinges=more))
        enough = hidden is None or len(more) >= hidden or seen.quiet > 2
        if seen.quiet and enough and not box.domain.bounded:
            break
    box.known = None


def _fitted(box: BlackBox, found: Found, run: Run, rng: np.random.Generator) -> Found:
    layer, box.known = found.layer, None
    asked = hinge_queries(box, layer.weights, layer.bias, rng)
    if len(asked.U) * box.q < 1.2 * len(layer.pack()):
        return found  # too few questions are left: the differences stand as they are
    floor = _FLOOR * asked.least
    layer = descended(layer, asked, hinge, run, True, floor, box.coarse)
    if box.coarse:
        # What lines took for a unit and is none has an output that drowns in its own error.
        doubt = attainable(layer, asked, hinge, box, rng, True, outward=False)
        real = np.maximum(doubt.output, doubt.row) < _DROWNED
        if not real.all() and real.any():
            layer = replace(
                layer, weights=layer.weights[real], bias=layer.bias[real], output=layer.output[real]
            )
            layer = descended(layer, asked, hinge, run, True, floor, box.coarse)
    return Found(layer, asked, found.seen, found.spent)


def oriented(layer: Layer, tail: Tail) -> tuple[Layer, float] | None:
    """The layer as one of g alone, each unit turned the right way; and how far signs are from +-1.

    g(z) = jump |z| / 2 + e z: the linear part is e sum_i s_i w_i n_i over all outputs, which tells the signs.
    """
    assert layer.linear is not None
    k = len(layer.bias)
    mean = 0.5 * float(tail.left[1] + tail.right[1])
    output = layer.output / tail.jump
    if mean == 0:
        size = float(np.max(np.abs(layer.output)))
        off = float(np.max(np.abs(layer.linear))) / max(size, 1e-300)
        return replace(layer, output=output, linear=None), off
    columns = mean * np.einsum("kq,kd->qdk", output, layer.weights).reshape(-1, k)
    target = layer.linear.T.reshape(-1)
    for tolerance in (1e-12, 1e-9, 1e-6, 1e-3, 0.3):
        signs = solve_signs(columns, target, tolerance)
        if signs is not None:
            break
    else:
        return None
    off = float(np.linalg.norm(columns @ signs - target) / np.linalg.norm(target))
    turned = replace(layer, weights=layer.weights * signs[:, None], bias=layer.bias * signs)
    # m (jump |z| / 2 + e s z): what the biases add stands in the constant of the linear part.
    constant = layer.constant - mean * (output.T @ turned.bias)
    return replace(turned, output=output, constant=constant, linear=None), off
