"""The search for the span of the units: better than the paper's own estimator."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.starts.subspace import find_subspace
from onehidden_papers.problems.problem import conditioned_teacher


@pytest.mark.parametrize(("name", "order"), [("squared_relu", 2), ("tanh", 3)])
def test_rounds_beat_the_plain_subspace_iteration(name, order):
    random = np.random.default_rng(4)
    teacher = conditioned_teacher(30, 4, 2.0, name, random, signed=True)
    X = random.standard_normal((1500, 30))
    y = teacher.predict(X)
    true = np.linalg.qr(teacher.weights.T)[0]

    def sine(V):
        return np.sqrt(1 - np.linalg.svd(true.T @ V)[1].min() ** 2)

    plain = sine(find_subspace(X, y, 4, order, 0, rounds=0, steps=0).basis)
    ours = sine(find_subspace(X, y, 4, order, 0).basis)
    assert ours < 0.5 * plain
    assert ours < 0.35
    assert sine(np.linalg.qr(random.standard_normal((30, 4)))[0]) > 0.9
