"""Local strong convexity at a network [ZSJBD]: the Hessian over the first layer, on data.

f(W) = ½ E(Σ v_i g(<w_i, x> + b_i) + c - y)². At the truth its Hessian has the blocks
v_i v_j E[g'(t_i) g'(t_j) x x'].
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
