"""Whether the spread of y is what its family says: size, power, and what cannot be told."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import simulated
from scipy import stats

from onehidden.checks import About
from onehidden.families import (
    Bernoulli,
    Binomial,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    Softmax,
    get,
)
from onehidden.families.dispersion import dispersion_check, dispersion_test
from onehidden.run import stream


def fitted(family, X, y, trials=None, steps=8):
    """Predictors of a linear fit by Fisher scoring."""
    beta = np.zeros(X.shape[1])
    beta[0] = family.start(y)
    for _ in range(steps):
        residual, weight = family.working(y, X @ beta)
        weight = weight * (1 if trials is None else trials)
        beta = beta - np.linalg.solve((X * weight[:, None]).T @ X, X.T @ (weight * residual))
    return X @ beta


def design(n, p, rng):
    return np.column_stack([np.ones(n), rng.standard_normal((n, p - 1))])


# family, its mean predictor, phi, trials; NB with its alpha known.
RIGHT = {
    "poisson": (Poisson(), -1.3, 1.0, None),
    "binomial": (Binomial(), -0.5, 1.0, 4.0),
    "negative binomial": (NegativeBinomial("log", 0.5, given=True), 0.0, 1.0, None),
    "gamma": (Gamma(), 0.5, 0.4, None),
    "gaussian": (Gaussian(), 1.0, 0.5, None),
}


def p_values(family, level, phi, trials, repeats, n=500, p=4, seed=0):
    rng = stream(seed, "size", family.name)
    X = design(n, p, rng)
    eta = X @ np.r_[level, np.full(p - 1, 0.3)]
    m = None if trials is None else np.full(n, trials)
    for _ in range(repeats):
        y = simulated(family, eta, rng, phi, m)
        yield dispersion_test(family, y, fitted(family, X, y, m), n - p, m).p_value


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_family_is_called_wrong_as_often_as_the_level_says(name):
    repeats = 300
    found = np.array(list(p_values(*RIGHT[name], repeats)))
    for level in (0.05, 0.2):
        wrong = np.sum(found < level)
        # Exact binomial bounds of probability 1e-3; a size of 3 x 5 % is far outside.
        assert stats.binom.ppf(5e-4, repeats, level) <= wrong <= stats.binom.isf(5e-4, repeats, level)
    assert stats.binom.isf(5e-4, repeats, 0.05) < 3 * 0.05 * repeats


def test_a_few_large_counts_do_not_keep_the_spread_from_being_tested():
    """Means from one to hundreds: unweighted, the law of the statistic is that of the largest counts."""
    rng, found, told = stream(5, "large counts"), [], []
    for _ in range(300):
        X = design(360, 4, rng)
        eta = X @ np.r_[1.0, np.full(3, 1.0)]
        for clumped, p in ((np.ones(360), found), (rng.gamma(10, 0.1, 360), told)):
            y = rng.poisson(np.exp(eta) * clumped).astype(float)
            p.append(dispersion_test(Poisson(), y, fitted(Poisson(), X, y), 356).p_value)
    wrong = np.sum(np.array(found) < 0.05)
    assert stats.binom.ppf(5e-4, 300, 0.05) <= wrong <= stats.binom.isf(5e-4, 300, 0.05)
    assert np.mean(np.array(told) < 0.01) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_size_is_near_the_level_over_many_samples(name):
    found = np.array(list(p_values(*RIGHT[name], 2000, seed=1)))
    error = np.sqrt(0.05 * 0.95 / 2000)
    assert abs(np.mean(found < 0.05) - 0.05) < 3.3 * error + 0.005


def test_wrong_families_are_told_and_the_right_one_is_named():
    rng = stream(2, "wrong")
    n = 3000
    X = design(n, 3, rng)
    eta = X @ np.array([0.0, 0.3, 0.3])
    rate = 1 + np.abs(X[:, 1])  # a mean that a line in |x| gives
    counts = simulated(Poisson(), np.log(rate), rng)
    over = simulated(NegativeBinomial("log", 0.5), eta, rng)
    skew = simulated(Gamma(), eta + 2, rng, 0.1)
    own = np.column_stack([np.ones(n), np.abs(X[:, 1])])
    dice = simulated(Binomial(), eta, rng, trials=np.full(n, 4.0))
    shared = NegativeBinomial("log", 0.5, given=True)
    cases = [
        (Gaussian(), counts, fitted(Gaussian(), own, counts), "poisson", +1),
        (Gaussian(), skew, np.exp(fitted(Gamma(), X, skew)), "gamma", +1),
        (Poisson(), over, fitted(Poisson(), X, over), "negative_binomial", +1),
        (Poisson(), 4 * dice, fitted(Poisson(), X, 4 * dice), "", -1),
        (shared, counts, fitted(shared, own, counts), "", -1),
        (Gamma(), np.abs(rate + 0.1 * rng.standard_normal(n)), np.log(rate), "", -1),
    ]
    for family, y, at, better, side in cases:
        assert side * dispersion_test(family, y, at, n - 3).statistic > 3
        check, suggested = dispersion_check(family, y, at, n - 3, None, 0.01)
        assert suggested == better, family.name
        assert check.evaluated
        assert not check.passed
        ceiling = side < 0 and isinstance(family, Poisson | Binomial)
        assert check.about is (About.MEAN if ceiling else About.ERRORS)
        assert better in check.advice
        assert "\n" not in check.advice


def test_the_right_family_passes_and_says_so():
    rng = stream(3, "right")
    eta = 0.5 * rng.standard_normal(2000)
    check, better = dispersion_check(Poisson(), simulated(Poisson(), eta, rng), eta, 2000.0, None, 0.01)
    assert not better
    assert check.passed
    assert "poisson" in check.advice


def test_clustered_successes_are_told():
    rng, n = stream(4, "clustered"), 1000
    trials = np.full(n, 6.0)
    eta = 0.5 * rng.standard_normal(n)
    y = simulated(Binomial(), eta + 0.8 * rng.standard_normal(n), rng, trials=trials)
    found = dispersion_test(Binomial(), y, eta, n, trials)
    assert found.p_value < 1e-6
    assert found.statistic > 0


def test_leverages_take_the_part_that_the_fit_ate():
    """Means that follow y shrink its spread: without a charge the sum is far below zero."""
    rng, n, p = stream(5, "leverage"), 400, 40
    X = design(n, p, rng)
    charged, free = [], []
    for _ in range(40):
        y = rng.poisson(2.0, n).astype(float)
        eta = fitted(Poisson(), X, y)
        charged.append(dispersion_test(Poisson(), y, eta, n - p).statistic)
        free.append(dispersion_test(Poisson(), y, eta, float(n)).statistic)
    assert abs(np.mean(charged)) < 4 / np.sqrt(40)
    assert np.mean(free) < -1


def test_what_cannot_be_evaluated_is_not_asked():
    rng, n = stream(6, "unasked"), 200
    eta = rng.standard_normal(n)
    zero_one = simulated(Bernoulli(), eta, rng)
    three = Softmax(classes=3)
    two = rng.standard_normal((n, 2))
    rare = np.full(n, -6.0)
    cases = [
        (Bernoulli(), zero_one, eta, n),
        (Binomial(), zero_one, eta, n),
        (three, simulated(three, two, rng), two, n),
        (NegativeBinomial("log", 0.4), np.ones(n), eta, n),
        (Poisson(), simulated(Poisson(), rare, rng), rare, n),
        (Poisson(), np.ones(n), eta, 10.0),
        (Gaussian(), eta, eta, n),
        (Gaussian(), eta, np.zeros(n), n),
    ]
    for family, y, at, freedom in cases:
        check, better = dispersion_check(family, y, at, float(freedom), None, 0.01)
        assert not better
        assert not check.evaluated
        assert not check.passed
        assert np.isnan(check.value)
        assert check.advice.startswith("cannot be evaluated")


def test_outputs_are_taken_together():
    rng, n = stream(7, "outputs"), 800
    eta = 0.3 * rng.standard_normal((n, 3))
    family = get("negative_binomial", alpha=0.4, given=True)
    y = simulated(family, eta, rng)
    each = [dispersion_test(Poisson(), y[:, j], eta[:, j], float(n)).statistic for j in range(3)]
    together = dispersion_test(Poisson(), y, eta, 3.0 * n).statistic
    assert together > 1.2 * max(each)
    scaled = simulated(Gaussian(), eta, rng) * np.array([1.0, 100.0, 0.01])
    assert dispersion_test(Gaussian(), scaled, eta * np.array([1.0, 100.0, 0.01]), 3.0 * n).p_value > 1e-3
