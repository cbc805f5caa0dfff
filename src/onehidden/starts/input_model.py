"""The input law behind the score moments, and the span of the units in them.

The law is given, Gaussian, or chosen from the sample when first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import scores
from onehidden.checks import Check
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.problem import Problem
from onehidden.laws import Gaussian, GaussianMixture, standard_normal
from onehidden.laws.base import Score
from onehidden.moments import ScoreMoments, score_moments
from onehidden.moments.components import fit_mixture
from onehidden.refused import Refused
from onehidden.run import derived_seed, stream

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


class InputModel:
    """A score in whitened coordinates, found lazily: most searches end before any moment is needed.

    ``name`` says what the law was taken for, with the reason; "not needed" until a start asks. ``checks`` are
    Stein's identity on rows that did not fit the score, once one was chosen. ``signal`` holds the z-value of
    each score moment that was measured, by order; of several components the largest.
    """

    def __init__(
        self,
        Z: Float[np.ndarray, "n d"],
        given: str | Score,  # a score of z, "auto" or "gaussian"
        seed: int,
        around: Coordinates | None = None,  # of z and x
    ) -> None:
        self.signal: dict[int, float] = {}
        self._Z, self._given, self._seed, self._around = Z, given, seed, around
        self.name = "not needed"
        self.checks: list[Check] = []

    @property
    def given(self) -> bool:
        """Whether the caller brought a law or score of their own."""
        return not isinstance(self._given, str)

    @cached_property
    def gaussian(self) -> bool:
        """Whether the moments of a Gaussian may be used without further ado."""
        return not self.given and (self._given == "gaussian" or looks_gaussian(self._Z, self._seed))

    def record(self, moments: ScoreMoments) -> ScoreMoments:
        """Return the same moments, their signal recorded."""
        for order in moments.orders:
            self.record_signal(order, moments.signal(order))
        return moments

    def record_signal(self, order: int, z: float) -> None:
        """Record the z-value of a moment; the largest of an order is kept."""
        self.signal[order] = max(z, self.signal.get(order, z))

    def score(self) -> Score | None:
        """Return the score, None for whitened Gaussian inputs."""
        return self._score

    @cached_property
    def _score(self) -> Score | None:
        if not isinstance(self._given, str):
            self.name = f"given: {getattr(self._given, 'label', type(self._given).__name__)}"
            return self._given
        if self._given == "gaussian":
            self.name = "Gaussian: asked for"
            return None
        if self.gaussian:
            self.name = "Gaussian: no departure seen in third and fourth moments"
            return None
        order = stream(self._seed, "rows of the input model").permutation(len(self._Z))
        fitted, fresh = self._Z[order[:_ROWS]], self._Z[order[_ROWS : 2 * _ROWS]]
        names = ["gaussian", "mixture", "independent"]
        if self._Z.shape[1] <= 3:  # local likelihood is not worth its time in more inputs
            names.append("local likelihood")
        try:
            chosen = scores.select(fitted, candidates=names, seed=self._seed)
        except Refused as reason:  # too few rows, or too many of them the same
            self.name = f"Gaussian: no other model could be fitted ({reason})"
            return None
        kind = type(chosen).__name__
        self.name = f"{kind}: {getattr(chosen, 'reason', '')}"
        self.checks = scores.validity(chosen, fresh if len(fresh) > 20 * self._Z.shape[1] else fitted)
        return None if kind == "GaussianScore" else chosen

    def clusters(self) -> GaussianMixture | None:
        """Return the law as a Gaussian mixture of z: given, or fitted where the sample is not Gaussian."""
        if self._given == "gaussian":
            return None
        law = self._mixture
        if law is None or len(law.weights) < 2:
            return None
        if self.given:
            self.score()  # names what was given
        else:
            self.name = f"mixture of {len(law.weights)} Gaussian clusters"
        return law

    @cached_property
    def _mixture(self) -> GaussianMixture | None:
        around, seed = self._around, derived_seed(self._seed, "mixture of the inputs")
        if isinstance(self._given, WhitenedScore):
            law = getattr(self._given.score_of_x, "law_", self._given.score_of_x)
            if isinstance(law, Gaussian | GaussianMixture):
                return _inward(law, self._given.coordinates)
            return None  # the caller knows the law, and it is no mixture
        if self.gaussian and not self._parted():
            return None
        if around is None or len(around.shift) != around.rank:
            return fit_mixture(self._Z, None, seed)
        # Whitened, two clusters far apart lie no further than the spread of all other directions: the
        # columns as they came, each to its own scale, show them.
        columns = self._Z @ around.unwhiten
        spread = np.std(columns, axis=0)
        there = fit_mixture(columns / spread, None, seed)
        back = spread[:, None] * around.whiten
        return GaussianMixture(there.weights, there.means @ back, back.T @ there.covs @ back)

    def _parted(self) -> bool:
        """Whether the principal axes of the columns as they came betray clusters."""
        if self._around is None:
            return False
        columns = self._Z @ self._around.unwhiten
        axes = np.linalg.svd(self._around.unwhiten / np.std(columns, axis=0), full_matrices=False)[0]
        return not _normal(departure(self._Z @ axes))


def _inward(law: Gaussian | GaussianMixture, coordinates: Coordinates) -> GaussianMixture:
    """Return the law of z = (x - shift) W."""
    whiten = coordinates.whiten
    parts = (law,) if isinstance(law, Gaussian) else law.components
    shares = [1.0] if isinstance(law, Gaussian) else law.weights
    means = [(part.mean - coordinates.shift) @ whiten for part in parts]
    return GaussianMixture(shares, means, [whiten.T @ part.cov @ whiten for part in parts])


def looks_gaussian(Z: Float[np.ndarray, "n d"], seed: int, most: int = 50_000) -> bool:
    """Whether no third or fourth moment of whitened inputs, along axes or random lines, betrays another law.

    Skewness and kurtosis of a standard normal sample have variance 6/n and 24/n; Mardia's mean |z|^4 has
    8 d (d + 2)/n around d (d + 2).
    """
    Z = Z[:: max(1, len(Z) // most)]  # a fourth moment is then known to .02 of the Gaussian one
    n, d = Z.shape
    lines = stream(seed, "lines through the inputs").standard_normal((d, 64))
    lines /= np.linalg.norm(lines, axis=0)
    radius = float(np.mean(np.sum(Z**2, axis=1) ** 2))
    mardia = abs(radius - d * (d + 2)) / np.sqrt(8 * d * (d + 2) / n)
    return _normal(max(departure(np.column_stack([Z, Z @ lines])), mardia))


def _normal(z: float, level: float = 5.0) -> bool:
    """Whether a Gaussian sample may show this largest z-value of its third and fourth moments."""
    return bool(z < level)


def departure(projections: Float[np.ndarray, "n m"]) -> float:
    """Return the largest z-value of skewness and kurtosis of the columns."""
    n = len(projections)
    projections = (projections - projections.mean(axis=0)) / projections.std(axis=0)
    square = projections * projections
    third = np.abs(np.mean(square * projections, axis=0)) / np.sqrt(6 / n)
    fourth = np.abs(np.mean(square * square, axis=0) - 3) / np.sqrt(24 / n)
    return max(float(third.max()), float(fourth.max()))


def input_model(problem: Problem) -> InputModel:
    """Return the law of the inputs of a problem, for starts that need one."""
    assert isinstance(problem.input_model, InputModel)
    return problem.input_model


def law_of(problem: Problem) -> Score:
    """Return the score that moments are taken with."""
    return input_model(problem).score() or standard_normal(problem.d)


def one_output(problem: Problem, name: str) -> None:
    """Refuse a problem of several outputs."""
    if problem.form.outputs is not None:
        raise Refused(f"the {name} start reads one output: with several use start='auto'")


def moment_work(problem: Problem) -> float:
    """Operations of T_4 in the span of the units."""
    return 2.0 * problem.n * min(problem.k, problem.d) ** 4


def span(problem: Problem) -> Float[np.ndarray, "d k"] | None:
    """Return the span of the units where the second moments show it, else None."""
    law, inputs = law_of(problem), input_model(problem)
    moments = [
        inputs.record(score_moments(problem.Z, y, law, orders=(1, 2), weight=problem.weight))
        for y in problem.y.reshape(problem.n, -1).T
    ]
    return span_of_units(moments, problem.k)


def span_of_units(
    moments: Sequence[ScoreMoments], k: int, signal: float = 5.0, apart: float = 2.0
) -> Float[np.ndarray, "d k"] | None:
    """(d, k) orthonormal basis of the span of the a_i from T_2 of every output.

    T_2 of output o is sum_i w_io kappa_i a_i a_i': the outputs share one span, that of the sum of their
    squares. None where no T_2 stands ``signal`` standard errors above noise, or where the k leading
    eigenvalues are not ``apart`` times the next one.
    """
    d = len(moments[0][2])
    if k >= d or max(one.signal(2) for one in moments) < signal:
        return None
    precision = np.array([1 / np.mean(one.standard_error(2) ** 2) for one in moments])
    share = precision / precision.sum()
    value, vector = np.linalg.eigh(sum(c * one[2] @ one[2] for c, one in zip(share, moments, strict=True)))
    size = np.sqrt(np.maximum(value, 0))[::-1]
    return vector[:, : d - k - 1 : -1] if size[k - 1] >= apart * size[k] else None
