"""Standard errors of every parameter: classical, or a sandwich for noise that differs from row to row."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse

from onehidden.certify.groups import GroupedCovariance
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.parametrisation import Parametrisation, jacobian_pieces
from onehidden.fit.samples import Inputs, Numbers, Summed, Target, Weight
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet

ERRORS = ("auto", "classical", "robust")


@dataclass(frozen=True)
class ParameterRecord:
    """One number for each parameter of a network: standard errors, or an end of an interval."""

    weights: Float[np.ndarray, "k d"]
    output: Float[np.ndarray, "k ..."]  # (k,), of several outputs (k, q)
    bias: Float[np.ndarray, " k"]
    intercept: Any  # a number, of several outputs (q,)
    linear: Float[np.ndarray, "d ..."] | None = None  # None without a linear part

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
        parts = (network.weights, network.output, network.bias, network.intercept)
        return cls(*(np.full(np.shape(part), np.inf)[()] for part in parts))


class LeverageScatter(Summed):
    """Accumulator of sum_i (r_i / (1 - h_i))² J_i' J_i, the middle of the HC3 sandwich.

    A row of leverage h_i = J_i C J_i' draws the fit towards itself, and its residual is too small by 1 - h_i.
    The outputs of a row are added up before they are squared: their noise may be correlated.

    ``covariance`` is C, the pseudo-inverse of J'J; ``piece`` the bytes of one piece of the Jacobian.
    """

    summed = ("_total",)

    def __init__(
        self,
        form: Parametrisation,
        theta: Float[np.ndarray, " p"],
        covariance: Float[np.ndarray, "p p"],
        piece: int = 32 << 20,
    ) -> None:
        self._form, self._theta, self._covariance, self._piece = form, theta, covariance, piece
        self._total = np.zeros((form.size, form.size))

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> LeverageScatter:
        for r, J in jacobian_pieces(self._form, self._theta, Z, y, weight, self._piece):
            leverage = np.einsum("np,np->n", J @ self._covariance, J)
            J = J * (r / np.maximum(1 - leverage, 1e-3))[:, None]
            J = J if self._form.outputs is None else J.reshape(-1, self._form.q, J.shape[1]).sum(axis=1)
            self._total += J.T @ J
        return self

    def result(self) -> Float[np.ndarray, "p p"]:
        return self._total


def standard_errors(
    covariance: Float[np.ndarray, "p p"],
    undetermined: Bool[np.ndarray, " p"],
    form: Parametrisation,
    coordinates: Coordinates,
) -> ParameterRecord:
    """Standard errors in x of parameters with this covariance in z; infinite where undetermined."""
    outward = _outward_map(form, coordinates)
    variance = np.asarray(outward.multiply(outward @ covariance).sum(axis=1)).ravel()
    errors = np.sqrt(np.maximum(variance, 0))
    errors[abs(outward) @ undetermined.astype(float) > 0] = np.inf
    weights, output, bias, linear, intercept = replace(form, d=len(coordinates.shift)).unpack(errors)
    unseen = np.abs(coordinates.null).max(axis=1, initial=0.0) > 1e-8
    weights[:, unseen] = np.inf
    linear[unseen] = np.inf
    return ParameterRecord(weights, output, bias, intercept[()], linear if form.skip else None)


def freedom_of_errors(
    grouped: GroupedCovariance, form: Parametrisation, coordinates: Coordinates
) -> ParameterRecord:
    """Degrees of freedom of the standard error of every parameter in x, of a covariance by groups."""
    found = grouped.freedom(_outward_map(form, coordinates).toarray())
    weights, output, bias, linear, intercept = replace(form, d=len(coordinates.shift)).unpack(found)
    return ParameterRecord(weights, output, bias, intercept[()], linear if form.skip else None)


def covariance_in_x(
    covariance: Float[np.ndarray, "p p"], form: Parametrisation, coordinates: Coordinates
) -> Float[np.ndarray, "P P"]:
    """The covariance of the free parameters in x, in the order of ``form.pack``, from that in z."""
    outward = _outward_map(form, coordinates)
    return outward @ (outward @ covariance.T).T


def _outward_map(form: Parametrisation, coordinates: Coordinates) -> sparse.csr_array:
    """(P, p) linear map from changes of the free parameters in z to those in x."""
    k, whiten, shift = form.k, coordinates.whiten, coordinates.shift
    mixing = coordinates.scale.T if coordinates.several else np.full((1, 1), float(coordinates.scale))
    weights, output, bias, linear, intercept = form.places()
    there = replace(form, d=len(shift))
    to_weights, to_output, to_bias, to_linear, to_intercept = there.places()
    moved = -(whiten.T @ shift)[None]
    blocks = [
        (to_weights, weights, sparse.kron(sparse.eye_array(k), whiten)),
        (to_output, output, sparse.kron(sparse.eye_array(k), mixing)),
        (to_bias, bias, sparse.eye_array(k)),
        (to_bias, weights, sparse.kron(sparse.eye_array(k), moved)),  # b_x = b_z - <W a_z, shift>
        (to_linear, linear, np.kron(whiten, mixing)),
        (to_intercept, intercept, mixing),
        (to_intercept, linear, np.kron(moved, mixing)),  # c_x = c_z S - <v_x, shift>
    ]
    rows, columns, values = [], [], []
    for to, at, block in blocks:
        if to is not None and at is not None:
            block = sparse.coo_array(block)
            rows.append(block.coords[0] + to.start)
            columns.append(block.coords[1] + at.start)
            values.append(block.data)
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return sparse.csr_array(entries, shape=(there.size, form.size))
