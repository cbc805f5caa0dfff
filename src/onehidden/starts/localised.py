"""Directions from the moments of each cluster of the inputs, decomposed jointly.

For x ~ Σ_c π_c N(μ_c, Σ_c), with ρ_c(x) the probability that x came from component c and S_m^(c) the score of
that Gaussian, Stein's identity inside the component gives

    T_m^(c) = E[y ρ_c(x) S_m^(c)(x)] / π_c = E_{N(μ_c, Σ_c)}[∇^m f] = Σ_i w_i κ_{m,c,i} a_i^(⊗m):

the same directions with other weights for every component and order. For a ReLU without bias, a_i of length
s_i in the component and t_i = ⟨a_i, μ_c⟩ / s_i, κ_2 = φ(t_i)/s_i, κ_3 = -t_i φ(t_i)/s_i² and
κ_4 = (t_i² - 1) φ(t_i)/s_i³. So a direction that one tensor does not see is seen by another, and the average
over components, the moment of the whole law, may vanish where its parts do not: for ½N(1, I) + ½N(-1, I) and
A = I those of order 3 cancel and those of order 4 are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from onehidden.laws import GaussianMixture
from onehidden.moments.components import (
    LARGEST_SIDE,
    SIGNAL,
    as_mixture,
    fit_mixture,
    moments_in_reach,
    variance_of,
)
from onehidden.precision import in_double
from onehidden.refused import Refused
from onehidden.starts.joint_diagonalisation import best_weights, joint_decompose, projected
from onehidden.starts.orthogonal_frame import shared_frame

DIRECT = 1200  # unknowns of the decomposition up to which several contractions are tried


@dataclass(frozen=True)
class LocalisedStart:
    """Directions of the units and what each component's moments said.

    Attributes
    ----------
    directions : (k, d) unit rows in the coordinates of X, up to order and sign.
    signals : z-value of every tensor formed, by (component, order).
    used : the (component, order) decomposed jointly.
    weights : (len(used), k) w_i κ_{m,c,i} |a_i|^m of each tensor used, |a_i| taken in coordinates in which
        the components have unit covariance on average.
    residual : relative misfit of the joint decomposition, weighted by precision; noise counts.
    law : the mixture whose components they are.
    """

    directions: np.ndarray
    signals: dict[tuple[int, int], float]
    used: tuple[tuple[int, int], ...]
    weights: np.ndarray
    residual: float
    law: GaussianMixture


def localised_start(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    law: object = None,
    weight: npt.ArrayLike | None = None,
    orders: Sequence[int] = (2, 3, 4),
    rows: str = "any",
    seed: int = 0,
) -> LocalisedStart:
    """The directions that the moments of all components share.

    Parameters
    ----------
    X, y : (n, d) and (n,).
    hidden : number k of units, at most d and at most 64.
    law : ``GaussianMixture`` or a fitted ``MixtureScore``; None fits one to X.
    weight : (n,) how much each row counts, or None.
    orders : of the moments, among 2, 3 and 4; tensors whose signal is not seen are left out.
    rows : "any" independent directions; "orthogonal" where the components are round, which stands more noise;
        or "whitened": orthogonal once the moments of order 2, then all of one sign, are the identity.
    seed : of the mixture fit and of the random starts; another seed is another decomposition.
    """
    if rows not in ("any", "orthogonal", "whitened"):
        raise ValueError(f"rows must be 'any', 'orthogonal' or 'whitened', got {rows!r}")
    tensors = localised_tensors(X, y, hidden, law=law, weight=weight, orders=orders, seed=seed)
    return tensors.start(rows, seed)


@dataclass(frozen=True)
class LocalisedTensors:
    """The tensors T_m^(c) whose signal is seen, in coordinates in which the components are round on average.

    Attributes
    ----------
    hidden : number k of units.
    tensors : of side r, one for each of ``used``.
    variances : of T(u, …, u) at a unit vector u.
    signals, used, law : as in ``LocalisedStart``.
    outward : (r, d) maps rows in the coordinates of the tensors to rows in those of X.
    """

    hidden: int
    tensors: list[np.ndarray] = field(repr=False)
    variances: np.ndarray
    signals: dict[tuple[int, int], float]
    used: tuple[tuple[int, int], ...]
    law: GaussianMixture = field(repr=False)
    outward: np.ndarray = field(repr=False)

    def below(self, order: int) -> LocalisedTensors:
        """Without the tensors of that order and more, where some determine the units alone."""
        keep = [i for i, t in enumerate(self.tensors) if t.ndim < order]
        if len(keep) == len(self.tensors) or all(self.tensors[i].ndim < 3 for i in keep):
            return self
        return replace(
            self,
            tensors=[self.tensors[i] for i in keep],
            variances=self.variances[keep],
            used=tuple(self.used[i] for i in keep),
        )

    @property
    def unknowns(self) -> int:
        """Of a free decomposition, whose steps cost their cube."""
        return self.hidden * len(self.tensors[0])

    def start(self, rows: str = "any", seed: int = 0) -> LocalisedStart:
        """Decompose them; ``rows`` as in ``localised_start``."""
        k, precisions = self.hidden, list(1 / self.variances)
        if rows == "any":
            found = joint_decompose(
                self.tensors, k, seed, precisions=precisions, restarts=6 if self.unknowns <= DIRECT else 1
            )
            U = found.components
        elif rows == "orthogonal":
            U = shared_frame(self.tensors, k, seed, precisions=precisions)[0]
        else:
            whiten, back = self._whitening()
            core = [projected(t, whiten) for t in self.tensors]
            # On average over directions noise grows by the same factor as the tensor's own scale.
            grown = [np.mean(np.sum(whiten**2, axis=0)) ** t.ndim for t in core]
            U = shared_frame(core, k, seed, precisions=list(precisions / np.array(grown)))[0] @ back
            U /= np.linalg.norm(U, axis=1, keepdims=True)
        weights = best_weights(self.tensors, U)
        out = U @ self.outward
        out /= np.linalg.norm(out, axis=1, keepdims=True)
        return LocalisedStart(out, self.signals, self.used, weights, self._misfit(U, weights), self.law)

    def _whitening(self) -> tuple[np.ndarray, np.ndarray]:
        """W (r, k) with W' M W = ± I for the mean M of the matrices, and (k, r) rows that lead back."""
        matrices = [(t, 1 / v) for t, v in zip(self.tensors, self.variances, strict=True) if t.ndim == 2]
        if not matrices:
            raise Refused("no moment of order 2 stands out of its noise: rows='whitened' needs one")
        value, vector = np.linalg.eigh(sum(p * t for t, p in matrices) / sum(p for _, p in matrices))
        top = np.argsort(-np.abs(value))[: self.hidden]
        value, vector = value[top], vector[:, top]
        # The root mean square eigenvalue of noise alone: weaker ones would be blown up beyond use.
        noise = np.sqrt(len(matrices[0][0]) / sum(p for _, p in matrices) / 2)
        if np.any(np.sign(value) != np.sign(value[0])) or np.min(np.abs(value)) < noise:
            raise Refused(
                "the moments of order 2 are indefinite or as small as their noise in some direction: "
                "use rows='any'"
            )
        root = np.sqrt(np.abs(value))
        return vector / root, (vector * root).T

    def _misfit(self, U: np.ndarray, weights: np.ndarray) -> float:
        gram, left, total = U @ U.T, 0.0, 0.0
        for t, w, v in zip(self.tensors, weights, self.variances, strict=True):
            size = float(np.sum(t**2)) / v
            left += size - float(w @ gram**t.ndim @ w) / v
            total += size
        return float(np.sqrt(max(left, 0.0) / total))


