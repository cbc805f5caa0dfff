"""G, F and F_δ of [GLM], L of [GMOV], P' of [GLM] Appendix F: objectives whose minima are the teacher's rows.

With H_jl = T_4(b_j, b_j, b_l, b_l) and ε the sign of κ_4, all are ε {c₁ Σ_{j≠l} H_jl − c Σ_j H_jj} plus a
penalty on the row norms. Signs and constants follow the corrected forms: φ = S_4(v,v,w,w)/2 with −2 in the
cross term, ϕ = S_4(v⁴)/24.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden import activations
from onehidden_papers.objectives.base import Objective, kappa, require_signal, unit_rows
from onehidden_papers.objectives.sources import GaussianBatch, RankOne, Tensors

Quartics = GaussianBatch | Tensors | RankOne  # what knows score moments


class _Quartic(Objective):
    """ε {pair Σ_jl H_jl − (pair + fourth·μ) Σ_j H_jj} plus a penalty, ε the sign of κ_4."""

    orders = (4,)
    pair: ClassVar[float] = 0.5
    fourth: ClassVar[float] = 1 / 24
    mu: float
    lam: float
    activation: str
    sign: float | None = None

    def _settle(self, name: str) -> None:
        """Refuse weights that are not positive, and an activation without a sign where none is given."""
        for weight, value in (("mu", self.mu), ("lam", self.lam)):
            if not (np.isfinite(value) and value > 0):
                raise ValueError(f"{weight} must be a positive number, got {value}")
        if self.sign is None:
            require_signal(self.activation, 4, name)

    def _weights(self) -> tuple[float, float]:
        """Weights of all pairs and of the fourth powers, sign included."""
        sign = float(np.sign(kappa(activations.get(self.activation), 4))) if self.sign is None else self.sign
        return sign * self.pair, sign * (self.pair + self.fourth * self.mu)

    def penalty(self, params: jax.Array, source: Quartics) -> jax.Array:
        """Return the terms that are not of order 4."""
        return jnp.zeros((), params.dtype)

    def function(self, params: jax.Array, source: Quartics) -> jax.Array:
        return source.quartic(params, *self._weights()) + self.penalty(params, source)


class _OnNorms(_Quartic):
    """A quartic with the penalty λ Σ_j (|b_j|² − 1)²."""

    def penalty(self, params: jax.Array, source: Quartics) -> jax.Array:
        return self.lam * jnp.sum((jnp.sum(params**2, axis=1) - 1) ** 2)

    def tau(self, coefficients: npt.ArrayLike, d: int, c: float = 0.01) -> float:
        """Return the curvature every saddle must go below, τ of the theorem.

        Parameters
        ----------
        coefficients : array_like of shape (k,)
            w_i κ_{4,i} of the teacher.
        d : int
            Inputs.
        c : float
            The universal constant of [GLM] Theorem 2.3: "c = 0.01 suffices".
        """
        beta = self.fourth * np.abs(np.asarray(coefficients, float))
        largest, smallest = beta.max(), beta.min()
        along = self.mu * smallest**2 / largest
        return float(c * min(along / d, along, self.lam))


@dataclass(frozen=True)
class GaussianDesigned(_OnNorms):
    """G of [GLM] (2.7): for x ~ N(0, I), orthonormal rows and outputs of one sign.

    G(B) = ε {Σ_{j≠l} E[y φ(b_j, b_l, x)] − μ Σ_j E[y ϕ(b_j, x)]} + λ Σ_j (|b_j|² − 1)²

    Parameters
    ----------
    mu, lam : float
        μ ≤ c / κ* and λ ≥ a*_max / c with c = 0.01 are the theorem's range.
    activation : str
        The teacher's; one without a fourth Hermite coefficient is refused.
    sign : float or None
        ε, the sign of κ_4 times the outputs; from the activation when None.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> objective = oh.objectives.GaussianDesigned(mu=0.01, lam=100.0)
    >>> teacher = oh.OneHiddenNet(np.eye(2), [1.0, 1.0])
    >>> rotated = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
    >>> bool(objective.population(np.eye(2), teacher) < objective.population(rotated, teacher))
    True
    """

    mu: float
    lam: float
    activation: str = "relu"
    sign: float | None = None

    def __post_init__(self) -> None:
        self._settle("G")


@dataclass(frozen=True)
class ScoreDesigned(_OnNorms):
    """L of [GMOV] (19), sign of κ_4 added: G with the score of the actual law.

    L(A) = ε {Σ_{i≠j} T_4(a_i,a_i,a_j,a_j) − μ Σ_i T_4(a_i⁴)} + λ Σ_i (|a_i|² − 1)²

    Parameters
    ----------
    mu, lam : float
        μ < c / κ*, λ ≥ κ*_max / c.
    score : ScoreFunction or None
        A law or an estimated score (see ``objectives.sources`` for what it may offer); None for N(0, I).
    activation : str
        The teacher's.
    sign : float or None
        ε, the sign of κ_4 times the outputs; from the activation when None. A general law can change it: pass
        it then.
    """

    mu: float
    lam: float
    score: Any = None
    activation: str = "relu"
    sign: float | None = None

    pair = fourth = 1.0

    def __post_init__(self) -> None:
        self._settle("L")


@dataclass(frozen=True)
class PairwiseQuartic(_Quartic):
    """P'(B) = Σ_i a*_i Σ_{j≠l} ⟨b*_i,b_j⟩²⟨b*_i,b_l⟩² = Σ_{j≠l} H_jl / κ_4 on unit rows, x ~ N(0, I).

    What G would be without its second term: spurious minima appear once max a* > 2 min a*.

    Parameters
    ----------
    activation : str
        The teacher's; one without a fourth Hermite coefficient is refused.
    """

    activation: str = "relu"

    def __post_init__(self) -> None:
        require_signal(self.activation, 4, "P'")

    def _weights(self) -> tuple[float, float]:
        weight = 1 / kappa(activations.get(self.activation), 4)
        return weight, weight

    def project(self, params: jax.Array) -> jax.Array:
        return unit_rows(params)


@dataclass(frozen=True)
class NonOrthogonal(_Quartic):
    """F_δ(B) = ε {½ Σ_{j≠l} H_jl − (μ/24) Σ_j H_jj} + λ Σ_j (N_2(b_j) − 1)² + (δ/2)|B|²_F, x ~ N(0, I).

    N_2(b) = T_2(b, b)/κ_2 replaces the norm, so the minima are those of G in coordinates where the rows
    √a*_i b*_i are orthonormal: B^{−ᵀ} = P D Γ B*, Γ = diag(√a*) (pseudo-inverse when k < d); ``rows``
    reads them off. ((C.2) of the paper prints ((·−1)²−1)²; its proof uses the form above.) On a batch the
    square is the mean over pairs of different samples, which has no bias.

    Parameters
    ----------
    mu, lam : float
        μ ≤ c / κ*, λ ≥ 1/(c a*_min).
    delta : float
        Weight of the ridge that removes components outside the span when k < d; 0 for k = d.
    activation : str
        The teacher's; one without a second or fourth Hermite coefficient is refused.
    """

    mu: float
    lam: float
    delta: float = 0.0
    activation: str = "relu"
    orders = (2, 4)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.delta) and self.delta >= 0):
            raise ValueError(f"delta must be 0 or more, got {self.delta}")
        self._settle("F")
        require_signal(self.activation, 2, "F")

    def penalty(self, params: jax.Array, source: Quartics) -> jax.Array:
        excess = source.squared_excess(params, kappa(activations.get(self.activation), 2))
        return self.lam * jnp.sum(excess) + self.delta / 2 * jnp.sum(params**2)

    def from_batch(self, X: jax.Array, y: jax.Array) -> GaussianBatch:
        if X.shape[0] < 2:
            raise ValueError("an unbiased square needs at least two samples")
        return super().from_batch(X, y)

    @staticmethod
    def rows(params: Any) -> np.ndarray:
        """Return the teacher's rows √a*_i b*_i (up to order, sign and D) at a minimum: B⁺ᵀ."""
        return np.linalg.pinv(np.asarray(params, float)).T
