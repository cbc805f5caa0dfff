"""Iterative pruning: the true units stay, the others go, whatever the rows per step."""

import numpy as np
import pytest
from helpers import FOUND, normal, planted, teacher, worst_error

from onehidden.machine import double
from onehidden.run import Run
from onehidden.starts import Thinned
from onehidden.starts.candidate import search_form
from onehidden.starts.wide import balanced, merged_units, shares


def values(form, theta, Z):
    """The function of a network in double precision."""
    weights, output, bias, beta, constant = form.unpack(theta)
    with double():
        return np.asarray(form.g(Z @ weights.T + bias)) @ output + Z @ beta + constant


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_a_network_keeps_its_function_when_its_units_are_merged_and_balanced(name):
    net = teacher(name, 6, 4, bias=0.5)
    problem = planted(net, normal(800, 6))
    inner, wide, narrow = (
        problem.search_coordinates.inward(net),
        search_form(problem, 64),
        search_form(problem),
    )
    rows, more = np.zeros((64, 6)), 60  # four units of no balanced scale, and many that are not there
    rows[:4] = 3.0 * inner.weights
    theta = wide.pack(rows, np.pad(inner.output, (0, more)), np.pad(inner.bias, (0, more)))
    units = merged_units(wide, theta)
    weights, output, bias = balanced(narrow, units)
    before = values(wide, theta, problem.Z)
    after = values(narrow, narrow.pack(weights, output, bias), problem.Z)
    np.testing.assert_allclose(after, before, atol=1e-9 * np.abs(before).max())
    h = net.activation.homogeneity
    if h is not None:  # the least of |a|^2 + b^2 + w^2 at a given w |a|^h
        np.testing.assert_allclose(np.sum(weights**2, axis=1) + bias**2, h * output**2, rtol=1e-9)


def test_weak_units_bear_more_decay():
    found = shares(np.array([2.0, 1.0, 1.0, 0.1, 0.0]), 3)
    assert np.all(np.diff(found) >= 0)
    assert found[0] < 1 < found[3]
    assert found[4] == pytest.approx(1.15 / 0.15)


@pytest.mark.parametrize("batch", [None, 128])
def test_thinning_leaves_the_true_units_alone(batch):
    """Two and a half samples per parameter; batches will do with more."""
    net = teacher(d=12, k=10)
    problem = planted(net, normal(300 if batch is None else 1000, 12))
    with double():
        (found,) = Thinned(steps=4000, batch=batch).propose(problem, Run())
    assert found.origin == "thinned" or found.loss < 1e-14
    assert found.loss < 1e-14
    assert worst_error(problem.search_coordinates.outward(found.network), net) < FOUND
