"""Standard errors of every parameter: classical, or a sandwich for noise that differs from row to row.

At a kink the score of a unit is not smooth: between the true kink and the estimated one it moves by the noise
of the rows in between, and the minimum is chosen among those moves. For one kink the loss is

    L(u) = u^2 / 2 - z u - sqrt(r) int_0^u B,   z ~ N(0, 1), B a Brownian motion on both sides,

in standard errors u of a smooth problem, r the rows within one of them over the rows on the active side. Its
minimum has variance 1 + 2 r E|u| (simulated: the factor is 1.9 to 2.2 for r = .05 to .8), and r E|u| is the
expected share of rows between both kinks: those rows enter the scatter of the scores twice more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse
from scipy.special import ndtr

from onehidden.certify.groups import GroupedCovariance
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.parametrisation import Parametrisation, jacobian_pieces, roots, weighed
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


class KinkScatter(Summed):
    """Accumulator of what estimated kinks add to the scatter of the scores.

    A row is on the far side of a unit's true kink with probability q = Phi(-|t| / s), t its argument and s
    the standard error of t under ``covariance``. Its score then moves by the jump of g' times the output,
    the noise and (x, 1): 2 q times the square of that is added. The noise has this ``variance``, or where
    None the size of the row's own residual.
    """

    summed = ("_total",)

    def __init__(
        self,
        form: Parametrisation,
        theta: Float[np.ndarray, " p"],
        covariance: Float[np.ndarray, "p p"],
        variance: float | None,
    ) -> None:
        self._form, self._theta, self._variance = form, theta, variance
        k, d = form.k, form.d
        bias = form.places()[2]
        index = np.arange(k * d).reshape(k, d)
        if bias is not None:
            index = np.column_stack([index, np.arange(bias.start, bias.stop)])
        self._index = index  # (k, d or d + 1), where the parameters of each unit's argument stand
        self._own = covariance[index[:, :, None], index[:, None, :]]
        self._total = np.zeros((k, index.shape[1], index.shape[1]))

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> KinkScatter:
        form, root = self._form, roots(weight, len(Z))
        weights, output, bias, _, _ = form.unpack(self._theta)
        inputs = np.column_stack([Z, np.ones(len(Z))])[:, : self._index.shape[1]]
        t = Z @ weights.T + bias
        jump = float(np.diff(form.slope(np.array([-1e-9, 1e-9])))[0])
        moved = weighed(root, np.broadcast_to(jump * output, (len(Z), *output.shape)).swapaxes(1, -1))
        if self._variance is None:
            left = weighed(root, form.predict(self._theta, Z) - y)
            noise = (moved * left[..., None]).reshape(len(Z), -1, form.k).sum(axis=1) ** 2
        else:
            noise = self._variance * np.sum(moved.reshape(len(Z), -1, form.k) ** 2, axis=1)
        for unit, own in enumerate(self._own):
            spread = np.sqrt(np.maximum(np.einsum("np,pq,nq->n", inputs, own, inputs, optimize=True), 0))
            far = np.divide(np.abs(t[:, unit]), spread, out=np.full(len(Z), np.inf), where=spread > 0)
            q = ndtr(-far)
            self._total[unit] += (inputs * (2 * q * noise[:, unit])[:, None]).T @ inputs
        return self

    def result(self) -> Float[np.ndarray, "p p"]:
        total = np.zeros((self._form.size,) * 2)
        for index, own in zip(self._index, self._total, strict=True):
            total[np.ix_(index, index)] = own
        return total


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
