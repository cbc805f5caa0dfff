"""G of [GLM], L of [GMOV], P' of [GLM] Appendix F: objectives whose minima are the rows of the teacher.

With H_jl = T_4(b_j, b_j, b_l, b_l) and ε the sign of κ_4, all are ε {c₁ Σ_{j≠l} H_jl − c Σ_j H_jj} plus a
penalty on the row norms. Signs and constants follow the corrected forms: φ = S_4(v,v,w,w)/2 with −2 in the
cross term, ϕ = S_4(v⁴)/24.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden import activations
from onehidden.objectives.base import Objective, positive
from onehidden.objectives.blocked import combine, quartic_value_and_grad
from onehidden.objectives.scoring import source_of
from onehidden.objectives.signal import kappa, require_signal, symmetric_blind
from onehidden.objectives.sources import GaussianBatch, Quartics

# The universal constant of [GLM] Theorem 2.3: "c = 0.01 suffices".
THEOREM_C = 0.01


class _Quartic(Objective):
    """ε {pair Σ_{j≠l} H_jl − own Σ_j H_jj} + λ Σ_j (|b_j|² − 1)²."""

    orders = (4,)
    mu: float
    lam: float

    def _weights(self) -> tuple[float, float]:
        """c₁ and c₂ of ε {c₁ Σ_jl H_jl − c₂ Σ_j H_jj}, sign included."""
        raise TypeError("a quartic objective defines its two weights")

    def function(self, params: jax.Array, source: Quartics) -> jax.Array:
        return combine(source.quartic(params), *self._weights()) + _norm_penalty(params, self.lam)

    def value_and_grad(self, params: jax.Array, source: Quartics) -> tuple[jax.Array, jax.Array]:
        value, gradient = quartic_value_and_grad(source, params, *self._weights())
        excess = jnp.sum(params**2, axis=1) - 1
        return value + self.lam * jnp.sum(excess**2), gradient + 4 * self.lam * excess[:, None] * params

    def tau(self, coefficients: npt.ArrayLike, d: int) -> float:
        """The curvature every saddle must go below, τ of the theorem.

        Parameters
        ----------
        coefficients : (k,) w_i κ_{4,i} of the teacher.
        d : inputs.
        """
        c1, c2 = self._weights()
        pair, own = abs(c1), abs(c2) - abs(c1)
        beta = own / self.mu * np.abs(np.asarray(coefficients, float))
        spread = beta.max() / beta.min()
        curvature = self.mu * beta.min() / (spread * d), self.mu * beta.min() ** 2 / beta.max(), self.lam
        return float(THEOREM_C * min(curvature) if pair > 0 else 0.0)


@dataclass(frozen=True)
class GaussianDesigned(_Quartic):
    """G of [GLM] (2.7): for x ~ N(0, I), orthonormal rows and outputs of one sign.

    G(B) = ε {Σ_{j≠l} E[y φ(b_j, b_l, x)] − μ Σ_j E[y ϕ(b_j, x)]} + λ Σ_j (|b_j|² − 1)²

    Parameters
    ----------
    mu, lam : μ ≤ c / κ* and λ ≥ a*_max / c with c = 0.01 are the theorem's range.
    activation : the teacher's; one without a fourth Hermite coefficient is refused.
    sign : ε, the sign of κ_4 times the outputs; from the activation when None.
    """

    mu: float
    lam: float
    activation: str = "relu"
    sign: float | None = None

    def __post_init__(self) -> None:
        positive(mu=self.mu, lam=self.lam)
        if self.sign is None:
            object.__setattr__(self, "sign", require_signal(self.activation, 4, "G"))

    def _weights(self) -> tuple[float, float]:
        assert self.sign is not None
        return self.sign / 2, self.sign * (0.5 + self.mu / 24)

    def from_batch(self, X: jax.Array, y: jax.Array) -> GaussianBatch:
        return GaussianBatch.of(X, y)


@dataclass(frozen=True)
class ScoreDesigned(_Quartic):
    """L of [GMOV] (19), sign of κ_4 added: G with the score of the actual law.

    L(A) = ε {Σ_{i≠j} T_4(a_i,a_i,a_j,a_j) − μ Σ_i T_4(a_i⁴)} + λ Σ_i (|a_i|² − 1)²

    Parameters
    ----------
    mu, lam : μ < c / κ*, λ ≥ κ*_max / c.
    score : a law or an estimated score (see ``objectives.scoring`` for what it may offer); None for N(0, I).
    activation, sign : as for G. A general law can change the sign of κ_4: pass it then.
    """

    mu: float
    lam: float
    score: Any = None
    activation: str = "relu"
    sign: float | None = None

    def __post_init__(self) -> None:
        positive(mu=self.mu, lam=self.lam)
        if self.sign is None:
            g = activations.get(self.activation)
            if self.score is not None and not symmetric_blind(g, 4) and abs(kappa(g, 4)) < 1e-9:
                raise ValueError(f"the sign of κ_4 of {g.name} depends on the law: pass sign=+1 or -1")
            object.__setattr__(self, "sign", require_signal(g, 4, "L"))

    def _weights(self) -> tuple[float, float]:
        assert self.sign is not None
        return self.sign, self.sign * (1 + self.mu)

    def from_batch(self, X: jax.Array, y: jax.Array) -> Any:
        return source_of(self.score, X, y, self.orders)


@dataclass(frozen=True)
class PairwiseQuartic(Objective):
    """P'(B) = Σ_i a*_i Σ_{j≠l} ⟨b*_i,b_j⟩²⟨b*_i,b_l⟩² = Σ_{j≠l} H_jl / κ_4 on unit rows.

    What G would be without its second term: spurious minima appear once max a* > 2 min a*.
    """

    activation: str = "relu"
    score: Any = None
    orders = (4,)

    def __post_init__(self) -> None:
        require_signal(self.activation, 4, "P'")

    def function(self, params: jax.Array, source: Quartics) -> jax.Array:
        weight = 1 / kappa(activations.get(self.activation), 4)
        return combine(source.quartic(params), weight, weight)

    def value_and_grad(self, params: jax.Array, source: Quartics) -> tuple[jax.Array, jax.Array]:
        weight = 1 / kappa(activations.get(self.activation), 4)
        return quartic_value_and_grad(source, params, weight, weight)

    def from_batch(self, X: jax.Array, y: jax.Array) -> Any:
        return source_of(self.score, X, y, self.orders)

    def project(self, params: jax.Array) -> jax.Array:
        return unit_rows(params)


def unit_rows(B: jax.Array) -> jax.Array:
    """Rows scaled to unit norm."""
    return B / jnp.linalg.norm(B, axis=1, keepdims=True)


def _norm_penalty(B: jax.Array, lam: float) -> jax.Array:
    return lam * jnp.sum((jnp.sum(B**2, axis=1) - 1) ** 2)
