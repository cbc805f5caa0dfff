"""Estimators with a structure to lean on where local fits have no neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import ScoreFunction
from onehidden.laws.gaussian import Gaussian, GaussianMixture
from onehidden.refused import Refused
from onehidden.scores.kernel_sums import prepare
from onehidden.scores.local_gaussian import local_moments
from onehidden.scores.sample import check_sample, coordinates, draw_rows
from onehidden.streams import derived_seed


@runtime_checkable
class _FittedMixture(Protocol):
    """What is read of scikit-learn's mixture: the shape of its covariances says how they are stored."""

    covariances_: np.ndarray
    covariance_type: str
    n_components: int


class LawScore(ScoreFunction):
    """An estimator whose answer is a law with exact scores; ``law_`` after ``fit``."""

    law_: Any

    def _adopt(self, law: Gaussian | GaussianMixture) -> None:
        self.law_ = law
        self.n_inputs = law.n_inputs

    def log_density(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        """log of the fitted density at the rows of X, (n,)."""
        return self.law_.log_density(X)

    def _tensor(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> Float[np.ndarray, "n ..."]:
        return self.law_._tensor(X, order, V)

    def _entry(
        self, X: Float[np.ndarray, "n d"], V: Float[np.ndarray, "d r"], index: Sequence[int]
    ) -> Float[np.ndarray, " n"]:
        return self.law_._entry(X, V, index)

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        return self.law_._log_derivatives(X, order, V)


class GaussianScore(LawScore):
    """Scores of the Gaussian of highest likelihood.

    Parameters
    ----------
    covariance : "full", "diag", "spherical", or "auto": the shape of lowest BIC.
    """

    _SHAPES = ("spherical", "diag", "full")

    def __init__(self, covariance: str = "full") -> None:
        if covariance not in (*self._SHAPES, "auto"):
            raise ValueError(f"covariance must be one of {self._SHAPES} or 'auto', got {covariance!r}")
        self.covariance = covariance

    def fit(self, X: npt.ArrayLike) -> GaussianScore:
        X = check_sample(X)
        n, d = X.shape
        centred = X - X.mean(axis=0)
        full = centred.T @ centred / n
        shaped = {
            "spherical": (np.trace(full) / d * np.eye(d), 1),
            "diag": (np.diag(np.diag(full)), d),
            "full": (full, d * (d + 1) // 2),
        }
        best = None
        for shape in self._SHAPES if self.covariance == "auto" else (self.covariance,):
            cov, parameters = shaped[shape]
            law = Gaussian(X.mean(axis=0), cov)
            bic = -2 * float(np.sum(law.log_density(X))) + parameters * np.log(n)
            if best is None or bic < best[0]:
                best = bic, shape, law
        assert best is not None
        self.covariance_ = best[1]
        self._adopt(best[2])
        return self


class MixtureScore(LawScore):
    """Scores of a Gaussian mixture fitted by EM, components and shape of the covariances by BIC.

    Parameters
    ----------
    components : a number, or "auto": 1 … max_components by the Bayesian information criterion.
    covariance : "spherical", "diag", "tied", "full", or "auto": by the same criterion.
    max_components : the largest number tried.
    seed : of the starts of EM.
    """

    _SHAPES = ("spherical", "diag", "tied", "full")

    def __init__(
        self,
        components: int | str = "auto",
        covariance: str = "auto",
        max_components: int = 6,
        seed: int = 0,
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
        best = None
        self.trials: dict[tuple[str, int], float] = {}
        for shape in shapes:
            worse = 0
            for K in self._counts():
                if K * (X.shape[1] + 1) > len(X) or (K == 1 and shape == "tied" and len(shapes) > 1):
                    continue
                model = self._em(X, K, shape)
                bic = float(model.bic(X))
                self.trials[shape, K] = bic
                worse = worse + 1 if best is not None and bic > best[0] else 0
                if best is None or bic < best[0]:
                    best = bic, model
                if worse >= 2 and K > 2:  # the criterion rises: more components only cost time
                    break
        if best is None:
            raise Refused(f"{self.components} components need more than {len(X)} rows")
        model = best[1]
        self.covariance_, self.components_ = model.covariance_type, model.n_components
        self._adopt(GaussianMixture(model.weights_, model.means_, _full(model, X.shape[1])))
        return self

    def _counts(self) -> list[int]:
        if isinstance(self.components, str):
            return list(range(1, self.max_components + 1))
        return [int(self.components)]

    def _em(self, X: Float[np.ndarray, "n d"], K: int, shape: str) -> Any:
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
                reg_covar=1e-6 * scale,
                random_state=derived_seed(self.seed, "scores", "mixture"),
            ).fit(X)


def _full(model: _FittedMixture, d: int) -> Float[np.ndarray, "K d d"]:
    """The (K, d, d) covariances of a scikit-learn mixture of any type."""
    covs = model.covariances_
    if model.covariance_type == "spherical":
        return covs[:, None, None] * np.eye(d)
    if model.covariance_type == "diag":
        return covs[:, :, None] * np.eye(d)
    if model.covariance_type == "tied":
        return np.broadcast_to(covs, (model.n_components, d, d))
    return covs


class KernelDensityScore(ScoreFunction):
    """Scores of the Gaussian kernel density estimate: the baseline that fails.

    The estimate is a mixture with one component a sample; beyond order 1 its derivatives need far more
    data than local likelihood. Bandwidth by leave-one-out likelihood in whitened coordinates.

    Parameters
    ----------
    bandwidth : "auto", or a positive number in whitened units.
    """

    def __init__(self, bandwidth: str | float = "auto", seed: int = 0) -> None:
        if isinstance(bandwidth, str):
            if bandwidth != "auto":
                raise ValueError(f"bandwidth must be 'auto' or a positive number, got {bandwidth!r}")
        elif not (np.isfinite(bandwidth) and bandwidth > 0):
            raise ValueError(f"bandwidth must be positive, got {bandwidth}")
        self.bandwidth, self.seed = bandwidth, seed

    def fit(self, X: npt.ArrayLike) -> KernelDensityScore:
        X = check_sample(X)
        n, self.n_inputs = X.shape
        self._coordinates = coordinates(X, "full")
        self._Z = self._coordinates.points(X)
        if not isinstance(self.bandwidth, str):
            self.bandwidth_ = float(self.bandwidth)
            return self
        rows = draw_rows(X, 1000, self.seed)
        scott = n ** (-1 / (self.n_inputs + 4))
        data = prepare(self._Z)
        best = (-np.inf, scott)
        for h in scott * np.array([0.3, 0.45, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0]):
            mass = local_moments(data, self._Z[rows], np.full(len(rows), h))[0] - 1.0
            value = np.mean(np.log(np.maximum(mass, 1e-300))) - self.n_inputs * np.log(h)
            best = max(best, (float(value), float(h)))
        self.bandwidth_ = best[1]
        return self

    def _tensor(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> Float[np.ndarray, "n ..."]:
        from onehidden.laws.partitions import score_tensor

        U = self._coordinates.directions(V)
        Q = self._coordinates.points(X)
        out = np.empty((len(X),) + (U.shape[1],) * order)
        for i in range(len(X)):  # Hermite tensors of every sample, weighted: O(n r^m) a query
            w, t = self._weights(Q[i])
            G: list[np.ndarray | None] = [-(t @ U) / self.bandwidth_]
            if order >= 2:
                G.append(np.broadcast_to(-U.T @ U / self.bandwidth_**2, (len(t), *U.T.shape[:1] * 2)))
            G += [None] * (order - len(G))
            out[i] = np.tensordot(w, score_tensor(G), axes=(0, 0))
        return out

    def _entry(
        self, X: Float[np.ndarray, "n d"], V: Float[np.ndarray, "d r"], index: Sequence[int]
    ) -> Float[np.ndarray, " n"]:
        return self._tensor(X, len(index), V)[(slice(None), *index)]

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        if order > 2:
            raise ValueError("a kernel density gives its scores directly; derivatives of log f to order 2")
        S1 = self._tensor(X, 1, V)
        G: list[np.ndarray | None] = [-S1]
        if order == 2:
            G.append(self._tensor(X, 2, V) - S1[:, :, None] * S1[:, None, :])
        return G

    def _weights(
        self, q: Float[np.ndarray, " d"]
    ) -> tuple[Float[np.ndarray, " kept"], Float[np.ndarray, "kept d"]]:
        """Posterior weights of the samples that matter at a query, and their scaled offsets x - X_i."""
        t = (q - self._Z) / self.bandwidth_
        e = -0.5 * np.sum(t**2, axis=1)
        e -= e.max()
        keep = e > -40.0
        w = np.exp(e[keep])
        return w / w.sum(), t[keep]
