"""Is the noise as large everywhere? Koenker's version of the Breusch–Pagan test, as a sum over rows."""

from __future__ import annotations

import numpy as np

from onehidden.fit.form import roots, weighed
from onehidden.fit.rows import Inputs, Numbers, Summed, Target, Weight
from onehidden.network import OneHiddenNet


class SpreadTest(Summed):
    """Accumulator of the regression of r² on (1, p, p², |z|²), p the prediction; means over several outputs.

    n R² of that regression is chi-square with 3 degrees of freedom whatever the kurtosis of r, if the spread
    of the residuals does not depend on p and |z|.

    Parameters
    ----------
    network : in the coordinates of the rows; its target has unit variance.
    """

    summed = ("n", "_gram", "_cross", "_squares", "_fourths")

    def __init__(self, network: OneHiddenNet) -> None:
        self.network, self.n = network, 0
        self._gram, self._cross = np.zeros((4, 4)), np.zeros(4)
        self._squares = self._fourths = 0.0

    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> SpreadTest:
        p = self.network.predict(Z)
        square = np.mean(weighed(roots(weight, len(Z)), p - y).reshape(len(Z), -1) ** 2, axis=1)
        p = p.reshape(len(Z), -1).mean(axis=1)
        design = np.column_stack([np.ones(len(p)), p, p**2, np.mean(Z**2, axis=1)])
        self._gram += design.T @ design
        self._cross += design.T @ square
        self._squares += float(np.sum(square))
        self._fourths += float(np.sum(square**2))
        self.n += len(p)
        return self

    def result(self) -> float:
        """The p-value of equal spread."""
        from scipy.special import chdtrc

        mean = self._squares / self.n
        total = self._fourths - self.n * mean**2
        if total <= 0:
            return 1.0
        scale = np.sqrt(np.maximum(np.diag(self._gram), np.finfo(float).tiny))
        solved = np.linalg.lstsq(self._gram / np.outer(scale, scale), self._cross / scale, rcond=1e-13)[0]
        explained = float(solved @ (self._cross / scale)) - self.n * mean**2
        return float(chdtrc(3, self.n * min(max(explained / total, 0.0), 1.0)))
