"""The span of the units from T_2, where it stands clear of the noise: a cheap look before the race."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.moments import ScoreMoments

SIGNAL = 5.0  # z-value above which an order counts as carrying signal
_GAP = 2.0  # |lambda_k| over |lambda_{k+1}| above which T_2 shows the span of the units


def span_of_units(low: ScoreMoments, k: int) -> Float[np.ndarray, "d k"] | None:
    """(d, k) orthonormal basis of the span of the a_i, or None where T_2 does not show it clearly.

    Parameters
    ----------
    low : moments with order 2 among them, of all rows or of weighted ones.
    k : number of units.
    """
    second = low[2]
    if k >= len(second) or low.signal(2) < SIGNAL:
        return None
    return leading_span(*np.linalg.eigh(second), k)


def leading_span(
    value: Float[np.ndarray, " d"], vector: Float[np.ndarray, "d d"], k: int
) -> Float[np.ndarray, "d k"] | None:
    """The k leading eigenvectors, or None where their eigenvalues do not stand clear of the next."""
    if k >= len(value):
        return None
    order = np.argsort(-np.abs(value))
    if np.abs(value[order[k - 1]]) < _GAP * np.abs(value[order[k]]):
        return None
    return vector[:, order[:k]]
