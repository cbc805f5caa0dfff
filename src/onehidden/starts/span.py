"""The span of the units from T_2, where it stands clear of the noise: a cheap look before the race."""

from __future__ import annotations

import numpy as np

from onehidden.moments import ScoreMoments
from onehidden.starts.candidate import Task

SIGNAL = 5.0  # z-value above which an order counts as carrying signal
_GAP = 2.0  # |lambda_k| over |lambda_{k+1}| above which T_2 shows the span of the units


def span_of_units(task: Task, low: ScoreMoments) -> np.ndarray | None:
    """(d, k) orthonormal basis of the span of the a_i, or None where T_2 does not show it clearly."""
    if task.k >= task.d or low.signal(2) < SIGNAL:
        return None
    value, vector = np.linalg.eigh(low[2])
    order = np.argsort(-np.abs(value))
    if np.abs(value[order[task.k - 1]]) < _GAP * np.abs(value[order[task.k]]):
        return None
    return vector[:, order[: task.k]]
