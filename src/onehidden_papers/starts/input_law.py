"""What starts from score moments share: the law of the inputs, checked rows, the span of the units.

The law is given, Gaussian, or chosen from the sample when a start first asks for it. ``InputModel`` keeps it
for the other searches of the same run.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.problem import Problem
from onehidden.refused import Refused
from onehidden.run import derived_seed, stream
from onehidden.starts.candidate import InputModel
from onehidden_papers import scores
from onehidden_papers.laws import Gaussian, GaussianMixture, standard_normal
from onehidden_papers.laws.base import Score
from onehidden_papers.moments import ScoreMoments
from onehidden_papers.moments.rows import Weight, checked_samples

SIGNAL = 3.0  # z-value at which a tensor counts as seen
LARGEST_SIDE = 64  # coordinates up to which orders 3 and 4 are formed
NORMAL = 5.0  # z-value of third and fourth moments up to which a sample may be Gaussian
_ROWS = 4000  # rows that choose and fit an input model: a start needs no more


@dataclass(frozen=True)
class WhitenedScore:
    """A score of x seen in z = W (x - shift): S^z(v, …) = S^x(W^-1 v, …)."""

    score_of_x: Score
    coordinates: Coordinates

    @property
    def n_inputs(self) -> int:
        return self.coordinates.rank

    @property
    def valid_order(self) -> float:
        return getattr(self.score_of_x, "valid_order", float("inf"))

    def score(self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None) -> np.ndarray:
        """S_m at rows z contracted with the columns of ``subspace``, (n, r, …, r)."""
        X = np.asarray(X) @ self.coordinates.unwhiten + self.coordinates.shift
        basis = self.coordinates.unwhiten.T
        return self.score_of_x.score(
            X, order, subspace=basis if subspace is None else basis @ np.asarray(subspace)
        )


def input_model(problem: Problem) -> InputModel:
    """Return what is known of the law of the inputs of a problem."""
    assert isinstance(problem.input_model, InputModel)
    return problem.input_model


def score_of(problem: Problem) -> Score:
    """Return the score of z that moments are taken with, N(0, I) for whitened Gaussian inputs."""
    inputs = input_model(problem)
    if "score" not in inputs.known:
        inputs.known["score"] = _chosen_score(problem, inputs) or standard_normal(problem.d)
    return inputs.known["score"]


def _chosen_score(problem: Problem, inputs: InputModel) -> Score | None:
    given, seed = inputs.given, inputs.seed
    if not isinstance(given, str):
        inputs.name = f"given: {getattr(given, 'label', type(given).__name__)}"
        return WhitenedScore(given, problem.search_coordinates)
    if given == "gaussian":
        inputs.name = "Gaussian: asked for"
        return None
    if looks_gaussian(problem, seed):
        inputs.name = "Gaussian: no departure seen in third and fourth moments"
        return None
    order = stream(seed, "rows of the input model").permutation(problem.n)
    fitted = problem.Z[order[:_ROWS]]
    names = ["gaussian", "mixture", "independent"]
    if problem.d <= 3:  # local likelihood is not worth its time in more inputs
        names.append("local likelihood")
    try:
        chosen = scores.select(fitted, candidates=names, seed=seed)
    except Refused as reason:  # too few rows, or too many of them the same
        inputs.name = f"Gaussian: no other model could be fitted ({reason})"
        return None
    kind = type(chosen).__name__
    inputs.name = f"{kind}: {getattr(chosen, 'reason', '')}"
    return None if kind == "GaussianScore" else chosen


def clusters_of(problem: Problem) -> GaussianMixture | None:
    """Return the law of z as a mixture of Gaussian clusters: given, or fitted where z is not Gaussian."""
    inputs = input_model(problem)
    if "clusters" not in inputs.known:
        inputs.known["clusters"] = _mixture(problem, inputs)
    law = inputs.known["clusters"]
    if law is None or len(law.weights) < 2:
        return None
    if isinstance(inputs.given, str):
        inputs.name = f"mixture of {len(law.weights)} Gaussian clusters"
    else:
        score_of(problem)  # names what was given
    return law


def _mixture(problem: Problem, inputs: InputModel) -> GaussianMixture | None:
    around, Z, given = problem.search_coordinates, problem.Z, inputs.given
    if not isinstance(given, str):
        law = as_mixture(given)  # the caller knows the law, and it may be no mixture
        return None if law is None else mapped(law, around.whiten, around.shift)
    # The columns as they came: whitened, two clusters far apart lie no further than the spread of all other
    # directions.
    columns = Z @ around.unwhiten
    spread = np.std(columns, axis=0)
    axes = np.linalg.svd(around.unwhiten / spread, full_matrices=False)[0]
    if given == "gaussian" or (looks_gaussian(problem, inputs.seed) and departure(Z @ axes) < NORMAL):
        return None
    seed = derived_seed(inputs.seed, "mixture of the inputs")
    if len(around.shift) != around.rank:
        return fit_mixture(Z, seed)
    return mapped(fit_mixture(columns / spread, seed), spread[:, None] * around.whiten)


def fit_mixture(
    X: Float[np.ndarray, "n d"], seed: int, chosen_on: int = 4000, fitted_to: int = 20_000
) -> GaussianMixture:
    """Fit a Gaussian mixture to X: components and shape by BIC on some rows, then more of them."""
    rows = stream(seed, "rows of a mixture").permutation(len(X))[:fitted_to]
    first = scores.MixtureScore(seed=seed).fit(X[rows[:chosen_on]])
    if first.components_ == 1 or len(rows) <= chosen_on:
        return first.law_
    return scores.MixtureScore(first.components_, first.covariance_, seed=seed).fit(X[rows]).law_


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


def looks_gaussian(problem: Problem, seed: int, most: int = 50_000) -> bool:
    """Whether no third or fourth moment of the inputs, of columns or along random lines, betrays another law.

    The columns are those of x: the axes of z are chosen with y so that some rows stand out along them.
    Mardia's mean |z|^4 has the variance 8 d (d + 2)/n around d (d + 2).
    """
    Z = problem.Z[:: max(1, problem.n // most)]  # a fourth moment is then known to .02 of the Gaussian one
    n, d = Z.shape
    columns = Z @ problem.search_coordinates.unwhiten
    columns = columns[:, np.ptp(columns, axis=0) > 0]
    lines = stream(seed, "lines through the inputs").standard_normal((d, 64))
    radius = float(np.mean(np.sum(Z**2, axis=1) ** 2))
    mardia = abs(radius - d * (d + 2)) / np.sqrt(8 * d * (d + 2) / n)
    return max(departure(np.column_stack([columns, Z @ lines])), mardia) < NORMAL


def departure(projections: Float[np.ndarray, "n m"]) -> float:
    """Return the largest z-value of skewness and kurtosis of the columns, of variance 6/n and 24/n."""
    n = len(projections)
    projections = (projections - projections.mean(axis=0)) / projections.std(axis=0)
    square = projections * projections
    third = np.abs(np.mean(square * projections, axis=0)) / np.sqrt(6 / n)
    fourth = np.abs(np.mean(square * square, axis=0) - 3) / np.sqrt(24 / n)
    return max(float(third.max()), float(fourth.max()))


def one_output(problem: Problem, name: str) -> None:
    """Refuse a problem of several outputs."""
    if problem.form.outputs is not None:
        raise Refused(f"the {name} start reads one output: with several use start='auto'")


def moment_work(problem: Problem) -> float:
    """Operations of T_4 in the span of the units."""
    return 2.0 * problem.n * min(problem.k, problem.d) ** 4


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


def variance_of(moments: ScoreMoments, order: int) -> float:
    """Of T_m(u, …, u) at a unit vector u: Σ se² over all entries, over the number of distinct ones.

    An entry with index multiplicities q has variance σ² Π q!, and fills m! / Π q! places: over its places
    the sum is m! σ², the variance of S_m(u, …, u) times that of y.
    """
    squared = moments.standard_error(order) ** 2
    distinct = comb(len(squared) + order - 1, order)
    return max(float(np.sum(squared)) / distinct, np.finfo(float).tiny)


def span_of_units(
    moments: ScoreMoments, k: int, signal: float = 5.0, apart: float = 2.0
) -> Float[np.ndarray, "d k"] | None:
    """(d, k) orthonormal basis of the span of the a_i from T_2 = sum_i w_i kappa_i a_i a_i'.

    None where T_2 does not stand ``signal`` standard errors above noise, or where the k leading eigenvalues
    are not ``apart`` times the next one.
    """
    if k >= len(moments[2]) or moments.signal(2) < signal:
        return None
    vector, size, _ = np.linalg.svd(moments[2])
    return vector[:, :k] if size[k - 1] >= apart * size[k] else None
