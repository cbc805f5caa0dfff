"""Which columns vary: a spread at the level of rounding is no spread."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def varying(low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]) -> Bool[np.ndarray, " d"]:
    """Whether high - low exceeds 8 eps max(|low|, |high|).

    No weight on a column below that can be told from a bias.
    """
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        return high > low + 8 * np.finfo(float).eps * size
