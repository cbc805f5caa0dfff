"""Where moments come from: samples of a Gaussian or product law, tensors, or a known teacher.

A source answers, without ever building a d⁴ array from samples,

- ``quartic(B, total, diagonal)``: total·Σ_jl T_4(b_j,b_j,b_l,b_l) − diagonal·Σ_j T_4(b_j⁴);
- ``squared_excess(B, scale)``: the (k,) vector (T_2(b_j, b_j)/scale − 1)², where x ~ N(0, I).

The designed objectives need no more than these sums, and Σ_jl (b_jᵀx)²(b_lᵀx)² = (Σ_j (b_jᵀx)²)²: the pairs
cost O(n k), so a gradient step costs the two products X Bᵀ and (·)ᵀX and little else.
``quartic_value_and_grad`` visits samples in blocks that stay in cache, so nothing of size n × k is written to
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.laws.base import require_valid_orders
from onehidden.machine import in_double
from onehidden.moments import score_moments
from onehidden.network import OneHiddenNet
from onehidden_papers.objectives.signal import unit_coefficients


class _Samples:
    """What sources that hold samples share: sums over rows, and what stored moments give without them."""

    rows: ClassVar[tuple[str, ...]]  # fields with one row a sample that ``sample_sum`` reads
    y: jax.Array

    def quartic(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        return self.stored(B, total, diagonal) + self.sample_sum(B, total, diagonal) / self.y.shape[0]

    def stored(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        """Return the part of ``quartic`` that stored moments give."""
        raise NotImplementedError

    def sample_sum(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        """Return n times the rest of ``quartic``, a sum over the samples."""
        raise NotImplementedError


@dataclass(frozen=True)
class GaussianBatch(_Samples):
    """Samples of N(0, I): rows x, labels y, and the batch's own E[y], E[y x xᵀ]."""

    X: jax.Array
    y: jax.Array
    mean: jax.Array
    second: jax.Array
    rows = ("X", "y")

    @classmethod
    def of(cls, X: jax.Array, y: jax.Array) -> GaussianBatch:
        return cls(X, y, jnp.mean(y), (X * y[:, None]).T @ X / X.shape[0])

    # S_4(u,u,v,v) = z_u²z_v² − |u|²z_v² − |v|²z_u² − 4 z_u z_v <u,v> + |u|²|v|² + 2<u,v>², z = X Bᵀ

    def sample_sum(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        square = (self.X @ B.T) ** 2
        pairs = jnp.sum(square, axis=1) ** 2
        return jnp.sum(self.y * (total * pairs - diagonal * jnp.sum(square**2, axis=1)))

    def stored(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        D, norms = B.T @ B, jnp.sum(B**2, axis=1)
        DM = D @ self.second
        pairs = -2 * jnp.sum(norms) * jnp.trace(DM) - 4 * jnp.sum(DM * D)
        pairs += self.mean * (jnp.sum(norms) ** 2 + 2 * jnp.sum(D**2))
        along = jnp.sum((B @ self.second) * B, axis=1)
        return total * pairs - diagonal * jnp.sum(3 * self.mean * norms**2 - 6 * norms * along)

    def squared_excess(self, B: jax.Array, scale: float) -> jax.Array:
        """Mean over ordered pairs of different samples: its expectation is the square, without a bias."""
        terms = self.y[:, None] * ((self.X @ B.T) ** 2 - jnp.sum(B**2, axis=1)) / scale - 1
        n = terms.shape[0]
        return (jnp.sum(terms, axis=0) ** 2 - jnp.sum(terms**2, axis=0)) / (n * (n - 1))


@dataclass(frozen=True)
class ProductBatch(_Samples):
    """Samples of a law with independent coordinates: derivatives 1–4 of log f at each coordinate."""

    G1: jax.Array
    G2: jax.Array
    G3: jax.Array
    G4: jax.Array
    y: jax.Array
    G22: jax.Array  # E[y ℓ'' ℓ''ᵀ]
    G31: jax.Array  # E[y ℓ''' ℓ'ᵀ]
    G4_mean: jax.Array
    rows = ("G1", "G2", "y")

    @classmethod
    def of(cls, derivatives: Sequence[jax.Array], y: jax.Array) -> ProductBatch:
        G1, G2, G3, G4 = derivatives
        n = y.shape[0]
        weighted = y[:, None] / n
        return cls(G1, G2, G3, G4, y, (G2 * weighted).T @ G2, (G3 * weighted).T @ G1, y @ G4 / n)

    # S_4(u,u,v,v) = g_u²g_v² + g_u²G_vv + g_v²G_uu + 4 g_u g_v G_uv + G_uu G_vv + 2 G_uv²
    #                + 2 g_u G_uvv + 2 g_v G_uuv + G_uuvv, summed over the pairs first.

    def sample_sum(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        g = self.G1 @ B.T
        square, second = g**2, self.G2 @ (B**2).T
        s = jnp.sum(square, axis=1)
        pairs = s**2 + 2 * s * jnp.sum(second, axis=1) + 4 * jnp.sum(self.G2 * (g @ B) ** 2, axis=1)
        own = jnp.sum(square * (square + 6 * second), axis=1)
        return jnp.sum(self.y * (total * pairs - diagonal * own))

    def stored(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        D, B2 = B.T @ B, B**2
        p = jnp.diag(D)
        pairs = p @ self.G22 @ p + 2 * jnp.sum(D**2 * self.G22)
        pairs += 4 * jnp.sum(p * jnp.sum(self.G31 * D, axis=1)) + self.G4_mean @ p**2
        own = 3 * jnp.sum((B2 @ self.G22) * B2) + 4 * jnp.sum((B2 * B) @ self.G31 * B)
        return total * pairs - diagonal * (own + jnp.sum(B2**2 @ self.G4_mean))


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

    def quartic(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        square = _powers(B, 2)
        pairs = square @ self.T[4].reshape(square.shape[1], -1) @ square.T
        return total * jnp.sum(pairs) - diagonal * jnp.trace(pairs)

    def squared_excess(self, B: jax.Array, scale: float) -> jax.Array:
        return (self.along(B, 2) / scale - 1) ** 2

    def along(self, B: jax.Array, m: int) -> jax.Array:
        """Return T_m(b_j^m), (k,)."""
        return _powers(B, m) @ self.T[m].ravel()

    def norm_squared(self, m: int) -> jax.Array:
        """Return |T_m|²_F."""
        return jnp.sum(self.T[m] ** 2)


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

    def quartic(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        square = (B @ self.directions.T) ** 2
        pairs, own = jnp.sum(square, axis=0) ** 2, jnp.sum(square**2, axis=0)
        return self.coefficients[4] @ (total * pairs - diagonal * own)

    def squared_excess(self, B: jax.Array, scale: float) -> jax.Array:
        return (self.along(B, 2) / scale - 1) ** 2

    def along(self, B: jax.Array, m: int) -> jax.Array:
        return (B @ self.directions.T) ** m @ self.coefficients[m]

    def norm_squared(self, m: int) -> jax.Array:
        c = self.coefficients[m]
        return c @ (self.directions @ self.directions.T) ** m @ c


@dataclass(frozen=True)
class PlainBatch:
    """Rows and labels as they are, for losses that predict."""

    X: jax.Array
    y: jax.Array


def _powers(B: jax.Array, order: int) -> jax.Array:
    """Rows b^{⊗order}, flattened."""
    out = jnp.ones((len(B), 1), B.dtype)
    for _ in range(order):
        out = (out[:, :, None] * B[:, None, :]).reshape(len(B), -1)
    return out


Quartics = GaussianBatch | ProductBatch | Tensors | RankOne  # what knows score moments
SOURCES = (GaussianBatch, ProductBatch, Tensors, RankOne, PlainBatch)
for _source in SOURCES:
    jax.tree_util.register_dataclass(_source, list(_source.__dataclass_fields__), [])


def source_of(score: Any, X: jax.Array, y: jax.Array, orders: tuple[int, ...], largest: int = 32) -> Any:
    """Return the source behind samples (X, y): the best form that the score, known or estimated, offers.

    Without a score Hermite forms of N(0, I); ``log_derivatives(X)`` of a product law; else score moments.
    """
    if score is None:
        return GaussianBatch.of(X, y)
    if hasattr(score, "log_derivatives"):
        require_valid_orders(score, orders)
        return ProductBatch.of([jnp.asarray(part) for part in score.log_derivatives(X)], y)
    if X.shape[1] > largest:
        raise ValueError(
            f"{type(score).__name__} has no contracted form here, and the moment of order 4 of {X.shape[1]} "
            f"inputs is too large (limit {largest}): pass score moments in the span of T_2 instead"
        )
    return Tensors.of(score_moments(X, y, score, orders, control_degree=-1), orders)


Sums = tuple[jax.Array, jax.Array]  # value and gradient


def quartic_value_and_grad(source: Quartics, B: jax.Array, total: float, diagonal: float) -> Sums:
    """Value and gradient in B of ``quartic``; any source, blocked where it holds samples."""
    if not isinstance(source, _Samples):
        return jax.value_and_grad(source.quartic)(B, total, diagonal)
    value, gradient = jax.value_and_grad(source.stored)(B, total, diagonal)
    v, g = _over_samples(source, B, total, diagonal)
    return value + v, gradient + g


def _over_samples(source: GaussianBatch | ProductBatch, B: jax.Array, total: float, diagonal: float) -> Sums:
    """Value and gradient of the mean over samples, block by block."""
    n = source.y.shape[0]
    # On an accelerator blocks would only serialise; there one block is as large as memory likes.
    size = 1 << 11 if jax.default_backend() == "cpu" else 1 << 20
    whole = n // size * size
    rows = {name: getattr(source, name) for name in source.rows}

    def add(sums: Sums, block: dict[str, jax.Array]) -> tuple[Sums, None]:
        part = jax.value_and_grad(lambda b: replace(source, **block).sample_sum(b, total, diagonal))(B)
        return jax.tree.map(jnp.add, sums, part), None

    sums = jnp.zeros((), B.dtype), jnp.zeros_like(B)
    blocks = {name: a[:whole].reshape(-1, size, *a.shape[1:]) for name, a in rows.items()}
    sums, _ = jax.lax.scan(add, sums, blocks) if whole else (sums, None)
    sums, _ = add(sums, {name: a[whole:] for name, a in rows.items()}) if whole < n else (sums, None)
    return sums[0] / n, sums[1] / n
