"""The answer for a piecewise linear box, with everything that lines have shown of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate
from onehidden.checks import About, Check, at_most, not_asked
from onehidden.oracle.alone import alone
from onehidden.oracle.attainable import attainable, misfit
from onehidden.oracle.box import BlackBox
from onehidden.oracle.evidence import certificate
from onehidden.oracle.faint import counts
from onehidden.oracle.fresh import FRESH
from onehidden.oracle.hinge_network import Found, hinge, hinge_layer, oriented
from onehidden.oracle.hinge_survey import Sighting
from onehidden.oracle.layer import Layer, told
from onehidden.oracle.tails import Tail, values
from onehidden.recovery.options import Options
from onehidden.refused import Refused
from onehidden.run import Run

_LINE = 9000  # questions of a line: its grid, its pieces, a look at every hyperplane
_FIRST = 6000  # those before the first line, and the fresh ones at the end
_AROUND = 12  # questions around a bend that did not go on
_TURNED = 1e-3  # how far the linear part of the box may be from that of its units


def expected_queries(n_inputs: int, hidden: int, activation: str = "relu") -> int:
    """About how many questions a box of this size takes (measured for ReLU networks of random weights)."""
    parameters = hidden * (n_inputs + 2)
    rows = 5 if activation in ("relu", "leaky_relu", "abs") else 12
    return _FIRST + 2 * _LINE + 30 * hidden + n_inputs + rows * parameters


def by_hinges(
    box: BlackBox, tail: Tail, options: Options, run: Run, rng: np.random.Generator
) -> Certificate | list[Check]:
    """The certificate of what was found; where nothing was, the questions that tell what was seen instead."""
    box.caller.hold_back()
    found = hinge_layer(box, options.hidden, run, rng)
    box.caller.let_go()
    if found is None or len(found.layer.bias) == 0:
        seen = None if found is None else found.seen
        check = _one_layer(
            seen, *((0, 0) if seen is None else (len(seen.broken), len(seen.crowded))), options
        )
        if found is not None and not found.seen.curved and not len(found.seen.broken):
            raise Refused(f"no {options.g.name} unit was found: {check.advice}")
        return [check]
    turned = oriented(found.layer, tail)
    layer, off = turned if turned is not None else (_as_it_stands(found.layer, tail), float("inf"))
    g, asked = options.g, None if run.expired() else found.asked

    def activated(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return values(g, z), np.where(z > 0, tail.right[1], tail.left[1])

    errors = None if asked is None else attainable(layer, asked, activated, box, rng, homogeneous=True)
    if asked is not None and errors is not None and off <= _TURNED:
        errors = errors.times(misfit(layer, asked, activated))
        layer, errors = alone(layer, errors, activated, tail, box, run, rng)
    layer = _restricted(layer, box, options)
    broken = _unexplained(found.seen.broken, found, box, rng)
    crowded = _unexplained(found.seen.crowded, found, box, rng)
    questions = [
        _one_layer(found.seen, broken, crowded, options),
        *counts(len(found.layer.bias), options.hidden, []),
        _turned(off, turned is not None),
    ]
    if found.spent:
        questions.append(cut_short(found.spent))
    told = certificate(layer, asked, errors, activated, g, box, questions, rng)
    dead = questions[1]
    return told.remarked(f"dead units: {dead.advice}") if dead.value else told


def cut_short(spent: str) -> Check:
    """A search that came to the end of what it may spend."""
    return not_asked("search", 0.0, f"{spent}: what was found until then may not be all", About.SEARCH)


def _restricted(layer: Layer, box: BlackBox, options: Options) -> Layer:
    """Without the biases or the intercept that the caller says there are not."""
    if not options.bias:
        layer = replace(layer, bias=layer.weights @ (box.center / box.scale))
    return layer if options.intercept else replace(layer, constant=np.zeros(box.q))


def _as_it_stands(layer: Layer, tail: Tail) -> Layer:
    """The layer with no unit turned: what is known where the sides could not be told."""
    return replace(layer, output=layer.output / tail.jump, linear=None)


def _turned(off: float, told: bool) -> Check:
    advice = (
        "the linear part of the box against that of its units, turned as fits best; above the bound there is "
        "a linear part beside the units, or units are missing"
    )
    if not told:
        advice = (
            "no way to turn the units gives the linear part of the box: units are missing, or too many to try"
        )
        return not_asked("turned units", _TURNED, advice, About.FIT)
    return at_most("turned units", off, _TURNED, advice, About.FIT)


def _unexplained(
    places: Float[np.ndarray, "m d"], found: Found, box: BlackBox, rng: np.random.Generator
) -> int:
    """Odd places, bends that did not go on or were not seen alone, around which the answer is not the box.

    Where two kinks are so close that they look like one its row is wrong, and the units are found elsewhere.
    """
    count = len(places)
    if found.asked is None or count == 0 or count * _AROUND > 0.1 * box.left:
        return count
    size = np.linalg.norm(places, axis=1)[:, None, None]
    aside = rng.standard_normal((count, _AROUND, box.d)) / np.sqrt(box.d)
    U = places[:, None] + aside * size * np.geomspace(1e-7, 1e-1, _AROUND)[:, None]
    error = np.max(
        np.abs(told(found.layer, U.reshape(-1, box.d), hinge) - box.answers(U.reshape(-1, box.d))), axis=1
    )
    allowed = 1e3 * box.noise_at(U.reshape(-1, box.d)) + FRESH * box.level
    good = ~(error > allowed)  # where it does not answer nothing is said
    return int(np.sum(~np.all(good.reshape(count, _AROUND), axis=1)))


def _one_layer(seen: Sighting | None, broken: int, crowded: int, options: Options) -> Check:
    """Whether what bends the box are units of one hidden layer of this activation."""
    name = "one hidden layer"
    if seen is None or seen.lines == 0:
        return not_asked(name, 0.0, "no line was asked", About.FIT)
    parts = []
    if seen.curved:
        parts.append(f"{seen.curved} of {seen.lines} lines are curved everywhere: no {options.g.name} units")
    if broken:
        parts.append(
            f"{broken} kinks do not go on along a hyperplane: two hidden layers, a maximum, or pooling"
        )
    if crowded:
        parts.append(
            f"{crowded} places of the last line are no single kinks: a curve, a jump, or kinks too close"
        )
    if not parts and len(seen.hinges) == 0:
        parts.append(f"{seen.lines} lines are straight: the function is linear as far as it was asked")
    wrong = seen.curved + broken + (crowded if not seen.quiet else 0) + (len(seen.hinges) == 0)
    advice = "; ".join(parts) or "every kink goes on along its hyperplane"
    return at_most(name, float(wrong), 0.0, advice, About.FIT)
