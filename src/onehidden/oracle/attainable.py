"""The errors of the parameters that the coarseness of the answers leaves."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.certify.errors import ParameterRecord
from onehidden.checks import About, Check, at_most, not_asked
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.descent import drawn
from onehidden.oracle.grain import EPS
from onehidden.oracle.layer import Activated, Asked, Layer, told

UNKNOWN = 0.3  # relative error of a row from which a unit says nothing
# Draws of the errors by the number of parameters: biases are one number each, rows have a mean over d.
_DRAWS = ((1200, 16), (20_000, 3), (float("inf"), 1))
ROUNDED = 2 * EPS  # relative error of a number that has been through a few operations
_PRIOR = 3.0  # draws that the units together count for in the error of one: a single draw may be near zero


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of the parameters of a layer that the coarseness of the answers leaves.

    Attributes
    ----------
    row, bias, output : (k,) of each unit: |error of the row| / |row|, bias / max(|row|, |bias|), outputs /
        largest output.
    constant : (q,).
    """

    row: Float[np.ndarray, " k"]
    bias: Float[np.ndarray, " k"]
    output: Float[np.ndarray, " k"]
    constant: Float[np.ndarray, " q"]

    @property
    def worst(self) -> float:
        return float(max(np.max(self.row), np.max(self.bias), np.max(self.output)))

    def times(self, factor: float) -> Errors:
        return Errors(*(factor * getattr(self, one.name) for one in fields(self)))


def attainable(
    layer: Layer,
    asked: Asked,
    g: Activated,
    box: BlackBox,
    rng: np.random.Generator,
    homogeneous: bool,
    outward: bool = True,
) -> Errors:
    """What the parameters would move by if the answers were as wrong as they may be: a few draws of it.

    Parameters
    ----------
    layer : in u. homogeneous : whether the length of a row and the outputs of its unit are one number.
    outward : tell the errors of rows and biases in x, where an input of little spread has a large share.
    """
    scale, center = (box.scale, box.center) if outward else (np.ones(box.d), np.zeros(box.d))

    def seen(one: Layer) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"]]:
        rows = one.weights / scale
        return rows, one.bias - rows @ center

    squares = [np.zeros(len(layer.bias)) for _ in range(3)]
    constant = np.zeros(layer.output.shape[1])
    rows, bias = seen(layer)
    size = np.linalg.norm(rows, axis=1)
    reach = np.maximum(size, np.abs(bias))
    largest = np.maximum(np.max(np.abs(layer.output), axis=1), 1e-300)
    p = len(layer.pack())
    draws = next(count for most, count in _DRAWS if p <= most)
    level = asked.noise[:, None]
    moves, lone = drawn(layer, asked, g, lambda: level * rng.standard_normal(asked.Y.shape), draws)
    for move in moves:
        turned, shifted = seen(move)
        along = np.sum(turned * rows, axis=1) / size**2 if homogeneous else np.zeros(len(size))
        squares[0] += np.sum((turned - along[:, None] * rows) ** 2, axis=1) / size**2
        squares[1] += ((shifted - along * bias) / reach) ** 2
        squares[2] += np.max(np.abs(move.output + along[:, None] * layer.output), axis=1) ** 2 / largest**2
        constant += move.constant**2
    shift = _pooled(squares[1], lone.bias / reach, draws)
    output = _pooled(squares[2], np.max(lone.output, axis=1) / largest, draws)
    row, shift, output = (np.hypot(one, ROUNDED) for one in (np.sqrt(squares[0] / draws), shift, output))
    return Errors(row, shift, output, np.sqrt(constant / draws))


def _pooled(
    squares: Float[np.ndarray, " k"], lone: Float[np.ndarray, " k"], draws: int
) -> Float[np.ndarray, " k"]:
    """Errors of one number a unit from the sums of squares of few draws.

    A number of a unit is as well known as if it were the only one, times a factor: what is typical of all
    units counts as ``_PRIOR`` further draws of it.
    """
    from scipy.special import gammaincinv

    there = lone > 0
    if not there.any():
        return np.sqrt(squares / draws)
    typical = 2 * float(gammaincinv(draws / 2, 0.5))  # the median of as many squared normal numbers
    factor = float(np.median(squares[there] / lone[there] ** 2)) / typical
    return np.sqrt((squares + _PRIOR * factor * lone**2) / (draws + _PRIOR))


def misfit(layer: Layer, asked: Asked, g: Activated) -> float:
    """How many times more the layer leaves than the coarseness of the answers, at least 1.

    Where it leaves more the parameters are as much farther off than that coarseness would leave them.
    """
    rest = (asked.Y - told(layer, asked.U, g)) * asked.weight[:, None]
    freedom = max(rest.size - len(layer.pack()), 0.1 * rest.size)
    return max(1.0, float(np.sqrt(np.sum(rest**2) / freedom)) / asked.least)


def attainable_check(errors: Errors | None, coarse: bool) -> Check:
    """What the errors come to, told with the answer."""
    if errors is None:
        return not_asked(
            "attainable error", UNKNOWN, "too few queries were left to tell the errors of the parameters"
        )
    why = "the box answers coarsely" if coarse else "the rounding of the answers"
    return at_most(
        "attainable error", errors.worst, UNKNOWN,
        f"largest relative error of a row, bias or output that these answers leave ({why})", About.NOTE,
    )  # fmt: skip


def parameter_errors(
    network: OneHiddenNet, errors: Errors | None, order: Int[np.ndarray, " k"], box: BlackBox
) -> ParameterRecord:
    """The errors as one number a parameter, in x; infinite where they are not known.

    The error of a row is as large in every u_j, in x_j larger where the input has little spread.
    """
    if errors is None:
        weights, output = np.full(network.weights.shape, np.inf), np.full(network.output.shape, np.inf)
        return ParameterRecord(
            weights, output, np.full(network.n_hidden, np.inf), network.intercept * 0 + np.inf
        )
    size = np.linalg.norm(network.weights, axis=1)
    weights = np.outer(errors.row[order] * size, 1 / box.scale / np.linalg.norm(1 / box.scale))
    largest = np.abs(network.output).reshape(network.n_hidden, -1).max(axis=1) * errors.output[order]
    bias = errors.bias[order] * np.maximum(size, np.abs(network.bias))
    constant = errors.constant * box.units
    intercept: Any = float(constant[0]) if box.q == 1 else constant
    linear = np.full(network.linear.shape, np.inf) if network.has_linear else None  # of units never crossed
    return ParameterRecord(weights, (np.ones(network.output.shape).T * largest).T, bias, intercept, linear)
