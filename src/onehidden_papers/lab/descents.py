"""Descents: first-order ones as one compiled loop, the steps 1/M_0 of [ZSJBD], and trust-region Newton steps.

Steps 1/M_0 are taken on f(W) = 1/(2n) Σ (Σ_i v_i g(<w_i, x> + b_i) + c - y)², over W alone: v, b, c are held,
as in the corollary |W⁺ - W*|² <= (1 - m_0/M_0) |W - W*|² of [ZSJBD].

Designed objectives at the weights of their theorems have curvatures 10⁸ apart, the saddles' being the small
ones: first-order methods see a plateau where the Hessian, inside a trust region, shows the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jaxtyping import Float
from scipy.optimize import minimize

from onehidden.activations import Activation
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden_papers.objectives.base import checked_batch

Params = optax.Params  # arrays, or a tree of them
Carry = tuple[Params, optax.OptState, jax.Array]  # parameters, state of the optimiser, key


@dataclass(frozen=True)
class Descent:
    """Where a descent went."""

    params: Any  # final parameters, with a leading axis of seeds
    steps: np.ndarray  # (r,) at which was recorded
    values: np.ndarray  # (seeds, r) objective on the batch of that step
    path: Any  # parameters at those steps, leading axes (seeds, r)


# One object a setting, so that compilations are shared.
sgd, adam, cosine_decay = cache(optax.sgd), cache(optax.adam), cache(optax.cosine_decay_schedule)


@in_double
def first_order_descent(
    value_and_grad: Callable[[Any, Any], tuple[jax.Array, Any]],  # of params and data, traceable
    starts: npt.ArrayLike | tuple[npt.ArrayLike, ...],
    *,
    optimiser: optax.GradientTransformation,
    steps: int,
    data: object = None,  # the full batch or moments; or else:
    sampler: Callable[[jax.Array], object] | None = None,  # key -> fresh data for one step, traceable
    project: Callable[[Any], Any] | None = None,  # applied after each step, e.g. rows back to unit norm
    seed: int = 0,
    record_every: int | None = None,  # steps between records; None: about 100 records
) -> Descent:
    """Descend from every start (leading axis) in one jitted loop; kept functions share compilations."""
    if (data is None) == (sampler is None):
        raise ValueError("give either data (full batch) or sampler (fresh samples), not both or neither")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    every = max(1, steps // 100) if record_every is None else int(record_every)
    rounds = -(-steps // every)
    points = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf, float)), starts)
    count = jax.tree.leaves(points)[0].shape[0]
    keys = jax.random.split(jax.random.key(seed), count)
    found = _run(value_and_grad, optimiser, sampler, project, every, rounds, points, keys, data)
    params, values, path = jax.tree.map(np.asarray, found)
    return Descent(params, every * np.arange(1, rounds + 1), values, path)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4, 5))
def _run(
    value_and_grad: Callable[[Any, Any], tuple[jax.Array, Any]],
    optimiser: optax.GradientTransformation,
    sampler: Callable[[jax.Array], object] | None,
    project: Callable[[Any], Any] | None,
    every: int,
    rounds: int,
    starts: Params,
    keys: jax.Array,
    data: object,
) -> tuple[Params, jax.Array, Params]:
    def step(carry: Carry, _: None) -> tuple[Carry, jax.Array]:
        params, state, key = carry
        key, now = jax.random.split(key)
        value, gradient = value_and_grad(params, data if sampler is None else sampler(now))
        updates, state = optimiser.update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        return (params if project is None else project(params), state, key), value

    def block(carry: Carry, _: None) -> tuple[Carry, tuple[jax.Array, Params]]:
        carry, values = jax.lax.scan(step, carry, None, length=every)
        return carry, (values[-1], carry[0])

    def one(params: Params, key: jax.Array) -> tuple[Params, jax.Array, Params]:
        carry = (params, optimiser.init(params), key)
        (params, _, _), (values, path) = jax.lax.scan(block, carry, None, length=rounds)
        return params, values, path

    return jax.vmap(one)(starts, keys)


@in_double
def descend(
    network: OneHiddenNet, X: npt.ArrayLike, y: npt.ArrayLike, *, smoothness: float, steps: int = 2000
) -> np.ndarray:
    """Gradient descent on the rows of a network with step 1/``smoothness``.

    Parameters
    ----------
    network : OneHiddenNet
        The start; its rows move, all other parameters are held.
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.
    smoothness : float
        M_0, an upper bound of the Hessian's eigenvalues on the way.
    steps : int
        Number of steps.

    Returns
    -------
    ndarray of shape (steps + 1, k, d)
        The weights on the way, the start included.
    """
    if not (np.isfinite(smoothness) and smoothness > 0):
        raise ValueError(f"smoothness M_0 must be positive and finite, got {smoothness}")
    run = first_order_descent(
        _value_and_grad(squared_loss(network.activation)), network.weights[None],
        optimiser=sgd(1.0 / smoothness), steps=steps, record_every=1, data=_held(network, X, y),
    )  # fmt: skip
    return np.concatenate([network.weights[None], run.path[0]])


@in_double
def empirical_hessian(
    network: OneHiddenNet, X: npt.ArrayLike, y: npt.ArrayLike
) -> Float[np.ndarray, "kd kd"]:
    """Hessian of 1/(2n) Σ (prediction - y)² in the rows of the network; at a kink g'' counts as 0.

    Its smallest eigenvalue is the local strong convexity of [ZSJBD]. At the truth its blocks are
    v_i v_j E[g'(t_i) g'(t_j) x x'].

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
    data = _held(network, X, y)
    return derivatives(squared_loss(network.activation), network.weights.shape, data, network.weights, 2)


def _held(network: OneHiddenNet, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[jax.Array, ...]:
    """Rows, target and what the network holds besides its first layer."""
    parts = (*checked_batch((X, y)), network.output, network.bias, network.intercept)
    return tuple(jnp.asarray(np.asarray(part, float)) for part in parts)


@cache
def squared_loss(activation: Activation) -> Callable[[jax.Array, Any], jax.Array]:
    """½ mean (prediction − y)² in W, data = (X, y, v, b, c); kept, to share compilations."""

    def loss(W: jax.Array, data: tuple[jax.Array, ...]) -> jax.Array:
        X, y, v, b, c = data
        return 0.5 * jnp.mean((activation.fn(X @ W.T + b) @ v + c - y) ** 2)

    return loss


_value_and_grad = cache(jax.value_and_grad)


def linear_rate(values: np.ndarray) -> float:
    """Factor a step of a geometrically falling sequence, by least squares on its logarithm.

    The first fifth (not yet linear) and everything within 10⁴ roundings of zero are left out.
    """
    values = np.asarray(values, float)
    least = max(float(np.max(values)) * 1e-26, 1e-28)
    below = np.flatnonzero(values <= least)
    end = int(below[0]) if len(below) else len(values)
    start = end // 5
    if end - start < 5 or not values[end - 1] < 0.1 * values[0]:
        return float("nan")
    t = np.arange(start, end)
    return float(np.exp(np.polyfit(t, np.log(values[start:end]), 1)[0]))


@in_double
def newton_descent(
    function: Callable[[Any, Any], jax.Array],
    starts: npt.ArrayLike,
    data: object,
    *,
    steps: int = 200,
    radius: float = 0.5,
    tolerance: float = 1e-11,
) -> np.ndarray:
    """Minimise from every start by trust-region Newton steps, past saddles: up to a few hundred parameters.

    Parameters
    ----------
    function : callable
        (params, data) -> value, traceable; a kept function shares compilations.
    starts : array_like of shape (s, …)
        Parameters, one run each.
    data : object
        Second argument of the function.
    steps : int
        Steps at most.
    radius : float
        Of the first trust region, and of the step off an exact saddle.
    tolerance : float
        Of gradient and negative curvature, relative to 1 + λ_max.

    Returns
    -------
    ndarray of shape (s, …)
        The end of every run, a minimum unless the steps ran out.
    """
    starts = np.asarray(starts, float)
    look = partial(derivatives, function, starts.shape[1:], data)
    ends = [_newton(look, start.ravel(), steps, radius, tolerance) for start in starts]
    return np.reshape(ends, starts.shape)


def _newton(
    look: Callable[..., Any], x: np.ndarray, steps: int, radius: float, tolerance: float
) -> np.ndarray:
    """One run: SciPy's steps to a stationary point, and one along the way down while there is any."""
    largest = np.abs(np.linalg.eigvalsh(look(x, 2))).max()
    while True:
        run = minimize(
            partial(look, order=1), x, jac=True, hess=partial(look, order=2), method="trust-exact",
            options={"initial_trust_radius": radius, "max_trust_radius": 10.0, "maxiter": steps,
                     "gtol": tolerance * (1 + largest)},
        )  # fmt: skip
        x, steps = run.x, steps - max(run.nit, 1)
        curvatures, directions = np.linalg.eigh(look(x, 2))
        largest = np.abs(curvatures).max()
        if curvatures[0] >= -tolerance * (1 + largest) or steps <= 0:
            return x
        x = x + radius * directions[:, 0]


def derivatives(
    function: Callable[[Any, Any], jax.Array], shape: tuple[int, ...], data: object, x: np.ndarray, order: int
) -> Any:
    """Value and gradient, or the Hessian, in the flat coordinates of a point, in NumPy's numbers."""
    found = jax.device_get(_traced(function, shape, order, data, jnp.asarray(x).ravel()))
    return np.asarray(found) if order == 2 else (float(found[0]), np.asarray(found[1]))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _traced(
    function: Callable[[Any, Any], jax.Array], shape: tuple[int, ...], order: int, data: object, x: jax.Array
) -> Any:
    make = jax.hessian if order == 2 else jax.value_and_grad
    return make(lambda x: function(x.reshape(shape), data))(x)
