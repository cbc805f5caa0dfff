"""Independent components: unmix by FastICA, then local likelihood on each line; any dimension, order 4."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import ScoreFunction
from onehidden.laws.product import power_sum
from onehidden.scores.local_polynomial import polynomial_fit
from onehidden.scores.sample import check_sample, coordinates
from onehidden.streams import derived_seed, stream

_GRID_POINTS, _FOLD_LIMIT = 200, 4000
_REACHES = (0.8, 1.1, 1.5, 2.0, 2.8, 4.0)


class Line:
    """Derivatives of a one-dimensional log-density from local likelihood, tabulated and splined.

    Outside the middle 99.8 % of the sample the log-density continues as a parabola.
    """

    def __init__(self, t: Float[np.ndarray, " n"], degree: int, reach: float | None, seed: int) -> None:
        self.low, self.high = np.quantile(t, [0.001, 0.999])
        self.grid = np.linspace(self.low, self.high, _GRID_POINTS)
        self.reach = self._choose(t, degree, seed) if reach is None else reach
        fit = self._fit(t, degree, self.reach)
        from scipy.interpolate import CubicSpline

        self._splines = [CubicSpline(self.grid, part.reshape(len(self.grid))) for part in fit.derivatives]

    def _fit(self, t: np.ndarray, degree: int, reach: float):
        """Local likelihood on the grid; the kernel reaches farther where data is thin."""
        ordered = np.sort(t)
        # At least 30 neighbours (or all): distance to the 30th nearest sample of each grid point.
        k = min(30, len(t) - 1)
        place = np.searchsorted(ordered, self.grid)
        lower, upper = ordered[np.maximum(place - k, 0)], ordered[np.minimum(place + k, len(t) - 1)]
        width = np.maximum(reach, np.maximum(self.grid - lower, upper - self.grid))
        return polynomial_fit(t[:, None], self.grid[:, None], width, degree, "tricube")

    def _choose(self, t: np.ndarray, degree: int, seed: int) -> float:
        """The reach of highest two-fold likelihood, the estimate normalised on the grid."""
        t = stream(seed, "scores", "folds of a line").permutation(t)[:_FOLD_LIMIT]
        halves = t[::2], t[1::2]
        best = (-np.inf, _REACHES[-1])
        for reach in _REACHES:
            value = 0.0
            for own, other in (halves, halves[::-1]):
                fit = self._fit(own, degree, reach)
                log_f = np.where(fit.ok, fit.log_density, -50.0)
                mass = np.trapezoid(np.exp(np.minimum(log_f, 50.0)), self.grid)
                inside = other[(other > self.low) & (other < self.high)]
                value += float(np.mean(np.interp(inside, self.grid, log_f)) - np.log(max(mass, 1e-300)))
            best = max(best, (value, reach))
        return best[1]

    def derivative(self, t: Float[np.ndarray, " n"], j: int) -> Float[np.ndarray, " n"]:
        """j-th derivative of the log-density at t."""
        if j > len(self._splines):
            return np.zeros_like(t)
        inside = np.clip(t, self.low, self.high)
        value = self._splines[j - 1](inside)
        if len(self._splines) < 2:
            return value
        beyond = t - inside
        bend = np.minimum(self._splines[1](inside), 0.0)
        if j == 1:
            return value + bend * beyond
        return np.where(beyond == 0, value, bend if j == 2 else 0.0)


class IndependentScore(ScoreFunction):
    """Scores of x = M s with independent components s, both estimated.

    Parameters
    ----------
    degree : of the one-dimensional local likelihood, 4 for scores up to order 4.
    unmix : "ica" (FastICA), or "none" where the columns of X are already independent.
    seed : of FastICA and the folds.
    """

    def __init__(self, degree: int = 4, unmix: str = "ica", seed: int = 0) -> None:
        if degree not in (2, 3, 4, 5, 6):
            raise ValueError(f"degree must be 2 … 6, got {degree}")
        if unmix not in ("ica", "none"):
            raise ValueError(f"unmix must be 'ica' or 'none', got {unmix!r}")
        self.degree, self.unmix, self.seed = degree, unmix, seed

    def fit(self, X: npt.ArrayLike) -> IndependentScore:
        X = check_sample(X)
        self.n_inputs = X.shape[1]
        self._coordinates = coordinates(X, "full" if self.unmix == "ica" else "diagonal")
        Z = self._coordinates.points(X)
        self._rotation = self._ica(Z) if self.unmix == "ica" and self.n_inputs > 1 else np.eye(self.n_inputs)
        S = Z @ self._rotation
        self.lines_ = [Line(S[:, j], self.degree, None, self.seed) for j in range(self.n_inputs)]
        return self

    def _ica(self, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "d d"]:
        from sklearn.decomposition import FastICA
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            # Gaussian directions cannot be told apart and never converge; any rotation of them will do.
            warnings.simplefilter("ignore", ConvergenceWarning)
            ica = FastICA(
                whiten=False,  # pyright: ignore[reportArgumentType]
                random_state=derived_seed(self.seed, "scores", "independent components"),
                max_iter=300,
                tol=1e-4,
            ).fit(Z)
        U, _, Vt = np.linalg.svd(ica.components_)  # orthogonal to rounding
        return (U @ Vt).T

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        S = self._coordinates.points(X) @ self._rotation
        U = self._rotation.T @ self._coordinates.directions(V)
        G: list[np.ndarray | None] = []
        for j in range(1, order + 1):
            L = np.stack([line.derivative(S[:, i], j) for i, line in enumerate(self.lines_)], axis=1)
            G.append(power_sum(L, U, j))
        return G
