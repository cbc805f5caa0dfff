"""All parameters of a network of q outputs, in u, and questions with their answers.

The function is f(u) = c + L u + sum_i W_i g(<a_i, u> + b_i); L is there while the orientation of the units is
open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

Activated = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
ROWS = 8192  # rows of one block of the double precision residual


@dataclass(frozen=True, eq=False)
class Layer:
    """All parameters; ``linear`` (d, q) is None where there is no linear part.

    Attributes
    ----------
    weights : (k, d). bias : (k,). output : (k, q). constant : (q,). linear : (d, q) or None.
    """

    weights: Float[np.ndarray, "k d"]
    bias: Float[np.ndarray, " k"]
    output: Float[np.ndarray, "k q"]
    constant: Float[np.ndarray, " q"]
    linear: Float[np.ndarray, "d q"] | None = None

    def pack(self) -> Float[np.ndarray, " p"]:
        linear = np.zeros(0) if self.linear is None else self.linear.ravel()
        return np.concatenate([self.weights.ravel(), self.bias, self.output.ravel(), self.constant, linear])

    def moved(self, theta: Float[np.ndarray, " p"]) -> Layer:
        """The layer with these numbers in place of its own."""
        parts, begin = [], 0
        for one in (self.weights, self.bias, self.output, self.constant, self.linear):
            if one is None:
                parts.append(None)
                continue
            parts.append(theta[begin : begin + one.size].reshape(one.shape))
            begin += one.size
        return Layer(*parts)

    def normalised(self) -> Layer:
        """Unit rows, for a g that is homogeneous of degree one."""
        size = np.linalg.norm(self.weights, axis=1)
        size = np.where(size > 0, size, 1.0)
        return replace(
            self,
            weights=self.weights / size[:, None],
            bias=self.bias / size,
            output=self.output * size[:, None],
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions and answers.

    U : (n, d) in single precision, exactly as asked. Y : (n, q). noise : (n,) standard error of the answers.
    """

    U: Float[np.ndarray, "n d"]
    Y: Float[np.ndarray, "n q"]
    noise: Float[np.ndarray, " n"]

    @property
    def weight(self) -> Float[np.ndarray, " n"]:
        """1 for the sharpest answer, less in proportion for others."""
        return float(np.min(self.noise)) / self.noise

    @property
    def least(self) -> float:
        """What no fit leaves less of: root mean square of the weighted noise."""
        return float(np.min(self.noise))


def told(layer: Layer, U: Float[np.ndarray, "n d"], g: Activated) -> Float[np.ndarray, "n q"]:
    """The function at rows of u, in blocks."""
    found = np.empty((len(U), layer.output.shape[1]))
    for begin in range(0, len(U), ROWS):
        part = np.asarray(U[begin : begin + ROWS], float)
        found[begin : begin + ROWS] = (
            g(part @ layer.weights.T + layer.bias)[0] @ layer.output + layer.constant
        )
        if layer.linear is not None:
            found[begin : begin + ROWS] += part @ layer.linear
    return found
