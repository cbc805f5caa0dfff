"""The answer for a piecewise linear box, with everything that lines have shown of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify import levels
from onehidden.certify.certificate import Certificate
from onehidden.checks import About, Check, at_most, not_evaluated
from onehidden.options import Options
from onehidden.oracle.box import BlackBox
from onehidden.oracle.certificate import (
    count_checks,
    cut_short_check,
    layer_certificate,
    with_dead_units,
)
from onehidden.oracle.errors import parameter_errors
from onehidden.oracle.kinked_layer import KinkedLayer, Survey, kinked_layer, oriented
from onehidden.oracle.layer import half_absolute
from onehidden.oracle.tails import Tail
from onehidden.refused import Refused
from onehidden.run import Run

_LINEAR = 1e-3  # share by which the linear part of the box may differ from that of its oriented units


def expected_queries(n_inputs: int, hidden: int, activation: str = "relu") -> int:
    """Estimate the queries that a box of this size takes, as measured on ReLU networks of random weights.

    Parameters
    ----------
    n_inputs, hidden : int
        Inputs and units.
    activation : str
        Smooth units take about twice as many.

    Returns
    -------
    int
        Queries: two lines of 9000 with their checks, 6000 before and after them, and some per parameter.
    """
    each = 5 if activation in ("relu", "leaky_relu", "abs") else 12
    return 6000 + 2 * 9000 + 30 * hidden + n_inputs + each * hidden * (n_inputs + 2)


def kinked_answer(
    box: BlackBox, tail: Tail, options: Options, run: Run, rng: np.random.Generator
) -> Certificate | list[Check]:
    """The certificate of what was found; where nothing was, the checks that say what was found instead."""
    box.caller.reserve()
    found = kinked_layer(box, options.hidden, run, rng)
    box.caller.release()
    if found is None or found.layer.k == 0:
        check = _one_layer_check(None if found is None else found.survey, options)
        if found is not None and not found.survey.curved and not len(found.survey.broken):
            raise Refused(f"no {options.g.name} unit was found: {check.advice}")
        return [check]
    g, queries = options.g, None if run.expired() else found.queries

    def with_slope(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return g(z), np.where(z > 0, tail.right[1], tail.left[1])

    facing = oriented(found.layer, tail)
    unoriented = replace(found.layer, output=found.layer.output / tail.jump, linear=None)
    layer, off = (unoriented, float("inf")) if facing is None else facing
    errors = None
    if queries is not None:
        errors = parameter_errors(layer, queries, with_slope, rng, 1, box)
    layer = layer.restricted(box, options.bias, options.intercept)
    survey = replace(
        found.survey,
        broken=_unexplained(found.survey.broken, found, box, rng),
        crowded=_unexplained(found.survey.crowded, found, box, rng),
    )
    dead, *counted = count_checks(layer.k, options.hidden, [])
    checks = [_one_layer_check(survey, options), dead, *counted, _linear_part_check(off)]
    if found.cut_short:
        checks.append(cut_short_check(found.cut_short))
    return with_dead_units(layer_certificate(layer, queries, errors, with_slope, g, box, checks, rng), dead)


def _linear_part_check(off: float) -> Check:
    name = "linear part"
    if np.isinf(off):
        advice = (
            "no orientation of the units gives the linear part of the box: units are missing, or too many"
        )
        return not_evaluated(name, _LINEAR, advice, About.FIT)
    advice = (
        "the linear part of the box against that of its units, oriented as fits best; above the bound there "
        "is a linear part beside the units, or units are missing"
    )
    return at_most(name, off, _LINEAR, advice, About.FIT)


def _unexplained(
    places: Float[np.ndarray, "m d"], found: KinkedLayer, box: BlackBox, rng: np.random.Generator
) -> Float[np.ndarray, "l d"]:
    """Places of kinks that did not go on, or were not single, around which the answer is not the box.

    Where two kinks are so close that they look like one, its row is wrong, and the units are found elsewhere.
    """
    around, count = 12, len(places)
    if found.queries is None or count == 0 or count * around > 0.1 * box.left:
        return places
    size = np.linalg.norm(places, axis=1)[:, None, None]
    aside = rng.standard_normal((count, around, box.d)) / np.sqrt(box.d)
    U = places[:, None] + aside * size * np.geomspace(1e-7, 1e-1, around)[:, None]
    U = U.reshape(-1, box.d)
    off = np.max(np.abs(found.layer.predict(U, half_absolute) - box.outputs(U)), axis=1)
    wrong = (
        off > 1e3 * box.error_at(U) + levels.FRESH_QUERIES.value * box.level
    )  # False where the box does not answer
    return places[np.any(wrong.reshape(count, around), axis=1)]


def _one_layer_check(survey: Survey | None, options: Options) -> Check:
    """Whether the kinks of the box are those of one hidden layer of this activation."""
    name = "one hidden layer"
    if survey is None or survey.lines == 0:
        return not_evaluated(name, 0.0, "no line was queried", About.FIT)
    curved, broken, crowded = survey.curved, len(survey.broken), len(survey.crowded)
    parts = []
    if curved:
        parts.append(f"{curved} of {survey.lines} lines are curved everywhere: no {options.g.name} units")
    if broken:
        parts.append(
            f"{broken} kinks do not go on along a hyperplane: two hidden layers, a maximum, or pooling"
        )
    if crowded:
        parts.append(
            f"{crowded} places of the last line are no single kinks: a curve, a jump, or kinks too close"
        )
    if not parts and len(survey.kinks) == 0:
        parts.append(f"{survey.lines} lines are straight: the function is linear as far as it was queried")
    wrong = curved + broken + (0 if survey.quiet else crowded) + (len(survey.kinks) == 0)
    advice = "; ".join(parts) or "every kink goes on along its hyperplane"
    return at_most(name, float(wrong), 0.0, advice, About.FIT)
