"""Rows of weak ReLU units, asked where every other unit is silent.

Beside units of large output a weak one drowns in their rounding: an output a thousand times smaller costs
three digits. Where the rows are independent there are questions at which one unit alone is active,

    y = c + W_i (<a_i, u> + b_i),  <a_j, u> + b_j < 0 for all other j,

and the others add an exact zero: d + 1 unknowns, linear, known to the rounding of what the unit itself says.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.oracle.answers import finite
from onehidden.oracle.attainable import ROUNDED, Errors
from onehidden.oracle.box import BlackBox
from onehidden.oracle.layer import Activated, Layer, told
from onehidden.oracle.tails import Tail
from onehidden.run import Run

_WORTH = 30.0  # times the rounding of an answer: a unit known as well as that gains nothing
_EACH = 1.5  # questions a parameter; what they leave tells the noise
_SILENT = 64  # questions at which no unit is active: the constant
_MARGIN = 0.1  # of a typical distance: how far the others stay from switching on
_STEEPEST = (
    50.0  # condition of the rows beyond which such places lie far out; 784 random rows in 784 have 1e3
)
_FARTHEST = 1e4  # scales: a unit that is weaker than that beside the constant keeps what it has


def alone(
    layer: Layer,
    errors: Errors,
    g: Activated,
    tail: Tail,
    box: BlackBox,
    run: Run,
    rng: np.random.Generator,
) -> tuple[Layer, Errors]:
    """The layer, turned and in u, with weak units asked alone; and the errors that are left.

    Parameters
    ----------
    errors : what the fit of all units left, of every unit.
    """
    k, d = layer.weights.shape
    worst = np.maximum(np.maximum(errors.row, errors.bias), errors.output)
    weak = np.flatnonzero(worst > _WORTH * box.rounding)
    # Noise that does not grow with the answers is beaten by distance, which the fit of all units has used.
    open_ = not box.domain.bounded and box.reading is None and box.grain.absolute == 0
    if len(weak) == 0 or k >= d or not open_ or np.any(tail.left != 0):
        return layer, errors
    back = np.linalg.pinv(layer.weights)  # (d, k): where to go for given <a_j, u>
    if np.linalg.norm(back, 2) * np.linalg.norm(layer.weights, 2) > _STEEPEST:
        return layer, errors
    count = int(_EACH * (d + 1)) + 32
    silent = _SILENT
    for i in weak[np.argsort(-worst[weak])]:
        if run.expired() or count + silent > 0.5 * box.left:
            break
        if silent:  # once, before the first of them
            layer, errors, silent = _constant(layer, errors, back, box, rng), errors, 0
        strength = float(np.max(np.abs(layer.output[i])))
        far = float(np.max(np.abs(layer.constant))) / strength
        if far <= _FARTHEST:
            layer, errors = _sharper(layer, errors, int(i), back, max(1.0, far), count, g, box, rng)
    return layer, errors


def _places(
    layer: Layer,
    active: int | None,
    back: Float[np.ndarray, "d k"],
    scale: float,
    count: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "n d"]:
    """Questions at which one unit, or none, is active: typical ones, moved along the rows of all units."""
    U = scale * rng.standard_normal((count, layer.weights.shape[1]))
    z = U @ layer.weights.T + layer.bias
    wanted = -np.abs(z) - _MARGIN * scale
    if active is not None:
        wanted[:, active] *= -1
    # As a box in single precision sees them: what it rounds away would be noise.
    return (U + (wanted - z) @ back.T).astype(np.float32).astype(float)


def _constant(
    layer: Layer, errors: Errors, back: Float[np.ndarray, "d k"], box: BlackBox, rng: np.random.Generator
) -> Layer:
    """The layer with the constant that the box answers where no unit is active."""
    Y = box.answers(_places(layer, None, back, 1.0, _SILENT, rng))
    if not np.all(finite(Y)):
        return layer
    constant = np.median(Y, axis=0)
    # Far from it another unit is active there, and all units are not known.
    near = np.abs(constant - layer.constant) <= 100 * errors.constant + _WORTH * box.rounding * box.level
    return replace(layer, constant=np.where(near, constant, layer.constant))


def _sharper(
    layer: Layer,
    errors: Errors,
    i: int,
    back: Float[np.ndarray, "d k"],
    scale: float,
    count: int,
    g: Activated,
    box: BlackBox,
    rng: np.random.Generator,
) -> tuple[Layer, Errors]:
    """Unit i from questions at which it is alone, where they tell it better than the fit did."""
    d, W = box.d, layer.output[i]
    U = _places(layer, i, back, scale, count, rng)
    Y = box.answers(U)
    if not np.all(finite(Y)):
        return layer, errors
    # Only what is left is solved for: its own rounding is small.
    rest = Y - told(layer, U, g)
    Q, R = np.linalg.qr(np.column_stack([U / scale, np.ones(count)]))
    inverse = np.linalg.inv(R)
    move = inverse @ (Q.T @ rest)  # (d + 1, q)
    noise = np.sqrt(np.sum((rest - Q @ (Q.T @ rest)) ** 2, axis=0) / (count - d - 1))
    size, level = float(np.linalg.norm(W)), float(np.max(noise))
    # In x, where an input of little spread has a large share.
    rows, center = layer.weights[i] / box.scale, box.center / box.scale
    row = level * float(np.linalg.norm(inverse[:d] / box.scale[:, None])) / (scale * size)
    row /= float(np.linalg.norm(rows))
    shift = np.append(-center / scale, 1.0) @ inverse
    reach = max(float(np.linalg.norm(rows)), abs(float(layer.bias[i] - rows @ box.center)))
    bias = level * float(np.linalg.norm(shift)) / size / reach
    along = level * float(np.linalg.norm(layer.weights[i] @ inverse[:d])) / (scale * size)
    row, bias, along = (float(np.hypot(one, ROUNDED)) for one in (row, bias, along))
    before = max(errors.row[i], errors.bias[i], errors.output[i])
    moved = np.outer(layer.weights[i], W) + move[:d] / scale  # (d, q): the row times every output
    normal = moved @ W
    normal /= np.linalg.norm(normal)
    output = normal @ moved
    place = float((W * layer.bias[i] + move[d]) @ output) / float(output @ output)
    turned = float(np.linalg.norm(normal - layer.weights[i]))
    # A unit that moves by more than its error is not the one that was fitted: something else is active there.
    if row >= errors.row[i] or turned > 100 * before:
        return layer, errors
    layer = replace(layer, weights=_with(layer.weights, i, normal), output=_with(layer.output, i, output))
    errors = replace(errors, row=_with(errors.row, i, row), output=_with(errors.output, i, along))
    # The questions of the fit lie around the centre, which tells a bias; none does here.
    if bias < errors.bias[i]:
        layer = replace(layer, bias=_with(layer.bias, i, place))
        errors = replace(errors, bias=_with(errors.bias, i, bias))
    return layer, errors


def _with(numbers: np.ndarray, i: int, value: float | np.ndarray) -> np.ndarray:
    """The numbers with those of unit i replaced."""
    changed = numbers.copy()
    changed[i] = value
    return changed
