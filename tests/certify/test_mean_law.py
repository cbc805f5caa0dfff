"""Atoms of y and X and drifting skewness are noticed where they are, and not where they are not."""

import numpy as np
import pytest
from scipy.stats import chi2

import onehidden as oh
from onehidden import activations
from onehidden.certify.errors import kink_scatter
from onehidden.certify.mean_law import pile_p_value, skewness_drift
from onehidden.families.shares import FlippedLabels
from onehidden.fit.parametrisation import Parametrisation
from onehidden.run import stream


def sample(seed, n=400):
    rng = stream(seed, "mean law")
    X = rng.standard_normal((n, 3))
    net = oh.OneHiddenNet([[0.6, 0.8, 0], [0, -0.8, 0.6]], [2, -1.5], [0.3, -0.2], 0.3)
    return rng, X, net.predict(X) + 0.6 * rng.standard_normal(n)


def failed(r):
    return [check for check in r.checks if not check.passed]


def test_a_floor_is_named_and_not_certified():
    _, X, y = sample(1)
    r = oh.recover(X, np.maximum(y, np.quantile(y, 0.15)), 2)
    assert not r.status.certified
    assert "y has a floor at" in r.message
    assert "(15 % of the rows)" in r.message


@pytest.mark.parametrize("digits", [12, 1])
def test_rounded_values_are_no_piles(digits):
    _, X, y = sample(2)
    r = oh.recover(np.round(X, digits), np.round(y, digits), 2)
    assert not [check for check in failed(r) if check.name.startswith(("ends of y", "repeated x"))]


def test_filled_gaps_are_named():
    rng, X, y = sample(3)
    filled = X.copy()
    filled[rng.random(len(X)) < 0.2, 1] = X[:, 1].mean()
    r = oh.recover(filled, y, 2)
    assert not r.status.certified
    assert any(check.name == "repeated x1" for check in failed(r))
    # A value that repeats and where y behaves as beside it: the rows are right.
    held = X.copy()
    held[rng.random(len(X)) < 0.2, 1] = 0.1
    net = oh.OneHiddenNet([[0.6, 0.8, 0], [0, -0.8, 0.6]], [2, -1.5], [0.3, -0.2], 0.3)
    r = oh.recover(held, net.predict(held) + 0.6 * rng.standard_normal(len(X)), 2)
    assert next(check for check in r.checks if check.name == "repeated x1").passed


def test_piles_by_hand():
    assert pile_p_value(3, 3) > 0.5
    # (2/3)^21 + 21 (1/3) (2/3)^20: twenty or more of 21 rows.
    assert pile_p_value(20, 1) == pytest.approx((2 / 3) ** 21 + 7 * (2 / 3) ** 20)


def test_skewness_drift_has_its_size_and_sees_a_floor():
    rng = stream(4, "skewness")
    z, cut = [], []
    for _ in range(300):
        f = rng.standard_normal(300)
        noise = rng.lognormal(0, 0.8, 300) - np.exp(0.32)
        z.append(skewness_drift(noise * np.exp(0.3 * f), f))
        y = np.maximum(f + 0.8 * rng.standard_normal(300), -0.8)
        fitted = np.polyval(np.polyfit(f, y, 4), f)
        cut.append(skewness_drift(y - fitted, fitted))
    assert np.mean(np.abs(z) > 2.576) <= 0.03
    assert np.mean(np.abs(cut) > 2.576) >= 0.3


def drawn(seed, n, output, level):
    rng = stream(seed, "mean law", "links")
    X = rng.standard_normal((n, 2))
    net = oh.OneHiddenNet([[0.6, -0.8]], [output], [0.4], level)
    return rng, X, net.predict(X)


def test_labels_that_flip_are_named_and_not_certified():
    rng, X, eta = drawn(8, 1500, 4.0, -2.0)
    p = 1 / (1 + np.exp(-eta))
    wrong = oh.recover(X, 1.0 * (rng.random(1500) < 0.08 + 0.84 * p), 1, family="bernoulli")
    assert not wrong.status.certified
    assert "labels that flip" in wrong.message
    right = oh.recover(X, 1.0 * (rng.random(1500) < p), 1, family="bernoulli")
    assert next(check for check in right.checks if check.name == "link").passed


def of_linear_function(r):
    return next(check for check in r.checks if check.name == "linear function")


def test_a_linear_function_of_rare_labels_is_ruled_out_by_one_parameter():
    """The direction of a unit follows from the slope of the linear function: its kink alone is more."""
    rng = stream(5, "mean law", "rare labels")
    X = rng.standard_normal((1500, 4))
    eta = 2.2 * np.maximum(X @ [0.5, -0.5, 0.5, 0.5], 0) - 4.5
    r = oh.recover(X, (rng.random(len(X)) < 1 / (1 + np.exp(-eta))) * 1.0, 1, family="bernoulli")
    check = of_linear_function(r)
    assert check.threshold == pytest.approx(chi2.isf(0.001, 1))
    assert check.passed
    assert r.status == "consistent"
    # All six parameters asked for more than these rows show.
    assert check.value < chi2.isf(0.001, 6)


