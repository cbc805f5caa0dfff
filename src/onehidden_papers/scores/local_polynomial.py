"""Local likelihood of any degree with a compact kernel: batched Newton, the integral by quadrature."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import combinations_with_replacement, permutations
from math import factorial, prod

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.machine import in_double
from onehidden_papers.scores.local_gaussian import LocalFit

# One-dimensional factors on [-1, 1]; the kernel is their product, zero outside the box of half-width h times
# this (the cut Gaussian's h keeps its meaning of a standard deviation).
KERNELS = {"gaussian": 3.0, "tricube": 1.0}
# Nodes on each half of an axis: the tricube has a kink at the middle, which must be a panel's edge.
_NODES = {1: 24, 2: 13, 3: 7, 4: 5}
MAX_INPUTS = max(_NODES)
_State = tuple[int | jax.Array, jax.Array, jax.Array]  # step, coefficients, worst relative gradient


def _factor(kernel: str, t: jax.Array) -> jax.Array:
    """One-dimensional kernel at t in units of its reach, |t| <= 1."""
    if kernel == "gaussian":
        return jnp.where(jnp.abs(t) <= 1, jnp.exp(-0.5 * (KERNELS[kernel] * t) ** 2), 0.0)
    return (1 - jnp.minimum(jnp.abs(t), 1.0) ** 3) ** 3


@lru_cache(maxsize=32)
def exponents(d: int, degree: int) -> tuple[tuple[int, ...], ...]:
    """Index tuples of the monomials t_{i_1}…t_{i_j}, j = 0 … degree."""
    return tuple(index for j in range(degree + 1) for index in combinations_with_replacement(range(d), j))


def _monomials(t: jax.Array, index: tuple[tuple[int, ...], ...]) -> jax.Array:
    """Each monomial at t (…, d), without the factorials; (…, p)."""
    return jnp.stack([jnp.prod(t[..., list(one)], axis=-1) for one in index], axis=-1)


@lru_cache(maxsize=32)
def _quadrature(d: int, degree: int, kernel: str) -> tuple[np.ndarray, np.ndarray]:
    """Monomials at tensor Gauss–Legendre nodes of the box (N, p), and weights with the kernel (N,)."""
    half, w = np.polynomial.legendre.leggauss(_NODES[d])
    t, w = np.concatenate([(half - 1) / 2, (half + 1) / 2]), np.concatenate([w, w]) / 2
    nodes = np.stack(np.meshgrid(*([t] * d), indexing="ij"), -1).reshape(-1, d)
    weights = np.prod(np.stack(np.meshgrid(*([w] * d), indexing="ij"), -1).reshape(-1, d), axis=1)
    kernel_values = np.prod(np.asarray(_factor(kernel, jnp.asarray(nodes))), axis=1)
    return np.asarray(_monomials(jnp.asarray(nodes), exponents(d, degree))), weights * kernel_values


@partial(jax.jit, static_argnames=("degree", "kernel"))
def _local_sums(
    Q: jax.Array, reach: jax.Array, Z: jax.Array, weight: jax.Array, degree: int, kernel: str
) -> jax.Array:
    """Σ_i K(t_i) φ(t_i), t = (z - x)/reach, for one tile of queries; Z (t, s, d), weight (t, s)."""
    index = exponents(Q.shape[1], degree)

    def one(total: jax.Array, tile: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        Zt, wt = tile
        t = (Zt[None] - Q[:, None]) / reach[:, None, None]
        K = jnp.prod(_factor(kernel, t), axis=-1) * wt[None]
        inside = jnp.where(K[..., None] > 0, t, 0.0)
        return total + jnp.einsum("qs,qsp->qp", K, _monomials(inside, index)), None

    return jax.lax.scan(one, jnp.zeros((Q.shape[0], len(index))), (Z, weight))[0]


@jax.jit
def _newton(b: jax.Array, Phi: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Maximise ⟨b, c⟩ - ∫K exp⟨c, φ⟩ for each row of b; returns c and the final gradient, relative.

    All rows move together through matrix products. The step is full near the answer and damped by the
    Newton decrement before; of three lengths the best is taken.
    """
    p = Phi.shape[1]
    pairs = (Phi[:, :, None] * Phi[:, None, :]).reshape(-1, p * p)
    mass = jnp.maximum(b[:, 0], 1e-300)
    start = jnp.zeros_like(b).at[:, 0].set(jnp.log(mass / weight.sum()))

    def density(c: jax.Array) -> jax.Array:
        return jnp.exp(jnp.minimum(c @ Phi.T, 600.0)) * weight

    def objective(c: jax.Array) -> jax.Array:
        value = jnp.sum(b * c, axis=1) - density(c).sum(axis=1)
        return jnp.where(jnp.isfinite(value), value, -jnp.inf)

    def unfinished(state: _State) -> jax.Array:
        i, c, worst = state
        return (i < 30) & jnp.any(worst > 1e-13) & jnp.any(jnp.isfinite(c))

    def body(state: _State) -> _State:
        i, c, _ = state
        weights = density(c)
        g = b - weights @ Phi
        H = (weights @ pairs).reshape(-1, p, p)
        # A ridge at rounding level: strictly concave, but the Hessian may be nearly singular.
        H = H + 1e-14 * jnp.trace(H, axis1=1, axis2=2)[:, None, None] * jnp.eye(p)
        move = jnp.linalg.solve(H, g[:, :, None])[:, :, 0]
        move = jnp.where(jnp.isfinite(move).all(axis=1, keepdims=True), move, 0.0)
        decrement = jnp.sqrt(jnp.maximum(jnp.sum(g * move, axis=1), 0.0) / mass)
        lengths = jnp.stack([jnp.ones_like(decrement), 1 / (1 + decrement), 0.2 / (1 + decrement)])
        values = jax.vmap(lambda s: objective(c + s[:, None] * move))(lengths)
        best = jnp.take_along_axis(lengths, jnp.argmax(values, axis=0)[None], axis=0)[0]
        gain = values.max(axis=0) > objective(c)
        # Near the answer the objective is flat to rounding: take the full step there.
        step = jnp.where(decrement < 1e-3, 1.0, jnp.where(gain, best, 0.0))
        c = c + step[:, None] * move
        return i + 1, c, jnp.where(step > 0, jnp.abs(g).max(axis=1) / mass, 0.0)

    c = jax.lax.while_loop(unfinished, body, (0, start, jnp.ones_like(mass)))[1]
    return c, jnp.abs(b - density(c) @ Phi).max(axis=1) / mass