@in_double
def localised_tensors(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    law: object = None,
    weight: npt.ArrayLike | None = None,
    orders: Sequence[int] = (2, 3, 4),
    seed: int = 0,
) -> LocalisedTensors:
    """One or two passes over the samples; parameters as in ``localised_start``."""
    X, y, weight = _checked(X, y, hidden, weight)
    chosen = _checked_orders(orders)
    law = fit_mixture(X, weight, seed) if law is None else as_mixture(law)
    if law.n_inputs != X.shape[1]:
        raise ValueError(f"the mixture is one of {law.n_inputs} inputs, but X has {X.shape[1]} columns")
    if len(law.weights) < 2:
        raise Refused(
            "the input law is one Gaussian component, whose localised moments are the ordinary ones: use "
            "start='tensor'"
        )
    # Where the components are round on average the noise of a tensor is the same in all directions, and
    # one variance a tensor says it all.
    inverse = np.linalg.inv(np.linalg.cholesky(np.tensordot(law.weights, law.covs, axes=1)))
    inside = GaussianMixture(law.weights, law.means @ inverse.T, inverse @ law.covs @ inverse.T)
    basis, moments = moments_in_reach(X @ inverse.T, y, weight, inside, hidden, chosen)
    signals = {(c, m): one.signal(m) for c, one in moments.items() for m in one.orders}
    used = tuple(sorted(key for key, z in signals.items() if z >= SIGNAL))
    tensors = [moments[c][m] for c, m in used]
    variances = np.array([variance_of(moments[c], m) for c, m in used])
    _must_determine(tensors, variances, max(signals.values(), default=0.0))
    outward = inverse if basis is None else basis.T @ inverse
    return LocalisedTensors(hidden, tensors, variances, signals, used, law, outward)


