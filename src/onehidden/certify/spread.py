"""Is the noise as large everywhere? Koenker's version of the Breusch–Pagan test."""

from __future__ import annotations

import numpy as np


def equal_spread_p_value(residual: np.ndarray, prediction: np.ndarray, Z: np.ndarray) -> float:
    """Probability of squared residuals that depend so much on prediction and |z|, if the noise does not.

    n R^2 of r^2 on (1, p, p^2, |z|^2) is chi-square with 3 degrees of freedom whatever the kurtosis of r.
    """
    from scipy.special import chdtrc

    centre, width = prediction.mean(), max(float(prediction.std()), np.finfo(float).tiny)
    p = (prediction - centre) / width
    size = np.sum(Z**2, axis=1)
    design = np.column_stack([np.ones(len(p)), p, p**2, size / max(float(size.mean()), np.finfo(float).tiny)])
    square = residual**2
    spread = float(np.sum((square - square.mean()) ** 2))
    if spread <= 0:
        return 1.0
    fitted = design @ np.linalg.lstsq(design, square, rcond=None)[0]
    explained = float(np.sum((fitted - square.mean()) ** 2)) / spread
    return float(chdtrc(design.shape[1] - 1, len(p) * explained))
