"""Whether rows depend on their neighbours: asked in the caller's order, wherever the rows are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from helpers import normal, planted, teacher

import onehidden as oh
from onehidden.certify import levels
from onehidden.certify.dependence import dependence_p_value, is_sorted, rows_in_order
from onehidden.certify.local_fit import local_fit
from onehidden.fit.samples import RowSum

NAME = "independent rows"


def alike(n, seed, share=0.5):
    """Noise that neighbours in groups of ten share."""
    rng = np.random.default_rng([33, seed])
    return np.sqrt(share) * np.repeat(rng.standard_normal(n // 10), 10) + rng.standard_normal(n)


def of_order(checks):
    return next(check for check in checks if check.name == NAME)


def rare(n, seed):
    return (np.random.default_rng([34, seed]).random(n) < 0.03) - 0.03


def test_rare_events_keep_the_size_of_the_test():
    p = np.array([dependence_p_value(rare(300, seed)) for seed in range(300)])
    # Of 300 independent samples 3 are expected; the chi-square law of the same sum refuses half of them.
    assert np.sum(p <= levels.DEPENDENCE.value) <= 9


@pytest.mark.parametrize("n", [10, 40])
def test_few_rows_have_a_p_value_and_alike_neighbours_a_small_one(n):
    assert dependence_p_value(np.random.default_rng(5).standard_normal(n)) > 0.01
    if n > 10:
        assert dependence_p_value(alike(n, 2, 20.0)) <= 0.01


def test_neighbours_that_disagree_are_no_evidence():
    r = np.random.default_rng(7).standard_normal(400)
    apart = r - np.roll(r, 1)
    assert dependence_p_value(apart) > 0.05
    assert dependence_p_value(r + np.roll(r, 1)) <= 0.001


def test_a_p_value_depends_on_nothing_but_the_residuals_and_their_order():
    r = alike(200, 1, 0.05)
    assert dependence_p_value(r) == dependence_p_value(3.7 * r) == dependence_p_value(-r)


@pytest.mark.parametrize("direction", [1, -1])
def test_rows_sorted_by_y_are_seen(direction):
    y = np.random.default_rng(3).standard_normal(200)
    assert is_sorted(np.sort(y)[::direction])
    assert is_sorted(np.sort(y > 1.5)[::direction].astype(float))
    assert not is_sorted(y)
    assert not is_sorted((y > 2.0).astype(float))


def test_a_stream_keeps_runs_of_neighbours_in_their_order():
    X = normal(5000, 2)
    problem = planted(teacher("relu", 2, 1), X, noise=0.3)
    local = local_fit(teacher("relu", 2, 1), problem)
    Z, y = problem.fit_coordinates.inputs(X), problem.fit_coordinates.target(problem.samples.y)

    def kept(most):
        total = RowSum(partial(rows_in_order, local.inner, 5000, most))
        for rows in (np.arange(2500, 5000), np.arange(2500)):
            total.update(Z[rows], y[rows], None, rows)
        numbers, residuals, target = (np.concatenate(parts) for parts in total.result())
        order = np.argsort(numbers)
        return residuals[order], target[order, 0]

    residuals, target = kept(10_000)
    assert np.allclose(residuals, local.residuals)
    assert np.allclose(target, y)
    assert np.array_equal(kept(2000)[1], np.concatenate([y[:1000], y[3000:4000]]))


@pytest.mark.filterwarnings("ignore")
def test_estimators_and_streams_ask_in_the_order_of_the_caller(tmp_path):
    n, rng = 600, np.random.default_rng(8)
    X = rng.standard_normal((n, 2))
    y = 2 * np.maximum(X[:, 0], 0) - X[:, 1] + 0.6 * alike(n, 3)
    y = np.round(y, 1)  # with ties, for which estimators sort the rows
    mixed = rng.permutation(n)
    found = {}
    for name, order in (("given", np.arange(n)), ("mixed", mixed)):
        path = tmp_path / f"{name}.csv"
        table = np.column_stack([X, y])[order]
        np.savetxt(path, table, "%.17g", delimiter=",", header="a,b,y", comments="")
        settings = {"start": "random", "max_seconds": 20}
        one = oh.recover(X[order], y[order], 1, linear=True, **settings)
        other = oh.OneHiddenRegressor(1, linear=True, **settings).fit(X[order], y[order]).recovery_
        assert (one.status, of_order(one.checks).value) == (other.status, of_order(other.checks).value)
        streamed = oh.recover(oh.data.open(path, target="y", stream=True), hidden=1, linear=True, **settings)
        found[name] = [of_order(r.checks) for r in (one, other, streamed)]
    # The classifier sorts rows, too.
    labels = (y + 2 * alike(n, 4, 4.0) > 0).astype(int)
    for name, order in (("given", np.arange(n)), ("mixed", mixed)):
        one = oh.recover(X[order], labels[order], 1, family="softmax", start="random")
        other = oh.OneHiddenClassifier(1, start="random").fit(X[order], labels[order]).recovery_
        assert of_order(one.checks).value == of_order(other.checks).value
        assert one.status == other.status
        found[name].append(of_order(one.checks))
    assert [check.passed for check in found["given"]] == [False] * 4
    assert [check.passed for check in found["mixed"]] == [True] * 4
