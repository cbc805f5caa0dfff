"""Local strong convexity at a network [ZSJBD]: the Hessian over the first layer, expected and on data.

f(W) = ½ E(Σ v_i g(<w_i, x> + b_i) + c - y)². At the truth its Hessian has the blocks
v_i v_j E[g'(t_i) g'(t_j) x x'], which for x ~ N(0, I) are integrals over the plane of w_i and w_j.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden_papers.lab.descents import squared_loss
from onehidden_papers.objectives.signal import normal_nodes


def population_hessian(network: OneHiddenNet) -> Float[np.ndarray, "kd kd"]:
    """Expected Hessian in the rows at the truth, x ~ N(0, I), by quadrature.

    Parameters
    ----------
    network : OneHiddenNet
        The network, which gives the labels, too.

    Returns
    -------
    ndarray of shape (k d, k d)
        The Hessian.
    """
    A, v = network.weights, network.output
    k, d = A.shape
    H = np.zeros((k, d, k, d))
    for i in range(k):
        for j in range(i, k):
            zeroth, second, frame = _plane(network, i, j)
            block = zeroth * np.eye(d) + frame.T @ (second - zeroth * np.eye(len(frame))) @ frame
            H[i, :, j, :] = v[i] * v[j] * block
            H[j, :, i, :] = H[i, :, j, :].T
    return H.reshape(k * d, k * d)


def _plane(network: OneHiddenNet, i: int, j: int) -> tuple[float, np.ndarray, np.ndarray]:
    """E[g'_i g'_j], E[g'_i g'_j u u'] and the orthonormal frame (1 or 2 rows) in which u = frame x."""
    a, b, g = network.weights, network.bias, network.activation
    length = np.linalg.norm(a, axis=1)
    first = a[i] / length[i] if length[i] > 0 else np.eye(a.shape[1])[0]
    rule = {"panels": 64, "nodes": 8, "halvings": 0}
    s, weight = normal_nodes(np.asarray(-b[i] / length[i] if length[i] > 0 else 0.0), **rule)
    slope_i = g.derivative(length[i] * s + b[i])
    along = float(a[j] @ first)
    across = a[j] - along * first
    width = float(np.linalg.norm(across))
    if width <= 1e-12 * max(length[j], np.finfo(float).tiny):  # one line carries both
        both = weight * slope_i * g.derivative(along * s + b[j])
        return float(np.sum(both)), np.array([[float(np.sum(both * s**2))]]), first[None]
    t, inner = normal_nodes(-(along * s + b[j]) / width, **rule)
    both = weight[:, None] * inner * slope_i[:, None] * g.derivative(along * s[:, None] + width * t + b[j])
    cross = float(np.sum(both * s[:, None] * t))
    second = np.array([[float(np.sum(both * s[:, None] ** 2)), cross], [cross, float(np.sum(both * t**2))]])
    return float(np.sum(both)), second, np.stack([first, across / width])


@in_double
def empirical_hessian(
    network: OneHiddenNet, X: npt.ArrayLike, y: npt.ArrayLike
) -> Float[np.ndarray, "kd kd"]:
    """Hessian of 1/(2n) Σ (prediction - y)² in the rows of the network; at a kink g'' counts as 0.

    Parameters
    ----------
    network : OneHiddenNet
        The network.
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.

    Returns
    -------
    ndarray of shape (k d, k d)
        The Hessian.
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or X.shape[1] != network.n_inputs or y.shape != (len(X),):
        raise ValueError(f"expected X (n, {network.n_inputs}) and y (n,), got {X.shape} and {y.shape}")
    data = tuple(jnp.asarray(part) for part in (X, y, network.output, network.bias, network.intercept))
    return np.asarray(_hessian(squared_loss(network.activation), jnp.asarray(network.weights), data))


@partial(jax.jit, static_argnums=0)
def _hessian(loss: Callable[..., jax.Array], W: jax.Array, data: tuple[jax.Array, ...]) -> jax.Array:
    curve = jax.linearize(jax.grad(lambda W: loss(W, data)), W)[1]
    directions = jnp.eye(W.size).reshape(-1, *W.shape)
    return jax.lax.map(lambda direction: curve(direction).ravel(), directions)
