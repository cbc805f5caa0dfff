"""Local strong convexity at a network [ZSJBD]: the Hessian over the first layer, expected and on data.

f(W) = ½ E(Σ v_i g(<w_i, x> + b_i) + c - y)². At the truth its Hessian has the blocks
v_i v_j E[g'(t_i) g'(t_j) x x'], which for x ~ N(0, I) are integrals over the plane of w_i and w_j.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.activations import Activation
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
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
    n, d = X.shape
    k = network.n_hidden
    H = np.zeros((k * d, k * d))
    step = max(1, (1 << 22) // (k * d))
    for i in range(0, n, step):
        x, target = X[i : i + step], y[i : i + step]
        t = x @ network.weights.T + network.bias
        slope = network.activation.derivative(t) * network.output
        J = (slope[:, :, None] * x[:, None, :]).reshape(len(x), k * d)
        H += J.T @ J
        remainder = network.activation(t) @ network.output + network.intercept - target
        if np.any(np.abs(remainder) > 1e-12 * (1 + np.abs(target))):
            curve = remainder[:, None] * _second_derivative(network.activation, t) * network.output
            for u in range(k):
                own = slice(u * d, (u + 1) * d)
                H[own, own] += (curve[:, u, None] * x).T @ x
    return H / n


@in_double
def _second_derivative(activation: Activation, t: np.ndarray) -> np.ndarray:
    flat = jnp.asarray(t).ravel()
    return np.asarray(jax.vmap(jax.grad(lambda z: activation.slope(z)))(flat)).reshape(t.shape)
