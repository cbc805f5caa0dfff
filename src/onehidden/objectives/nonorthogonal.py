"""F and F_δ of [GLM] Appendix C: rows that are independent but not orthogonal, and fewer rows than inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden import activations
from onehidden.objectives.base import Objective, positive
from onehidden.objectives.blocked import combine
from onehidden.objectives.scoring import source_of
from onehidden.objectives.signal import kappa, require_signal
from onehidden.objectives.sources import Quartics, RankOne, Tensors


@dataclass(frozen=True)
class NonOrthogonal(Objective):
    """F_δ(B) = ε {½ Σ_{j≠l} H_jl − (μ/24) Σ_j H_jj} + λ Σ_j (N_2(b_j) − 1)² + (δ/2)|B|²_F.

    N_2(b) = T_2(b, b)/κ_2 replaces the norm, so the minima are those of G in coordinates where the rows
    √a*_i b*_i are orthonormal: B^{−ᵀ} = P D Γ B*, Γ = diag(√a*) (pseudo-inverse when k < d); ``rows``
    reads them off. ((C.2) of the paper prints ((·−1)²−1)²; its proof uses the form above.)

    Parameters
    ----------
    mu, lam : μ ≤ c / κ*, λ ≥ 1/(c a*_min).
    delta : weight of the ridge that removes components outside the span when k < d; 0 for k = d.
    score : None for x ~ N(0, I).
    scale : κ_2 of N_2; from the activation (Gaussian value) when None.
    unbiased : on a batch, square N_2 − 1 as the mean over pairs of *different* samples; False plugs in the
        batch mean (biased by O(1/n), equal to the moment form).
    """

    mu: float
    lam: float
    delta: float = 0.0
    activation: str = "relu"
    score: Any = None
    sign: float | None = None
    scale: float | None = None
    unbiased: bool = True
    orders = (2, 4)

    def __post_init__(self) -> None:
        positive(mu=self.mu, lam=self.lam)
        if not (np.isfinite(self.delta) and self.delta >= 0):
            raise ValueError(f"delta must be 0 or more, got {self.delta}")
        if self.sign is None:
            object.__setattr__(self, "sign", require_signal(self.activation, 4, "F"))
        if self.scale is None:
            require_signal(self.activation, 2, "F")
            object.__setattr__(self, "scale", kappa(activations.get(self.activation), 2))

    def function(self, params: jax.Array, source: Quartics) -> jax.Array:
        assert self.sign is not None
        value = combine(source.quartic(params), self.sign / 2, self.sign * (0.5 + self.mu / 24))
        value += self.lam * jnp.sum(self._squared_excess(params, source))
        return value + self.delta / 2 * jnp.sum(params**2)

    def _squared_excess(self, B: jax.Array, source: Quartics) -> jax.Array:
        """(N_2 − 1)², (k,)."""
        assert self.scale is not None
        if not self.unbiased or isinstance(source, Tensors | RankOne):  # which hold no samples
            return (source.quadratic(B) / self.scale - 1) ** 2
        terms = source.quadratic_samples(B) / self.scale - 1
        n = terms.shape[0]
        # Mean over ordered pairs of different samples: E = (N_2 − 1)² exactly.
        return (jnp.sum(terms, axis=0) ** 2 - jnp.sum(terms**2, axis=0)) / (n * (n - 1))

    def from_batch(self, X: jax.Array, y: jax.Array) -> Any:
        if self.unbiased and X.shape[0] < 2:
            raise ValueError("an unbiased square needs at least two samples")
        return source_of(self.score, X, y, self.orders)

    @staticmethod
    def rows(params: Any) -> np.ndarray:
        """The teacher's rows √a*_i b*_i (up to order, sign and D) at a minimum: B⁺ᵀ."""
        return np.linalg.pinv(np.asarray(params, float)).T
