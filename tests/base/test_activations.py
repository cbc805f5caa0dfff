"""Activations against automatic differentiation, closed forms and the theory's tables."""

from math import factorial, pi, sqrt

import jax
import numpy as np
import pytest

import onehidden as oh
from onehidden import activations
from onehidden.machine import double

ALL = activations.names()
POINTS = np.concatenate([np.linspace(-6, 6, 41)[:20], np.linspace(-6, 6, 41)[21:]])  # no kink

# kappa_m = E[g^(m)] under N(0, 1), theory section 4; four figures as printed there
KAPPA = {
    "relu": (0.5, 0.399, 0, -0.399),
    "leaky_relu": (0.505, 0.395, 0, -0.395),
    "squared_relu": (0.798, 1, 0.798, 0),
    "cubed_relu": (1.5, 2.394, 3, 2.394),
    "tanh": (0.606, 0, -0.364, 0),
    "sigmoid": (0.207, 0, -0.0624, 0),
    "softplus": (0.5, 0.207, 0, -0.0624),
    "gelu": (0.5, 0.423, 0, -0.353),
    "quadratic": (0, 2, 0, 0),
}


@pytest.mark.parametrize("name", ALL)
def test_derivative_matches_automatic_differentiation(name):
    g = activations.get(name)
    with double():
        expected = jax.vmap(jax.grad(lambda t: g.fn(t)))(POINTS)
    np.testing.assert_allclose(g.derivative(POINTS), expected, rtol=1e-12, atol=1e-14)


REVERSIBLE = [name for name in ALL if activations.get(name).reversal]


@pytest.mark.parametrize("name", REVERSIBLE)
def test_reversal_identity_holds(name):
    g = activations.get(name)
    polynomial = np.polynomial.Polynomial(g.reversal.polynomial or (0.0,))
    np.testing.assert_allclose(g(-POINTS), g.reversal.parity * g(POINTS) + polynomial(POINTS), atol=1e-11)


@pytest.mark.parametrize("name", REVERSIBLE)
def test_symmetrised_has_exact_parity(name):
    g = activations.get(name)
    with double():
        plus, minus = (np.asarray(g.symmetrised(jax.numpy.asarray(s * POINTS))) for s in (1, -1))
        slope = np.asarray(g.symmetrised_slope(jax.numpy.asarray(POINTS)))
        expected = jax.vmap(jax.grad(lambda t: g.symmetrised(t)))(POINTS)
    np.testing.assert_allclose(minus, g.reversal.parity * plus, atol=1e-11)
    np.testing.assert_allclose(slope, expected, atol=1e-11)


@pytest.mark.parametrize("name", [n for n in ALL if activations.get(n).homogeneity])
def test_homogeneity_degree(name):
    g = activations.get(name)
    np.testing.assert_allclose(g(3 * POINTS), 3.0**g.homogeneity * g(POINTS), rtol=1e-13)
    assert not np.allclose(g(3 * POINTS), 3.0 ** (g.homogeneity + 1) * g(POINTS))


@pytest.mark.parametrize("name", KAPPA)
def test_hermite_coefficients_match_the_theory_table(name):
    g = activations.get(name)
    for m, expected in enumerate(KAPPA[name], start=1):
        assert g.hermite(m) * sqrt(factorial(m)) == pytest.approx(expected, abs=6e-4)


def test_relu_hermite_coefficients_are_accurate():
    """sigma_m = (-1)^((m-2)/2) (m-3)!! / sqrt(2 pi m!) for even m >= 2, and 0 for odd m >= 3."""
    g = activations.get("relu")
    assert g.hermite(0) == pytest.approx(1 / sqrt(2 * pi), abs=1e-13)
    assert g.hermite(1) == pytest.approx(0.5, abs=1e-13)
    for m in (2, 4, 6, 8, 10):
        double_factorial = np.prod(np.arange(m - 3, 0, -2), dtype=float)
        expected = (-1) ** ((m - 2) // 2) * double_factorial / sqrt(2 * pi * factorial(m))
        assert g.hermite(m) == pytest.approx(expected, rel=1e-11)
    assert all(abs(g.hermite(m)) < 1e-13 for m in (3, 5, 7))


@pytest.mark.parametrize("bad", ["swish", "", None, 3])
def test_unknown_activation_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="unknown activation"):
        activations.get(bad)


