"""Full-batch descents: gradient steps 1/M_0 with their linear rate and basin, and Newton steps on |∇²f|.

f(W) = 1/(2n) Σ (Σ_i v_i g(<w_i, x> + b_i) + c - y)², over W alone: v, b, c are held, as in the corollary
|W⁺ - W*|² <= (1 - m_0/M_0) |W - W*|² of [ZSJBD].

Designed objectives at the weights of their theorems have curvatures 10⁸ apart, the saddles' being the small
ones: first-order methods see a plateau where the eigenvectors of the Hessian, inside a trust region, see the
way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.activations import Activation
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden.run import stream
from onehidden_papers.lab.convexity import empirical_hessian


@dataclass(frozen=True)
class Descent:
    """What the descent did.

    Attributes
    ----------
    weights : ndarray of shape (k, d)
        Where it ended.
    losses : ndarray of shape (steps + 1,)
        f(W) along the way, the start included.
    distances : ndarray of shape (steps + 1,)
        |W - W*|_F where a truth was given, else empty.
    step : float
        The step size 1/M_0.
    rate : float
        Factor of f a step, fitted over the straight part of log f; NaN when it never fell by 10.
    converged : bool
        Whether the loss ended below ``tolerance``.
    """

    weights: np.ndarray
    losses: np.ndarray
    distances: np.ndarray
    step: float
    rate: float
    converged: bool


@partial(jax.jit, static_argnums=(0, 1))
def _steps(
    activation: Activation,
    count: int,
    W: jax.Array,
    step: jax.Array,
    truth: jax.Array,
    problem: tuple[jax.Array, ...],
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Take so many steps; losses and distances are those before each."""
    X, y, v, b, c = problem

    def loss(W: jax.Array) -> jax.Array:
        return 0.5 * jnp.mean((activation.fn(X @ W.T + b) @ v + c - y) ** 2)

    def one(W: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        value, gradient = jax.value_and_grad(loss)(W)
        return W - step * gradient, (value, jnp.linalg.norm(W - truth))

    return jax.lax.scan(one, W, None, length=count)


@in_double
def descend(
    network: OneHiddenNet,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    smoothness: float,
    truth: npt.ArrayLike | None = None,
    steps: int = 2000,
    tolerance: float = 1e-20,
) -> Descent:
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
    truth : array_like of shape (k, d) or None
        W* in the same order of units, to measure distances.
    steps : int
        Number of steps at most.
    tolerance : float
        Loss at which to stop, looked at every 100 steps.

    Returns
    -------
    Descent
        The weights at the end, and the losses and distances on the way.
    """
    if not (np.isfinite(smoothness) and smoothness > 0):
        raise ValueError(f"smoothness M_0 must be positive and finite, got {smoothness}")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, got {steps}")
    parts = (X, y, network.output, network.bias, network.intercept)
    problem = tuple(jnp.asarray(np.asarray(part, float)) for part in parts)
    W, step = jnp.asarray(network.weights), jnp.asarray(1.0 / smoothness)
    aim = jnp.zeros_like(W) if truth is None else jnp.asarray(np.asarray(truth, float))
    taken, rows = 0, []
    while taken < steps:
        count = min(100, steps - taken)
        W, path = _steps(network.activation, count, W, step, aim, problem)
        taken += count
        rows.append(np.stack(path))
        if not np.all(np.isfinite(rows[-1])) or rows[-1][0, -1] <= tolerance:
            break
    rows.append(np.stack(_steps(network.activation, 1, W, step, aim, problem)[1]))
    losses, distances = np.concatenate(rows, axis=1)
    return Descent(
        np.asarray(W),
        losses,
        distances if truth is not None else np.zeros(0),
        1.0 / smoothness,
        linear_rate(losses),
        bool(losses[-1] <= tolerance),
    )


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


@dataclass(frozen=True)
class Basin:
    """Shares of random displacements, by radius |W - W*|_F / σ_k.

    Attributes
    ----------
    radii : tuple of float
        The radii tried.
    convex : tuple of float
        Share at which the Hessian on the data was positive definite.
    returned : tuple of float
        Share from which gradient descent ended nearer than a tenth of where it began, still falling.
    convex_radius, radius : float
        The largest radius up to which every displacement was convex, returned (0: none).
    """

    radii: tuple[float, ...]
    convex: tuple[float, ...]
    returned: tuple[float, ...]
    convex_radius: float
    radius: float


def basin(
    network: OneHiddenNet,
    X: npt.ArrayLike,
    *,
    radii: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6),
    trials: int = 5,
    steps: int = 3000,
    seed: int = 0,
) -> Basin:
    """Displace the weights at random, look at the curvature there, and descend on noise-free data.

    Parameters
    ----------
    network : OneHiddenNet
        The network; at most as many units as inputs.
    X : array_like of shape (n, d)
        Inputs; the network gives the labels.
    radii : sequence of float
        Sizes of displacements, |W - W*|_F / σ_k.
    trials : int
        Displacements of each size.
    steps : int
        Steps of each descent.
    seed : int
        Seed of the displacements.

    Returns
    -------
    Basin
        Shares of convex and of returning displacements by radius.
    """
    if network.n_hidden > network.n_inputs:
        raise ValueError(
            f"radii are in units of σ_k: {network.n_hidden} units exceed {network.n_inputs} inputs"
        )
    X, truth = np.asarray(X, float), network.weights
    y = network.predict(X)
    random = stream(seed, "basin")
    unit = float(np.linalg.svd(truth, compute_uv=False)[-1])

    def attempt(radius: float) -> tuple[bool, bool]:
        """Whether the loss is convex at one displacement, and whether descent returns from there."""
        move = random.standard_normal(truth.shape)
        start = replace(network, weights=truth + radius * unit * move / np.linalg.norm(move))
        spectrum = np.linalg.eigvalsh(empirical_hessian(start, X, y))
        # The curvature changes on the way: twice the largest eigenvalue here keeps the step stable.
        path = descend(start, X, y, smoothness=2 * float(spectrum[-1]), truth=truth, steps=steps)
        return bool(spectrum[0] > 0), bool(path.distances[-1] < 0.1 * path.distances[0])

    shares = [np.mean([attempt(radius) for _ in range(trials)], axis=0) for radius in radii]
    convex, returned = (tuple(map(float, part)) for part in zip(*shares, strict=True))
    return Basin(tuple(map(float, radii)), convex, returned, _reach(radii, convex), _reach(radii, returned))


def _reach(radii: Sequence[float], shares: Sequence[float]) -> float:
    """Return the largest radius up to which every share is one."""
    whole = [radius for radius, _ in takewhile(lambda pair: pair[1] == 1, zip(radii, shares, strict=True))]
    return float(max(whole, default=0.0))


Look = tuple[jax.Array, ...]  # value, gradient, eigenvalues, eigenvectors, |gradient|, whether it is the end
Carry = tuple[jax.Array, jax.Array, jax.Array, jax.Array, Look]  # point, key, radius, steps, look


@dataclass(frozen=True)
class NewtonDescent:
    """Where each run of ``saddle_free_newton`` stopped; leading axis of starts everywhere."""

    params: np.ndarray
    values: np.ndarray
    gradient_norms: np.ndarray
    lambda_min: np.ndarray  # smallest curvature
    steps: np.ndarray  # taken until gradient and curvature were within tolerance, or the limit
    converged: np.ndarray  # |∇| ≤ tolerance·(1 + λ_max) and λ_min ≥ −tolerance·(1 + λ_max)


@in_double
def saddle_free_newton(
    function: Callable[[Any, Any], jax.Array],  # (params, data) -> value, traceable
    starts: npt.ArrayLike,  # (s, ...)
    data: object,
    *,
    steps: int = 200,
    tolerance: float = 1e-11,  # on |∇| and on −λ_min, relative to the largest curvature
    radius: float = 0.5,  # of the first trust region
    seed: int = 0,
) -> NewtonDescent:
    """Minimise from every start (leading axis) with dense Hessians: up to a few hundred parameters."""
    points = jnp.asarray(np.asarray(starts, float))
    keys = jax.random.split(jax.random.key(seed), len(points))
    out = _run(function, int(steps), points, keys, data, tolerance, radius)
    return NewtonDescent(*(np.asarray(part) for part in out))


@partial(jax.jit, static_argnums=(0, 1))
def _run(
    function: Callable[[Any, Any], jax.Array],
    steps: int,
    starts: jax.Array,
    keys: jax.Array,
    data: object,
    tolerance: float,
    radius: float,
) -> tuple[jax.Array, ...]:
    shape = starts.shape[1:]
    f = lambda x: function(x.reshape(shape), data)  # noqa: E731
    eye = jnp.eye(int(np.prod(shape)))

    def look(x: jax.Array) -> Look:
        gradient, curve = jax.linearize(jax.grad(f), x)
        H = jax.vmap(curve)(eye)
        eigenvalues, vectors = jnp.linalg.eigh((H + H.T) / 2)
        norm = jnp.sqrt(jnp.sum(gradient**2))
        scale = tolerance * (1 + jnp.max(jnp.abs(eigenvalues)))
        done = (norm <= scale) & (eigenvalues[0] >= -scale)
        return f(x), gradient, eigenvalues, vectors, norm, done

    def advance(carry: Carry) -> Carry:
        x, key, delta, count, (value, gradient, eigenvalues, vectors, _, _) = carry
        key, now = jax.random.split(key)
        step = _trust_step(
            vectors.T @ gradient, eigenvalues, delta, jax.random.rademacher(now, (), float), tolerance
        )
        predicted = step @ (vectors.T @ gradient) + 0.5 * jnp.sum(eigenvalues * step**2)
        new = x + vectors @ step
        actual = f(new) - value
        # At rounding level the ratio is noise: a Newton step that does not climb is then as good as any.
        rounding = 1e-14 * (1 + jnp.abs(value))
        good = (actual <= 0.1 * predicted) | (jnp.abs(actual) <= rounding) & (predicted >= -rounding)
        delta = jnp.where(good, jnp.where(actual <= 0.5 * predicted, 2 * delta, delta), delta / 4)
        x = jnp.where(good, new, x)
        return x, key, jnp.minimum(delta, 10.0), count + 1, look(x)

    def going(carry: Carry) -> jax.Array:
        return (carry[3] < steps) & ~carry[4][5] & (carry[2] > 1e-15)

    def one(x: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
        x = x.ravel()
        x, _, _, count, (value, _, eigenvalues, _, norm, done) = jax.lax.while_loop(
            going, advance, (x, key, jnp.asarray(radius), jnp.asarray(0), look(x))
        )
        return x.reshape(shape), value, norm, eigenvalues[0], count, done

    # One start after the other: batched loops would all wait for the slowest.
    return jax.lax.map(lambda pair: one(*pair), (starts, keys))


def _trust_step(
    g: jax.Array, eigenvalues: jax.Array, delta: jax.Array, sign: jax.Array, tolerance: float
) -> jax.Array:
    """−g_i/(|λ_i| + ν), ν ≥ 0 such that |step| ≤ delta, and a push along the way down where g has none."""
    size = jnp.max(jnp.abs(eigenvalues))
    floor = tolerance * (1 + size)
    absolute = jnp.maximum(jnp.abs(eigenvalues), floor)
    length = lambda nu: jnp.sqrt(jnp.sum((g / (absolute + nu)) ** 2))  # noqa: E731

    def bisect(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = jnp.sqrt(low * high)
        return jnp.where(length(middle) > delta, middle, low), jnp.where(length(middle) > delta, high, middle)

    top = jnp.sqrt(jnp.sum(g**2)) / delta + floor
    _, nu = jax.lax.fori_loop(0, 40, bisect, (floor * 1e-6, top))
    nu = jnp.where(length(0.0) <= delta, 0.0, nu)
    step = -g / (absolute + nu)
    # On a saddle the gradient along the most negative curvature can be zero: take what is left of the radius.
    left = jnp.sqrt(jnp.maximum(delta**2 - jnp.sum(step**2), 0.0))
    towards = jnp.where(step[0] == 0, sign, jnp.sign(step[0]))
    return step.at[0].add(jnp.where(eigenvalues[0] < -floor, towards * left, 0.0))
