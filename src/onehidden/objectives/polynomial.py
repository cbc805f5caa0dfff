"""Landscapes of one's own: the design family of [GLM] Claim 3.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden import activations
from onehidden.objectives.base import Objective
from onehidden.objectives.scoring import source_of
from onehidden.objectives.signal import kappa, require_signal
from onehidden.objectives.sources import Quartics

HIGHEST_ORDER = 8


@dataclass(frozen=True, init=False)
class FromPolynomial(Objective):
    """The sample function whose mean is a symmetric polynomial of ⟨b*_i, b_j⟩.

    One variable, p = (p_0, p_1, …): E[y φ_p(B, x)] = Σ_i a*_i Σ_j p(⟨b*_i, b_j⟩).
    Two variables, a matrix q[r, s]: Σ_i a*_i Σ_{j≠l} q(⟨b*_i, b_j⟩, ⟨b*_i, b_l⟩),
    with q(t, u) = Σ q[r, s] t^r u^s.
    The sample function is Σ q[r, s]/κ_{r+s} S_{r+s}(b_j^r, b_l^s): each monomial by the score of its degree.
    Unit teacher rows, no bias; orders up to 4 for laws other than the Gaussian.

    Parameters
    ----------
    coefficients : 1-D (rising powers) or 2-D.
    activation : the teacher's; a monomial whose order it does not carry is refused.
    score : None for x ~ N(0, I); under another law pass ``kappas``.
    kappas : κ_m of each order; Gaussian values when None.
    lam : weight of an optional penalty λ Σ (|b_j|² − 1)².
    """

    coefficients: tuple[tuple[float, ...], ...]
    one_variable: bool
    activation: str
    score: Any
    kappas: tuple[float, ...]
    lam: float

    def __init__(
        self,
        coefficients: Any,
        activation: str = "relu",
        score: Any = None,
        kappas: Any = None,
        lam: float = 0.0,
    ) -> None:
        table = np.array(coefficients, dtype=float)
        if table.ndim not in (1, 2) or table.size == 0 or not np.all(np.isfinite(table)):
            raise ValueError(f"coefficients must be a finite vector or matrix, got shape {table.shape}")
        one = table.ndim == 1
        table = table[:, None] if one else table
        orders = sorted({int(r + s) for r, s in np.argwhere(table != 0)})
        if not orders:
            raise ValueError("the polynomial is zero: nothing to minimise")
        if orders[-1] > HIGHEST_ORDER:
            raise ValueError(f"degree {orders[-1]} is beyond the scores at hand (limit {HIGHEST_ORDER})")
        g = activations.get(activation)
        if kappas is None:
            for m in orders:
                require_signal(g, m, "this polynomial")
            kappas = tuple(kappa(g, m) if m in orders else 0.0 for m in range(orders[-1] + 1))
        if len(kappas) <= orders[-1] or any(kappas[m] == 0 for m in orders):
            raise ValueError(f"kappas must hold a nonzero number for each order of {orders}")
        for name, value in (
            ("coefficients", tuple(tuple(map(float, row)) for row in table)),
            ("one_variable", one),
            ("activation", activation),
            ("score", score),
            ("kappas", tuple(map(float, kappas))),
            ("lam", float(lam)),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "orders", tuple(orders))

    def function(self, params: jax.Array, source: Quartics) -> jax.Array:
        k = params.shape[0]
        table = np.array(self.coefficients)
        value = self.lam * jnp.sum((jnp.sum(params**2, axis=1) - 1) ** 2)
        off_diagonal = 1 - jnp.eye(k)
        for r, s in np.argwhere(table != 0):
            matrix = table[r, s] / self.kappas[r + s] * source.mixed(params, int(r), int(s))
            value += jnp.trace(matrix) if self.one_variable else jnp.sum(matrix * off_diagonal)
        return value

    def from_batch(self, X: jax.Array, y: jax.Array) -> Any:
        return source_of(self.score, X, y, self.orders)
