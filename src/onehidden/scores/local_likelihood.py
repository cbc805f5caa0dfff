"""LocalLikelihood: the score estimator of [GMOV] (LLSFE), any degree, bandwidth from data, always finite."""

from __future__ import annotations

import warnings
from dataclasses import replace
from math import comb

import numpy as np
import numpy.typing as npt

from onehidden.laws.base import Derivatives, Directions, Points, ScoreFunction, Tensors, Values, as_points
from onehidden.scores.local_fit import (
    Choice,
    Diagnostics,
    Kind,
    Setting,
    Trial,
    answered,
    held_out_likelihood,
    pick,
    plug_in,
)
from onehidden.scores.local_polynomial import MAX_INPUTS
from onehidden.scores.sample import check_sample


class LocalLikelihood(ScoreFunction):
    """Scores from a polynomial fitted to log f around each query.

    Degree 2 with the Gaussian kernel is closed form; every other choice is Newton with a compact kernel
    (the Gaussian one cut at 3h) and needs few inputs. Where a query has too few neighbours or a singular
    neighbourhood its bandwidth grows by factors of 1.5, and the fitted Gaussian answers last: the result is
    always finite, and ``diagnostics`` flags it.

    Parameters
    ----------
    degree : int
        p; derivatives of log f beyond it are taken as zero.
    bandwidth : str or float
        "auto" (for every order what would serve it best if a fitted mixture were the law), "adaptive"
        (distance to a nearest neighbour, their number by leave-one-out likelihood), or a positive number in
        the units of X.
    kernel : str
        "gaussian", "tricube" or "epanechnikov".
    curvature : str
        The quadratic term of degree 2 with the Gaussian kernel: "full", "diagonal", "spherical", or "auto",
        chosen with the bandwidth ("full" where that is a number).
    seed : int
        Seed of the rows and proposals behind the automatic choice.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> estimate = oh.scores.LocalLikelihood(bandwidth=2.0).fit(X)
    >>> estimate.score([[1.0, 1.0]], 1).round(0).tolist()  # x for a standard normal law
    [[1.0, 1.0]]
    """

    def __init__(
        self,
        degree: int = 2,
        bandwidth: str | float = "auto",
        kernel: str = "gaussian",
        curvature: str = "auto",
        seed: int = 0,
    ) -> None:
        self._kind = Kind(degree, kernel, curvature)
        if isinstance(bandwidth, str):
            if bandwidth not in ("auto", "adaptive"):
                raise ValueError(
                    f"bandwidth must be 'auto', 'adaptive' or a positive number, got {bandwidth!r}"
                )
        elif not (np.isfinite(bandwidth) and bandwidth > 0):
            raise ValueError(f"bandwidth must be positive, got {bandwidth}")
        self.degree, self.bandwidth, self.kernel = degree, bandwidth, kernel
        self.curvature, self.seed = curvature, seed
        self.trials: tuple[Trial, ...] = ()

    def fit(self, X: npt.ArrayLike) -> LocalLikelihood:
        """Keep the sample and choose what is on "auto"; returns itself."""
        X = check_sample(X)
        self.n_samples, self.n_inputs = X.shape
        if not self._kind.closed and self.n_inputs > MAX_INPUTS:
            raise ValueError(
                f"degree {self.degree} with the {self.kernel} kernel integrates over {self.n_inputs} inputs: "
                f"at most {MAX_INPUTS}; use degree 2 with the gaussian kernel, or IndependentScore"
            )
        self._orders: dict[int, Setting] = {}
        self._tried: tuple[np.ndarray, Setting] | None = None  # the last trial sample, made ready
        self._tree = None
        automatic = isinstance(self.bandwidth, str)
        if self.bandwidth == "auto":
            # Best for one order is not best for another: each has a choice of its own.
            queries = 600 if self._kind.closed else 100
            rate = 1 / (2 * self.degree + 2 + self.n_inputs)
            found = plug_in(X, self._kind.choices(*X.shape), self._trial, self.seed, queries, rate)
            self._tried = None
            self._orders = {m: self._kind.ready(choice, X) for m, choice in found.items()}
            self._base = self._orders[1]
        elif self.bandwidth == "adaptive":
            self._base = self._kind.ready(self._by_likelihood(X), X)
        else:
            shape = "full" if self.curvature == "auto" else self.curvature
            self._base = self._kind.ready(Choice(shape, "none", float(self.bandwidth)), X)
        self.curvature_, self.bandwidth_ = self._base.choice.curvature, self._base.choice.bandwidth
        parameters = comb(self.n_inputs + min(self.degree, 2), self.n_inputs)
        if self._kind.closed:
            self.min_neighbours = float(parameters if automatic else min(parameters, self.n_inputs + 2))
        else:
            self.min_neighbours = float(self.n_inputs + 2)
        return self

    def score(self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None) -> Tensors:
        """S_m at the rows of X; warns where m exceeds the degree: derivatives beyond it count as zero."""
        if order > self.degree:
            warnings.warn(
                f"S_{order} of a fit of degree {self.degree} leaves derivatives of log f beyond it at zero: "
                f"right for Gaussian laws only; take degree={order} where inputs are few",
                stacklevel=2,
            )
        return super().score(X, order, subspace)

    def choice(self, order: int) -> Choice:
        """Return what scores of that order are fitted with."""
        return self._at(order).choice

    def _at(self, order: int) -> Setting:
        return self._orders.get(order, self._base)

    def _trial(self, choice: Choice, sample: np.ndarray, Q: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
        """G_j(u, …, u) at the queries from another sample, (q, r) each; where a fit fails, zero."""
        setting = self._tried
        if setting is None or setting[0] is not sample or setting[1].choice.coordinates != choice.coordinates:
            setting = self._tried = sample, self._kind.ready(choice, sample)
        setting = replace(setting[1], choice=choice)
        fit = self._kind.fit(setting, setting.coordinates.points(Q), np.full(len(Q), choice.bandwidth))
        U, found = setting.coordinates.directions(V), []
        for part in fit.derivatives:
            for axis in range(part.ndim - 1):
                part = part @ U if axis == 0 else np.einsum("q...ir,ir->q...r", part, U)
            found.append(part)
        return found

    def _by_likelihood(self, X: np.ndarray) -> Choice:
        """Every candidate held against the same held-out likelihood, in the units of X."""
        trials: list[Trial] = []
        for shape in self._kind.shapes(self.n_inputs):
            setting = self._base = self._kind.ready(Choice(shape, shape, 1.0), X)
            self._tree = None
            fit = lambda Q, h, out, at=setting: self._kind.fit(at, Q, h * self._local_scale(Q), out)  # noqa: E731
            # The noise of the comparison has to fall with n as the differences do.
            points = min(3000, max(800, self.n_samples // 3)) if self._kind.closed else 300
            for trial in held_out_likelihood(
                setting.Z, fit, self._kind.grid(*X.shape), shape, self.seed, points
            ):
                value = trial.log_likelihood + setting.coordinates.log_volume
                trials.append(replace(trial, log_likelihood=value))
        best = pick(trials)
        self.trials = tuple(trials)
        self._tree = None
        return Choice(best.label, best.label, best.bandwidth)

    def _local_scale(self, Q: np.ndarray) -> np.ndarray:
        """Multiplier of the bandwidth at each query: 1, or a nearest-neighbour distance of median 1."""
        if self.bandwidth != "adaptive":
            return np.ones(len(Q))
        if self._tree is None:
            from scipy.spatial import KDTree

            Z = self._base.Z
            self._tree = KDTree(Z)
            self._k = min(self.n_samples - 1, max(self.n_inputs + 2, round(self.n_samples**0.6)))
            own = self._tree.query(Z[: min(1000, self.n_samples)], k=self._k)[0][:, -1]
            self._typical = float(np.median(own))
        return self._tree.query(Q, k=self._k)[0][:, -1] / self._typical

    def _local(self, X: np.ndarray, order: int) -> tuple[list[np.ndarray], Diagnostics]:
        """Return derivatives in the working coordinates of the order, with the fallbacks applied."""
        at = self._at(order)
        Q = at.coordinates.points(X)
        h = at.choice.bandwidth * self._local_scale(Q)
        rounds = 24 if self._kind.closed else 8
        return answered(lambda Q, h: self._kind.fit(at, Q, h), at.Z, Q, h, self.min_neighbours, rounds)

    def diagnostics(self, X: npt.ArrayLike, order: int = 1) -> Diagnostics:
        """Return flags, bandwidths and neighbours of each query, for scores of that order."""
        return self._local(as_points(X, self.n_inputs), order)[1]

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        derivatives, _ = self._local(X, order)
        U = self._at(order).coordinates.directions(V)
        G: Derivatives = []
        for j in range(1, order + 1):
            if j > len(derivatives):
                G.append(None)
                continue
            part = derivatives[j - 1]
            for _ in range(j):
                part = np.tensordot(part, U, axes=(1, 0))
            G.append(part)
        return G

    def laplacian(self, X: npt.ArrayLike) -> Values:
        """Divergence of x -> â_1(x) itself (not of the plugged-in Â_2) by central differences, (n,)."""
        X = as_points(X, self.n_inputs)
        V = np.linalg.inv(self._base.coordinates.matrix).T  # columns: unit steps of the working coordinates
        step = 1e-4 * self.bandwidth_
        total = np.zeros(len(X))
        for j in range(self.n_inputs):
            ahead = self._log_derivatives(X + step * V[:, j], 1, self._base.coordinates.matrix[:, [j]])[0]
            behind = self._log_derivatives(X - step * V[:, j], 1, self._base.coordinates.matrix[:, [j]])[0]
            assert ahead is not None
            assert behind is not None
            total += (ahead - behind)[:, 0] / (2 * step)
        return total
