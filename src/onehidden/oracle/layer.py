"""All parameters of a network of q outputs, in u, and queries with their answers.

The function is f(u) = c + L u + sum_i W_i g(<a_i, u> + b_i); L is there while the orientation of the units is
open.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from jaxtyping import Float

from onehidden.activations import Activation
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import Outputs, PerPoint, PerUnit, Points, UnitRows
from onehidden.oracle.tails import WithSlope

ROWS = 8192  # rows of a block of the residual in double precision


@dataclass(frozen=True, eq=False)
class Layer:
    """All parameters: weights (k, d), bias (k,), output (k, q), constant (q,), linear (d, q) or None."""

    weights: UnitRows
    bias: PerUnit
    output: Float[np.ndarray, "k q"]
    constant: Float[np.ndarray, " q"]
    linear: Float[np.ndarray, "d q"] | None = None

    @property
    def k(self) -> int:
        return len(self.bias)

    def pack(self) -> Float[np.ndarray, " p"]:
        parts = (getattr(self, one.name) for one in fields(self))
        return np.concatenate([part.ravel() for part in parts if part is not None])

    def moved(self, theta: Float[np.ndarray, " p"]) -> Layer:
        """The layer with these numbers in place of its own."""
        parts, begin = [], 0
        for one in fields(self):
            part = getattr(self, one.name)
            size = 0 if part is None else part.size
            parts.append(None if part is None else theta[begin : begin + size].reshape(part.shape))
            begin += size
        return Layer(*parts)

    def units(self, index: np.ndarray) -> Layer:
        """The layer with some of its units."""
        return replace(self, weights=self.weights[index], bias=self.bias[index], output=self.output[index])

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

    def predict(self, U: Points, g: WithSlope) -> Outputs:
        """The function at rows of u, in blocks."""
        found = np.empty((len(U), self.output.shape[1]))
        for begin in range(0, len(U), ROWS):
            rows = slice(begin, begin + ROWS)
            part = np.asarray(U[rows], float)
            found[rows] = g(part @ self.weights.T + self.bias)[0] @ self.output + self.constant
            if self.linear is not None:
                found[rows] += part @ self.linear
        return found

    def network(self, box: BlackBox, activation: Activation) -> OneHiddenNet:
        """The layer as a network in x."""
        weights = self.weights / box.scale
        output, constant = self.output * box.units, self.constant * box.units
        linear = None if self.linear is None else self.linear * box.units / box.scale[:, None]
        if linear is not None:
            constant = constant - box.center @ linear
        if box.q == 1:
            output, constant = output[:, 0], constant[0]
            linear = None if linear is None else linear[:, 0]
        return OneHiddenNet(weights, output, self.bias - weights @ box.center, constant, activation, linear)


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
