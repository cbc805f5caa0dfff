"""The likelihood of a fit under a noise model of its own, and rivals that it rules out."""

import numpy as np
import pytest
from helpers import normal, problem_of, teacher
from scipy.stats import nbinom, norm, poisson, t

from onehidden.certify.alternatives import compare_minima
from onehidden.certify.evaluate import certify
from onehidden.certify.noise_model import OwnLikelihood, fit_noise
from onehidden.fit.problem import optimise
from onehidden.machine import double
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.recovery.solve import problem_of as problem_of_options
from onehidden.recovery.target import read_target
from onehidden.run import Run


def spread_along(n=4000, d=3):
    X, draw = normal(n, d), np.random.default_rng([12, 1])
    log_sd = 0.3 + 0.6 * X[:, 0] - 0.2 * X[:, 1]
    return X, log_sd, np.exp(log_sd) * draw.standard_t(4, n)


def test_the_model_has_the_likelihood_of_the_law_that_made_the_residuals():
    X, log_sd, e = spread_along()
    true = np.sum(t.logpdf(e * np.exp(-log_sd), 4) - log_sd)
    gained = fit_noise(e, X).value - true  # half a chi-square of five degrees of freedom
    assert 0 < gained < 10
    assert fit_noise(e, X[:, :0]).value < true - 100
    assert fit_noise(e, X).value > np.sum(norm.logpdf(e, scale=e.std())) + 100


def test_units_of_measurement_and_rotations_change_nothing():
    X, _, e = spread_along(400)
    turned = X @ np.random.default_rng(3).standard_normal((3, 3)) + 5
    scaled = fit_noise(1e4 * e, turned).value + len(e) * np.log(1e4)
    assert scaled == pytest.approx(fit_noise(e, X).value, rel=1e-9)


def test_a_few_rows_far_off_tell_what_losses_row_by_row_do_not():
    """Two rows wrong by ten standard deviations are 180 of n log(loss), but 1.4 standard errors of it."""
    X, r = normal(300, 2), np.random.default_rng([12, 5]).standard_normal(300)
    wrong = r + np.where(np.arange(300) < 2, 10.0, 0.0)
    losses = wrong**2 / np.mean(wrong**2) - r**2 / np.mean(r**2)
    assert 150 * np.log(np.mean(wrong**2) / np.mean(r**2)) < 2.33 * np.std(losses / 2) * np.sqrt(300)
    assert 2 * (fit_noise(r, X).value - fit_noise(wrong, X).value) > 20


def test_a_right_answer_under_unequal_noise_is_not_held_up_by_a_hopeless_rival():
    """The rival gains in the sum of squares where the noise is, and nowhere else."""
    draw = np.random.default_rng([12, 6])
    net = teacher("relu", d=3, k=2, seed=3, bias=0.3)
    X = draw.standard_normal((500, 3))
    y = net.predict(X) + 0.5 * np.exp(0.9 * X[:, 0]) * draw.standard_normal(500)
    problem = problem_of(X, y, net.activation, 2, True)
    with double():
        own = optimise(net, problem, Run())
        far = optimise(
            OneHiddenNet([[-1.0, 0.2, 0.5], [0.1, 1.0, 1.0]], [1.0, 1.0], [1.0, 0.0]), problem, Run()
        )
        found = compare_minima(certify(own.network, problem, Run()), problem, Run(), [far], "auto")
    behind = [one for one in found.alternatives if one.behind > 40]
    assert behind
    assert not any(one.close for one in behind)


def test_messages_say_how_far_a_rival_is_behind():
    draw = np.random.default_rng([12, 11])
    net = teacher("relu", d=2, k=2, seed=5)
    X = draw.standard_normal((90, 2))
    y = net.predict(X) + 0.8 * draw.standard_normal(90)
    problem = problem_of(X, y, net.activation, 2, True)
    with double():
        own = optimise(net, problem, Run())
        found = compare_minima(certify(own.network, problem, Run()), problem, Run(), [], "auto")
    reasons = [unit.reason for unit in found.unit_verdicts if unit.reason]
    assert any("the data do not rule out another network" in r and "would rule it out" in r for r in reasons)


def test_a_family_compares_deviances_over_the_dispersion():
    own, other = OwnLikelihood(-100.0, 9, 2.0), OwnLikelihood(-130.0, 9, 4.0)
    assert own.ahead(other) == 15.0


def test_counts_have_the_likelihood_of_the_law_that_made_them():
    """Those of a negative binomial law, told to be Poisson, whose likelihood is far lower."""
    draw = np.random.default_rng([12, 8])
    net = OneHiddenNet([[1.0, 0.0], [0.3, 1.0]], [0.9, 0.8], [0.2, -0.1], 1.0)
    X = draw.standard_normal((800, 2))
    mean = np.exp(net.predict(X))
    y = draw.poisson(draw.gamma(2.0, 0.5, 800) * mean).astype(float)
    target = read_target(X, y, None, "poisson", None, None, None)
    with double():
        problem = problem_of_options(target.samples, Options(hidden=2, family="poisson"), target.family)
        found = OwnLikelihood.of(problem, optimise(net, problem, Run()).network, Run())
    true = 2 * np.sum(nbinom.logpmf(y, 2.0, 2.0 / (2.0 + mean)))
    assert 0 < found.twice - true < 30  # a chi-square of nine parameters and alpha
    assert found.twice > 2 * np.sum(poisson.logpmf(y, mean)) + 300
