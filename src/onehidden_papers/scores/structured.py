"""Estimators that assume a structure: a Gaussian, a mixture, independent components, a sum of kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.refused import Refused
from onehidden.run import derived_seed, stream
from onehidden_papers.laws.base import (
    Derivatives,
    Directions,
    Points,
    ScoreFunction,
    Tensors,
    Values,
    power_sum,
)
from onehidden_papers.laws.gaussian import GaussianMixture
from onehidden_papers.scores.local_gaussian import LocalFit, local_moments, prepare
from onehidden_papers.scores.local_polynomial import polynomial_fit
from onehidden_papers.scores.sample import Coordinates, check_bandwidth, check_sample, coordinates, draw_rows


class LawScore(ScoreFunction):
    """An estimator whose answer is a law with exact scores; ``law_`` after ``fit``."""

    law_: GaussianMixture

    def log_density(self, X: npt.ArrayLike) -> Values:
        """Return the log of the fitted density at the rows of X, (n,)."""
        return self.law_.log_density(X)

    def _tensor(self, X: Points, order: int, V: Directions) -> Tensors:
        return self.law_._tensor(X, order, V)


class MixtureScore(LawScore):
    """Scores of a Gaussian mixture fitted by EM, components and shape of the covariances by BIC.

    Parameters
    ----------
    components : int or str
        a number, or "auto": 1 … max_components by the Bayesian information criterion.
    covariance : str
        "spherical", "diag", "tied", "full", or "auto": by the same criterion.
    max_components : int
        The largest number tried.
    seed : int
        Seed of the starts of EM.
    """

    _SHAPES = ("spherical", "diag", "tied", "full")

    def __init__(
        self, components: int | str = "auto", covariance: str = "auto", max_components: int = 6, seed: int = 0
    ) -> None:
        if components != "auto" and (isinstance(components, str) or components < 1):
            raise ValueError(f"components must be 'auto' or a positive number, got {components!r}")
        if covariance not in (*self._SHAPES, "auto"):
            raise ValueError(f"covariance must be one of {self._SHAPES} or 'auto', got {covariance!r}")
        self.components, self.covariance = components, covariance
        self.max_components, self.seed = max_components, seed

    def fit(self, X: npt.ArrayLike) -> MixtureScore:
        X = check_sample(X)
        shapes = self._SHAPES if self.covariance == "auto" else (self.covariance,)
        automatic = isinstance(self.components, str)
        counts = range(1, self.max_components + 1) if automatic else [int(self.components)]
        lowest, best = np.inf, None
        for shape in shapes:
            rises = 0
            for K in counts:
                if K * (X.shape[1] + 1) > len(X) or (K == 1 and shape == "tied" and len(shapes) > 1):
                    continue
                model = self._em(X, K, shape)
                bic = float(model.bic(X))
                rises = rises + 1 if bic > lowest else 0
                if bic < lowest:
                    lowest, best = bic, model
                if rises >= 2 and K > 2:  # more components only cost time
                    break
        if best is None:
            raise Refused(f"{self.components} components need more than {len(X)} rows")
        self.covariance_, self.components_ = best.covariance_type, best.n_components
        self.n_inputs = X.shape[1]
        self.law_ = GaussianMixture(best.weights_, best.means_, _full(best))
        return self

    def _em(self, X: Points, K: int, shape: str) -> Any:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture as EM

        with warnings.catch_warnings():
            # EM that is still creeping after 200 rounds is ranked by its likelihood like any other.
            warnings.simplefilter("ignore", ConvergenceWarning)
            scale = float(np.mean(np.var(X, axis=0)))
            return EM(
                K,
                covariance_type=shape,
                n_init=2 if K > 1 else 1,
                max_iter=200,
                reg_covar=1e-6 * scale if K > 1 else 0.0,
                random_state=derived_seed(self.seed, "scores", "mixture"),
            ).fit(X)


def _full(model: Any) -> Float[np.ndarray, "K d d"]:
    """Return the (K, d, d) covariances of a scikit-learn mixture of any type."""
    covs, (K, d) = model.covariances_, model.means_.shape
    if model.covariance_type in ("spherical", "diag"):
        return covs.reshape(K, -1, 1) * np.eye(d)
    return np.broadcast_to(covs, (K, d, d))


class GaussianScore(MixtureScore):
    """Scores of the Gaussian of highest likelihood.

    Parameters
    ----------
    covariance : str
        "full", "diag", "spherical", or "auto": the shape of lowest BIC.
    """

    def __init__(self, covariance: str = "full") -> None:
        super().__init__(1, covariance)


class KernelDensityScore(LawScore):
    """Scores of the Gaussian kernel density estimate: the baseline that fails.

    The estimate is a mixture with one component a sample; beyond order 1 its derivatives need far more
    data than local likelihood. Bandwidth by leave-one-out likelihood in whitened coordinates.

    Parameters
    ----------
    bandwidth : str or float
        "auto", or a positive number in whitened units.
    seed : int
        Seed of the rows that choose the bandwidth.
    """

    def __init__(self, bandwidth: str | float = "auto", seed: int = 0) -> None:
        check_bandwidth(bandwidth)
        self.bandwidth, self.seed = bandwidth, seed

    def fit(self, X: npt.ArrayLike) -> KernelDensityScore:
        X = check_sample(X)
        self.bandwidth_ = self._by_likelihood(X) if isinstance(self.bandwidth, str) else float(self.bandwidth)
        self.n_inputs = X.shape[1]
        self.law_ = GaussianMixture(np.ones(len(X)), X, self.bandwidth_**2 * np.atleast_2d(np.cov(X.T)))
        return self

    def _by_likelihood(self, X: Points) -> float:
        Z = coordinates(X, "full").points(X)
        rows, data = draw_rows(X, 1000, self.seed), prepare(Z)
        best = (-np.inf, 1.0)
        for h in len(X) ** (-1 / (X.shape[1] + 4)) * np.array([0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0]):
            mass = local_moments(data, Z[rows], np.full(len(rows), h))[0] - 1.0
            value = np.mean(np.log(np.maximum(mass, 1e-300))) - X.shape[1] * np.log(h)
            best = max(best, (float(value), float(h)))
        return best[1]

    def _tensor(self, X: Points, order: int, V: Directions) -> Tensors:
        parts = np.array_split(X, -(-len(X) // 256))  # as many posteriors as samples for each row
        return np.concatenate([super(KernelDensityScore, self)._tensor(part, order, V) for part in parts])


class Line:
    """Derivatives of a one-dimensional log-density from local likelihood, tabulated and splined.

    Outside the middle 99.8 % of the sample the log-density continues as a parabola.
    """

    def __init__(self, t: Values, seed: int) -> None:
        from scipy.interpolate import CubicSpline

        self._low, self._high = np.quantile(t, [0.001, 0.999])
        self._grid = np.linspace(self._low, self._high, 200)
        some = stream(seed, "scores", "folds of a line").permutation(t)[:4000]
        reach = max((self._likelihood(some, reach), reach) for reach in (0.8, 1.1, 1.5, 2.0, 2.8, 4.0))[1]
        fit = self._fit(t, reach)
        self._splines = [CubicSpline(self._grid, part.reshape(len(self._grid))) for part in fit.derivatives]

    def _fit(self, t: np.ndarray, reach: float) -> LocalFit:
        """Local likelihood of degree 4 on the grid; the kernel reaches farther where data is thin."""
        ordered = np.sort(t)
        # At least 30 neighbours (or all): distance to the 30th nearest sample of each grid point.
        k = min(30, len(t) - 1)
        place = np.searchsorted(ordered, self._grid)
        lower, upper = ordered[np.maximum(place - k, 0)], ordered[np.minimum(place + k, len(t) - 1)]
        width = np.maximum(reach, np.maximum(self._grid - lower, upper - self._grid))
        return polynomial_fit(t[:, None], self._grid[:, None], width, 4, "tricube")

    def _likelihood(self, t: np.ndarray, reach: float) -> float:
        """Two-fold log-likelihood, the estimate normalised on the grid."""
        value = 0.0
        for own, other in ((t[::2], t[1::2]), (t[1::2], t[::2])):
            fit = self._fit(own, reach)
            log_f = np.where(fit.ok, fit.constant, -50.0)
            mass = np.trapezoid(np.exp(np.minimum(log_f, 50.0)), self._grid)
            inside = other[(other > self._low) & (other < self._high)]
            value += float(np.mean(np.interp(inside, self._grid, log_f)) - np.log(max(mass, 1e-300)))
        return value

    def derivative(self, t: Values, j: int) -> Values:
        """j-th derivative of the log-density at t."""
        if j > len(self._splines):
            return np.zeros_like(t)
        inside = np.clip(t, self._low, self._high)
        value, bend = self._splines[j - 1](inside), np.minimum(self._splines[1](inside), 0.0)
        if j == 1:
            return value + bend * (t - inside)
        return np.where(t == inside, value, bend if j == 2 else 0.0)


class IndependentScore(ScoreFunction):
    """Scores of x = M s with independent components s, both estimated; M by FastICA.

    Parameters
    ----------
    seed : int
        Seed of FastICA and the folds.
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, X: npt.ArrayLike) -> IndependentScore:
        X = check_sample(X)
        self.n_inputs = X.shape[1]
        whitened = coordinates(X, "full")
        rotation = np.eye(1) if self.n_inputs == 1 else self._ica(whitened.points(X))
        self._components = Coordinates(whitened.centre, whitened.matrix @ rotation)
        S = self._components.points(X)
        self._lines = [Line(component, self.seed) for component in S.T]
        return self

    def _ica(self, Z: Points) -> Float[np.ndarray, "d d"]:
        from sklearn.decomposition import FastICA
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            # Gaussian directions cannot be distinguished and never converge; any rotation of them will do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            ica = FastICA(
                whiten=False,  # pyright: ignore[reportArgumentType]
                random_state=derived_seed(self.seed, "scores", "independent components"),
                max_iter=300,
                tol=1e-4,
            ).fit(Z)
        U, _, Vt = np.linalg.svd(ica.components_)  # orthogonal to rounding
        return (U @ Vt).T

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        U = self._components.directions(V)
        lines = list(zip(self._lines, self._components.points(X).T, strict=True))
        along = ([line.derivative(s, j) for line, s in lines] for j in range(1, order + 1))
        return [power_sum(np.stack(L, axis=1), U, j) for j, L in enumerate(along, start=1)]
