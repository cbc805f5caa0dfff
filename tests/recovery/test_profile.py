"""Intervals by profile likelihood: ends against a constrained minimum by SciPy, and their coverage."""

import numpy as np
import pytest
from helpers import one_sentence
from scipy.optimize import minimize
from scipy.stats import t as student

import onehidden as oh
from onehidden.run import stream

X = np.log(np.repeat([0.1, 0.5, 2.0, 8.0, 30.0], 3))[:, None]
TRUTH = oh.OneHiddenNet([[1.2]], [5.0], [-1.5], 1.0, "sigmoid")


def dose(seed, noise=0.4):
    return TRUTH.predict(X) + noise * stream(seed, "profile").standard_normal(len(X))


def of(net):
    return np.array([-net.bias[0] / net.weights[0, 0], net.output[0]])


def constrained(y, place, value, found):
    """The least sum of squares with a value of the quantity, by sequential quadratic programming."""

    def net(p):
        return oh.OneHiddenNet([[p[0]]], [p[1]], [p[2]], p[3], "sigmoid")

    start = [found.weights[0, 0], found.output[0], found.bias[0], found.intercept]
    at = {"type": "eq", "fun": lambda p: of(net(p))[place] - value}
    loss = lambda p: np.sum((net(p).predict(X) - y) ** 2)  # noqa: E731
    return minimize(loss, start, method="SLSQP", constraints=at, options={"ftol": 1e-13, "maxiter": 500}).fun


def test_ends_are_where_the_constrained_loss_has_risen_by_the_square_of_t():
    y = dose(1)
    r = oh.recover(X, y, 1, activation="sigmoid", errors="classical")
    found, wald = r.derive(of, X=X, y=y), r.derive(of)
    quantile = student.ppf(0.975, 11)
    for place in (0, 1):
        for end, plain in ((found.lower, wald.lower), (found.upper, wald.upper)):
            for value, agree in ((end[place], True), (plain[place], False)):
                rise = constrained(y, place, value, r.network) - r.loss * len(y)
                assert (np.sqrt(rise / r.noise_variance) == pytest.approx(quantile, rel=1e-4)) == agree
    np.testing.assert_array_equal(found.error, wald.error)


def test_an_end_that_the_rows_do_not_bound_is_infinite():
    """The upper asymptote of a curve whose doses stop short of it."""
    x = np.log(np.repeat([0.1, 0.5, 2.0, 6.0], 4))[:, None]
    y = TRUTH.predict(x) + 0.2 * stream(2, "profile").standard_normal(len(x))
    r = oh.recover(x, y, 1, activation="sigmoid", errors="classical")
    found = r.derive(lambda net: np.abs(net.output[0]), X=x, y=y)
    assert np.isinf(found.upper)
    assert 0 < found.lower < found.estimate


@pytest.mark.parametrize("family", [None, "poisson"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_with_many_rows_it_is_the_interval_of_the_delta_method(family, activation):
    rng = stream(4, "profile", activation)
    inputs = rng.standard_normal((2000, 2))
    net = oh.OneHiddenNet([[1.0, 0.5]], [1.5], [0.2], 0.5, activation)
    mean = net.predict(inputs)
    y = mean + 0.2 * rng.standard_normal(2000) if family is None else rng.poisson(np.exp(mean)).astype(float)
    r = oh.recover(inputs, y, 1, activation=activation, family=family)
    slope = lambda net: net.output[0] * net.weights[0, 0]  # noqa: E731
    found, wald = r.derive(slope, X=inputs, y=y), r.derive(slope)
    assert found.lower == pytest.approx(float(wald.lower), abs=0.15 * wald.error)
    assert found.upper == pytest.approx(float(wald.upper), abs=0.15 * wald.error)


def test_errors_by_group_and_random_intercepts_are_kept():
    rng = stream(5, "profile")
    groups, inputs = np.repeat(np.arange(15), 10), rng.standard_normal((150, 2))
    y = (
        2 * np.tanh(inputs @ [1, 0.5])
        + 0.3 * rng.standard_normal(15)[groups]
        + 0.2 * rng.standard_normal(150)
    )
    for random in (False, True):
        asked = {"activation": "tanh", "groups": groups}
        r = oh.recover(inputs, y, 1, random_intercept=random, **asked)
        found = r.derive(lambda net: net.intercept, X=inputs, y=y, groups=groups)
        wald = r.derive(lambda net: net.intercept)
        assert found.upper - found.lower == pytest.approx(wald.upper - wald.lower, rel=0.1)


def test_other_rows_are_refused_in_a_sentence():
    r = oh.recover(X, dose(1), 1, activation="sigmoid")
    with pytest.raises(ValueError) as refusal:
        r.derive(of, X=X, y=dose(2))
    one_sentence(refusal, "not the rows of the fit")


@pytest.mark.slow
def test_intervals_of_few_rows_cover():
    """Of 15 rows: the asymptote's profile interval holds the truth in 95 %, as far as draws show."""
    held = []
    for seed in range(60):
        y = dose(seed + 100, 0.8)
        r = oh.recover(X, y, 1, activation="sigmoid", errors="classical", max_seconds=5)
        found = r.derive(of, X=X, y=y)
        held.append((found.lower <= of(TRUTH)) & (of(TRUTH) <= found.upper))
    assert np.all(np.abs(np.mean(held, axis=0) - 0.95) < 3 * np.sqrt(0.05 * 0.95 / 60))
