"""A weak unit beside strong ones is known as precisely as is told."""

import numpy as np
import pytest
from helpers import check_named, worst_error

import onehidden as oh


@pytest.mark.parametrize(("dtype", "weak"), [(np.float64, 1e-4), (np.float32, 1e-2)])
@pytest.mark.parametrize("domain", [None, (-3, 3)])
def test_a_weak_unit_is_known_to_the_rounding_of_the_others(dtype, weak, domain):
    rng = np.random.default_rng(4)
    rows, bias = rng.standard_normal((8, 30)), 0.1 * rng.standard_normal(8)
    output = rng.choice([-1.0, 1.0], 8) * rng.uniform(0.5, 1.0, 8)
    output[3] = weak
    A, b, w = (np.asarray(part, dtype) for part in (rows, bias, output))
    net = oh.OneHiddenNet(A.astype(float), w.astype(float), b.astype(float), 0.25)
    r = oh.recover_oracle(
        lambda X: np.maximum(X.astype(dtype) @ A.T + b, 0) @ w + dtype(0.25), 30, domain=domain
    )
    assert r.status == ("exact" if dtype is np.float64 else "consistent"), r.message
    error, told = worst_error(r.network, net), check_named(r, "attainable error").value
    assert told / 8 < error < 8 * told
    assert told < 100 * np.finfo(dtype).eps / weak
