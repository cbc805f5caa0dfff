"""Value and gradient of c₁ Σ_jl T_4(b_j,b_j,b_l,b_l) − c₂ Σ_j T_4(b_j⁴) in one blocked pass over the samples.

Samples are visited in blocks that stay in cache; each block yields its value and its gradient, so nothing of
size n × k is ever written to memory. The Gaussian gradient is written out: with Z = X Bᵀ and s = Σ_j z_j²,
∂/∂z_j of c₁ s² − c₂ Σ z_j⁴ is 4 z_j (c₁ s − c₂ z_j²), so a block costs the products X Bᵀ and (·)ᵀX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from onehidden.objectives.sources import GaussianBatch, Mixture, ProductBatch, Quartics

_CACHE_BLOCK, _WHOLE = 2048, 1 << 20
_ROWS = {GaussianBatch: ("X", "y"), ProductBatch: ("G1", "G2", "y")}


def quartic_value_and_grad(
    source: Quartics, B: jax.Array, total: float, diagonal: float
) -> tuple[jax.Array, jax.Array]:
    """Value and gradient in B; any source, blocked where it holds samples."""
    if isinstance(source, Mixture):
        value, gradient = jnp.zeros(()), jnp.zeros_like(B)
        for part, W in zip(source.parts, source.maps, strict=True):
            v, g = quartic_value_and_grad(part, B @ W.T, total, diagonal)
            value, gradient = value + v, gradient + g @ W
        return value, gradient
    if not isinstance(source, GaussianBatch | ProductBatch):
        return jax.value_and_grad(lambda b: combine(source.quartic(b), total, diagonal))(B)
    value, gradient = jax.value_and_grad(lambda b: combine(source.small_part(b), total, diagonal))(B)
    v, g = _over_samples(source, B, total, diagonal)
    return value + v, gradient + g


def combine(quartic: tuple[jax.Array, jax.Array], total: float, diagonal: float) -> jax.Array:
    """total·(all pairs) − diagonal·(sum of the fourth powers)."""
    return total * quartic[0] - diagonal * jnp.sum(quartic[1])


def _over_samples(
    source: GaussianBatch | ProductBatch, B: jax.Array, total: float, diagonal: float
) -> tuple[jax.Array, jax.Array]:
    n = source.y.shape[0]
    one = _gaussian_block if isinstance(source, GaussianBatch) else _product_block
    rows = [getattr(source, name) for name in _ROWS[type(source)]]
    # On an accelerator blocks would only serialise; there one block is as large as memory likes.
    size = _CACHE_BLOCK if jax.default_backend() == "cpu" else _WHOLE
    blocks = n // size
    value, gradient = jnp.zeros((), B.dtype), jnp.zeros_like(B)
    if blocks > 1:
        head = [a[: blocks * size].reshape(blocks, size, *a.shape[1:]) for a in rows]

        def step(
            carry: tuple[jax.Array, jax.Array], block: tuple[jax.Array, ...]
        ) -> tuple[tuple[jax.Array, jax.Array], None]:
            v, g = one(B, total, diagonal, *block)
            return (carry[0] + v, carry[1] + g), None

        (value, gradient), _ = jax.lax.scan(step, (value, gradient), tuple(head))
        rows = [a[blocks * size :] for a in rows]
    if rows[0].shape[0]:
        v, g = one(B, total, diagonal, *rows)
        value, gradient = value + v, gradient + g
    return value / n, gradient / n


def _gaussian_block(
    B: jax.Array, total: float, diagonal: float, X: jax.Array, y: jax.Array
) -> tuple[jax.Array, jax.Array]:
    Z = X @ B.T
    square = Z**2
    s = jnp.sum(square, axis=1)
    value = jnp.sum(y * (total * s**2 - diagonal * jnp.sum(square**2, axis=1)))
    return value, (4 * y[:, None] * Z * (total * s[:, None] - diagonal * square)).T @ X


def _product_block(
    B: jax.Array, total: float, diagonal: float, G1: jax.Array, G2: jax.Array, y: jax.Array
) -> tuple[jax.Array, jax.Array]:
    g = G1 @ B.T
    square = g**2
    s, own = jnp.sum(square, axis=1), G2 @ (B**2).T
    h = jnp.sum(own, axis=1)  # Σ_l G_ll, which is also G2 @ diag(BᵀB)
    R = g @ B
    GR = G2 * R
    pairs = s**2 + 2 * s * h + 4 * jnp.sum(GR * R, axis=1)
    value = jnp.sum(y * (total * pairs - diagonal * jnp.sum(square * (square + 6 * own), axis=1)))
    # Backwards by hand: own -> B², g -> B through G1, R -> B and g.
    dR = (8 * total * y)[:, None] * GR
    d_own = 2 * y[:, None] * (total * s[:, None] - 3 * diagonal * square)
    dg = 4 * y[:, None] * g * (total * (s + h)[:, None] - diagonal * (square + 3 * own)) + dR @ B.T
    return value, dg.T @ G1 + 2 * B * (d_own.T @ G2) + g.T @ dR
