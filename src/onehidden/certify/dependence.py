"""Do neighbouring rows depend on each other? Standard errors count every row as one piece of evidence."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

LAGS = 5
SORTED = 0.98  # rank correlation of y with the row number from which the rows are called sorted by y


def dependence_p_value(
    residual: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], lags: int = LAGS
) -> float | None:
    """p-value of residuals that are uncorrelated in the order of the rows; None where that cannot be asked.

    Each lag's sum of r_t r_(t+l) is divided by the root of the sum of r_t² r_(t+l)², which holds for noise of
    unequal size, too; their squares add up to a chi-square law with one degree of freedom a lag. Rows sorted
    by y have dependent residuals whatever made them: there the order says nothing.
    """
    from scipy.special import chdtrc

    n = len(residual)
    if n < 10 * lags or _sorted(y):
        return None
    total = 0.0
    for lag in range(1, lags + 1):
        products = residual[lag:] * residual[:-lag]
        size = float(np.sum(products**2))
        total += float(np.sum(products)) ** 2 / size if size > 0 else 0.0
    return float(chdtrc(lags, total))


def _sorted(y: Float[np.ndarray, " n"]) -> bool:
    rank = np.argsort(np.argsort(y, kind="stable"), kind="stable").astype(float)
    place = np.arange(len(y), dtype=float)
    return abs(float(np.corrcoef(rank, place)[0, 1])) > SORTED
