"""Standard errors of every parameter: classical, or a sandwich that lets noise differ from row to row."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form, jacobian_pieces
from onehidden.fit.rows import Inputs, Numbers, Summed, Target, Weight
from onehidden.network import OneHiddenNet
from onehidden.precision import in_double

ERRORS = ("auto", "classical", "robust")
_BYTES = 32 << 20  # one piece of the Jacobian


@dataclass(frozen=True)
class ParameterRecord:
    """One number for each parameter of a network: standard errors, or an end of an interval.

    Of several outputs ``output`` is (k, q), ``intercept`` (q,). ``linear`` is None without a linear part.
    """

    weights: Float[np.ndarray, "k d"]
    output: Float[np.ndarray, "k ..."]
    bias: Float[np.ndarray, " k"]
    intercept: Any
    linear: Float[np.ndarray, "d ..."] | None = None

    def at_least(self, other: ParameterRecord) -> ParameterRecord:
        """The larger of both, parameter by parameter: a few rows do not tell equal noise from unequal."""
        both = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        parts: dict[str, Any] = {
            name: None if a is None or b is None else np.maximum(a, b)[()] for name, (a, b) in both.items()
        }
        return ParameterRecord(**parts)

    @classmethod
    def unknown(cls, network: OneHiddenNet) -> ParameterRecord:
        """Infinite errors of all parameters of a network."""
        intercept = np.full(np.shape(network.intercept), np.inf)[()]
        weights, output, bias = (
            np.full(part.shape, np.inf) for part in (network.weights, network.output, network.bias)
        )
        return cls(weights, output, bias, intercept)


class LeverageScatter(Summed):
    """Accumulator of sum_i (r_i / (1 - h_i))² J_i' J_i, the middle of the HC3 sandwich.

    A row of leverage h_i = J_i C J_i' draws the fit towards itself, and its residual is too small by 1 - h_i.
    The outputs of a row are added up before they are squared: their noise may be correlated.

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
            J = J if self._form.outputs is None else J.reshape(-1, self._form.q, J.shape[1]).sum(axis=1)
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
    k, d, q = form.k, form.d, form.q
    whiten, shift = coordinates.whiten, coordinates.shift
    at = [None if place is None else np.arange(place.start, place.stop) for place in form.places()]
    at_weights, at_output, at_bias, at_linear, at_intercept = at
    assert at_weights is not None
    assert at_output is not None

    def carried(map_: Float[np.ndarray, "m j"], joint: Int[np.ndarray, " j"]) -> Float[np.ndarray, " m"]:
        """Errors of ``map_`` times these parameters; infinite where one of them is not seen."""
        if blind[joint].any():
            return np.full(len(map_), np.inf)
        own = np.einsum("ij,jk,ik->i", map_, covariance[np.ix_(joint, joint)], map_)
        return np.sqrt(np.maximum(own, 0))

    weights, bias = np.zeros((k, len(shift))), np.zeros(k)
    mixing = coordinates.scale.T if coordinates.several else np.full((1, 1), float(coordinates.scale))
    output = np.zeros((k, q))
    astray = np.abs(coordinates.null).max(axis=1, initial=0.0) > 1e-8
    for i, rows in enumerate(at_weights.reshape(k, d)):
        weights[i] = np.where(astray, np.inf, carried(whiten, rows))
        if at_bias is not None:  # b_x = b_z - <W a_z, shift>
            slope = np.concatenate([-whiten.T @ shift, [1.0]])
            bias[i] = carried(slope[None], np.append(rows, at_bias[i]))[0]
        output[i] = carried(mixing, at_output.reshape(k, q)[i])
    linear, intercept = None, np.zeros(q)
    if at_linear is not None:
        linear = carried(np.kron(whiten, mixing), at_linear).reshape(len(shift), q)
        linear[astray] = np.inf
        linear = linear if coordinates.several else linear[:, 0]
    if at_intercept is not None:  # c_x = c_z S - <v_x, shift>
        joint, map_ = at_intercept, mixing
        if at_linear is not None:
            joint = np.append(at_linear, joint)
            map_ = np.hstack([np.kron(-(whiten.T @ shift), mixing), mixing])
        intercept = carried(map_, joint)
    if coordinates.several:
        return ParameterRecord(weights, output, bias, intercept, linear)
    return ParameterRecord(weights, output[:, 0], bias, float(intercept[0]), linear)


def outward(
    covariance: Float[np.ndarray, "p p"], form: Form, coordinates: Coordinates
) -> Float[np.ndarray, "P P"]:
    """The covariance of the free parameters in x, in the order of ``Form.pack``, from that in z."""
    k, whiten, shift = form.k, coordinates.whiten, coordinates.shift
    mixing = coordinates.scale.T if coordinates.several else np.full((1, 1), float(coordinates.scale))
    at_weights, at_output, at_bias, at_linear, at_intercept = form.places()
    there = replace(form, d=len(shift))
    to_weights, to_output, to_bias, to_linear, to_intercept = there.places()
    map_ = np.zeros((there.size, form.size))
    map_[to_weights, at_weights] = np.kron(np.eye(k), whiten)
    map_[to_output, at_output] = np.kron(np.eye(k), mixing)
    if at_bias is not None:
        map_[to_bias, at_bias] = np.eye(k)
        map_[to_bias, at_weights] = np.kron(np.eye(k), -(whiten.T @ shift)[None])
    if at_linear is not None:
        map_[to_linear, at_linear] = np.kron(whiten, mixing)
    if at_intercept is not None:
        map_[to_intercept, at_intercept] = mixing
        if at_linear is not None:
            map_[to_intercept, at_linear] = np.kron(-(whiten.T @ shift)[None], mixing)
    return map_ @ covariance @ map_.T
