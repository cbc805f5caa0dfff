"""Questions that were not used to fit, near and far: is the network the function?"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.checks import About, Check, at_most, not_asked
from onehidden.oracle.answers import finite
from onehidden.oracle.box import BlackBox
from onehidden.oracle.layer import Activated, Layer, told

FAR = (1, 10, 100)  # scales from the centre at which fresh queries are asked
FRESH = 1e-8  # error at fresh queries, as a share of std(y), that still counts as the same function


def fresh(layer: Layer, g: Activated, box: BlackBox, rng: np.random.Generator) -> tuple[Check, float]:
    """Whether questions that were not used to fit are answered alike; and how far away they were asked."""
    far, farthest, asked = [], 0.0, 0
    for distance in FAR:
        if distance > 1 and distance * 3.0 > box.reach:
            continue
        count = int(min(2000 if distance == 1 else 500, 0.5 * box.left))
        if count < 10:
            continue
        U = box.typical(count, rng) * distance
        Y = box.answers(U)
        good = finite(Y)
        if not good.any():
            continue
        U, Y = U[good], Y[good]
        size = np.maximum(np.max(np.abs(Y), axis=0), np.finfo(float).tiny)
        # Near the centre as a share of std(y), far away of its size there: sums are rounded at that size.
        spread = Y.std(axis=0)
        scale = np.where(spread > 1e-13 * size, spread, size) if distance == 1 else size
        error = box.error(np.max(size)) / np.max(size)
        times = 1e3 if box.grain.absolute == 0 and box.blunt == 0 else 30
        argument = times * _argument(layer, U, g, box) / scale
        allowed = np.maximum(FRESH, times * error * size / scale) + argument
        ratio = np.abs(told(layer, U, g) - Y) / scale / allowed
        worst = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        far.append((float(ratio[worst]), float(allowed[worst]), distance))
        farthest, asked = distance, asked + len(U)
    if not far:
        advice = "no query that was not used to fit was answered"
        return not_asked("fresh queries", FRESH, advice, About.FIT), farthest
    ratio, allowed, distance = max(far)
    advice = (
        f"largest error at {asked} queries that were not used to fit, near and far, as a share of the "
        f"function there (worst {distance:g} scales from the centre); above the bound the network is not "
        "the function"
    )
    return at_most("fresh queries", ratio * allowed, allowed, advice, About.FIT), farthest


def _argument(
    layer: Layer, U: Float[np.ndarray, "n d"], g: Activated, box: BlackBox
) -> Float[np.ndarray, "n q"]:
    """What the rounding of the arguments of the units does to answers: where a unit switches, far away."""
    slope = np.abs(g(U @ layer.weights.T + layer.bias)[1]) * np.linalg.norm(layer.weights, axis=1)
    away = np.linalg.norm(U, axis=1, keepdims=True) / np.sqrt(box.d)
    return box.grain.relative * away * (slope @ np.abs(layer.output))
