"""The score moments of each component of a Gaussian mixture: responsibilities as weights of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.refused import Refused
from onehidden.run import stream
from onehidden_papers.laws import Gaussian, GaussianMixture
from onehidden_papers.moments import ScoreMoments, score_moments
from onehidden_papers.moments.weights import Weight, checked_samples, effective_rows
from onehidden_papers.scores import MixtureScore
from onehidden_papers.starts.joint_diagonalisation import common_basis

SIGNAL = 3.0  # z-value at which a tensor counts as seen
LARGEST_SIDE = 64  # coordinates up to which orders 3 and 4 are formed


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


def checked_units(
    X: npt.ArrayLike, y: npt.ArrayLike, hidden: int, weight: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, Weight]:
    """Return the rows that count; refuse more units than moments of so many inputs show."""
    samples: np.ndarray
    samples, target, counts = checked_samples(X, y, weight)
    kept = counts > 0
    samples, target, counts = samples[kept], target[kept], counts[kept] / np.mean(counts[kept])
    most = min(samples.shape[1], LARGEST_SIDE)
    if not 1 <= hidden <= most:
        raise Refused(
            f"hidden = {hidden} is outside 1 … {most}: the rank of T_2, which bounds what can be seen, is at "
            f"most d = {samples.shape[1]}, and none beyond {LARGEST_SIDE} are decomposed: use start='wide'"
        )
    return samples, target, counts


def fit_mixture(
    X: Float[np.ndarray, "n d"], seed: int, chosen_on: int = 4000, fitted_to: int = 20_000
) -> GaussianMixture:
    """Fit a Gaussian mixture to X: components and shape by BIC on some rows, then more of them."""
    rows = stream(seed, "rows of a mixture").permutation(len(X))[:fitted_to]
    first = MixtureScore(seed=seed).fit(X[rows[:chosen_on]])
    if first.components_ == 1 or len(rows) <= chosen_on:
        return first.law_
    return MixtureScore(first.components_, first.covariance_, seed=seed).fit(X[rows]).law_


def as_mixture(law: object) -> GaussianMixture | None:
    """Return the Gaussian mixture that a law is or an estimated score fitted; None of another law."""
    law = getattr(law, "law_", law)
    if isinstance(law, Gaussian):
        return GaussianMixture([1.0], law.mean[None], law.cov)
    return law if isinstance(law, GaussianMixture) else None


def mapped(
    law: GaussianMixture, matrix: Float[np.ndarray, "d r"], shift: float | Float[np.ndarray, " d"] = 0.0
) -> GaussianMixture:
    """Return the law of z = (x - shift) matrix."""
    return GaussianMixture(law.weights, (law.means - shift) @ matrix, matrix.T @ law.covs @ matrix)


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


def variance_of(moments: ScoreMoments, order: int) -> float:
    """Of T_m(u, …, u) at a unit vector u: Σ se² over all entries, over the number of distinct ones.

    An entry with index multiplicities q has variance σ² Π q!, and fills m! / Π q! places: over its places
    the sum is m! σ², the variance of S_m(u, …, u) times that of y.
    """
    squared = moments.standard_error(order) ** 2
    distinct = comb(len(squared) + order - 1, order)
    return max(float(np.sum(squared)) / distinct, np.finfo(float).tiny)
