"""A weak unit beside strong ones is queried where the others are silent, and is then known as precisely."""

import numpy as np
import pytest
from helpers import check_named, worst_error

import onehidden as oh


def box_with_a_weak_unit(dtype, weak):
    rng = np.random.default_rng(4)
    rows, bias = rng.standard_normal((8, 30)), 0.1 * rng.standard_normal(8)
    output = rng.choice([-1.0, 1.0], 8) * rng.uniform(0.5, 1.0, 8)
    output[3] = weak
    A, b, w = (np.asarray(part, dtype) for part in (rows, bias, output))
    net = oh.OneHiddenNet(A.astype(float), w.astype(float), b.astype(float), 0.25)
    return net, lambda X: np.maximum(X.astype(dtype) @ A.T + b, 0) @ w + dtype(0.25)


@pytest.mark.parametrize(("dtype", "weak"), [(np.float64, 1e-4), (np.float32, 1e-2)])
def test_a_weak_unit_is_known_to_the_rounding_of_what_it_says_itself(dtype, weak):
    net, fn = box_with_a_weak_unit(dtype, weak)
    r = oh.recover_oracle(fn, 30)
    assert r.status == ("exact" if dtype is np.float64 else "consistent"), r.message
    error, told = worst_error(r.network, net), check_named(r, "attainable error").value
    eps = float(np.finfo(dtype).eps)
    # Fitted beside the others it is known to 2.7e-12 and 6e-6: their rounding, over its output.
    assert error < 0.02 * np.sqrt(30) * eps / weak
    assert told / 8 < error < 8 * told


def test_a_strong_layer_is_not_asked_again():
    net, fn = box_with_a_weak_unit(np.float64, 0.7)
    weak_net, weak_fn = box_with_a_weak_unit(np.float64, 1e-4)
    strong, weak = oh.recover_oracle(fn, 30), oh.recover_oracle(weak_fn, 30)
    assert strong.status == weak.status == "exact"
    assert worst_error(strong.network, net) < 1e-13
    assert worst_error(weak.network, weak_net) < 3e-13
    assert weak.queries - strong.queries < 1000  # two a parameter of the one unit, and the constant


def test_where_the_domain_leaves_no_room_weak_units_keep_the_error_that_is_told():
    net, fn = box_with_a_weak_unit(np.float64, 1e-4)
    r = oh.recover_oracle(fn, 30, domain=(-3, 3))
    assert np.isfinite(worst_error(r.network, net))
    assert worst_error(r.network, net) < 100 * check_named(r, "attainable error").value
