"""Families against their densities: deviance, score, information, dispersion, draws."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import simulated
from scipy import stats

from onehidden import families
from onehidden.families import Bernoulli, Binomial, Gamma, NegativeBinomial, Poisson
from onehidden.machine import double
from onehidden.run import stream

EPS = np.finfo(float).eps
ALPHA, SHAPE = 0.7, 3.0
NODE, SHARE = np.polynomial.legendre.leggauss(200)

# The mean as a function of eta, written a second time.
MEAN = {
    "sqrt": lambda t: t**2,
    "identity": lambda e: e,
    "log": jnp.exp,
    "softplus": jax.nn.softplus,
    "inverse": lambda e: 1 / e,
    "logit": jax.nn.sigmoid,
    "probit": jax.scipy.stats.norm.cdf,
    "cloglog": lambda e: 1 - jnp.exp(-jnp.exp(e)),
}
# phi times the log-density less what is free of mu.
DENSITY = {
    "gaussian": lambda y, m: -0.5 * (y - m) ** 2,
    "poisson": lambda y, m: y * jnp.log(m) - m,
    "bernoulli": lambda y, m: y * jnp.log(m) + (1 - y) * jnp.log1p(-m),
    "binomial": lambda y, m: y * jnp.log(m) + (1 - y) * jnp.log1p(-m),
    "negative_binomial": lambda y, m: y * jnp.log(m) - (y + 1 / ALPHA) * jnp.log1p(ALPHA * m),
    "gamma": lambda y, m: -y / m - jnp.log(m),
}
# The variance at phi = 1.
VARIANCE = {
    "gaussian": lambda m: 1.0 + 0 * m,
    "poisson": lambda m: m,
    "bernoulli": lambda m: m * (1 - m),
    "binomial": lambda m: m * (1 - m),
    "negative_binomial": lambda m: m * (1 + ALPHA * m),
    "gamma": lambda m: m**2,
}
PAIRS = [(name, link) for name in DENSITY for link in families.get(name).links]


def family_of(name, link=None):
    return families.get(name, link, **({"alpha": ALPHA} if name == "negative_binomial" else {}))


def law(family, mu, phi=1 / SHAPE):
    """SciPy's law of y with this mean."""
    if family.name == "gaussian":
        return stats.norm(mu, np.sqrt(phi))
    if family.name == "gamma":
        return stats.gamma(1 / phi, scale=mu * phi)
    if family.name == "negative_binomial":
        return stats.nbinom(1 / ALPHA, 1 / (1 + ALPHA * mu))
    return stats.poisson(mu) if family.name == "poisson" else stats.bernoulli(mu)


def some_rows(name, link, n=400):
    """Predictors over the whole range of means that occurs, and targets of every kind."""
    rng = stream(1, "rows", name, link)
    eta = rng.uniform(-2.5, 2.5, n)
    if link in ("identity", "inverse", "sqrt") and name != "gaussian":
        eta = np.abs(eta) + 0.05
    y = {
        "gaussian": rng.standard_normal(n),
        "gamma": rng.gamma(1.0, 1.0, n) + 1e-3,
        "bernoulli": (rng.random(n) < 0.5).astype(float),
        "binomial": rng.integers(0, 6, n) / 5,
    }
    return y.get(name, rng.poisson(2.0, n).astype(float)), eta


