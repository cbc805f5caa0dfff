"""Bounds are kept and cost few queries."""

from itertools import count

import numpy as np
import pytest
from helpers import check_named, worst_error

import onehidden as oh
from onehidden import activations
from onehidden.fit.parametrisation import Parametrisation
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.domain import checked_domain
from onehidden.oracle.final_fit import DENSE, fitted
from onehidden.oracle.layer import Layer, Queries
from onehidden.run import Run, stoppable

D, K = 30, 5


def relu_box(middle):
    """Five units whose kinks lie near (middle, …, middle), and a function written apart."""
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((K, D)) / np.sqrt(D)
    bias = 0.1 * rng.standard_normal(K) - middle * weights.sum(axis=1)
    net = oh.OneHiddenNet(weights, rng.standard_normal(K), bias, 0.3)
    return net, lambda X: np.maximum(X @ weights.T + bias, 0) @ net.output + 0.3


@pytest.mark.parametrize(("domain", "middle"), [((-1, 1), 0.0), ((0, np.inf), 1.0), ((-np.inf, 2), 0.0)])
def test_units_inside_bounds_go_on_along_their_hyperplanes(domain, middle):
    net, fn = relu_box(middle)

    def watching(X):
        assert np.all((domain[0] <= X) & (domain[1] >= X))
        return fn(X)

    r = oh.recover_oracle(watching, D, domain=domain)
    assert check_named(r, "one hidden layer").value == 0
    assert r.status == "exact", r.message
    assert worst_error(r.network, net) < 1e-12
    assert r.queries < 40_000  # 18 000 to 27 000 over seeds; 415 000 with probes clipped to the bounds


def test_two_layers_inside_bounds_are_still_seen():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((6, D)) / np.sqrt(D), rng.standard_normal((4, 6))
    w = rng.standard_normal(4)
    r = oh.recover_oracle(
        lambda X: np.maximum(np.maximum(X @ first.T + 0.1, 0) @ second.T + 0.1, 0) @ w,
        D, domain=(-1, 1), max_queries=60_000,
    )  # fmt: skip
    assert check_named(r, "one hidden layer").value > 10
    assert not r.converged


def test_what_lies_outside_is_not_asked_and_a_fixed_input_is():
    rows = []

    def fn(X):
        rows.append(X)
        return X.sum(axis=1)

    low, high = np.array([0.0, -1.0, 2.0]), np.array([np.inf, 1.0, 2.0])
    box = BlackBox(fn, np.array([1.0, 0.0, 2.0]), np.ones(3), checked_domain((low, high), 3))
    assert box.reach == 1.0
    y = box.mixture(np.array([[0.0, 0.0, 5.0], [-1.5, 0.0, 0.0], [50.0, 1.0, 0.0], [0.0, 1.001, 0.0]]))
    assert np.array_equal(y, [3.0, np.nan, 54.0, np.nan], equal_nan=True)
    assert box.caller.queries == len(np.concatenate(rows)) == 2


def test_a_column_that_stays_on_a_bound_leaves_room_on_both_sides():
    typical = np.abs(np.random.default_rng(0).standard_normal((50, 2)))
    typical[:, 1] = 0.0
    net = oh.OneHiddenNet([[1.0, 2.0], [1.5, -0.7]], [1.0, 0.8], [-2.0, 0.2], 0.1)
    r = oh.recover_oracle(net.predict, 2, inputs=typical, domain=(0, np.inf))
    assert r.status == "exact", r.message
    assert worst_error(r.network, net) < 1e-12


def test_a_box_that_is_stopped_says_so_with_and_without_a_budget():
    for seconds in (None, 60.0):
        box = BlackBox(lambda X: X[:, 0], np.zeros(1), np.ones(1), run=Run(max_seconds=seconds))
        with stoppable() as stop:
            box.mixture(np.zeros((1, 1)))
            stop.set()
            with pytest.raises(BudgetExceeded, match="stopped by hand"):
                box.mixture(np.zeros((1, 1)))
    box = BlackBox(lambda X: X[:, 0], np.zeros(1), np.ones(1), run=Run(max_seconds=1e-9))
    with pytest.raises(BudgetExceeded, match="1e-09 seconds"):
        box.mixture(np.zeros((1, 1)))


def test_a_step_of_the_final_optimisation_ends_with_the_time():
    """A clock that ticks when it is read lets the first step begin, and ends it after some products."""
    rng, ticks = np.random.default_rng(0), count()
    k, d, q = 40, 30, 3
    form = Parametrisation(activations.get("gelu"), d, k, True, True, True, True, q)
    parts = [rng.standard_normal(shape) for shape in ((k, d), (k, q), k, (d, q), q)]
    layer, U = Layer(form, *parts), rng.standard_normal((2000, d)).astype(np.float32)
    assert form.size > DENSE
    Y = layer.moved(layer.pack() + 1e-3 * rng.standard_normal(form.size)).predict(U)
    run = Run(max_seconds=6.0, clock=lambda: float(next(ticks)), began=0.0)
    box = BlackBox(lambda X: X, np.zeros(d), np.ones(d), run=run)
    queries = Queries(U, Y, np.full(len(U), 1e-16))
    found = fitted(box, layer, queries)
    assert np.array_equal(found.pack(), layer.pack())
    assert next(ticks) < 12
    assert np.mean((fitted(replaced_run(box), layer, queries).predict(U) - Y) ** 2) < 1e-20


def replaced_run(box):
    box.run = Run()
    return box
