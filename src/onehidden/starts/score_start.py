"""Score-moment start: subspace from T_2 (or T_3), then decomposition of the order that carries signal."""

from __future__ import annotations

import numpy as np

from onehidden.laws import Gaussian
from onehidden.moments import ScoreMoments, score_moments
from onehidden.starts.candidate import Candidate, Task, complete, refine, search_form
from onehidden.starts.joint_diagonalisation import joint_decompose

_SIGNAL = 5.0  # z-value above which an order counts as carrying signal
_GAP = 2.0  # |lambda_k| over |lambda_{k+1}| above which T_2 shows the span of the units
_LARGEST_FOURTH = 64  # coordinates beyond which T_4 is not decomposed densely


def standard_law(d: int) -> Gaussian:
    """The law of whitened Gaussian inputs."""
    return Gaussian(np.zeros(d), np.eye(d))


def span_of_units(task: Task, low: ScoreMoments) -> np.ndarray | None:
    """(d, k) orthonormal basis of the span of the a_i, or None where T_2 does not show it clearly."""
    if task.k >= task.d or low.signal(2) < _SIGNAL:
        return None
    value, vector = np.linalg.eigh(low[2])
    order = np.argsort(-np.abs(value))
    if np.abs(value[order[task.k - 1]]) < _GAP * np.abs(value[order[task.k]]):
        return None
    return vector[:, order[: task.k]]


def score_start(task: Task, moments: ScoreMoments) -> Candidate | None:
    """Directions from the strongest of T_3 and T_4 (with T_2 beside it); None where neither has signal.

    The task must already be in the span of its units or have k = d: rank at most d is decomposed.
    """
    signal = {m: moments.signal(m) for m in moments.orders}
    usable = [m for m in (3, 4) if m in signal and signal[m] > _SIGNAL]
    if not usable or task.k > task.d:
        return None
    tensors = [moments[m] for m in usable]
    precisions = [1 / float(np.mean(moments.standard_error(m) ** 2)) for m in usable]
    if signal.get(2, 0) > _SIGNAL:
        tensors.append(moments[2])
        precisions.append(1 / float(np.mean(moments.standard_error(2) ** 2)))
    found = joint_decompose(tensors, task.k, task.seed, precisions=precisions, restarts=2)
    form = search_form(task.activation, task.d, task.k, task.bias)
    theta = complete(task, form, found.components, np.zeros(task.k))
    return refine(task, form, theta, "score moments")


def affordable(task: Task) -> bool:
    """Whether dense decomposition of the moments is worth its cost at this size."""
    return task.d <= _LARGEST_FOURTH and task.k <= task.d


def high_moments(task: Task) -> ScoreMoments:
    """T_2, T_3, T_4 of the task in its own coordinates."""
    return score_moments(task.Z, task.y, standard_law(task.d), orders=(2, 3, 4))
