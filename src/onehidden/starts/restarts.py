"""Random restarts straight into Levenberg–Marquardt: cheap, and often enough for few or smooth units."""

from __future__ import annotations

import numpy as np

from onehidden.starts.candidate import Candidate, Task, complete, refine, search_form


def random_start(task: Task, attempt: int) -> Candidate:
    """One random start, refined; attempts differ in their draw and, for scale-bound g, in their scale."""
    rng = np.random.default_rng([task.seed, attempt])
    weights = rng.standard_normal((task.k, task.d)) / np.sqrt(task.d)
    if task.activation.homogeneity is None:
        weights = weights * (1.0, 2.0, 0.5)[attempt % 3]
    bias = 0.5 * rng.standard_normal(task.k) * task.bias
    form = search_form(task.activation, task.d, task.k, task.bias)
    return refine(task, form, complete(task, form, weights, bias), "random restart", max_steps=100)
