"""Quantile, deviance and Pearson residuals of every family."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from onehidden.families import Binomial, Gamma, NegativeBinomial, Poisson, Softmax, get, residuals
from onehidden.streams import stream

N = 4000
FAR = 1.95 / np.sqrt(N)  # Kolmogorov's distance exceeds it once in a thousand samples
CASES = {
    "gaussian": (get("gaussian"), 0.3, None),
    "poisson": (Poisson(), 1.0, None),
    "softplus rate": (Poisson("softplus"), 1.0, None),
    "bernoulli": (get("bernoulli"), 1.0, None),
    "probit": (get("bernoulli", "probit"), 1.0, None),
    "binomial": (Binomial(), 1.0, 5.0),
    "negative binomial": (NegativeBinomial("log", 0.8), 1.0, None),
    "gamma": (Gamma(), 0.6, None),
    "inverse gamma link": (Gamma("inverse"), 0.6, None),
}


def drawn(name, seed=0):
    family, phi, trials = CASES[name]
    rng = stream(seed, "residuals", name)
    eta = rng.standard_normal(N)
    eta = np.abs(eta) + 0.2 if family.link == "inverse" else eta
    m = None if trials is None else np.full(N, trials)
    return family, family.simulate(eta, rng, phi, m), eta, phi, m


@pytest.mark.parametrize("name", CASES)
def test_quantile_residuals_are_standard_normal_under_the_truth(name):
    family, y, eta, phi, m = drawn(name)
    r = residuals(family, y, eta, stream(1, "places"), phi, m)
    assert stats.kstest(r.quantile, "norm").statistic < FAR
    # Nor do they follow the mean: within its halves they are normal, too.
    for half in (eta < np.median(eta), eta >= np.median(eta)):
        assert stats.kstest(r.quantile[half], "norm").statistic < FAR * np.sqrt(2)
    wrong = residuals(family, y, eta + 0.5, stream(1, "places"), phi, m)
    assert stats.kstest(wrong.quantile, "norm").statistic > 1.5 * FAR


@pytest.mark.parametrize("name", CASES)
def test_pearson_residuals_have_mean_zero_and_variance_one(name):
    family, y, eta, phi, m = drawn(name)
    r = residuals(family, y, eta, stream(1, "places"), phi, m).pearson
    assert abs(r.mean()) < 4 / np.sqrt(N)
    assert abs(np.mean(r**2) - 1) < 4 * np.std(r**2) / np.sqrt(N)
    mu = family.mean(eta)
    size = phi / (1 if m is None else m)
    np.testing.assert_allclose(r, (y - mu) / np.sqrt(size * family.variance(mu)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_squares_of_deviance_residuals_sum_to_the_deviance(name):
    family, y, eta, phi, m = drawn(name)
    r = residuals(family, y, eta, stream(1, "places"), phi, m)
    weight = 1.0 if m is None else m
    assert np.sum(r.deviance**2) == pytest.approx(np.sum(weight * family.deviance(y, eta)) / phi, rel=1e-12)
    assert np.all(r.deviance * r.pearson >= 0)


def test_the_wrong_family_shows():
    family, y, eta, _, _ = drawn("negative binomial")
    assert family.alpha == 0.8
    r = residuals(Poisson(), y, eta, stream(1, "places"))
    assert stats.kstest(r.quantile, "norm").statistic > 2 * FAR


def test_residuals_of_classes_are_normal_and_uncorrelated():
    family, rng = Softmax(classes=4), stream(2, "classes")
    eta = rng.standard_normal((N, 3))
    y = family.simulate(eta, rng)
    r = residuals(family, y, eta, stream(1, "places"))
    assert stats.kstest(r.quantile, "norm").statistic < FAR
    spread = r.pearson.T @ r.pearson / N
    error = np.std(r.pearson[:, :, None] * r.pearson[:, None, :], axis=0) / np.sqrt(N)
    assert np.all(np.abs(spread - np.eye(3)) < 4.5 * error)
    assert np.sum(r.deviance**2) == pytest.approx(np.sum(family.deviance(y, eta)))
    wrong = residuals(family, y, eta[:, ::-1], stream(1, "places"))
    assert stats.kstest(wrong.quantile, "norm").statistic > 2 * FAR


def test_several_outputs_have_their_own_dispersion():
    rng = stream(3, "outputs")
    phi = np.array([0.1, 4.0])
    eta = rng.standard_normal((N, 2))
    y = get("gaussian").simulate(eta, rng, phi)
    r = residuals(get("gaussian"), y, eta, rng, phi)
    np.testing.assert_allclose(r.quantile, (y - eta) / np.sqrt(phi), rtol=1e-9, atol=1e-12)


def test_the_most_unlikely_row_has_a_finite_residual():
    for family, y in ((Poisson(), 500.0), (get("bernoulli"), 1.0), (Gamma(), 1e9), (get("gaussian"), 1e9)):
        r = residuals(family, np.array([y]), np.array([-100.0]), stream(4, "one"))
        assert 5 < r.quantile[0] < 40
        assert np.isfinite(r.pearson[0])
        assert np.isfinite(r.deviance[0])


def test_places_within_a_step_are_drawn_from_the_stream_given():
    family, y, eta, _, _ = drawn("poisson")
    first, again, other = (residuals(family, y, eta, stream(s, "places")).quantile for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
