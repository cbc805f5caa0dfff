"""Fits to rounding that are not unique: each must be reported, and none called exact."""

import itertools

import numpy as np
import pytest
from helpers import planted

import onehidden as oh
from onehidden.certify.evaluate import certify
from onehidden.run import Run


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


def test_a_unit_on_one_facet_of_a_lattice_is_not_exact_where_a_row_touches_its_kink():
    X = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=4)))
    free = oh.OneHiddenNet([[0.2, -0.3, 0.1, 0.9], [-0.5, -0.8, 0.1, 0.2]], [2.0, -1.5], [-0.65, 0.35], 0.2)
    on = X @ free.weights[0] + free.bias[0] > 0
    assert on.sum() >= 7  # of all that check single units
    assert np.all(X[on, 3] == 1)
    # (a, b) + s (e_4, -1) changes no row of that facet; s as far as the first row beyond it comes on.
    others = (X @ free.weights[0] + free.bias[0])[X[:, 3] == 0]
    moved = free.weights.copy()
    moved[0, 3] += others.max() - 1e-12
    touching = oh.OneHiddenNet(moved, free.output, free.bias - [others.max() - 1e-12, 0], free.intercept)
    y = free.predict(X)
    assert np.max(np.abs(touching.predict(X) - y)) < 1e-11
    problem = planted(free, X)
    for net in (free, touching):
        assert certify(net, problem, Run()).status == "not identifiable"