def _must_determine(tensors: list[np.ndarray], variances: np.ndarray, best: float) -> None:
    """One matrix does not determine its components, nor do several that are multiples of one."""
    if not tensors:
        raise Refused(
            f"no component has a moment that stands out of its noise (largest z = {best:.1f}, needed "
            f"{SIGNAL:g}): give more samples"
        )
    if any(t.ndim > 2 for t in tensors):
        return
    upper = np.triu_indices(len(tensors[0]))
    root = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))
    rows = np.stack([root * t[upper] for t in tensors]) / np.sqrt(variances)[:, None]
    # Multiples of one matrix plus noise leave, beside the first singular value, noise alone.
    beside = float(np.sum(np.linalg.svd(rows, compute_uv=False)[1:] ** 2))
    freedom = (len(rows) - 1) * rows.shape[1]
    if len(rows) < 2 or beside < freedom + SIGNAL * np.sqrt(2 * freedom):
        raise Refused(
            "the moments of order 2 of all components are multiples of one matrix, which does not determine "
            "the units, and no higher order stands out of its noise: give more samples"
        )


def _checked(
    X: npt.ArrayLike, y: npt.ArrayLike, hidden: int, weight: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got shapes {X.shape} and {y.shape}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    most = min(X.shape[1], LARGEST_SIDE)
    if not 1 <= hidden <= most:
        raise Refused(
            f"hidden = {hidden} is outside 1 … {most}: the tensors of {X.shape[1]} inputs show no more "
            f"directions, and none beyond {LARGEST_SIDE} are decomposed; use start='wide'"
        )
    if weight is None:
        return X, y, None
    weight = np.asarray(weight, float)
    if weight.shape != y.shape or not np.all(weight >= 0) or not 0 < np.sum(weight) < np.inf:
        raise ValueError("weight must be (n,) numbers of at least 0, finite and not all 0")
    return X, y, weight


def _checked_orders(orders: Sequence[int]) -> tuple[int, ...]:
    chosen = tuple(sorted(set(orders)))
    if not chosen or not set(chosen) <= {2, 3, 4}:
        raise ValueError(f"orders must be among 2, 3 and 4, got {tuple(orders)}")
    return chosen
