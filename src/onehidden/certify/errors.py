"""Standard errors of every parameter: classical, or a sandwich that lets noise differ from row to row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form, jacobian_pieces
from onehidden.fit.rows import Inputs, Numbers, Summed, Target, Weight
from onehidden.precision import in_double

ERRORS = ("auto", "classical", "robust")
_BYTES = 32 << 20  # one piece of the Jacobian


@dataclass(frozen=True)
class ParameterRecord:
    """One number for each parameter of a network: standard errors, or an end of an interval."""

    weights: Float[np.ndarray, "k d"]
    output: Float[np.ndarray, " k"]
    bias: Float[np.ndarray, " k"]
    intercept: float

    def at_least(self, other: ParameterRecord) -> ParameterRecord:
        """The larger of both, parameter by parameter: a few rows do not tell equal noise from unequal."""
        return ParameterRecord(
            np.maximum(self.weights, other.weights),
            np.maximum(self.output, other.output),
            np.maximum(self.bias, other.bias),
            max(self.intercept, other.intercept),
        )


class LeverageScatter(Summed):
    """Accumulator of sum_i (r_i / (1 - h_i))² J_i' J_i, the middle of the HC3 sandwich.

    A row of leverage h_i = J_i C J_i' draws the fit towards itself, and its residual is too small by 1 - h_i.

    Parameters
    ----------
    form, theta : which parameters are free, and where they are.
    covariance : (p, p) C, the pseudo-inverse of J'J.
    """

    summed = ("_total",)

    def __init__(
        self, form: Form, theta: Float[np.ndarray, " p"], covariance: Float[np.ndarray, "p p"]
    ) -> None:
        self._form, self._theta, self._covariance = form, theta, covariance
        self._total = np.zeros((form.size, form.size))

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> LeverageScatter:
        for r, J in jacobian_pieces(self._form, self._theta, Z, y, weight, _BYTES):
            leverage = np.einsum("np,np->n", J @ self._covariance, J)
            J = J * (r / np.maximum(1 - leverage, 1e-3))[:, None]
            self._total += J.T @ J
        return self

    def result(self) -> Float[np.ndarray, "p p"]:
        return self._total


def standard_errors(
    covariance: Float[np.ndarray, "p p"],
    blind: Bool[np.ndarray, " p"],
    form: Form,
    coordinates: Coordinates,
) -> ParameterRecord:
    """Square roots of the diagonal of the covariance, carried from z to x unit by unit."""
    k, d = form.k, form.d
    weights, bias = np.zeros((k, len(coordinates.shift))), np.zeros(k)
    astray = np.abs(coordinates.null).max(axis=1, initial=0.0)
    at_bias = k * d + k
    for i in range(k):
        rows = np.arange(i * d, (i + 1) * d)
        outward = coordinates.whiten @ covariance[np.ix_(rows, rows)] @ coordinates.whiten.T
        weights[i] = np.sqrt(np.maximum(np.diag(outward), 0))
        if blind[rows].any():
            weights[i] = np.inf
        weights[i, astray > 1e-8] = np.inf
        if form.bias:
            # b_x = b_z - <W a_z, shift>
            slope = np.concatenate([-coordinates.whiten.T @ coordinates.shift, [1.0]])
            joint = np.append(rows, at_bias + i)
            bias[i] = np.sqrt(max(float(slope @ covariance[np.ix_(joint, joint)] @ slope), 0.0))
            if blind[joint].any():
                bias[i] = np.inf
    outputs = np.arange(k * d, k * d + k)
    spread = coordinates.scale * np.sqrt(np.maximum(np.diag(covariance), 0))
    spread = np.where(blind, np.inf, spread)
    return ParameterRecord(weights, spread[outputs], bias, float(spread[-1]) if form.intercept else 0.0)
