"""LocalLikelihood: the score estimator of [GMOV] (LLSFE), any degree, bandwidth from data, always finite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import ScoreFunction, as_points
from onehidden.scores.bandwidth import Trial, held_out_likelihood, pick
from onehidden.scores.local_gaussian import CURVATURES, LocalFit, gaussian_fit, prepare
from onehidden.scores.local_polynomial import KERNELS, MAX_INPUTS, REACH, polynomial_fit
from onehidden.scores.sample import Coordinates, check_sample, coordinates

REGULAR, ENLARGED, GAUSSIAN = 0, 1, 2
_GROWTH, _ROUNDS, _NEWTON_ROUNDS = 1.5, 24, 8
_GRID = np.array([0.25, 0.35, 0.5, 0.65, 0.8, 1.0, 1.3, 1.8, 3.0, 30.0])
_COMPACT = np.array([0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0])  # half-widths of the kernel's box


@dataclass(frozen=True)
class Diagnostics:
    """How each query was answered.

    Attributes
    ----------
    flag : (q,) 0 regular; 1 the bandwidth was enlarged, too few neighbours; 2 fitted Gaussian, far outside.
    bandwidth : (q,) used, in working coordinates.
    neighbours : (q,) kernel-weighted number of data points.
    """

    flag: np.ndarray
    bandwidth: np.ndarray
    neighbours: np.ndarray


class LocalLikelihood(ScoreFunction):
    """Scores from a polynomial fitted to log f around each query.

    Degree 2 with the Gaussian kernel is closed form; every other choice is Newton with a compact kernel
    (the Gaussian one cut at 3h) and needs few inputs. Where a query has too few neighbours or a singular
    neighbourhood its bandwidth grows by factors of 1.5, and the fitted Gaussian answers last: the result is
    always finite, and ``diagnostics`` flags it.

    Parameters
    ----------
    degree : p; derivatives of log f beyond it are taken as zero.
    bandwidth : "auto" (leave-one-out likelihood), "adaptive" (distance to a nearest neighbour, their number
        by the same criterion), or a positive number in the units of X.
    kernel : "gaussian", "tricube" or "epanechnikov".
    curvature : the quadratic term of degree 2 with the Gaussian kernel: "full", "diagonal", "spherical", or
        "auto", chosen with the bandwidth ("full" where that is a number).
    seed : of the rows and proposals behind the automatic choice.
    """

    def __init__(
        self,
        degree: int = 2,
        bandwidth: str | float = "auto",
        kernel: str = "gaussian",
        curvature: str = "auto",
        seed: int = 0,
    ) -> None:
        if degree not in (1, 2, 3, 4, 5, 6):
            raise ValueError(f"degree must be 1 … 6, got {degree}")
        if isinstance(bandwidth, str):
            if bandwidth not in ("auto", "adaptive"):
                raise ValueError(
                    f"bandwidth must be 'auto', 'adaptive' or a positive number, got {bandwidth!r}"
                )
        elif not (np.isfinite(bandwidth) and bandwidth > 0):
            raise ValueError(f"bandwidth must be positive, got {bandwidth}")
        if kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
        if curvature not in (*CURVATURES[:3], "auto"):
            raise ValueError(f"curvature must be full, diagonal, spherical or auto, got {curvature!r}")
        self.degree, self.bandwidth, self.kernel = degree, bandwidth, kernel
        self.curvature, self.seed = curvature, seed
        self.trials: tuple[Trial, ...] = ()

    def fit(self, X: npt.ArrayLike) -> LocalLikelihood:
        """Keep the sample and choose what is on "auto"; returns itself."""
        X = check_sample(X)
        self.n_samples, self.n_inputs = X.shape
        if not self._closed and self.n_inputs > MAX_INPUTS:
            raise ValueError(
                f"degree {self.degree} with the {self.kernel} kernel integrates over {self.n_inputs} inputs: "
                f"at most {MAX_INPUTS}; use degree 2 with the gaussian kernel, or IndependentScore"
            )
        automatic = isinstance(self.bandwidth, str)
        if not automatic:
            self.curvature_ = "full" if self.curvature == "auto" else self.curvature
            self._use(X, "none")
            self.bandwidth_ = float(self.bandwidth)
        else:
            self._choose(X)
        self._mean, self._cov = X.mean(axis=0), np.atleast_2d(np.cov(X.T))
        parameters = comb(self.n_inputs + min(self.degree, 2), self.n_inputs)
        if self._closed:
            self.min_neighbours = float(parameters if automatic else min(parameters, self.n_inputs + 2))
        else:
            self.min_neighbours = float(self.n_inputs + 2)
        return self

    @property
    def _closed(self) -> bool:
        return self.kernel == "gaussian" and self.degree <= 2

    def _use(self, X: np.ndarray, kind: str) -> None:
        self._coordinates: Coordinates = coordinates(X, kind)
        self._Z = np.ascontiguousarray(self._coordinates.points(X))
        self._data = prepare(self._Z) if self._closed else None
        self._tree = None

    def _choose(self, X: np.ndarray) -> None:
        """Every candidate held against the same held-out likelihood, in the units of X."""
        if not self._closed or self.degree == 1:
            shapes: tuple[str, ...] = ("full",)
        else:
            shapes = CURVATURES[:3] if self.curvature == "auto" else (self.curvature,)
            if X.shape[1] == 1:
                shapes = shapes[:1]
        trials: list[Trial] = []
        for shape in shapes:
            self.curvature_ = shape
            self._use(X, shape)
            fit = lambda Q, h, out: self._fit_at(Q, h * self._local_scale(Q), out)  # noqa: E731
            # The noise of the comparison has to fall with n as the differences do.
            points = min(3000, max(800, self.n_samples // 3)) if self._closed else 300
            for trial in held_out_likelihood(self._Z, fit, self._grid(), shape, self.seed, points):
                value = trial.log_likelihood + self._coordinates.log_volume
                trials.append(replace(trial, log_likelihood=value))
        best = pick(trials)
        self.trials = tuple(trials)
        self.curvature_ = best.label
        self._use(X, best.label)
        self.bandwidth_ = best.bandwidth

    def _grid(self) -> np.ndarray:
        # The optimal h shrinks like n^{-1/(2p+2+d)} and the neighbours thin out with d.
        grid = _GRID if self._closed else _COMPACT / REACH[self.kernel]
        rate = (self.n_samples / 1000) ** (-1 / (2 * self.degree + 2 + self.n_inputs))
        return grid * min(1.0, rate) if self._closed else grid * max(rate, 0.5)

    def _local_scale(self, Q: np.ndarray) -> np.ndarray:
        """Multiplier of the bandwidth at each query: 1, or a nearest-neighbour distance of median 1."""
        if self.bandwidth != "adaptive":
            return np.ones(len(Q))
        if self._tree is None:
            from scipy.spatial import KDTree

            self._tree = KDTree(self._Z)
            self._k = min(self.n_samples - 1, max(self.n_inputs + 2, round(self.n_samples**0.6)))
            own = self._tree.query(self._Z[: min(1000, self.n_samples)], k=self._k)[0][:, -1]
            self._typical = float(np.median(own))
        return self._tree.query(Q, k=self._k)[0][:, -1] / self._typical

    def _fit_at(self, Q: np.ndarray, h: np.ndarray, leave_out: bool = False) -> LocalFit:
        if self._closed:
            curvature = "none" if self.degree == 1 else self.curvature_
            assert self._data is not None
            fit = gaussian_fit(self._data, self.n_samples, Q, h, curvature, leave_out)
            return fit._replace(derivatives=fit.derivatives[: self.degree])
        return polynomial_fit(self._Z, Q, h, self.degree, self.kernel, leave_out)

    def _local(self, X: np.ndarray) -> tuple[list[np.ndarray], Diagnostics]:
        """Derivatives in working coordinates with the fallbacks applied."""
        Q = self._coordinates.points(X)
        h = self.bandwidth_ * self._local_scale(Q)
        fit = self._fit_at(Q, h)
        derivatives = [part.copy() for part in fit.derivatives]
        neighbours, flag = fit.mass.copy(), np.zeros(len(Q), dtype=int)
        poor = np.flatnonzero(~fit.ok | (fit.mass < self.min_neighbours))
        for _ in range(_ROUNDS if self._closed else _NEWTON_ROUNDS):
            if not len(poor):
                break
            h[poor] *= _GROWTH
            again = self._fit_at(Q[poor], h[poor])
            good = again.ok & (again.mass >= min(self.min_neighbours, 0.5 * self.n_samples))
            done = poor[good]
            for whole, part in zip(derivatives, again.derivatives, strict=True):
                whole[done] = part[good]
            neighbours[poor], flag[done] = again.mass, ENLARGED
            poor = poor[~good]
        if len(poor):
            self._gaussian_answer(X, poor, derivatives)
            flag[poor] = GAUSSIAN
        return derivatives, Diagnostics(flag, h, neighbours)

    def _gaussian_answer(self, X: np.ndarray, rows: np.ndarray, derivatives: list[np.ndarray]) -> None:
        back = np.linalg.inv(self._coordinates.matrix)
        precision = np.linalg.inv(self._cov)
        derivatives[0][rows] = (self._mean - X[rows]) @ precision @ back.T
        for j, part in enumerate(derivatives[1:], start=2):
            part[rows] = -back @ precision @ back.T if j == 2 else 0.0

    def diagnostics(self, X: npt.ArrayLike) -> Diagnostics:
        """Flags, bandwidths and neighbours of each query."""
        return self._local(as_points(X, self.n_inputs))[1]

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        derivatives, _ = self._local(X)
        U = self._coordinates.directions(V)
        G: list[np.ndarray | None] = []
        for j in range(1, order + 1):
            if j > len(derivatives):
                G.append(None)
                continue
            part = derivatives[j - 1]
            for _ in range(j):
                part = np.tensordot(part, U, axes=(1, 0))
            G.append(part)
        return G

    def laplacian(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        """Divergence of x -> â_1(x) itself (not of the plugged-in Â_2) by central differences, (n,)."""
        X = as_points(X, self.n_inputs)
        V = np.linalg.inv(self._coordinates.matrix).T  # columns: unit steps of the working coordinates
        step = 1e-4 * self.bandwidth_
        total = np.zeros(len(X))
        for j in range(self.n_inputs):
            ahead = self._log_derivatives(X + step * V[:, j], 1, self._coordinates.matrix[:, [j]])[0]
            behind = self._log_derivatives(X - step * V[:, j], 1, self._coordinates.matrix[:, [j]])[0]
            assert ahead is not None
            assert behind is not None
            total += (ahead - behind)[:, 0] / (2 * step)
        return total
