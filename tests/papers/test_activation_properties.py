"""P1–P3 and rho: the slides' tables, closed forms and an independent quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from onehidden import activations
from onehidden_papers.activation_properties import rho_terms, slope_properties
from onehidden_papers.reproductions.record import printed
from onehidden_papers.reproductions.zsjbd import COLUMNS


@pytest.mark.parametrize("name", list(printed("zsjbd-properties")))
def test_property_table_is_the_slides(name):
    properties = activations.get(name).properties()
    assert tuple(properties[c] for c in COLUMNS) == printed("zsjbd-properties")[name]
    assert all(isinstance(properties[c], bool) for c in COLUMNS)
    assert properties["P3"] == (properties["P3a"] or properties["P3b"])


def test_a_jump_is_seen_wherever_it_is():
    shifted = slope_properties(lambda z: (z > 0.3141).astype(float))
    assert shifted["P1"]
    assert shifted["P3b"]
    assert not shifted["P3a"]
    decreasing = slope_properties(lambda z: -np.ones_like(z))
    assert not decreasing["P1"]


def test_rho_of_homogeneous_activations_is_closed():
    relu = 0.25 - 1 / (2 * np.pi)
    assert activations.get("relu").rho(3.0) == pytest.approx(relu, abs=1e-12)
    leaky = relu * 0.99**2
    assert activations.get("leaky_relu").rho(0.2) == pytest.approx(leaky, abs=1e-12)
    # squared ReLU scales as sigma², not as the printed sigma
    square = activations.get("squared_relu")
    assert square.rho(2.0) == pytest.approx(4 * square.rho(1.0), rel=1e-12)
    assert not square.rho(2.0) == pytest.approx(2 * square.rho(1.0), rel=1e-1)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "erf", "softplus"])
@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0, 100.0])
def test_rho_agrees_with_adaptive_quadrature(name, sigma):
    slope = {
        "tanh": lambda t: 1 / np.cosh(min(abs(t), 300.0)) ** 2,
        "sigmoid": lambda t: 0.25 / np.cosh(min(abs(t), 300.0) / 2) ** 2,
        "erf": lambda t: np.exp(-min(t * t, 700.0)),
        "softplus": lambda t: 0.5 * (1 + np.tanh(t / 2)),
    }[name]

    def expect(power, q):
        cuts = [-1 / sigma, 0, 1 / sigma, -10 / sigma, 10 / sigma]
        f = lambda z: slope(sigma * z) ** power * z**q * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)  # noqa: E731
        return quad(f, -12, 12, points=[c for c in cuts if abs(c) < 12], limit=400, epsabs=1e-13)[0]

    a0, a1, a2, b0, b2 = expect(1, 0), expect(1, 1), expect(1, 2), expect(2, 0), expect(2, 2)
    terms = (b0 - a0**2 - a1**2, b2 - a1**2 - a2**2, a0 * a2 - a1**2)
    got = rho_terms(activations.get(name).derivative, sigma)
    assert np.allclose(got, terms, atol=1e-9)  # the subtractions on the right cancel to about 1e-12
    assert not np.allclose(got, np.roll(terms, 1), atol=1e-9)


def test_rho_of_degenerate_activations_is_zero_and_the_terms_say_why():
    for name in ("linear", "quadratic", "abs"):
        assert activations.get(name).rho(1.0) == 0.0
    assert min(rho_terms(activations.get("quadratic").derivative, 0.5)) == pytest.approx(-4 * 0.25, rel=1e-10)
    with pytest.raises(ValueError, match="sigma"):
        activations.get("relu").rho(0.0)