@in_double
def polynomial_fit(Z: np.ndarray, Q: np.ndarray, h: np.ndarray, degree: int, kernel: str) -> LocalFit:
    """Solve (5) of [GMOV] at every row of Q."""
    (n, d), q = Z.shape, len(Q)
    index, reach = exponents(d, degree), KERNELS[kernel] * h
    tile_q, tile_n = (128, 1024) if jax.default_backend() == "cpu" else (2048, 8192)
    tile_n = min(tile_n, n)
    tile_q = tile_q if q > 8 else 8  # two compiled shapes: many queries, or the few that need another try
    data = np.pad(Z, ((0, -n % tile_n), (0, 0))).reshape(-1, tile_n, d)
    weight = np.pad(np.ones(n), (0, -n % tile_n)).reshape(-1, tile_n)
    Phi, node_weight = _quadrature(d, degree, kernel)
    rows = np.pad(Q, ((0, -q % tile_q), (0, 0)), mode="edge")
    width = np.pad(reach, (0, -q % tile_q), mode="edge")
    parts = []
    for at in range(0, len(rows), tile_q):
        tile = slice(at, at + tile_q)
        b = _local_sums(rows[tile], width[tile], data, weight, degree, kernel)
        c, residual = _newton(b / (n * width[tile, None] ** d), Phi, node_weight)
        parts.append((c, residual, b[:, 0]))
    c, residual, mass = (
        np.concatenate([np.asarray(one) for one in some])[:q] for some in zip(*parts, strict=True)
    )
    ok = np.isfinite(c).all(axis=1) & (residual < 1e-8) & (mass > 1e-6)
    c = np.where(ok[:, None], c, 0.0)
    derivatives = [np.zeros((q,) + (d,) * j) for j in range(1, degree + 1)]
    for one, column in zip(index[1:], c.T[1:], strict=True):
        # The derivative of coefficient · monomial, at every permutation of its index.
        repeats = prod(factorial(one.count(i)) for i in set(one))
        for place in set(permutations(one)):
            derivatives[len(one) - 1][(slice(None), *place)] = column / reach ** len(one) * repeats
    return LocalFit(derivatives, mass, ok, c[:, 0])
