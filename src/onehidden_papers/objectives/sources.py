"""Where moments come from: samples of a Gaussian, product or mixture law, tensors, or a known teacher.

A source answers, without ever building a d⁴ array from samples,

- ``quartic(B)``: Σ_jl T_4(b_j,b_j,b_l,b_l) (all pairs, j = l included) and the (k,) vector T_4(b_j⁴);
- ``quadratic(B)``: the (k,) vector T_2(b_j, b_j);
- ``mixed(B, r, s)``: the (k, k) matrix T_{r+s}(b_j^r, b_l^s), for objectives of one's own design.

The designed objectives need no more than these sums, and Σ_jl (b_jᵀx)²(b_lᵀx)² = (Σ_j (b_jᵀx)²)²: the pairs
cost O(n k), so a gradient step costs the two products X Bᵀ and (·)ᵀX and little else.

``quartic_value_and_grad`` visits samples in blocks that stay in cache; each block yields its value and its
gradient, so nothing of size n × k is written to memory. Gradients are written out: with Z = X Bᵀ and
s = Σ_j z_j², ∂/∂z_j of c₁ s² − c₂ Σ z_j⁴ is 4 z_j (c₁ s − c₂ z_j²).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.precision import in_double
from onehidden_papers.objectives.signal import unit_coefficients

Quartic = tuple[jax.Array, jax.Array]


@dataclass(frozen=True)
class GaussianBatch:
    """Samples of N(0, I): rows x, labels y, and the batch's own E[y], E[y x xᵀ]."""

    X: jax.Array
    y: jax.Array
    mean: jax.Array
    second: jax.Array

    @classmethod
    def of(cls, X: jax.Array, y: jax.Array) -> GaussianBatch:
        return cls(X, y, jnp.mean(y), (X * y[:, None]).T @ X / X.shape[0])

    def sample_part(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        """E[y (total·s² − diagonal·Σ z_j⁴)], s = Σ z_j²: the only part that needs the samples."""
        square = (self.X @ B.T) ** 2
        s = jnp.sum(square, axis=1)
        return jnp.mean(self.y * (total * s**2 - diagonal * jnp.sum(square**2, axis=1)))

    def small_part(self, B: jax.Array) -> Quartic:
        """Return the terms of ``quartic`` that are functions of E[y] and E[y x xᵀ] alone."""
        D, norms = B.T @ B, jnp.sum(B**2, axis=1)
        DM = D @ self.second
        total = -2 * jnp.sum(norms) * jnp.trace(DM) - 4 * jnp.sum(DM * D)
        total += self.mean * (jnp.sum(norms) ** 2 + 2 * jnp.sum(D**2))
        return total, -6 * norms * self._second_along(B) + 3 * self.mean * norms**2

    def quartic(self, B: jax.Array) -> Quartic:
        # S_4(u,u,v,v) = z_u²z_v² − |u|²z_v² − |v|²z_u² − 4 z_u z_v <u,v> + |u|²|v|² + 2<u,v>²
        square = (self.X @ B.T) ** 2
        total, diagonal = self.small_part(B)
        return (
            total + jnp.mean(self.y * jnp.sum(square, axis=1) ** 2),
            diagonal + self.y @ square**2 / self.y.shape[0],
        )

    def quadratic_samples(self, B: jax.Array) -> jax.Array:
        """(n, k) terms y S_2(b, b), for unbiased squares."""
        return self.y[:, None] * ((self.X @ B.T) ** 2 - jnp.sum(B**2, axis=1))

    def quadratic(self, B: jax.Array) -> jax.Array:
        return self._second_along(B) - self.mean * jnp.sum(B**2, axis=1)

    def _second_along(self, B: jax.Array) -> jax.Array:
        return jnp.sum((B @ self.second) * B, axis=1)

    def mixed(self, B: jax.Array, r: int, s: int) -> jax.Array:
        Z, gram = self.X @ B.T, B @ B.T
        norms = jnp.diag(gram)
        cumulants = {
            (1, 0): Z[:, :, None],
            (0, 1): Z[:, None, :],
            (2, 0): -norms[None, :, None],
            (0, 2): -norms[None, None, :],
            (1, 1): -gram[None],
        }
        return _weighted_mean(self.y, score_from_cumulants(cumulants, r, s), B.shape[0])


@dataclass(frozen=True)
class ProductBatch:
    """Samples of a law with independent coordinates: derivatives 1–4 of log f at each coordinate."""

    G1: jax.Array
    G2: jax.Array
    G3: jax.Array
    G4: jax.Array
    y: jax.Array
    G22: jax.Array  # E[y ℓ'' ℓ''ᵀ]
    G31: jax.Array  # E[y ℓ''' ℓ'ᵀ]
    G4_mean: jax.Array

    @classmethod
    def of(cls, derivatives: Sequence[jax.Array], y: jax.Array) -> ProductBatch:
        G1, G2, G3, G4 = derivatives
        n = y.shape[0]
        weighted = y[:, None] / n
        return cls(G1, G2, G3, G4, y, (G2 * weighted).T @ G2, (G3 * weighted).T @ G1, y @ G4 / n)

    def sample_part(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        """Return the part of total·(all pairs) − diagonal·Σ_j that the stored moments do not give."""
        g = self.G1 @ B.T
        square = g**2
        s = jnp.sum(square, axis=1)
        pairs = s**2 + 2 * s * (self.G2 @ jnp.sum(B**2, axis=0)) + 4 * jnp.sum(self.G2 * (g @ B) ** 2, axis=1)
        own = jnp.sum(square * (square + 6 * (self.G2 @ (B**2).T)), axis=1)
        return jnp.mean(self.y * (total * pairs - diagonal * own))

    def small_part(self, B: jax.Array) -> Quartic:
        D = B.T @ B
        p = jnp.diag(D)
        total = p @ self.G22 @ p + 2 * jnp.sum(D**2 * self.G22)
        total += 4 * jnp.sum(p * jnp.sum(self.G31 * D, axis=1)) + self.G4_mean @ p**2
        B2 = B**2
        own = 3 * jnp.sum((B2 @ self.G22) * B2, axis=1) + 4 * jnp.sum((B2 * B) @ self.G31 * B, axis=1)
        return total, own + B2**2 @ self.G4_mean

    def quartic(self, B: jax.Array) -> Quartic:
        # S_4(u,u,v,v) = g_u²g_v² + g_u²G_vv + g_v²G_uu + 4 g_u g_v G_uv + G_uu G_vv + 2 G_uv²
        #                + 2 g_u G_uvv + 2 g_v G_uuv + G_uuvv, summed over the pairs first.
        total, diagonal = self.small_part(B)
        square = (self.G1 @ B.T) ** 2
        own = self.y @ (square * (square + 6 * (self.G2 @ (B**2).T))) / self.y.shape[0]
        return total + self.sample_part(B, 1.0, 0.0), diagonal + own

    def quadratic_samples(self, B: jax.Array) -> jax.Array:
        return self.y[:, None] * ((self.G1 @ B.T) ** 2 + self.G2 @ (B**2).T)

    def quadratic(self, B: jax.Array) -> jax.Array:
        return jnp.mean(self.quadratic_samples(B), axis=0)

    def mixed(self, B: jax.Array, r: int, s: int) -> jax.Array:
        if r + s > 4:
            raise ValueError(f"scores of a product law are known to order 4, this objective asks for {r + s}")
        derivatives = (self.G1, self.G2, self.G3, self.G4)
        cumulants = {
            (p, q): (-1.0) ** (p + q) * jnp.einsum("ni,ji,li->njl", derivatives[p + q - 1], B**p, B**q)
            for p in range(r + 1)
            for q in range(s + 1)
            if p + q > 0
        }
        return _weighted_mean(self.y, score_from_cumulants(cumulants, r, s), B.shape[0])


@dataclass(frozen=True)
class Mixture:
    """A sum of Gaussian sources, each in its own whitened coordinates x -> W(x − mean)."""

    parts: tuple[GaussianBatch, ...]
    maps: tuple[jax.Array, ...]  # rows b become b Wᵀ

    def _each(self, B: jax.Array) -> list[tuple[GaussianBatch, jax.Array]]:
        return [(part, B @ W.T) for part, W in zip(self.parts, self.maps, strict=True)]

    def quartic(self, B: jax.Array) -> Quartic:
        pairs = [part.quartic(C) for part, C in self._each(B)]
        return sum((p[0] for p in pairs), jnp.zeros(())), sum((p[1] for p in pairs), jnp.zeros(len(B)))

    def quadratic_samples(self, B: jax.Array) -> jax.Array:
        return sum((part.quadratic_samples(C) for part, C in self._each(B)), jnp.zeros(()))

    def quadratic(self, B: jax.Array) -> jax.Array:
        return sum((part.quadratic(C) for part, C in self._each(B)), jnp.zeros(len(B)))

    def mixed(self, B: jax.Array, r: int, s: int) -> jax.Array:
        return sum((part.mixed(C, r, s) for part, C in self._each(B)), jnp.zeros((len(B), len(B))))


@dataclass(frozen=True)
class Tensors:
    """Score moments as dense tensors in d, or in a subspace of fewer dimensions: T[m] of shape (r,)*m."""

    T: dict[int, jax.Array]

    @classmethod
    def of(cls, moments: Any, orders: Sequence[int]) -> Tensors:
        found = {}
        for m in orders:
            try:
                tensor = np.asarray(moments[m], float)
            except (KeyError, IndexError, TypeError):
                raise ValueError(
                    f"this objective reads the score moment of order {m}, which is missing"
                ) from None
            if tensor.ndim != m or len(set(tensor.shape)) > 1:
                raise ValueError(f"the moment of order {m} must be a (d,)*{m} tensor, got {tensor.shape}")
            found[m] = jnp.asarray(tensor)
        return cls(found)

    def quartic(self, B: jax.Array) -> Quartic:
        d = B.shape[1]
        squares = (B[:, :, None] * B[:, None, :]).reshape(len(B), d * d)
        pairs = (squares @ self.T[4].reshape(d * d, d * d)) @ squares.T
        return jnp.sum(pairs), jnp.diag(pairs)

    def quadratic(self, B: jax.Array) -> jax.Array:
        return jnp.sum((B @ self.T[2]) * B, axis=1)

    def mixed(self, B: jax.Array, r: int, s: int) -> jax.Array:
        d = B.shape[1]
        T = self.T[r + s].reshape(d**r, d**s)
        return _powers(B, r) @ T @ _powers(B, s).T


@dataclass(frozen=True)
class RankOne:
    """Exact moments of a teacher, T_m = Σ_i c_{m,i} u_i^{⊗m} with unit u_i: no tensor is built."""

    directions: jax.Array  # (k*, d)
    coefficients: dict[int, jax.Array]

    @classmethod
    @in_double
    def of(cls, teacher: OneHiddenNet, orders: Sequence[int]) -> RankOne:
        directions, coefficients = unit_coefficients(teacher, orders)
        return cls(jnp.asarray(directions), {m: jnp.asarray(c) for m, c in coefficients.items()})

    def quartic(self, B: jax.Array) -> Quartic:
        square = (B @ self.directions.T) ** 2
        c = self.coefficients[4]
        return c @ jnp.sum(square, axis=0) ** 2, square**2 @ c

    def quadratic(self, B: jax.Array) -> jax.Array:
        return (B @ self.directions.T) ** 2 @ self.coefficients[2]

    def mixed(self, B: jax.Array, r: int, s: int) -> jax.Array:
        Q = B @ self.directions.T
        return (Q**r * self.coefficients[r + s]) @ (Q**s).T


@dataclass(frozen=True)
class PlainBatch:
    """Rows and labels as they are, for losses that predict."""

    X: jax.Array
    y: jax.Array


def score_from_cumulants(cumulants: dict[tuple[int, int], jax.Array], r: int, s: int) -> jax.Array:
    """S_{r+s}(u^r, v^s) from K_{pq} = (−1)^{p+q} ∇^{p+q} log f (u^p, v^q).

    f(x − αu − βv)/f(x) is a moment generating function in (α, β) whose cumulants are K: the two-variable
    moment recursion is the Bell polynomial of the score.
    """
    known: dict[tuple[int, int], Any] = {(0, 0): jnp.ones(())}

    def moment(p: int, q: int) -> Any:
        if (p, q) not in known:
            first, i, j = ((1, 0), p - 1, q) if p > 0 else ((0, 1), p, q - 1)
            known[p, q] = sum(
                (
                    comb(i, a) * comb(j, b) * cumulants[a + first[0], b + first[1]] * moment(i - a, j - b)
                    for a in range(i + 1)
                    for b in range(j + 1)
                    if (a + first[0], b + first[1]) in cumulants
                ),
                jnp.zeros(()),
            )
        return known[p, q]

    return moment(r, s)


def _weighted_mean(y: jax.Array, samples: jax.Array, k: int) -> jax.Array:
    """(k, k) mean of y·samples, where samples broadcasts to (n, k, k)."""
    samples = jnp.atleast_3d(samples) if samples.ndim < 3 else samples
    return jnp.broadcast_to(jnp.mean(y[:, None, None] * samples, axis=0), (k, k))


def _powers(B: jax.Array, order: int) -> jax.Array:
    """Rows b^{⊗order}, flattened."""
    out = jnp.ones((len(B), 1), B.dtype)
    for _ in range(order):
        out = (out[:, :, None] * B[:, None, :]).reshape(len(B), -1)
    return out


Quartics = GaussianBatch | ProductBatch | Mixture | Tensors | RankOne  # what knows score moments
Source = Quartics | PlainBatch
SOURCES = (GaussianBatch, ProductBatch, Mixture, Tensors, RankOne, PlainBatch)
for _source in SOURCES:
    jax.tree_util.register_dataclass(_source, list(_source.__dataclass_fields__), [])


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
