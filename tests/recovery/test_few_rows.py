"""Tables of one or two dozen rows: digits of a certified fit, and what so few rows can show, in words."""

import re

import numpy as np
import pytest
from scipy.stats import f, ncf

import onehidden as oh
from onehidden.certify import levels
from onehidden.run import stream

# NIST StRD Rat42 (Ratkowsky 1983): y = b1 / (1 + exp(b2 - b3 x)).
AGE = np.array([9.0, 14.0, 21.0, 28.0, 42.0, 57.0, 63.0, 70.0, 79.0])[:, None]
WEIGHT = np.array([8.930, 10.800, 18.590, 22.330, 39.350, 56.110, 61.730, 64.620, 67.080])


def test_rat42_has_six_certified_digits_and_four_of_the_errors():
    found = oh.recover(AGE, WEIGHT, 1, activation="sigmoid", intercept=False, errors="classical")
    net, error = found.network, found.standard_errors
    mine = np.array([net.output[0], -net.bias[0], net.weights[0, 0]])
    assert mine == pytest.approx([72.462237576, 2.6180768402, 0.067359200066], rel=1e-6)
    errors = np.array([error.output[0], error.bias[0], error.weights[0, 0]])
    assert errors == pytest.approx([1.7340283401, 0.088295217536, 0.0034465663377], rel=1e-5)
    assert np.sqrt(found.noise_variance) == pytest.approx(1.1587725499, rel=1e-7)


def test_the_power_of_nine_rows_is_said_in_the_message():
    """The F test of one more unit, of three parameters, finds that shift nine times in ten."""
    found = oh.recover(AGE, WEIGHT, 1, activation="sigmoid", intercept=False)
    said = re.search(r"9 samples show a further one only if it moves the fit by (\S+) ", found.message)
    assert found.converged
    assert said is not None
    shift = float(said[1])
    bound = f.isf(levels.LARGER_MODEL.value, 3, 3)
    power = ncf.sf(bound, 3, 3, 9 * shift**2 / found.noise_variance)
    assert power == pytest.approx(0.9, abs=0.02)


def test_two_dozen_rows_are_answered_with_their_power():
    rng = stream(2, "two dozen rows")
    x = np.linspace(-3, 3, 24)
    y = 1 + 3 / (1 + np.exp(-1.5 * x)) + 0.1 * rng.standard_normal(24)
    found = oh.recover(x[:, None], y, 1, activation="sigmoid")
    assert found.converged
    assert all(check.evaluated for check in found.checks if check.about == "fit")
    assert "24 samples show a further one only if it moves the fit by" in found.message
    # Another hump of that size is seen.
    hump = oh.recover(x[:, None], y + 1.5 * np.exp(-((x - 1) ** 2) * 2), 1, activation="sigmoid")
    assert not hump.converged


def test_seven_rows_cannot_show_a_further_unit():
    rng = stream(3, "seven rows")
    x = np.linspace(-3, 3, 7)
    y = 1 + 3 / (1 + np.exp(-1.5 * x)) + 0.05 * rng.standard_normal(7)
    found = oh.recover(x[:, None], y, 1, activation="sigmoid")
    assert not found.converged
    assert "7 rows for 4 parameters cannot show one more unit, however strong" in found.message
