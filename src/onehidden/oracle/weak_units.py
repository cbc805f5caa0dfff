"""Rows of weak ReLU units, queried where every other unit is silent.

Beside units of large output a weak one drowns in their rounding: an output a thousand times smaller costs
three digits. Where the rows are independent there are places at which one unit alone is active,

    y = c + W_i (<a_i, u> + b_i),  <a_j, u> + b_j < 0 for all other j,

and the others add an exact zero: d + 1 unknowns, linear, known to the rounding of the unit's own output.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.oracle.answers import finite
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS, Points
from onehidden.oracle.errors import Errors
from onehidden.oracle.layer import Layer, WithSlope
from onehidden.oracle.tails import Tail
from onehidden.run import Run


def refined(
    layer: Layer,
    errors: Errors,
    g: WithSlope,
    tail: Tail,
    box: BlackBox,
    run: Run,
    rng: np.random.Generator,
    worth: float = 30.0,
    steepest: float = 50.0,
    farthest: float = 1e4,
) -> tuple[Layer, Errors]:
    """The oriented layer in u with weak units queried alone, and the errors that are left.

    Errors below ``worth`` times the rounding of an answer are not refined; nor are rows of a condition
    above ``steepest``: the places lie far out then (784 random rows of 784 inputs have 1e3). A unit that is
    ``farthest`` times weaker than the constant keeps what it has.
    """
    k, d = layer.weights.shape
    worst = np.maximum(np.maximum(errors.row, errors.bias), errors.output)
    weak = np.flatnonzero(worst > worth * box.rounding)
    # Absolute errors are beaten by distance, which the fit of all units has used.
    relative = box.reading is None and box.precision.absolute == 0
    if len(weak) == 0 or k >= d or box.domain.bounded or not relative or np.any(tail.left != 0):
        return layer, errors
    back = np.linalg.pinv(layer.weights)  # (d, k): where to go for given <a_j, u>
    if np.linalg.norm(back, 2) * np.linalg.norm(layer.weights, 2) > steepest:
        return layer, errors
    count, silent = int(1.5 * (d + 1)) + 32, 64
    if run.expired() or count + silent > 0.5 * box.left:
        return layer, errors
    # Where no unit is active the box answers its constant, unless it has units that were not found.
    Y = box.outputs(_places(layer, None, back, 1.0, silent, rng))
    if np.all(finite(Y)):
        constant = np.median(Y, axis=0)
        near = np.abs(constant - layer.constant) <= 100 * errors.constant + worth * box.rounding * box.level
        layer = replace(layer, constant=np.where(near, constant, layer.constant))
    for i in weak[np.argsort(-worst[weak])]:
        if run.expired() or count > 0.5 * box.left:
            break
        far = float(np.max(np.abs(layer.constant)) / np.max(np.abs(layer.output[i])))
        if far <= farthest:
            U = _places(layer, int(i), back, max(1.0, far), count, rng)
            layer, errors = _unit_alone(layer, errors, int(i), U, max(1.0, far), g, box)
    return layer, errors


def _places(
    layer: Layer,
    active: int | None,
    back: Float[np.ndarray, "d k"],
    scale: float,
    count: int,
    rng: np.random.Generator,
) -> Points:
    """Queries at which one unit, or none, is active: typical ones, moved along the rows of all units."""
    U = scale * rng.standard_normal((count, layer.weights.shape[1]))
    z = U @ layer.weights.T + layer.bias
    wanted = -np.abs(z) - 0.1 * scale
    if active is not None:
        wanted[:, active] *= -1
    # As a box in single precision sees them: what it rounds away would be noise.
    return (U + (wanted - z) @ back.T).astype(np.float32).astype(float)


def _unit_alone(
    layer: Layer, errors: Errors, i: int, U: Points, scale: float, g: WithSlope, box: BlackBox
) -> tuple[Layer, Errors]:
    """Unit i from queries at which it is alone, where they determine it better than the fit did."""
    d, W, a = box.d, layer.output[i], layer.weights[i]
    Y = box.outputs(U)
    if not np.all(finite(Y)):
        return layer, errors
    rest = Y - layer.predict(U, g)  # only the remainder is solved for: its own rounding is small
    Q, R = np.linalg.qr(np.column_stack([U / scale, np.ones(len(U))]))
    inverse = np.linalg.inv(R)
    move = inverse @ (Q.T @ rest)  # (d + 1, q)
    noise = np.sqrt(np.sum((rest - Q @ (Q.T @ rest)) ** 2, axis=0) / (len(U) - d - 1))
    relative = float(np.max(noise)) / float(np.linalg.norm(W))
    # In x, where an input of little spread has a large share.
    size = float(np.linalg.norm(a / box.scale))
    reach = max(size, abs(float(layer.bias[i] - a @ (box.center / box.scale))))
    row = relative * float(np.linalg.norm(inverse[:d] / box.scale[:, None])) / scale / size
    bias = relative * float(np.linalg.norm(np.append(-box.center / box.scale / scale, 1.0) @ inverse)) / reach
    along = relative * float(np.linalg.norm(a @ inverse[:d])) / scale
    row, bias, along = (float(np.hypot(one, 2 * EPS)) for one in (row, bias, along))
    moved = np.outer(a, W) + move[:d] / scale  # (d, q): the row times every output
    normal = moved @ W
    normal /= np.linalg.norm(normal)
    output = normal @ moved
    # A unit that moves by more than its error is not the one that was fitted: another is active there.
    before = max(errors.row[i], errors.bias[i], errors.output[i])
    if row >= errors.row[i] or float(np.linalg.norm(normal - a)) > 100 * before:
        return layer, errors
    biases = layer.bias.copy()
    if bias < errors.bias[i]:  # queries of the fit lie around the centre, which determines a bias
        biases[i] = float((W * layer.bias[i] + move[d]) @ output) / float(output @ output)
    weights, outputs = layer.weights.copy(), layer.output.copy()
    weights[i], outputs[i] = normal, output
    layer = replace(layer, weights=weights, bias=biases, output=outputs)
    return layer, errors.unit(i, row, min(bias, float(errors.bias[i])), along)
