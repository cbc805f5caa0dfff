"""The errors of the parameters that the precision of the answers leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.certify.errors import ParameterRecord
from onehidden.checks import About, Check, at_most, not_evaluated
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS, PerUnit, UnitRows
from onehidden.oracle.final_fit import DENSE, simulated_errors
from onehidden.oracle.layer import Layer, Queries, WithSlope

UNKNOWN = 0.3  # relative error of a row or output from which a unit is undetermined


@dataclass(frozen=True, eq=False)
class Errors:
    """Relative errors of the parameters of a layer."""

    row: PerUnit  # |error of the row| / |row|
    bias: PerUnit  # over max(|row|, |bias|)
    output: PerUnit  # over the largest output of the unit
    constant: Float[np.ndarray, " q"]

    @property
    def worst(self) -> float:
        return float(max(np.max(self.row), np.max(self.bias), np.max(self.output)))


def parameter_errors(
    layer: Layer,
    queries: Queries,
    g: WithSlope,
    rng: np.random.Generator,
    degree: int | None,
    box: BlackBox | None = None,
) -> Errors:
    """Errors of the parameters of a fitted layer in u, from a few draws of the errors of the answers.

    Where g is homogeneous of some ``degree``, the length of a row and the outputs of its unit are one number.
    With a ``box`` the errors are those in x, where an input of little spread has a large share.
    """
    d = layer.weights.shape[1]
    scale, center = (np.ones(d), np.zeros(d)) if box is None else (box.scale, box.center)

    def in_x(one: Layer) -> tuple[UnitRows, PerUnit]:
        rows = one.weights / scale
        return rows, one.bias - rows @ center

    # Biases are one number each; rows have a mean over d.
    p = len(layer.pack())
    draws = 16 if p <= DENSE else 3 if p <= 20_000 else 1
    (rows, bias), largest = in_x(layer), np.maximum(np.max(np.abs(layer.output), axis=1), 1e-300)
    size = np.linalg.norm(rows, axis=1)
    reach = np.maximum(size, np.abs(bias))
    squares, constant = np.zeros((3, layer.k)), np.zeros(layer.output.shape[1])
    for move in simulated_errors(layer, queries, g, draws, rng):
        tilted, shifted = in_x(move)
        along = np.sum(tilted * rows, axis=1) / size**2 if degree else np.zeros(layer.k)
        squares[0] += np.sum((tilted - along[:, None] * rows) ** 2, axis=1) / size**2
        squares[1] += ((shifted - along * bias) / reach) ** 2
        output = move.output + (degree or 0) * along[:, None] * layer.output
        squares[2] += np.max(np.abs(output), axis=1) ** 2 / largest**2
        constant += move.constant**2
    row, shift, output = np.sqrt(squares / draws + (2 * EPS) ** 2)
    if draws < 16:  # of few draws one may be near zero
        shift, output = (np.maximum(one, np.median(one)) for one in (shift, output))
    return Errors(row, shift, output, np.sqrt(constant / draws))


def attainable_check(errors: Errors | None, low_precision: bool) -> Check:
    """The largest of the errors, a note beside the answer."""
    name = "attainable error"
    if errors is None:
        return not_evaluated(
            name, UNKNOWN, "too few queries were left to estimate the errors of the parameters"
        )
    why = "the box answers in low precision" if low_precision else "the rounding of the answers"
    advice = f"largest relative error of a row, bias or output that these answers leave ({why})"
    return at_most(name, errors.worst, UNKNOWN, advice, About.NOTE)


def standard_errors(
    network: OneHiddenNet, errors: Errors | None, order: Int[np.ndarray, " k"], box: BlackBox
) -> ParameterRecord:
    """One number per parameter, in x; infinite where the errors are unknown.

    ``order`` gives for each unit of the network its number in the layer. The error of a row is equal in every
    u_j, and in x_j larger where the input has little spread.
    """
    if errors is None:
        return ParameterRecord.unknown(network)
    size = np.linalg.norm(network.weights, axis=1)
    weights = np.outer(errors.row[order] * size, 1 / box.scale / np.linalg.norm(1 / box.scale))
    largest = np.abs(network.output).reshape(network.n_hidden, -1).max(axis=1) * errors.output[order]
    bias = errors.bias[order] * np.maximum(size, np.abs(network.bias))
    constant = errors.constant * box.units
    intercept: Any = float(constant[0]) if box.q == 1 else constant
    linear = np.full(network.linear.shape, np.inf) if network.has_linear else None
    return ParameterRecord(weights, (np.ones(network.output.shape).T * largest).T, bias, intercept, linear)
