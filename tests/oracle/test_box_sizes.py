"""Boxes of many inputs, several outputs and low precision are recovered, and budgets are kept."""

import numpy as np
import pytest
from helpers import check_named, worst_error

import onehidden as oh
from onehidden.oracle.search import expected_queries
from onehidden.run import stream

CLOSE = 1e-12


def random_net(d, k, q=None, seed=0, name="relu"):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((k, d)) / np.sqrt(k)
    output = rng.standard_normal(k if q is None else (k, q)) / np.sqrt(k)
    return oh.OneHiddenNet(weights, output, 0.1 * rng.standard_normal(k), 0.3, name)


def plain(net, dtype=float):
    """Written apart from the library."""
    g = {"relu": lambda t: np.maximum(t, 0), "tanh": np.tanh}[net.activation.name]
    A, b, w, c = (np.asarray(v, dtype) for v in (net.weights, net.bias, net.output, net.intercept))
    return lambda X: g(X.astype(dtype) @ A.T + b) @ w + c


def test_many_inputs_take_a_few_queries_a_parameter():
    net = random_net(100, 12)
    r = oh.recover_oracle(plain(net), 100)
    assert r.status == "exact"
    assert worst_error(r.network, net) < CLOSE
    assert r.queries < 30 * 12 * 102
    assert r.queries < 2 * expected_queries(100, 12)
    assert all(unit.status == "determined" for unit in r.units)


@pytest.mark.parametrize(("name", "d", "k"), [("relu", 24, 72), ("gelu", 24, 72), ("elu", 10, 20)])
def test_a_block_of_many_outputs_takes_a_few_queries_a_parameter(name, d, k):
    rng = stream(0, "test", "block", name)
    rows, output = rng.standard_normal((k, d)) / np.sqrt(d), rng.standard_normal((k, d)) / np.sqrt(k)
    net = oh.OneHiddenNet(rows, output, 0.3 * rng.standard_normal(k), rng.standard_normal(d), name)
    r = oh.recover_oracle(net.predict, d, activation=name)
    assert r.status == "exact", r.message
    assert worst_error(r.network, net) < 1e-11
    assert r.queries < 9000 + 5 * (k * (2 * d + 1) + d)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_several_outputs_share_one_layer_even_where_a_unit_is_silent_in_one(name):
    net = random_net(6, 4, 3, name=name)
    output = net.output.copy()
    output[0, 0] = output[1, 1] = 0.0
    net = oh.OneHiddenNet(net.weights, output, net.bias, [0.1, 0.2, 30.0], name)
    r = oh.recover_oracle(plain(net), 6, activation=name)
    assert r.status == "exact", r.message
    assert r.network.output.shape == (4, 3)
    assert worst_error(r.network, net) < 1e-10
    X = np.random.default_rng(1).standard_normal((100, 6))
    assert np.max(np.abs(r.predict(X) - plain(net)(X))) < 1e-10


@pytest.mark.parametrize(
    "coarse",
    [
        lambda f: lambda X: np.round(f(X), 6),
        lambda f: lambda X: np.round(f(X), 3),
        lambda f: (
            lambda X: (
                f(X) + 1e-6 * np.random.default_rng(int(1e6 * abs(X).sum()) % 2**32).standard_normal(len(X))
            )
        ),
    ],
    ids=["six decimals", "three decimals", "noise 1e-6"],
)
def test_the_attainable_error_is_told_within_a_factor_of_four(coarse):
    net = random_net(20, 6, seed=3)
    r = oh.recover_oracle(coarse(plain(net)), 20)
    assert r.status == "consistent", r.message
    told, true = check_named(r, "attainable error").value, worst_error(r.network, net)
    assert true < 4 * told
    assert told < 4 * true


def test_single_precision_is_never_called_exact():
    net = random_net(30, 6, seed=5)
    net = oh.OneHiddenNet(*(np.asarray(v, np.float32) for v in (net.weights, net.output, net.bias)), 0.25)
    r = oh.recover_oracle(plain(net, np.float32), 30)
    assert r.status == "consistent"
    true = worst_error(r.network, net)
    assert 1e-9 < true < 1e-4
    assert true < 4 * check_named(r, "attainable error").value


def test_limits_are_kept_and_what_was_found_is_returned():
    net = random_net(30, 8, seed=2)
    rows = []

    def counting(X):
        rows.append(len(X))
        return plain(net)(X)

    whole = oh.recover_oracle(counting, 30)
    assert max(rows) > 500
    rows.clear()
    batched = oh.recover_oracle(counting, 30, batch=500)
    assert max(rows) <= 500
    assert worst_error(batched.network, whole.network) < CLOSE
    rows.clear()
    part = oh.recover_oracle(counting, 30, domain=(-1, 1), max_queries=9000)
    assert sum(rows) == part.queries <= 9000
    assert not part.converged
    assert 0 < part.network.n_hidden < 8
    assert {str(unit.status) for unit in part.units} == {"doubtful"}
    with pytest.raises(ValueError, match="before a unit was found") as caught:
        oh.recover_oracle(counting, 30, max_queries=900)
    assert "\n" not in str(caught.value)