LAWS = {  # homogeneity, kinked, polynomial, multiplicative, parity, polynomial of the reversal
    "relu": (1, True, False, False, 1, (0.0, -1.0)),
    "leaky_relu": (1, True, False, False, 1, (0.0, -1.01)),
    "squared_relu": (2, False, False, False, -1, (0.0, 0.0, 1.0)),
    "cubed_relu": (3, False, False, False, 1, (0.0, 0.0, 0.0, -1.0)),
    "sigmoid": (None, False, False, False, -1, (1.0,)),
    "tanh": (None, False, False, False, -1, ()),
    "erf": (None, False, False, False, -1, ()),
    "softplus": (None, False, False, False, 1, (0.0, -1.0)),
    "gelu": (None, False, False, False, 1, (0.0, -1.0)),
    "abs": (1, True, False, False, 1, ()),
    "quadratic": (2, False, True, False, 1, ()),
    "linear": (1, False, True, False, -1, ()),
    "exp": (None, False, False, True, None, ()),
    "gaussian": (None, False, False, False, 1, ()),
    "silu": (None, False, False, False, 1, (0.0, -1.0)),
    "elu": (None, False, False, False, None, ()),
    "selu": (None, True, False, False, None, ()),
    "mish": (None, False, False, False, None, ()),
    "softsign": (None, False, False, False, -1, ()),
    "arctan": (None, False, False, False, -1, ()),
    "sin": (None, False, False, False, -1, ()),
    "cloglog": (None, False, False, False, None, ()),
}


@pytest.mark.parametrize("name", ALL)
def test_laws_are_found_from_the_values(name):
    """Those of the library, and again as a function that knows JAX alone, inside a program being traced."""
    own = activations.get(name)
    found = [own]
    if name != "linear":

        def function(t):
            return own.fn(jax.numpy.asarray(t))

        found.append(activations.get(function))
        assert found[1] is activations.get(function)
        apart = POINTS[np.abs(POINTS) > 0.1]
        np.testing.assert_allclose(found[1].derivative(apart), own.derivative(apart), atol=1e-12)
    for g in found:
        jax.jit(lambda x, g=g: x if g.reversal is None else 2.0 * x)(1.0)
        reversal = (None, ()) if g.reversal is None else (g.reversal.parity, g.reversal.polynomial)
        assert (g.homogeneity, g.kinked, g.polynomial, g.multiplicative, *reversal) == LAWS[name]


def test_what_is_no_activation_is_refused_in_a_sentence():
    import jax.numpy as jnp

    for function, words in (
        (lambda t: 3.0 + 0 * t, "is constant"),
        (lambda t: 2 * t - 1, "is linear"),
        (jnp.log, "finite"),
        (lambda t: float(t), "written with jax.numpy"),
        (lambda t: jnp.sum(t), "must map"),
        (activations.Activation("root", jnp.sqrt), "root must map"),
    ):
        with pytest.raises(ValueError, match=words):
            activations.get(function)


def test_a_sum_of_exponentials_is_recovered_with_its_rates():
    """Lanczos1 of NIST: three exponentials of one input, default starts."""
    import jax.numpy as jnp

    t = np.linspace(0, 1.15, 24)[:, None]
    y = 0.0951 * np.exp(-t[:, 0]) + 0.8607 * np.exp(-3 * t[:, 0]) + 1.5576 * np.exp(-5 * t[:, 0])
    r = oh.recover(t, y, 3, activation=jnp.exp, bias=False, intercept=False)
    assert r.status == "exact"
    np.testing.assert_allclose(np.sort(r.network.weights[:, 0]), [-5, -3, -1], rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in ALL if name not in activations.names(compared=True)])
def test_units_of_an_activation_by_name_are_recovered_and_kept(name, tmp_path):
    rng = np.random.default_rng(5)
    A, b, w = rng.standard_normal((2, 2)), 0.5 * rng.standard_normal(2), np.array([1.5, -2.0])
    truth = oh.OneHiddenNet(A, w, b, 0.3, name)
    X = rng.standard_normal((120, 2))
    r = oh.recover(X, truth.predict(X), 2, activation=name)
    assert r.status == "exact"
    found = oh.match(r.network, truth)
    assert max(found.max_error, found.bias_error, found.output_error) < 1e-9
    r.network.save(tmp_path / "net")
    assert oh.OneHiddenNet.load(tmp_path / "net") == r.network


def test_symmetries_of_their_own_have_one_canonical_form():
    """exp(a x + b) w has one number too many; sin has a period."""
    exp = oh.OneHiddenNet([[1.0], [2.0]], [1.0, 3.0], [0.5, 0.0], activation="exp").canonical()
    np.testing.assert_allclose(exp.output, [3.0, np.exp(0.5)])
    assert not exp.bias.any()
    one = oh.OneHiddenNet([[1.0]], [2.0], [0.25], activation="sin")
    for turns in (1, 2, -3):
        same = oh.OneHiddenNet([[1.0]], [2.0 * (-1) ** turns], [0.25 + turns * pi], activation="sin")
        assert oh.match(same, one).bias_error < 1e-12
        np.testing.assert_allclose(same.canonical().output, one.canonical().output)
    away = oh.OneHiddenNet([[1.0]], [2.0], [0.25 + pi], activation="sin")
    assert oh.match(away, one).output_error > 1
