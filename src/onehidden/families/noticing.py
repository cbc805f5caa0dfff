"""Noticing what a target of numbers given without a family is: 0/1, counts or labels.

Counts so large that a normal law serves are left alone: years, prices, ages and readings in whole numbers (25
to 346 in the diabetes table).
"""

from __future__ import annotations

import numpy as np


def notice(y: object) -> str:
    """A sentence for a terminal where another family than normal noise suits y; empty for an amount.

    Of several outputs (n, q) it is about the first column for which there is one.
    """
    y = np.asarray(y)
    if y.ndim == 2:
        return next(filter(None, (notice(column) for column in y.T)), "")
    if y.dtype.kind not in "biuf":
        return ""
    y = y.astype(float)
    if len(y) < 3 or not np.all(np.isfinite(y) & (y >= 0) & (y == np.rint(y))):
        return ""
    if set(y) == {0.0, 1.0}:
        return 'y holds 0 and 1 only: family="bernoulli" (or OneHiddenClassifier) models their probability.'
    value = np.unique(y)
    if len(y) < 20 or value[0] > 1 or not 2 < len(value) < len(y) / 4:
        return ""
    # A normal law is not near where half of the positive values are below 30, and most kinds of them occur.
    middle = np.floor(np.median(y[y > 0]))
    seen = np.count_nonzero((value > 0) & (value <= middle))
    if middle >= 30 or seen < 0.8 * middle:
        return ""
    return (
        f"y holds whole numbers from {value[0]:g} to {value[-1]:g}: if they are counts, "
        'family="poisson" knows that their noise grows with their mean; labels are for OneHiddenClassifier.'
    )
