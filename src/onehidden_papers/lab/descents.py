"""Full-batch descents: gradient steps 1/M_0 with their linear rate and basin, and Newton steps on |∇²f|.

f(W) = 1/(2n) Σ (Σ_i v_i g(<w_i, x> + b_i) + c - y)², over W alone: v, b, c are held, as in the corollary
|W⁺ - W*|² <= (1 - m_0/M_0) |W - W*|² of [ZSJBD].

Designed objectives at the weights of their theorems have curvatures 10⁸ apart, the saddles' being the small
ones: first-order methods see a plateau where the eigenvectors of the Hessian, inside a trust region, see the
way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.network import OneHiddenNet
from onehidden.precision import in_double
from onehidden.streams import stream
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


@lru_cache(maxsize=32)
def _runner(
    fn: Callable[[jax.Array], jax.Array], slope: Callable[[jax.Array], jax.Array], steps: int
) -> Callable:
    """Compiled block of ``steps`` steps for one activation."""

    def value_and_gradient(W: jax.Array, problem: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        X, y, v, b, c = problem
        t = X @ W.T + b
        r = fn(t) @ v + c - y
        return 0.5 * jnp.mean(r**2), ((r[:, None] * slope(t)) * v).T @ X / X.shape[0]

    def block(
        W: jax.Array, step: jax.Array, truth: jax.Array, problem: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        def one(W: jax.Array, _: None) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            value, gradient = value_and_gradient(W, problem)
            return W - step * gradient, (value, jnp.linalg.norm(W - truth))

        return jax.lax.scan(one, W, None, length=steps)

    return jax.jit(block)


@in_double
def descend(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    weights: npt.ArrayLike,
    output: npt.ArrayLike,
    *,
    fn: Callable[[jax.Array], jax.Array],
    slope: Callable[[jax.Array], jax.Array],
    smoothness: float,
    bias: npt.ArrayLike | None = None,
    intercept: float = 0.0,
    truth: npt.ArrayLike | None = None,
    steps: int = 2000,
    tolerance: float = 1e-20,
) -> Descent:
    """Gradient descent from ``weights`` with step 1/``smoothness``.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.
    weights : array_like of shape (k, d)
        Rows at the start; only they move.
    output : array_like of shape (k,)
        Output weights.
    fn, slope : callable
        g and g' as JAX functions (``activation.fn``, ``activation.slope``).
    smoothness : float
        M_0, an upper bound of the Hessian's eigenvalues on the way.
    bias : array_like of shape (k,) or None
        Hidden biases; zeros when None.
    intercept : float
        The constant.
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
    W = jnp.asarray(np.asarray(weights, float))
    k = W.shape[0]
    problem = tuple(
        jnp.asarray(np.asarray(a, float))
        for a in (X, y, output, np.zeros(k) if bias is None else bias, intercept)
    )
    reference = jnp.asarray(np.asarray(truth, float)) if truth is not None else jnp.zeros_like(W)
    step = jnp.asarray(1.0 / smoothness)
    block = min(100, steps)
    run = _runner(fn, slope, block)
    losses: list[np.ndarray] = []
    distances: list[np.ndarray] = []
    for _ in range(-(-steps // block)):
        W, (value, distance) = run(W, step, reference, problem)
        losses.append(np.asarray(value))
        distances.append(np.asarray(distance))
        if not np.all(np.isfinite(losses[-1])) or losses[-1][-1] <= tolerance:
            break
    _, (value, distance) = _runner(fn, slope, 1)(W, step, reference, problem)
    trace = np.append(np.concatenate(losses), np.asarray(value))
    path = np.append(np.concatenate(distances), np.asarray(distance)) if truth is not None else np.zeros(0)
    return Descent(
        np.asarray(W), trace, path, float(1.0 / smoothness), linear_rate(trace), bool(trace[-1] <= tolerance)
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
    X = np.asarray(X, float)
    y = network.predict(X)
    random = stream(seed, "basin")
    g, truth = network.activation, network.weights
    unit = float(np.linalg.svd(truth, compute_uv=False)[-1])
    convex, returned = [], []
    for radius in radii:
        good, back = 0, 0
        for _ in range(trials):
            move = random.standard_normal(truth.shape)
            start = truth + radius * unit * move / np.linalg.norm(move)
            displaced = OneHiddenNet(start, network.output, network.bias, network.intercept, g)
            spectrum = np.linalg.eigvalsh(empirical_hessian(displaced, X, y))
            good += bool(spectrum[0] > 0)
            path = descend(
                X,
                y,
                start,
                network.output,
                fn=g.fn,
                slope=g.slope,
                # The curvature changes on the way: twice the largest eigenvalue here keeps the step stable.
                smoothness=2 * float(spectrum[-1]),
                bias=network.bias,
                intercept=network.intercept,
                truth=truth,
                steps=steps,
            )
            back += bool(path.distances[-1] < 0.1 * path.distances[0])
        convex.append(good / trials)
        returned.append(back / trials)
    return Basin(
        tuple(float(r) for r in radii),
        tuple(convex),
        tuple(returned),
        _largest(radii, convex),
        _largest(radii, returned),
    )


def _largest(radii: Sequence[float], shares: list[float]) -> float:
    best = 0.0
    for radius, share in zip(radii, shares, strict=True):
        if share < 1:
            break
        best = float(radius)
    return best


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
