"""Outputs of given units by the likelihood of a family."""

import numpy as np
import pytest
from sklearn.linear_model import PoissonRegressor

import onehidden as oh
from onehidden.fit.problem import with_best_outputs
from onehidden.machine import double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import read_target


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(20)
    X = rng.standard_normal((400, 3))
    weights = [[1.0, 0.5, 0.0], [0.0, -0.7, 0.7], [0.0, 0.0, 1.0]]
    truth = oh.OneHiddenNet(weights, [0.8, -0.6, 0.0], [0.1, 0.0, -40.0], 0.2)  # the last is off on all rows
    y = rng.poisson(np.exp(truth.predict(X))).astype(float)
    target = read_target(X, y, None, "poisson", None, None, None)
    options = Options(hidden=3, family="poisson")
    return X, y, truth, problem_of(target.samples, options, target.family)


def far_off(truth):
    """The units of the truth with outputs that predict counts of exp(50)."""
    return oh.OneHiddenNet(truth.weights, [20.0, 15.0, 7.0], truth.bias, 3.0)


def test_they_are_those_of_a_generalised_linear_model(counts):
    X, y, truth, problem = counts
    with double():
        found = with_best_outputs(far_off(truth), problem)
    hidden = np.maximum(X @ truth.weights[:2].T + truth.bias[:2], 0)
    peer = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(hidden, y)
    np.testing.assert_allclose(found.output[:2], peer.coef_, rtol=1e-4)
    np.testing.assert_allclose(found.intercept, peer.intercept_, rtol=1e-3)
    assert found.output[2] == 7.0  # no row sees that unit


def test_outputs_that_are_best_already_stay(counts):
    _, _, truth, problem = counts
    with double():
        once = with_best_outputs(far_off(truth), problem)
        twice = with_best_outputs(once, problem)
        losses = [problem.row_losses(net).sum() for net in (once, twice)]
    assert losses[1] <= losses[0]
    assert losses[0] < problem.row_losses(truth).sum()


def test_counts_in_the_thousands_are_recovered():
    """Without these outputs every start ends ten times above the minimum of the deviance."""
    rng = np.random.default_rng(60)
    X = rng.standard_normal((1500, 3))
    truth = oh.OneHiddenNet(1.2 * rng.standard_normal((2, 3)), [1.0, -0.8], [0.2, -0.1], 0.4)
    y = rng.poisson(np.exp(truth.predict(X)))
    r = oh.recover(X, y, 2, family="poisson", max_seconds=8)
    assert oh.match(r.network, truth).max_error < 0.05  # zero and a wrong unit give 1 and more
