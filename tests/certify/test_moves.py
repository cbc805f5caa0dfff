"""Minima that moves of the units of an answer lead to: the same for the same data, however they are told."""

import numpy as np
import pytest
from helpers import problem_of as planted_problem
from helpers import teacher

import onehidden as oh
from onehidden.certify.alternatives import agreement, compare_with_alternatives
from onehidden.certify.evaluate import certify
from onehidden.certify.moves import Moves
from onehidden.checks import About
from onehidden.fit.problem import optimise
from onehidden.fit.samples import Samples
from onehidden.machine import double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import Target
from onehidden.run import Run


def data(activation="relu", n=300, noise=0.5):
    draw = np.random.default_rng([31, n])
    net = teacher(activation, d=3, k=3, seed=4, rows="gaussian", bias=0.5)
    X = draw.standard_normal((n, 3))
    return net, X, net.predict(X) + noise * draw.standard_normal(n)


def reached(X, y, network, seed=0):
    """Losses of the minima that moves lead to, in the coordinates of a recovery."""
    read = Target(Samples(X, y)).in_own_order()
    options = Options(hidden=network.n_hidden, activation=network.activation.name, seed=seed)
    with double():
        problem = problem_of(read.samples, options)
        start = optimise(network, problem, Run(seed))
        return np.sort([one.mean_square for one in Moves().minima(start.network, problem, Run(seed))])


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_moves_turn_with_the_inputs_and_know_no_seed(activation):
    net, X, y = data(activation)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0] * [3.0, 1.0, 100.0]
    turned = oh.OneHiddenNet(
        net.weights @ np.linalg.inv(turn), 7 * net.output, net.bias, 7 * net.intercept, activation
    )
    order = np.random.default_rng(2).permutation(len(y))
    here, there = reached(X, y, net), reached((X @ turn.T)[order], 7 * y[order], turned, seed=5)
    assert len(here) == len(there) >= 9
    assert here == pytest.approx(there, rel=1e-3)


def test_a_unit_in_a_wrong_place_is_moved_to_the_right_one():
    net, X, y = data(n=800, noise=0.2)
    problem = planted_problem(X, y, net.activation, 3, True)
    weights = net.weights.copy()
    weights[0] = [-weights[0, 1], weights[0, 0], 0.1]
    wrong = oh.OneHiddenNet(weights, net.output * [0.1, 1, 1], net.bias - [2.0, 0, 0], net.intercept, "relu")
    with double():
        start, best = optimise(wrong, problem, Run()), optimise(net, problem, Run())
        found = Moves().minima(start.network, problem, Run())
    assert start.mean_square > 1.1 * best.mean_square
    assert min(one.mean_square for one in found) < 1.001 * best.mean_square


def test_moves_stay_within_their_work():
    net, X, y = data()
    problem = planted_problem(X, y, net.activation, 3, True)
    with double():
        start = optimise(net, problem, Run())
        assert len(Moves(work=0.0).minima(start.network, problem, Run())) == 0


def test_moves_that_come_back_join_a_start_that_was_alone(monkeypatch):
    """What counts is whether systematic moves lead back, not how many random starts happened to."""
    net, X, y = data(n=400, noise=0.2)
    problem = planted_problem(X, y, net.activation, 3, True)
    with double():
        own = optimise(net, problem, Run())
        alone = certify(own.network, problem, Run()).with_comparisons([agreement(1)])
        assert alone.failed(About.SEARCH)
        assert compare_with_alternatives(alone, problem, Run(), [], "auto").status == "consistent"
        monkeypatch.setattr(Moves, "minima", lambda *given: [])
        assert compare_with_alternatives(alone, problem, Run(), [], "auto").status == "doubtful"


def test_recovery_does_not_hang_on_the_order_scale_or_rotation_of_the_data():
    _, X, y = data(n=250, noise=0.8)
    order, turn = np.random.default_rng(3).permutation(250), np.linalg.qr(X[:3])[0]
    told = [(X, y), (X[order], y[order]), (X * [1e3, 1, 1], 7 * y), (X @ turn, y)]
    found = [oh.recover(inputs, target, 3, seed=2) for inputs, target in told]
    assert len({r.status for r in found}) == 1
    losses = [r.loss / target.var() for r, (_, target) in zip(found, told, strict=True)]
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)
