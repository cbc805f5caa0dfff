"""Standard errors of every parameter: classical, or a sandwich for noise that differs from row to row.

At a kink the score of a unit is not smooth: between the true kink and the estimated one it moves by the noise
of the rows in between, and the minimum is chosen among those moves. For one kink the loss is

    L(u) = u^2 / 2 - z u - sqrt(r) int_0^u B,   z ~ N(0, 1), B a Brownian motion on both sides,

in standard errors u of a smooth problem, r the rows within one of them over the rows on the active side. Its
minimum has variance 1 + 2 r E|u| (simulated: the factor is 1.9 to 2.2 for r = .05 to .8), and r E|u| is the
expected share of rows between both kinks: those rows enter the scatter of the scores twice more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse
from scipy.special import ndtr

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.parametrisation import Parametrisation, jacobian_pieces, roots, weighed
from onehidden.fit.samples import Inputs, Numbers, Target, Weight
from onehidden.network import OneHiddenNet

ERRORS = ("auto", "classical", "robust")
Vector = Float[np.ndarray, " p"]
Matrix = Float[np.ndarray, "p p"]


@dataclass(frozen=True)
class ParameterRecord:
    """One number for each parameter of a network: standard errors, or an end of an interval."""

    weights: Float[np.ndarray, "k d"]
    output: Float[np.ndarray, "k ..."]  # (k,), of several outputs (k, q)
    bias: Float[np.ndarray, " k"]
    intercept: Any  # a number, of several outputs (q,)
    linear: Float[np.ndarray, "d ..."] | None = None  # None without a linear part

    @classmethod
    def unknown(cls, network: OneHiddenNet) -> ParameterRecord:
        """Infinite errors of all parameters of a network."""
        parts = (network.weights, network.output, network.bias, network.intercept)
        return cls(*(np.full(np.shape(part), np.inf)[()] for part in parts))

    @classmethod
    def in_x(cls, form: Parametrisation, numbers: Vector) -> ParameterRecord:
        """One number for each parameter, in the order of ``form.pack``."""
        weights, output, bias, linear, intercept = form.unpack(numbers)
        return cls(weights, output, bias, intercept[()], linear if form.skip else None)


def leverage_scatter(
    form: Parametrisation, theta: Vector, inverse: Matrix, Z: Inputs, y: Target, weight: Weight, row: Numbers
) -> list[Matrix]:
    """Sum of (r_i / (1 - h_i))² J_i' J_i, the middle of the HC3 sandwich, with h_i = J_i ``inverse`` J_i'.

    The outputs of a row are added up before they are squared: their noise may be correlated.
    """
    total = np.zeros((form.size, form.size))
    for r, J in jacobian_pieces(form, theta, Z, y, weight, 32 << 20):
        leverage = np.einsum("np,np->n", J @ inverse, J)
        J = J * (r / np.maximum(1 - leverage, 1e-3))[:, None]
        J = J if form.outputs is None else J.reshape(-1, form.q, J.shape[1]).sum(axis=1)
        total += J.T @ J
    return [total]


def kink_scatter(
    form: Parametrisation,
    theta: Vector,
    covariance: Matrix,
    variance: float | None,
    Z: Inputs,
    y: Target,
    weight: Weight,
    row: Numbers,
) -> list[Matrix]:
    """What estimated kinks add to the scatter of the scores.

    A row is on the far side of a unit's true kink with probability q = Phi(-|t| / s), t its argument and s
    the standard error of t under ``covariance``. Its score then moves by the jump of g' times the output,
    the noise and (x, 1): 2 q times the square of that is added. The noise has this ``variance``, or where
    None the size of the row's own residual.
    """
    k, root = form.k, roots(weight, len(Z))
    weights, output, bias, _, _ = form.unpack(theta)
    jump = float(np.diff(form.slope(np.array([-1e-9, 1e-9])))[0])
    moved = weighed(root, np.broadcast_to(jump * output, (len(Z), *output.shape)).swapaxes(1, -1))
    if variance is None:
        left = weighed(root, form.predict(theta, Z) - y)
        noise = (moved * left[..., None]).reshape(len(Z), -1, k).sum(axis=1) ** 2
    else:
        noise = variance * np.sum(moved.reshape(len(Z), -1, k) ** 2, axis=1)
    distance, total = np.abs(Z @ weights.T + bias), np.zeros((form.size, form.size))
    for unit, (inputs, own) in enumerate(form.arguments(Z)):
        block = np.ix_(own, own)
        square = np.einsum("np,pq,nq->n", inputs, covariance[block], inputs, optimize=True)
        spread = np.sqrt(np.maximum(square, 0))
        far = np.divide(distance[:, unit], spread, out=np.full(len(Z), np.inf), where=spread > 0)
        total[block] = (inputs * (2 * ndtr(-far) * noise[:, unit])[:, None]).T @ inputs
    return [total]


def standard_errors(
    covariance: Matrix, undetermined: Bool[np.ndarray, " p"], form: Parametrisation, coordinates: Coordinates
) -> ParameterRecord:
    """Standard errors in x of parameters with this covariance in z; infinite where undetermined."""
    outward = outward_map(form, coordinates)
    variance = np.asarray(outward.multiply(outward @ covariance).sum(axis=1)).ravel()
    errors = np.sqrt(np.maximum(variance, 0))
    errors[abs(outward) @ undetermined.astype(float) > 0] = np.inf
    found = ParameterRecord.in_x(replace(form.plain, d=len(coordinates.shift)), errors)
    unseen = np.abs(coordinates.null).max(axis=1, initial=0.0) > 1e-8
    found.weights[:, unseen] = np.inf
    if found.linear is not None:
        found.linear[unseen] = np.inf
    return found


def covariance_in_x(
    covariance: Matrix, form: Parametrisation, coordinates: Coordinates
) -> Float[np.ndarray, "P P"]:
    """The covariance of the free parameters in x, in the order of ``form.pack``, from that in z."""
    outward = outward_map(form, coordinates)
    return outward @ (outward @ covariance.T).T


def outward_map(form: Parametrisation, coordinates: Coordinates) -> sparse.csr_array:
    """(P, p) linear map from changes of the free parameters in z to those in x."""
    whiten, shift, each = coordinates.whiten, coordinates.shift, sparse.eye_array(form.k)
    mixing = coordinates.scale.T if coordinates.several else np.full((1, 1), float(coordinates.scale))
    weights, output, bias, linear, intercept = form.places()
    there = replace(form.plain, d=len(shift))
    to_weights, to_output, to_bias, to_linear, to_intercept = there.places()
    moved = -(whiten.T @ shift)[None]
    blocks = [
        (to_weights, weights, sparse.kron(each, whiten)),
        (to_output, output, sparse.kron(each, mixing)),
        (to_bias, bias, each),
        (to_bias, weights, sparse.kron(each, moved)),  # b_x = b_z - <W a_z, shift>
        (to_linear, linear, np.kron(whiten, mixing)),
        (to_intercept, intercept, mixing),
        (to_intercept, linear, np.kron(moved, mixing)),  # c_x = c_z S - <v_x, shift>
    ]
    whole = sparse.lil_array((there.size, form.plain.size))
    for to, at, block in blocks:
        if to is not None and at is not None:
            whole[to, at] = block
    return whole.tocsr() if form.free is None else whole.tocsr() @ form.free.matrix