@pytest.mark.parametrize(("name", "link"), PAIRS)
def test_score_is_the_derivative_of_the_log_density(name, link):
    family, (y, eta) = family_of(name, link), some_rows(name, link)
    with double():
        both = lambda e, v: (jax.grad(lambda t: -DENSITY[name](v, MEAN[link](t)))(e), jax.grad(MEAN[link])(e))  # noqa: E731
        expected, slope = map(np.asarray, jax.jit(jax.vmap(both))(jnp.asarray(eta), jnp.asarray(y)))
        mean = np.asarray(MEAN[link](jnp.asarray(eta)))
    # A rounding of the mean moves the density's derivative by up to (1 + y) slope / V^2.
    scale = np.abs(expected) + (1 + np.abs(y)) * np.abs(slope) * (1 + 1 / VARIANCE[name](mean) ** 2)
    assert np.all(np.abs(family.gradient(y, eta) - expected) < 100 * EPS * scale)
    np.testing.assert_allclose(family.mean(eta), mean, rtol=1000 * EPS)
    residual, weight = family.working(y, eta)
    variance = VARIANCE[name](mean)  # a rounding of a mean near 1 is one of eps / (1 - mean) here
    assert np.all(np.abs(weight * variance / slope**2 - 1) < 1000 * EPS + 10 * EPS / variance)
    np.testing.assert_allclose(residual, (mean - y) / slope, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(weight * residual, family.gradient(y, eta), rtol=10 * EPS)


@pytest.mark.parametrize(("name", "link"), PAIRS)
def test_score_has_mean_zero_and_the_information_as_its_variance(name, link):
    """By exact summation over the law of y, or quadrature."""
    family = family_of(name, link)
    phi = 1 / SHAPE if family.scaled else 1.0
    for eta in some_rows(name, link, 12)[1]:
        at = np.array([eta])
        known = law(family, float(family.mean(at)[0]))
        if family.discrete:
            y = np.arange(known.mean() + 40 * (1 + known.std()))  # less than 1e-15 lies beyond
            mass = known.pmf(y)
        else:  # Gauss and Legendre over all but 1e-15 of the mass, which is smooth there
            low, high = known.ppf(1e-15), known.isf(1e-15)
            y = low + (high - low) * (NODE + 1) / 2
            mass = known.pdf(y) * SHARE * (high - low) / 2
        score = family.gradient(y, np.full(len(y), eta))
        first, second = mass @ score, mass @ score**2
        information = family.information(at)[0]
        assert abs(first) < 1e-9 * np.sqrt(information)
        assert second == pytest.approx(phi * information, rel=1e-7)


@pytest.mark.parametrize(("name", "link"), PAIRS)
def test_deviance_is_the_distance_to_the_saturated_likelihood(name, link):
    family, (y, eta) = family_of(name, link), some_rows(name, link)
    phi = 1 / SHAPE if family.scaled else 1.0
    mu = family.mean(eta)
    if name == "binomial":
        fitted, best = (stats.binom.logpmf(np.rint(5 * y), 5, p) / 5 for p in (mu, y))
    else:
        # At a mean of 0 or 1 SciPy's laws are not defined; there y is certain.
        inner = (y > 0) & ((y < 1) | (name != "bernoulli"))
        log_density = lambda m, v: getattr(law(family, m), "logpmf" if family.discrete else "logpdf")(v)  # noqa: E731
        fitted, best = log_density(mu, y), np.zeros(len(y))
        if name in ("gaussian", "gamma"):
            inner = np.ones(len(y), bool)
        best[inner] = log_density(y[inner], y[inner])
    if name == "negative_binomial":
        np.testing.assert_allclose(family.log_likelihood(y, eta), fitted, rtol=1e-11, atol=1e-12)
    d = family.deviance(y, eta)
    np.testing.assert_allclose(d, 2 * phi * (best - fitted), rtol=1e-9, atol=1e-12)
    assert np.all(d >= 0)
    assert np.max(d) > 0.1


@pytest.mark.parametrize(("name", "link"), PAIRS)
def test_nothing_overflows_at_extreme_predictors(name, link):
    family = family_of(name, link)
    eta = np.array([-700.0, -200.0, -38.0, -1.0, 0.0, 1.0, 38.0, 200.0, 700.0])
    if link in ("identity", "inverse", "sqrt") and name != "gaussian":
        eta = np.abs(eta)
    low, high = {"bernoulli": (0.0, 1.0), "binomial": (0.0, 1.0), "gamma": (1e-8, 1e8)}.get(name, (0.0, 1e9))
    with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (low, high):
            y = np.full(len(eta), value)
            residual, weight = family.working(y, eta)
            for part in (weight, residual, family.deviance(y, eta), family.mean(eta)):
                assert np.all(np.isfinite(part))
            assert np.all(family.deviance(y, eta) >= 0)
            np.testing.assert_allclose(weight * residual, family.gradient(y, eta), rtol=10 * EPS)
            assert np.isfinite(family.start(y))


def test_a_probability_of_nothing_that_came_true_costs_its_logarithm():
    """What plain formulas make infinite or zero."""
    for link, cost in (("logit", 700.0), ("probit", 0.5 * 700**2), ("cloglog", 700.0)):
        family = Bernoulli(link)
        d = family.deviance(np.ones(1), np.array([-700.0]))[0]
        assert d == pytest.approx(2 * cost, rel=1e-4)
    assert Poisson().deviance(np.array([3.0]), np.array([-700.0]))[0] == pytest.approx(2 * 3 * 701, rel=1e-2)


def test_deviance_keeps_its_digits_where_the_fit_is_near():
    """d is (y - mu)^2 / V to second order; the plain formula has none of its digits left at y = 10^9."""
    y, t = np.full(5, 1e9), np.array([-1e-7, -1e-8, 3e-9, 1e-8, 1e-6])
    eta = np.log(y) + t
    mu = np.exp(eta)
    miss = mu - y  # exact, by Sterbenz
    for alpha in (0.0, 1e-9, 1e-3, 1.0):
        family = NegativeBinomial("log", alpha, given=True)
        expected = miss**2 / (y * (1 + alpha * y))
        np.testing.assert_allclose(family.deviance(y, eta), expected, rtol=3e-6, atol=1e-12)
    plain = 2 * (y * np.log(y / mu) - (y - mu))
    assert np.max(np.abs(plain / (miss**2 / y) - 1)) > 1e-2


def test_negative_binomial_tends_to_poisson():
    y, eta = some_rows("poisson", "log")
    poisson = Poisson()
    for alpha in (0.0, 1e-9):
        family = NegativeBinomial("log", alpha)
        for part in ("deviance", "gradient"):
            np.testing.assert_allclose(
                getattr(family, part)(y, eta), getattr(poisson, part)(y, eta), rtol=1e-6, atol=1e-6
            )
        expected = stats.poisson.logpmf(y, np.exp(eta))
        np.testing.assert_allclose(family.log_likelihood(y, eta), expected, rtol=1e-6, atol=1e-6)
    assert not np.allclose(NegativeBinomial("log", 0.5).deviance(y, eta), poisson.deviance(y, eta), rtol=0.1)


@pytest.mark.parametrize("name", DENSITY)
def test_several_outputs_are_the_outputs_one_by_one(name):
    family, (y, eta) = family_of(name), some_rows(name, family_of(name).link)
    Y, E = y.reshape(-1, 4), eta.reshape(-1, 4)
    for part in ("deviance", "gradient"):
        assert np.array_equal(getattr(family, part)(Y, E).ravel(), getattr(family, part)(y, eta))
    for j in range(4):
        assert family.start(Y)[j] == pytest.approx(family.start(Y[:, j]), rel=1e-12)


@pytest.mark.parametrize("name", DENSITY)
def test_draws_have_the_mean_and_variance_of_the_family(name):
    family, n = family_of(name), 40_000
    phi = 0.4 if family.scaled else 1.0
    trials = np.full(n, 5.0) if family.counted else None
    for eta in (-0.8, 0.6):
        y = simulated(family, np.full(n, eta), stream(3, name, str(eta)), phi, trials)
        mu = float(family.mean(np.array([eta]))[0])
        variance = phi * float(VARIANCE[name](mu)) / (5 if family.counted else 1)
        assert abs(y.mean() - mu) < 4 * np.sqrt(variance / n)
        fourth = np.mean((y - y.mean()) ** 4)
        assert abs(np.var(y) - variance) < 4 * np.sqrt((fourth - variance**2) / n)
        family.check_values(y, trials)


def test_null_start_is_where_the_summed_score_vanishes():
    for name, link in PAIRS:
        family, y = family_of(name, link), some_rows(name, link)[0]
        if name == "gamma":  # nothing to move: the level is inside
            assert np.sum(family.gradient(y, np.full(len(y), family.start(y)))) == pytest.approx(0, abs=1e-8)
        near = family.eta_of(np.array([np.mean(y)]))[0]
        assert family.start(y) == pytest.approx(near, abs=2e-2)
    assert Poisson().start(np.zeros(10)) == pytest.approx(np.log(0.05))
    assert np.isfinite(Bernoulli("probit").start(np.ones(10)))


def test_alpha_of_greatest_likelihood_and_the_shape_lie_within_their_errors():
    n, rng = 20_000, stream(5, "alpha")
    eta = 0.5 * rng.standard_normal(n)
    y = simulated(NegativeBinomial("log", ALPHA), eta, rng)
    found = NegativeBinomial("log").estimated(y, eta)
    step = 1e-3
    ll = [NegativeBinomial("log", found.alpha + s).log_likelihood(y, eta).sum() for s in (-step, 0, step)]
    error = 1 / np.sqrt(-(ll[0] - 2 * ll[1] + ll[2]) / step**2)
    assert abs(found.alpha - ALPHA) < 4 * error < 0.2 * ALPHA
    assert ll[1] > max(ll[0], ll[2])
    assert NegativeBinomial("log", 0.3, given=True).estimated(y, eta).alpha == 0.3
    assert NegativeBinomial("log").estimated(np.rint(np.exp(eta)), eta).alpha == 0.0  # less than Poisson


def test_misfit_prefers_the_true_alpha_and_counts_weights_as_rows():
    rng = stream(6, "misfit")
    eta = 1 + 0.5 * rng.standard_normal(3000)
    y = simulated(NegativeBinomial("log", ALPHA), eta, rng)
    family, poisson = NegativeBinomial("log"), NegativeBinomial("log", given=True)
    assert family.misfit(y, eta) < poisson.misfit(y, eta) - 100
    weight = rng.integers(1, 4, 3000).astype(float)
    twice = np.repeat(np.arange(3000), weight.astype(int))
    assert family.misfit(y, eta, weight) == pytest.approx(family.misfit(y[twice], eta[twice]), rel=1e-9)


def test_a_binomial_row_is_its_trials():
    """m rows of 0/1 and one row of m trials have the same score and information."""
    eta, m = np.array([-0.7, 0.2, 1.4]), np.array([4.0, 7.0, 2.0])
    won = np.array([1.0, 5.0, 2.0])
    one = Binomial()
    for i in range(3):
        single = np.repeat([1.0, 0.0], [int(won[i]), int(m[i] - won[i])])
        flat = np.full(len(single), eta[i])
        total = m[i] * one.gradient(won / m, eta)[i]
        assert total == pytest.approx(Bernoulli().gradient(single, flat).sum(), rel=1e-12)
        assert m[i] * one.information(eta)[i] == pytest.approx(Bernoulli().information(flat).sum())


def test_a_rate_below_zero_has_no_likelihood():
    for family in (Poisson("identity"), Gamma("identity"), Gamma("inverse")):
        d = family.deviance(np.ones(2), np.array([-0.1, 0.5]))
        assert np.isinf(d[0])
        assert np.isfinite(d[1])
        assert np.isfinite(family.working(np.ones(1), np.array([-0.1]))[0]).all()
