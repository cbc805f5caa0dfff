"""The reported errors of the parameters of a box are those that they have."""

from __future__ import annotations

import numpy as np
import pytest

import onehidden as oh
from onehidden.run import stream

D, K = 100, 20  # 2000 parameters: more than the Jacobian is factored for
HONEST = 4.0


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("seed", [1, 2])
def test_told_errors_of_rows_biases_and_outputs_are_honest(kind, seed):
    rng = stream(seed, "told errors", D, K)
    A, w, b = (
        (scale * rng.standard_normal(shape) / np.sqrt(K)).astype(kind)
        for shape, scale in (((K, D), 1.0), (K, 1.0), (K, 0.1))
    )
    r = oh.recover_oracle(lambda X: np.maximum(X.astype(kind) @ A.T + b, 0) @ w + kind(0.3), D)
    size = np.linalg.norm(A.astype(float), axis=1)
    truth = oh.OneHiddenNet(A / size[:, None], w * size, b / size, float(kind(0.3))).canonical()
    found, told = r.network, r.standard_errors
    assert found.n_hidden == K
    order = oh.match(found, truth).permutation
    for name in ("weights", "bias", "output"):
        off = np.abs(getattr(found, name)[order] - getattr(truth, name))
        error = getattr(told, name)[order]
        if name == "weights":
            off, error = np.linalg.norm(off, axis=1), np.linalg.norm(error, axis=1)
        # Of twenty normal errors the largest is 2 to 3 standard errors; four are allowed.
        assert np.max(off / error) < HONEST, name
        # And not told too large either: the typical one is of the size that was told.
        assert np.sqrt(np.mean((off / error) ** 2)) > 1 / (2 * HONEST), name
