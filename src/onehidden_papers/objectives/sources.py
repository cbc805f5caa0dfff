"""Where moments come from: samples of a Gaussian law, tensors, or a known teacher.

A source answers, without ever building a d⁴ array from samples,

- ``quartic(B, total, diagonal)``: total·Σ_jl T_4(b_j,b_j,b_l,b_l) − diagonal·Σ_j T_4(b_j⁴);
- ``squared_excess(B, scale)``: the (k,) vector (T_2(b_j, b_j)/scale − 1)², where x ~ N(0, I).

The designed objectives need no more than these sums, and Σ_jl (b_jᵀx)²(b_lᵀx)² = (Σ_j (b_jᵀx)²)²: the pairs
cost O(n k), so a gradient step costs a few products like X Bᵀ. Samples are visited in blocks that stay in
cache, so nothing of size n × k is written to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden_papers.activation_properties import hermite
from onehidden_papers.laws.base import row_powers


@dataclass(frozen=True)
class GaussianBatch:
    """Samples of N(0, I), or of any law for losses that predict: x, y, the batch's E[y] and E[y x xᵀ]."""

    X: jax.Array
    y: jax.Array
    mean: jax.Array
    second: jax.Array

    @classmethod
    def of(cls, X: jax.Array, y: jax.Array) -> GaussianBatch:
        return cls(X, y, jnp.mean(y), (X * y[:, None]).T @ X / X.shape[0])

    def quartic(self, B: jax.Array, total: float, diagonal: float) -> jax.Array:
        # S_4(u,u,v,v) = z_u²z_v² − |u|²z_v² − |v|²z_u² − 4 z_u z_v <u,v> + |u|²|v|² + 2<u,v>², z = X Bᵀ
        def of_degree_four(X: jax.Array, y: jax.Array) -> jax.Array:
            square = (X @ B.T) ** 2
            pairs = jnp.sum(square, axis=1) ** 2
            return jnp.sum(y * (total * pairs - diagonal * jnp.sum(square**2, axis=1)))

        D, norms = B.T @ B, jnp.sum(B**2, axis=1)
        DM = D @ self.second
        pairs = -2 * jnp.sum(norms) * jnp.trace(DM) - 4 * jnp.sum(DM * D)
        pairs += self.mean * (jnp.sum(norms) ** 2 + 2 * jnp.sum(D**2))
        along = jnp.sum((B @ self.second) * B, axis=1)
        lower = total * pairs - diagonal * jnp.sum(3 * self.mean * norms**2 - 6 * norms * along)
        return lower + _over_rows(of_degree_four, self.X, self.y) / self.y.shape[0]

    def squared_excess(self, B: jax.Array, scale: float) -> jax.Array:
        """Mean over ordered pairs of different samples: its expectation is the square, without a bias."""
        terms = self.y[:, None] * ((self.X @ B.T) ** 2 - jnp.sum(B**2, axis=1)) / scale - 1
        n = terms.shape[0]
        return (jnp.sum(terms, axis=0) ** 2 - jnp.sum(terms**2, axis=0)) / (n * (n - 1))


def _over_rows(part: Callable[..., jax.Array], *rows: jax.Array) -> jax.Array:
    """Sum of ``part`` over blocks of rows; its derivative computes a block again instead of keeping it."""
    # On an accelerator blocks would only serialise; there one block is as large as memory likes.
    size = 1 << 11 if jax.default_backend() == "cpu" else 1 << 20
    whole, part = len(rows[0]) // size * size, jax.checkpoint(part)
    blocks = [a[:whole].reshape(-1, size, *a.shape[1:]) for a in rows]
    total = jnp.sum(jax.lax.map(lambda block: part(*block), blocks)) if whole else 0.0
    return total + part(*(a[whole:] for a in rows))


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
        square = row_powers(B, 2)
        pairs = square @ self.T[4].reshape(square.shape[1], -1) @ square.T
        return total * jnp.sum(pairs) - diagonal * jnp.trace(pairs)

    def squared_excess(self, B: jax.Array, scale: float) -> jax.Array:
        return (self.along(B, 2) / scale - 1) ** 2

    def along(self, B: jax.Array, m: int) -> jax.Array:
        """Return T_m(b_j^m), (k,)."""
        return row_powers(B, m) @ self.T[m].ravel()

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
        """x ~ N(0, I): c_{m,i} = w_i E[g(|a_i| z + b_i) He_m(z)]."""
        norms, g = np.linalg.norm(teacher.weights, axis=1), teacher.activation
        if np.any(norms == 0):
            raise ValueError("the teacher has a zero row: a constant unit has no direction")
        coefficients = {}
        for m in orders:
            units = [hermite(g, m, norm, b) for norm, b in zip(norms, teacher.bias, strict=True)]
            c = np.sqrt(factorial(m)) * teacher.output * units
            coefficients[m] = jnp.asarray(c if m else c + teacher.intercept / len(norms))
        return cls(jnp.asarray(teacher.weights / norms[:, None]), coefficients)

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


SOURCES = (GaussianBatch, Tensors, RankOne)
for _source in SOURCES:
    jax.tree_util.register_dataclass(_source, list(_source.__dataclass_fields__), [])