@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_a_linear_function_of_labels_is_no_unit(slope):
    for seed in range(3):
        rng = stream(seed, "mean law", "linear labels")
        X = rng.standard_normal((600, 3))
        y = (rng.random(600) < 1 / (1 + np.exp(-slope * X[:, 0]))) * 1.0
        r = oh.recover(X, y, 1, family="bernoulli")
        assert not r.status.certified
        assert not [check for check in r.checks if check.name == "linear function" and check.passed]


def test_a_rival_link_is_named_and_the_right_one_certified():
    rng, X, mean = drawn(6, 600, 2.0, 0.5)
    y = mean * rng.gamma(5, 0.2, 600)
    wrong = oh.recover(X, y, 1, family="gamma")
    assert not wrong.status.certified
    assert "with identity they are clearly more likely" in wrong.message
    assert oh.recover(X, y, 1, family="gamma", link="identity").status.certified


def test_a_link_that_rows_do_not_tell_apart_is_named_and_the_mean_is_right():
    """One bounded unit bends into the other link: its parameters are others, its mean is not."""
    rng = stream(1, "mean law", "identity")
    X = rng.standard_normal((700, 2))
    net = oh.OneHiddenNet([[1.0, -0.7]], [1.2], [0.2], 2.0, "tanh")
    mean = net.predict(X)
    r = oh.recover(X, mean * rng.gamma(6, 1 / 6, 700), 1, activation="tanh", family="gamma")
    assert abs(abs(r.network.output[0]) - 1.2) > 6 * r.standard_errors.output[0]
    assert r.status == "consistent"
    assert "do not tell the log link from softplus or identity" in r.message
    low, high = r.predict_interval(X, of="mean")
    assert np.mean((low <= mean) & (mean <= high)) > 0.9
    assert np.mean((low <= mean.mean()) & (mean.mean() <= high)) < 0.2  # which no constant would do


def test_counts_with_a_ceiling_are_told_and_not_certified():
    rng, X, eta = drawn(6, 900, 1.5, 0.9)
    r = oh.recover(X, np.minimum(rng.poisson(np.exp(eta)), 5.0), 1, family="poisson")
    assert not r.status.certified
    assert "spreads less than the poisson family says" in r.message


def test_counts_that_spread_more_are_certified_with_robust_errors_and_told():
    rng, X, eta = drawn(9, 600, 1.2, 0.6)
    y = rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, 600))
    r = oh.recover(X, y, 1, family="poisson")
    assert r.status.certified, r.message
    assert "y spreads more than the poisson family says" in r.message
    plain = oh.recover(X, y, 1, family="poisson", errors="classical")
    assert r.standard_errors.output[0] > 1.3 * plain.standard_errors.output[0]


def test_another_scale_of_y_is_named_and_the_right_one_certified():
    rng, X, f = drawn(7, 400, 2.0, 1.5)
    noise = rng.standard_normal(400)
    wrong = oh.recover(X, (f + 0.3 * noise) ** 2, 1)
    assert not wrong.status.certified
    assert "with sqrt(y) they are clearly more likely" in wrong.message
    right = oh.recover(X, f + 0.1 * f * noise, 1)  # noise in proportion to the signal
    assert right.status.certified
    assert next(check for check in right.checks if check.name == "scale of y").passed


def test_score_and_information_of_labels_that_flip():
    law, eta, step = FlippedLabels("logit", 0.1, 0.95), np.linspace(-4, 4, 9), 1e-5
    for y in (np.zeros(9), np.ones(9)):
        slope = (law.deviance(y, eta + step) - law.deviance(y, eta - step)) / (4 * step)
        np.testing.assert_allclose(law.gradient(y, eta), slope, rtol=1e-6, atol=1e-9)
    mean = 0.1 + 0.85 / (1 + np.exp(-eta))
    slope = 0.85 * np.exp(-eta) / (1 + np.exp(-eta)) ** 2
    np.testing.assert_allclose(law.information(eta), slope**2 / (mean * (1 - mean)), rtol=1e-10)


def test_estimated_kinks_enlarge_errors_as_far_as_rows_lie_between_them():
    """One kink at zero: rows within a standard error of it count twice more, by quadrature."""
    form = Parametrisation(activations.get("relu"), 1, 1, bias=True)
    x = np.linspace(-2, 2, 4001)[:, None]
    theta = form.pack(np.ones((1, 1)), np.array([3.0]), np.zeros(1), intercept=0.0)
    covariance = np.zeros((4, 4))
    covariance[2, 2] = 0.2**2
    (found,) = kink_scatter(form, theta, covariance, 0.5, x, np.zeros(4001), None, None)
    # 2 q = 2 Phi(-|x| / s) integrates to 2 s 2 phi(0); 1000 rows lie in each unit of x.
    rows = 1000 * 2 * 0.2 * 2 / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(found[2, 2], 0.5 * 9 * rows, rtol=1e-3)
    assert np.count_nonzero(found[[1, 3]]) == 0
    assert np.all(found[0, 0] < found[2, 2])
    y = 3 * np.maximum(x[:, 0], 0) - np.sqrt(0.5)
    (own,) = kink_scatter(form, theta, covariance, None, x, y, None, None)
    np.testing.assert_allclose(own, found, atol=1e-10)
