"""Fits to rounding that are not unique: each must be reported, and none called exact."""

import numpy as np
import pytest

import onehidden as oh


def line(n, times=20):
    return np.repeat(np.arange(float(n)), times)[:, None]


def test_a_kink_on_the_outermost_row_is_no_kink():
    X = line(8)
    assert oh.recover(X, 0.5 * X[:, 0], 1).status == "not identifiable"
    X = oh.laws.standard_normal(2).sample(200, 0)
    X[:30] = 4.0
    assert oh.recover(X, X @ [0.77, 0.63], 1).status == "not identifiable"


def test_labels_do_not_determine_a_step():
    X = oh.laws.standard_normal(2).sample(300, 0)
    r = oh.recover(X, np.sign(X[:, 0] + 0.3 * X[:, 1]), 1, activation="tanh", max_seconds=20)
    assert not r.converged
    net = r.network  # what must not pass: twice as steep, it fits as well
    steeper = oh.OneHiddenNet(2 * net.weights, net.output, 2 * net.bias, net.intercept, "tanh")
    assert np.max(np.abs(steeper.predict(X) - net.predict(X))) < 1e-6


def test_a_smooth_unit_that_is_no_step_is_exact():
    net = oh.OneHiddenNet([[0.8, -0.6]], [1.5], [0.2], activation="tanh")
    X = oh.laws.standard_normal(2).sample(300, 1)
    assert oh.recover(X, net.predict(X), 1, activation="tanh").status == "exact"


@pytest.mark.parametrize(
    ("X", "net"),
    [
        (line(10), oh.OneHiddenNet([[1.0], [-1.0]], [-1.3447, -1.8813], [-5.7618, 4.4627])),
        (
            np.random.default_rng(1161).integers(0, 2, (200, 4)).astype(float),
            oh.OneHiddenNet(
                [[-0.57, -0.355, 0.25, -0.697], [0.267, -0.202, 0.573, -0.748]],
                [5.44, -6.41],
                [0.8575, -0.0701],
            ),
        ),
    ],
    ids=["a line of ten points", "corners of a cube"],
)
def test_kinks_in_the_gaps_of_a_lattice_are_not_called_exact(X, net):
    r = oh.recover(X, net.predict(X), 2, max_seconds=20)
    assert not r.converged


def test_a_ceiling_far_out_is_seen_by_fresh_queries():
    def box(X):
        return np.minimum(np.maximum(X[:, 0], 0) + np.maximum(X[:, 1], 0), 50.0)

    assert not oh.recover_oracle(box, 2).converged
    assert oh.recover_oracle(lambda X: np.maximum(X[:, 0], 0) + np.maximum(X[:, 1], 0), 2).status == "exact"


def test_targets_in_single_precision_are_recovered_and_never_called_exact():
    net = oh.OneHiddenNet([[0.6, 0.8], [0.8, -0.6]], [1.0, -1.5], [0.3, -0.2])
    X = oh.laws.standard_normal(2).sample(300, 3).astype(np.float32)
    r = oh.recover(X, net.predict(X).astype(np.float32), 2, max_seconds=30)
    assert r.status == "consistent"
    assert oh.match(r.network, net).max_error < 1e-5
