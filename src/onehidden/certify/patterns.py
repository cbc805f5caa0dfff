"""On how many samples do two units switch differently? Where few, another pair of units fits as well."""

from __future__ import annotations

import numpy as np

_MARGIN = 2  # samples beyond the parameters of an affine function: with none to spare any two units fit


def samples_apart(t: np.ndarray) -> tuple[int, tuple[int, int]]:
    """Fewest samples that tell two units apart, and which two; k stands for a unit that is always on.

    On the samples where two homogeneous units are both on, or one is on exactly where the other is off, only
    their sum or difference is seen. What tells them apart are the samples where that pattern is broken.

    Parameters
    ----------
    t : (n, k) arguments of the units.
    """
    n, k = t.shape
    on = np.column_stack([t > 0, np.ones(n, bool)]).astype(float)
    both = (on.T @ on).astype(int)
    count = np.diag(both)
    differ = count[:, None] + count[None, :] - 2 * both
    fewest = np.minimum(differ, n - differ)
    fewest[np.tril_indices(k + 1)] = n
    i, j = np.unravel_index(int(np.argmin(fewest)), fewest.shape)
    return int(fewest[i, j]), (int(i), int(j))


def samples_needed(d: int) -> int:
    """Samples that settle which of two units is which: more than the d + 1 numbers of an affine function."""
    return d + 1 + _MARGIN
