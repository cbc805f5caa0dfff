"""Which rows see which units: counts against plain loops, and halves against their own noise."""

from functools import partial

import jax.numpy as jnp
import numpy as np
from helpers import normal, planted

import onehidden as oh
from onehidden import OneHiddenNet
from onehidden.activations import Activation
from onehidden.certify.evaluate import certify
from onehidden.certify.units import ActivePatterns, pattern_sums, rows_needed
from onehidden.fit.samples import RowSum
from onehidden.run import Run

N = 500


def rows_and_units():
    """Units that are the coordinates; the third is on exactly where the first is off but for seven rows."""
    Z = np.random.default_rng(0).standard_normal((N, 4))
    Z[:, 2] = -Z[:, 0]
    Z[:7, 2] *= -1
    return Z, OneHiddenNet(np.eye(4), np.ones(4))


def counted(net, Z, cuts=()):
    """Patterns of rows that come in parts and are merged."""
    parts = [RowSum(partial(pattern_sums, net)) for _ in range(len(cuts) + 1)]
    for part, rows in zip(parts, np.split(np.arange(len(Z)), cuts), strict=True):
        part.update(Z[rows], np.zeros(len(rows)), None, rows)
    for other in parts[1:]:
        parts[0].merge(other)
    return ActivePatterns.of(net, *parts[0].result())


def test_rows_that_tell_units_apart_are_where_their_patterns_differ():
    Z, net = rows_and_units()
    on = np.column_stack([Z > 0, np.ones(N, bool)])
    found = counted(net, Z)
    for i in range(4):
        for j in range(5):
            if i == j:
                continue
            differ = int(np.sum(on[:, i] != on[:, j]))
            fewest = min(differ, N - differ)
            assert (found.sure[i] if j == 4 else found.apart[i, j]) == fewest
        assert found.beyond[i] == min(np.sum(Z[:, i] > 0), np.sum(Z[:, i] < 0))
    assert found.closest() == (7, (0, 2))


def test_counts_do_not_depend_on_how_rows_are_cut():
    Z, net = rows_and_units()
    whole, parts = counted(net, Z), counted(net, Z, [3, 100, 101])
    np.testing.assert_array_equal(whole.apart, parts.apart)
    np.testing.assert_array_equal(whole.beyond, parts.beyond)
    np.testing.assert_allclose(whole.spread, parts.spread, rtol=1e-12)
    expected = np.maximum(Z, 0).std(axis=0)
    np.testing.assert_allclose(whole.spread, expected, rtol=1e-12)


def test_a_unit_that_is_always_on_is_told_from_none():
    Z, _ = rows_and_units()
    net = OneHiddenNet(np.eye(4), np.ones(4), [0.0, 9.0, 0.5, 0.0])
    found = counted(net, Z)
    assert found.beyond[1] == 0
    assert found.closest() == (0, None)
    assert rows_needed(4) > 5


def test_multiples_of_one_direction_are_units_of_their_own():
    """A sum of exponentials of one input, like Lanczos1 of NIST: its rates are determined."""
    g = Activation("exp", jnp.exp, jnp.exp)
    x = np.linspace(0, 1.2, 30)[:, None]
    truth = OneHiddenNet([[-1.1], [-4.3]], [0.8, 1.7], activation=g)
    r = oh.recover(x, truth.predict(x), 2, activation=g, bias=False, intercept=False, max_seconds=30)
    assert r.status == "exact"
    assert np.allclose(np.sort(r.network.weights.ravel()), [-4.3, -1.1], rtol=1e-6)


def test_a_homogeneous_unit_twice_is_parallel():
    truth = OneHiddenNet([[0.6, 0.8], [1.2, 1.6]], [1.0, 0.5])
    X = normal(200, 2)
    problem = planted(truth, X)
    assert "parallel" in certify(truth, problem, Run()).message
