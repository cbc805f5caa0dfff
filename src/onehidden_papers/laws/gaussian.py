"""Gaussian laws and mixtures of them, any mean and covariance: scores are (mixed) Hermite tensors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.run import stream
from onehidden_papers.laws.base import Derivatives, Directions, Law, Points, Tensors, Values, as_points


class Gaussian(Law):
    """N(mean, cov): log f is quadratic, so G_j = 0 from the third derivative on.

    Parameters
    ----------
    mean : array_like of shape (d,)
        Mean.
    cov : array_like of shape (d, d)
        Positive definite; a number stands for that multiple of the identity.
    """

    def __init__(self, mean: npt.ArrayLike, cov: npt.ArrayLike = 1.0) -> None:
        self._mean = np.atleast_1d(np.array(mean, dtype=float))
        if self._mean.ndim != 1 or not np.all(np.isfinite(self._mean)):
            raise ValueError(f"mean must be a finite vector, got shape {self._mean.shape}")
        self.n_inputs = d = len(self._mean)
        self._cov = np.array(cov, dtype=float) * (np.eye(d) if np.ndim(cov) == 0 else 1.0)
        if self._cov.shape != (d, d) or not np.allclose(self._cov, self._cov.T, rtol=1e-10):
            raise ValueError(f"cov must be a finite symmetric ({d}, {d}) matrix, got shape {self._cov.shape}")
        try:
            self._root = np.linalg.cholesky(self._cov)
        except np.linalg.LinAlgError:
            raise ValueError("cov must be positive definite: drop dependent columns") from None
        inverse_root = np.linalg.inv(self._root)
        self._precision = inverse_root.T @ inverse_root
        self._log_norm = -0.5 * self.n_inputs * np.log(2 * np.pi) - np.log(np.diag(self._root)).sum()
        self._inverse_root = inverse_root

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return self._mean

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        return self._cov

    def sample(self, n: int, seed: int) -> Points:
        z = stream(seed, "law", type(self).__name__).standard_normal((n, self.n_inputs))
        return self._mean + z @ self._root.T

    def log_density(self, X: npt.ArrayLike) -> Values:
        z = (as_points(X, self.n_inputs) - self._mean) @ self._inverse_root.T
        return self._log_norm - 0.5 * np.sum(z**2, axis=1)

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        PV = self._precision @ V
        G: Derivatives = [(self._mean - X) @ PV]
        if order >= 2:
            G.append(np.broadcast_to(-V.T @ PV, (len(X), V.shape[1], V.shape[1])))
        return G + [None] * (order - len(G))


def standard_normal(d: int) -> Gaussian:
    """N(0, I) in d dimensions: the law of whitened Gaussian inputs.

    Parameters
    ----------
    d : int
        Number of inputs.

    Returns
    -------
    Gaussian
        The law.
    """
    return Gaussian(np.zeros(d))


class GaussianMixture(Law):
    """Σ_c weights_c N(means_c, covs_c): S_m is the posterior mean of the components' scores.

    Parameters
    ----------
    weights : array_like of shape (K,)
        Positive; scaled to sum 1.
    means : array_like of shape (K, d)
        Mean of each component, a row each.
    covs : array_like of shape (K, d, d)
        Full covariances, or (d, d) shared by all.

    Examples
    --------
    >>> import onehidden as oh
    >>> law = oh.laws.GaussianMixture([0.5, 0.5], [[-2.0], [2.0]], [[[1.0]], [[1.0]]])
    >>> law.sample(3, seed=0).shape
    (3, 1)
    >>> law.score([[0.5], [3.0]], 1).round(3).tolist()
    [[-1.023], [1.0]]
    """

    def __init__(self, weights: npt.ArrayLike, means: npt.ArrayLike, covs: npt.ArrayLike) -> None:
        weights = np.array(weights, dtype=float)
        means = np.array(means, dtype=float)
        covs = np.array(covs, dtype=float)
        if means.ndim != 2 or weights.shape != (len(means),):
            raise ValueError(
                f"a mixture needs weights (K,) and means (K, d), got {weights.shape} and {means.shape}"
            )
        if not np.all(weights > 0) or not np.all(np.isfinite(weights)):
            raise ValueError("mixture weights must be positive: drop empty components")
        if covs.ndim == 2:
            covs = np.broadcast_to(covs, (len(means), *covs.shape))
        if len(covs) != len(means):
            raise ValueError(f"covs must hold one matrix a component ({len(means)}), got {len(covs)}")
        self.n_inputs = means.shape[1]
        self.weights = weights / weights.sum()
        self.components = tuple(Gaussian(m, c) for m, c in zip(means, covs, strict=True))

    @property
    def means(self) -> Float[np.ndarray, "K d"]:
        """(K, d) means of the components."""
        return np.stack([c.mean for c in self.components])

    @property
    def covs(self) -> Float[np.ndarray, "K d d"]:
        """(K, d, d) covariances of the components."""
        return np.stack([c.cov for c in self.components])

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return self.weights @ self.means

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        apart = self.means - self.mean
        return np.tensordot(self.weights, self.covs, axes=1) + (apart.T * self.weights) @ apart

    def sample(self, n: int, seed: int) -> Points:
        rng = stream(seed, "law", type(self).__name__)
        label = rng.choice(len(self.weights), size=n, p=self.weights)
        z = rng.standard_normal((n, self.n_inputs))
        out = np.empty_like(z)
        for c, component in enumerate(self.components):
            mine = label == c
            out[mine] = component.mean + z[mine] @ component._root.T
        return out

    def log_density(self, X: npt.ArrayLike) -> Values:
        return np.logaddexp.reduce(self._log_joint(as_points(X, self.n_inputs)), axis=1)

    def posterior(self, X: npt.ArrayLike) -> Float[np.ndarray, "n K"]:
        """P(component | x), (n, K), in log space."""
        joint = self._log_joint(as_points(X, self.n_inputs))
        weight = np.exp(np.maximum(joint - joint.max(axis=1, keepdims=True), -700.0))
        return weight / weight.sum(axis=1, keepdims=True)

    def _log_joint(self, X: Points) -> Float[np.ndarray, "n K"]:
        return np.stack(
            [np.log(w) + c.log_density(X) for w, c in zip(self.weights, self.components, strict=True)], axis=1
        )

    def _tensor(self, X: Points, order: int, V: Directions) -> Tensors:
        # ∇^m f / f = Σ_c p_c ∇^m f_c / f_c: no cancellation between derivatives of log f.
        share = self.posterior(X)
        total = np.zeros((len(X),) + (V.shape[1],) * order)
        for p, component in zip(share.T, self.components, strict=True):
            total += p.reshape((-1,) + (1,) * order) * component._tensor(X, order, V)
        return total
