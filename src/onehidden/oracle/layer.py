"""All parameters of a network of q outputs, in u, and queries with their answers.

The function is f(u) = c + L u + sum_i W_i g(<a_i, u> + b_i); L is free while the orientation of the units is
open, and g then is its symmetrised part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.fit.parametrisation import Parametrisation
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import Outputs, PerPoint, PerUnit, Points, UnitRows

ROWS = 8192  # rows of a block of the residual in double precision


@dataclass(frozen=True, eq=False)
class Layer:
    """All parameters, in the order in which the parametrisation has them."""

    form: Parametrisation
    weights: UnitRows
    output: Float[np.ndarray, "k q"]
    bias: PerUnit
    linear: Float[np.ndarray, "d q"]
    constant: Float[np.ndarray, " q"]

    @property
    def k(self) -> int:
        return len(self.bias)

    def pack(self) -> Float[np.ndarray, " p"]:
        return self.form.pack(self.weights, self.output, self.bias, self.linear, self.constant)

    def moved(self, theta: Float[np.ndarray, " p"]) -> Layer:
        """The layer with these numbers in place of its own."""
        return Layer(self.form, *self.form.unpack(theta))

    def units(self, index: np.ndarray) -> Layer:
        """The layer with some of its units."""
        weights, output, bias = self.weights[index], self.output[index], self.bias[index]
        return replace(self, form=replace(self.form, k=len(bias)), weights=weights, output=output, bias=bias)

    def unit_rows(self) -> Layer:
        """The same function with rows of length one, for a homogeneous g."""
        size = np.linalg.norm(self.weights, axis=1)
        size = np.where(size > 0, size, 1.0)
        rows, output = self.weights / size[:, None], self.output * size[:, None]
        return replace(self, weights=rows, bias=self.bias / size, output=output)

    def restricted(self, box: BlackBox, bias: bool, intercept: bool) -> Layer:
        """The layer without the biases or the intercept, in x, that are known to be zero."""
        layer = self if bias else replace(self, bias=self.weights @ (box.center / box.scale))
        return layer if intercept else replace(layer, constant=np.zeros(box.q))

    def levels(self, U: Points) -> Float[np.ndarray, "n k"]:
        """g of each unit at rows of u."""
        return self.form.g(U @ self.weights.T + self.bias)

    def predict(self, U: Points) -> Outputs:
        """The function at rows of u, in blocks."""
        found = np.empty((len(U), self.output.shape[1]))
        for begin in range(0, len(U), ROWS):
            part = np.asarray(U[begin : begin + ROWS], float)
            found[begin : begin + ROWS] = self.levels(part) @ self.output + part @ self.linear + self.constant
        return found

    def network(self, box: BlackBox) -> OneHiddenNet:
        """The layer as a network in x."""
        weights, linear = self.weights / box.scale, self.linear * box.units / box.scale[:, None]
        output, constant = self.output * box.units, self.constant * box.units - box.center @ linear
        if box.q == 1:
            output, constant, linear = output[:, 0], constant[0], linear[:, 0]
        bias = self.bias - weights @ box.center
        return OneHiddenNet(weights, output, bias, constant, self.form.activation, linear)


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with their answers."""

    U: Points  # in single precision, exactly as queried
    Y: Outputs  # all outputs
    error: PerPoint  # standard error of the answers

    @property
    def weight(self) -> PerPoint:
        """Root of the weight in least squares: 1 for the most precise answer."""
        return self.least / self.error

    @property
    def least(self) -> float:
        """Root mean square of the weighted errors."""
        return float(np.min(self.error))
