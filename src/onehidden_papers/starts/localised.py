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
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.machine import in_double
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, descent_work
from onehidden_papers.laws import GaussianMixture
from onehidden_papers.moments import ScoreMoments, score_moments
from onehidden_papers.moments.rows import Weight, effective_rows
from onehidden_papers.starts.input_law import (
    LARGEST_SIDE,
    SIGNAL,
    as_mixture,
    checked_units,
    clusters_of,
    fit_mixture,
    mapped,
    moment_work,
    one_output,
    variance_of,
)
from onehidden_papers.starts.joint_diagonalisation import common_basis, joint_decompose
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
    copies: int = 40

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
    """

    directions: np.ndarray
    signals: dict[tuple[int, int], float]


@in_double
def localised_start(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    law: object = None,
    weight: npt.ArrayLike | None = None,
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
    seed : int
        Of the mixture fit and the decomposition.

    Returns
    -------
    LocalisedStart
        Directions and signals.

    Raises
    ------
    Refused
        Where the moments do not determine the units.
    """
    samples, target, counts = checked_units(X, y, hidden, weight)
    d, mixture = samples.shape[1], fit_mixture(samples, seed) if law is None else as_mixture(law)
    if mixture is None or mixture.n_inputs != d:
        raise ValueError(
            f"law must be a GaussianMixture or a fitted MixtureScore of {d} inputs, got {type(law).__name__}"
        )
    if len(mixture.weights) < 2:
        raise Refused(
            "the input law is one Gaussian component, whose localised moments are the ordinary ones: use "
            "start='tensor'"
        )
    # Where the components are round on average the noise of a tensor is the same in all directions, and
    # one variance a tensor is enough.
    inverse = np.linalg.inv(np.linalg.cholesky(np.tensordot(mixture.weights, mixture.covs, axes=1)))
    inside = mapped(mixture, inverse.T)
    basis, moments = moments_in_reach(samples @ inverse.T, target, counts, inside, hidden)
    signals = {(c, m): one.signal(m) for c, one in moments.items() for m in one.orders}
    used = sorted(key for key, z in signals.items() if z >= SIGNAL)
    if len(used) < 2 and not any(m > 2 for _, m in used):
        raise Refused(
            "no component has enough moments that stand out of their noise (largest z = "
            f"{max(signals.values(), default=0.0):.1f}, needed {SIGNAL:g}), and one matrix does not "
            "determine the units: give more samples"
        )
    tensors = [moments[c][m] for c, m in used]
    precisions = [1 / variance_of(moments[c], m) for c, m in used]
    # Another contraction may help where one is cheap: its steps cost the cube of the unknowns.
    restarts = 6 if hidden * len(tensors[0]) <= 1200 else 1
    found = joint_decompose(tensors, precisions, hidden, seed, restarts=restarts)
    out = found @ (inverse if basis is None else basis.T @ inverse)
    return LocalisedStart(out / np.linalg.norm(out, axis=1, keepdims=True), signals)


def component_moments(
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    law: GaussianMixture,
    orders: Sequence[int],
    *,
    weight: Weight | float = 1.0,
    subspace: Float[np.ndarray, "d r"] | None = None,
) -> dict[int, ScoreMoments]:
    """T_m^(c) by component c: the responsibilities are the weights of the samples.

    Components with fewer than four rows for each coefficient of a linear fit are left out.
    """
    share, out = law.posterior(X) * np.reshape(weight, (-1, 1)), {}
    for c, (component, rho) in enumerate(zip(law.components, share.T, strict=True)):
        near = rho > 1e-12 * rho.max()  # rows that belong elsewhere add nothing but time
        rows = effective_rows(rho) if near.any() else 0.0
        side = law.n_inputs if subspace is None else subspace.shape[1]
        if rows >= 4 * (1 + side):
            inside = X[near], y[near], component, tuple(orders)
            out[c] = score_moments(*inside, subspace=subspace, weight=rho[near])
    return out


def moments_in_reach(
    U: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], weight: Weight, law: GaussianMixture, k: int
) -> tuple[Float[np.ndarray, "d r"] | None, dict[int, ScoreMoments]]:
    """Return the basis in which the tensors are formed, None for the whole space, and the tensors.

    More than 20 inputs are reduced to the span of the units and four directions more, since the best fit may
    lean out of the span. Where no low order shows the span, its insignificant moments are returned.
    """
    d, orders = U.shape[1], (2, 3, 4)
    if d <= max(20, min(k + 4, LARGEST_SIDE)):
        return None, component_moments(U, y, law, orders, weight=weight)
    seen = component_moments(U, y, law, (2, 3) if d <= LARGEST_SIDE else (2,), weight=weight)
    basis = _leading(seen, min(k + 4, LARGEST_SIDE))
    if basis is None:
        return None, seen
    return basis, component_moments(U, y, law, orders, weight=weight, subspace=basis)


def _leading(moments: dict[int, ScoreMoments], size: int) -> Float[np.ndarray, "d r"] | None:
    """(d, size) the directions in which the tensors are largest together, each in units of its noise.

    T_(m) T_(m)' of an unfolding (d, d^(m-1)) of noise σ fluctuates by σ² d^((m-1)/2) around a multiple of I.
    """
    seen = [(one, m) for one in moments.values() for m in one.orders if one.signal(m) >= SIGNAL]
    if not seen:
        return None
    tensors = [one[m] for one, m in seen]
    noise = [variance_of(one, m) * len(one[m]) ** ((m - 1) / 2) for one, m in seen]
    return common_basis(tensors, 1 / np.array(noise), size)
