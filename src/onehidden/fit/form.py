"""The squared loss as residuals and their Jacobian: pure functions of (parameters, batch).

One parametrisation serves every stage: y = c + <beta, x> + sum_i w_i g(<a_i, x> + b_i), where the linear
skip beta is used only by orientation-free searches, and b, c may be held at zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.activations import Activation


@dataclass(frozen=True)
class Form:
    """Which parameters are free, and with which activation.

    Attributes
    ----------
    activation : g and its slope.
    d, k : inputs, units.
    bias, intercept, skip : whether b, c and beta are free (else zero).
    symmetrised : use g - h of exact parity in place of g (see ``Activation.symmetrised``).
    """

    activation: Activation
    d: int
    k: int
    bias: bool = False
    intercept: bool = True
    skip: bool = False
    symmetrised: bool = False

    @property
    def size(self) -> int:
        """Length of the parameter vector."""
        return self.k * (self.d + 1 + self.bias) + self.skip * self.d + self.intercept

    @property
    def freedom(self) -> int:
        """Parameters the function can be said to have: each homogeneous unit has one scale to spare."""
        return self.size - (self.k if self.activation.homogeneity is not None else 0)

    def g(self, t: jax.Array) -> jax.Array:
        return self.activation.symmetrised(t) if self.symmetrised else self.activation.fn(t)

    def slope(self, t: jax.Array) -> jax.Array:
        return self.activation.symmetrised_slope(t) if self.symmetrised else self.activation.slope(t)

    def pack(
        self,
        weights: npt.ArrayLike,
        output: npt.ArrayLike,
        bias: npt.ArrayLike | None = None,
        beta: npt.ArrayLike | None = None,
        intercept: npt.ArrayLike = 0.0,
    ) -> Float[np.ndarray, " p"]:
        """Parameter vector from its parts; parts that are not free are dropped."""
        parts = [np.asarray(weights, float).ravel(), np.asarray(output, float)]
        if self.bias:
            parts.append(np.zeros(self.k) if bias is None else np.asarray(bias, float))
        if self.skip:
            parts.append(np.zeros(self.d) if beta is None else np.asarray(beta, float))
        if self.intercept:
            parts.append(np.atleast_1d(np.asarray(intercept, float)))
        return np.concatenate(parts)

    def unpack(self, theta: Any) -> tuple[Any, Any, Any, Any, Any]:
        """(weights (k, d), output (k,), bias (k,), beta (d,), intercept) of a parameter vector."""
        k, d = self.k, self.d
        zeros = jnp.zeros if isinstance(theta, jax.Array) else np.zeros
        weights, output, at = theta[: k * d].reshape(k, d), theta[k * d : k * d + k], k * d + k
        bias = zeros(k, theta.dtype)
        if self.bias:
            bias, at = theta[at : at + k], at + k
        beta = zeros(d, theta.dtype)
        if self.skip:
            beta, at = theta[at : at + d], at + d
        return weights, output, bias, beta, theta[at] if self.intercept else zeros((), theta.dtype)


@partial(jax.jit, static_argnums=0)
def residuals(form: Form, theta: jax.Array, x: jax.Array, y: jax.Array, root_weight: jax.Array) -> jax.Array:
    """sqrt(weight) * (prediction - y), (n,)."""
    weights, output, bias, beta, intercept = form.unpack(theta)
    prediction = form.g(x @ weights.T + bias) @ output + intercept
    if form.skip:
        prediction = prediction + x @ beta
    return root_weight * (prediction - y)


@partial(jax.jit, static_argnums=0)
def residuals_and_jacobian(
    form: Form, theta: jax.Array, x: jax.Array, y: jax.Array, root_weight: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The residuals and their Jacobian (n, p), written out: forward-mode AD would form p tangents."""
    weights, output, bias, beta, intercept = form.unpack(theta)
    t = x @ weights.T + bias
    units, slopes = form.g(t), form.slope(t) * output
    prediction = units @ output + intercept
    if form.skip:
        prediction = prediction + x @ beta
    blocks = [(slopes[:, :, None] * x[:, None, :]).reshape(len(x), -1), units]
    if form.bias:
        blocks.append(slopes)
    if form.skip:
        blocks.append(x)
    if form.intercept:
        blocks.append(jnp.ones((len(x), 1), x.dtype))
    jacobian = jnp.concatenate(blocks, axis=1) * root_weight[:, None]
    return root_weight * (prediction - y), jacobian


def jacobian_pieces(
    form: Form,
    theta: Float[np.ndarray, " p"],
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    weight: Float[np.ndarray, " n"] | None,
    most: int,
) -> Iterator[tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m p"]]]:
    """The residuals and their Jacobian piece by piece, each of about ``most`` bytes."""
    root = np.ones(len(y)) if weight is None else np.sqrt(weight)
    rows, point = max(256, most // (8 * form.size)), jnp.asarray(theta)
    for at in range(0, len(y), rows):
        part = slice(at, at + rows)
        r, J = residuals_and_jacobian(form, point, X[part], y[part], root[part])
        yield np.asarray(r), np.asarray(J)
