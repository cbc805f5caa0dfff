"""Rows with equal inputs: size and power of the test of lack of fit; rounded replicates are no copies."""

import numpy as np
import pytest
from scipy.stats import f as f_law

import onehidden as oh
from onehidden.certify.local_fit import local_fit
from onehidden.certify.replicates import _by_chance, lack_of_fit, levels_of
from onehidden.fit.problem import optimise
from onehidden.fit.samples import Samples
from onehidden.machine import double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of
from onehidden.run import Run, stream

DOSE = np.repeat([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0], 3)
X = np.log10(DOSE + 0.1)[:, None]
CURVE = oh.OneHiddenNet([[1.8]], [2.0], [-0.5], 3.0, "tanh")


def p_value(y, g="tanh"):
    with double():
        problem = problem_of(Samples(X, y), Options(hidden=1, activation=g))
        start = oh.OneHiddenNet(CURVE.weights, CURVE.output, CURVE.bias, CURVE.intercept, g)
        return lack_of_fit(local_fit(optimise(start, problem, Run()).network, problem))


def test_of_equal_numbers_and_variances_it_is_close_to_the_classical_test():
    rng = stream(1, "replicates")
    y = CURVE.predict(X) + 0.3 * rng.standard_normal(24)
    with double():
        problem = problem_of(Samples(X, y), Options(hidden=1, activation="tanh"))
        local = local_fit(optimise(CURVE, problem, Run()).network, problem)
    residual, level = local.residuals[:, 0], levels_of(X)
    mean = np.bincount(level, residual) / 3
    within = np.sum((residual - mean[level]) ** 2) / 16
    classical = f_law.sf(3 * np.sum(mean**2) / 4 / within, 4, 16)
    assert lack_of_fit(local) == pytest.approx(classical, rel=0.2, abs=0.02)


@pytest.mark.parametrize("unequal", [False, True])
def test_its_size_holds_for_equal_and_unequal_noise(unequal):
    rng, runs = stream(2, "replicates", unequal), 300
    spread = 0.3 * (np.exp(0.6 * X[:, 0]) if unequal else 1.0)
    found = [p_value(CURVE.predict(X) + spread * rng.standard_normal(24)) for _ in range(runs)]
    assert 0.03 <= np.mean(np.array(found) < 0.05) <= 0.085


def test_a_curve_of_another_shape_is_noticed():
    rng = stream(3, "replicates")
    wave = 3 + np.sin(3 * X[:, 0])
    assert max(p_value(wave + 0.1 * rng.standard_normal(24)) for _ in range(20)) < 0.01


def test_rounded_replicates_are_no_copies_and_copies_are():
    rng = stream(4, "replicates")
    dose = np.repeat([0, 0.1, 0.3, 1, 3, 10, 30], 25)
    x = np.log10(dose + 0.1)[:, None]
    y = np.round(CURVE.predict(x) + 0.2 * rng.standard_normal(len(x)), 1)
    r = oh.recover(x, y, 1, activation="tanh", max_seconds=20)
    copies = next(check for check in r.checks if check.name == "repeated rows")
    assert copies.passed
    assert r.status == "consistent"
    twice = np.repeat(np.arange(60), 3)
    x = rng.standard_normal((60, 1))
    y = np.round(CURVE.predict(x) + 0.2 * rng.standard_normal(60), 1)
    copied = oh.recover(x[twice], y[twice], 1, activation="tanh", max_seconds=20)
    assert not next(check for check in copied.checks if check.name == "repeated rows").passed


def test_rows_that_agree_by_chance_are_counted():
    rng = stream(5, "replicates")
    x = np.repeat(np.arange(50.0), 8)[:, None]
    y = np.round(rng.standard_normal(400), 1)
    pairs = 400 - len(np.unique(np.column_stack([x[:, 0], y]), axis=0))
    assert pairs <= _by_chance(Samples(x, y), np.array([1.0])) < 3 * pairs
    assert _by_chance(Samples(x, rng.standard_normal(400)), np.array([1.0])) == 0
