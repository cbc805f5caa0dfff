"""Directions from the moments of each cluster of the inputs, decomposed jointly.

For x ~ Σ_c π_c N(μ_c, Σ_c), with ρ_c(x) the probability that x came from component c and S_m^(c) the score of
that Gaussian, Stein's identity inside the component gives

    T_m^(c) = E[y ρ_c(x) S_m^(c)(x)] / π_c = E_{N(μ_c, Σ_c)}[∇^m f] = Σ_i w_i κ_{m,c,i} a_i^(⊗m):

the same directions with other weights for every component and order. For a ReLU without bias, a_i of length
s_i in the component and t_i = ⟨a_i, μ_c⟩ / s_i, κ_2 = φ(t_i)/s_i, κ_3 = -t_i φ(t_i)/s_i² and
κ_4 = (t_i² - 1) φ(t_i)/s_i³. A direction that one tensor does not show is shown by another, and the average
over components, the moment of the whole law, may vanish where theirs do not: for ½N(1, I) + ½N(-1, I) and
A = I those of order 3 cancel and those of order 4 are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from onehidden.fit.problem import Problem
from onehidden.laws import GaussianMixture
from onehidden.machine import in_double
from onehidden.moments.weights import checked_samples
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, descent_work
from onehidden_papers.starts.components import (
    LARGEST_SIDE,
    SIGNAL,
    as_mixture,
    fit_mixture,
    moments_in_reach,
    variance_of,
)
from onehidden_papers.starts.input_law import clusters_of, input_model, moment_work, one_output
from onehidden_papers.starts.joint_diagonalisation import joint_decompose
from onehidden_papers.starts.magnitudes import fit_units, refined_copies


@dataclass(frozen=True)
class Localised:
    """Directions from the moments of each cluster of the inputs, decomposed jointly.

    Parameters
    ----------
    copies : int
        Perturbed copies of the directions: near the least number of samples one descent may stall where
        another from nearby does not.
    """

    name: ClassVar[str] = "localised"
    copies: int = 3

    def work(self, problem: Problem) -> float:
        """Operations of the moments and of all descents."""
        return moment_work(problem) + (1 + self.copies) * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the units along the directions found, refined, then perturbed copies."""
        one_output(problem, self.name)
        law = clusters_of(problem)
        if law is None:
            raise Refused(
                "the inputs form one Gaussian component or no clear clusters: the localised start needs "
                "several, use start='tensor'"
            )
        Z, y, weight = problem.Z, problem.y, problem.weight
        found = localised_start(Z, y, problem.k, law=law, weight=weight, seed=run.seed)
        for (_, m), z in found.signals.items():
            input_model(problem).record_signal(m, z)
        net = fit_units(Z, y, found.directions, problem.activation, bias=problem.bias, weight=weight)
        yield from refined_copies(problem, net.weights, net.bias, self.copies, run, self.name)


@dataclass(frozen=True)
class LocalisedStart:
    """Directions of the units and what each component's moments show.

    Parameters
    ----------
    directions : array of shape (k, d)
        Unit rows in the coordinates of X, up to order and sign.
    signals : dict
        z-value of every tensor formed, by (component, order).
    used : tuple of (component, order)
        The tensors decomposed jointly.
    weights : array of shape (len(used), k)
        w_i kappa_{m,c,i} |a_i|^m of each tensor used, |a_i| taken in coordinates in which the components
        have unit covariance on average.
    residual : float
        Relative misfit of the joint decomposition, weighted by precision, noise included.
    law : GaussianMixture
        The mixture whose components they are.
    """

    directions: np.ndarray
    signals: dict[tuple[int, int], float]
    used: tuple[tuple[int, int], ...]
    weights: np.ndarray
    residual: float
    law: GaussianMixture = field(repr=False)


@in_double
def localised_start(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    law: object = None,
    weight: npt.ArrayLike | None = None,
    orders: Sequence[int] = (2, 3, 4),
    seed: int = 0,
) -> LocalisedStart:
    """Return the directions that the moments of all components share.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.
    hidden : int
        Number k of units, at most d and at most 64.
    law : GaussianMixture or MixtureScore, optional
        The law of the inputs; None fits a mixture to X.
    weight : array_like of shape (n,), optional
        How much each row counts.
    orders : sequence of int
        Orders of the moments, among 2, 3 and 4. Tensors without signal are left out.
    seed : int
        Of the mixture fit and the decomposition.

    Returns
    -------
    LocalisedStart
        Directions, signals and the joint decomposition.

    Raises
    ------
    Refused
        Where the moments do not determine the units.
    """
    samples: np.ndarray
    samples, target, counts = checked_samples(X, y, weight)
    d = samples.shape[1]
    chosen, most = tuple(sorted(set(orders))), min(d, LARGEST_SIDE)
    if not 1 <= hidden <= most:
        raise Refused(
            f"hidden = {hidden} is outside 1 … {most}: the tensors of {d} inputs show no more "
            f"directions, and none beyond {LARGEST_SIDE} are decomposed; use start='wide'"
        )
    if not chosen or not set(chosen) <= {2, 3, 4}:
        raise ValueError(f"orders must be among 2, 3 and 4, got {tuple(orders)}")
    law = fit_mixture(samples, counts, seed) if law is None else as_mixture(law)
    if law.n_inputs != d:
        raise ValueError(f"the mixture is one of {law.n_inputs} inputs, but X has {d} columns")
    if len(law.weights) < 2:
        raise Refused(
            "the input law is one Gaussian component, whose localised moments are the ordinary ones: use "
            "start='tensor'"
        )
    # Where the components are round on average the noise of a tensor is the same in all directions, and
    # one variance a tensor is enough.
    inverse = np.linalg.inv(np.linalg.cholesky(np.tensordot(law.weights, law.covs, axes=1)))
    inside = GaussianMixture(law.weights, law.means @ inverse.T, inverse @ law.covs @ inverse.T)
    basis, moments = moments_in_reach(samples @ inverse.T, target, counts, inside, hidden, chosen)
    signals = {(c, m): one.signal(m) for c, one in moments.items() for m in one.orders}
    used = tuple(sorted(key for key, z in signals.items() if z >= SIGNAL))
    tensors = [moments[c][m] for c, m in used]
    variances = np.array([variance_of(moments[c], m) for c, m in used])
    _must_determine(tensors, variances, max(signals.values(), default=0.0))
    # Another contraction may help where one is cheap: its steps cost the cube of the unknowns.
    restarts = 6 if hidden * len(tensors[0]) <= 1200 else 1
    found = joint_decompose(tensors, hidden, seed, precisions=list(1 / variances), restarts=restarts)
    out = found.components @ (inverse if basis is None else basis.T @ inverse)
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return LocalisedStart(out, signals, used, found.weights, found.residual, law)


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
