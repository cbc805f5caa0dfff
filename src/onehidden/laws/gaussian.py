"""The Gaussian law of any mean and covariance."""

from __future__ import annotations

from typing import Any

import numpy as np


class Gaussian:
    """N(mean, cov)."""

    def __init__(self, mean: Any, cov: Any) -> None:
        self.mean = np.asarray(mean, float)
        self.cov = np.asarray(cov, float)
        self.n_inputs = len(self.mean)
        self._root = np.linalg.cholesky(self.cov)

    def sample(self, n: int, seed: int) -> np.ndarray:
        """n rows, (n, d)."""
        z = np.random.default_rng(seed).standard_normal((n, self.n_inputs))
        return self.mean + z @ self._root.T
