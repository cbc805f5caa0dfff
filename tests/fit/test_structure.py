"""Structures: the map from free parameters to a network, its Jacobian, bounds, and what it refuses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares, lsq_linear, nnls
from scipy.signal import correlate

import onehidden as oh
from onehidden import activations, structure
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation, written_out
from onehidden.solvers import LevenbergMarquardt

RNG = np.random.default_rng(5)
ZERO = np.array([[True, False, False, True], [False, False, True, False]])
EACH = RNG.standard_normal((2, 4, 3))
CASES: list[tuple[Any, int, int]] = [  # a structure, units, free parameters of the weights
    (structure.NonNegative(), 2, 8),
    (structure.Zeros(ZERO), 2, 5),
    (structure.Zeros(ZERO[0]), 3, 6),
    (structure.Basis(EACH[0]), 3, 9),
    (structure.Basis(EACH), 2, 6),
    (structure.Basis(EACH, shared=True), 2, 3),
    ([structure.Shifts(4, 2), "nonnegative"], 3, 2),
    (structure.Shifts((2, 2), (1, 2), common_output=True), 2, 2),
]


def form_of(known, k, outputs=None, bias=True, **more):
    return Parametrisation(
        activations.get("tanh"), 4, k, bias, outputs=outputs, structure=structure.read(known), **more
    )


@pytest.mark.parametrize("outputs", [None, 2])
@pytest.mark.parametrize(("known", "k", "free"), CASES)
def test_the_jacobian_is_that_of_automatic_differentiation(known, k, free, outputs):
    form = form_of(known, k, outputs, skip=True)
    assert form.free is not None
    assert form.free.sizes[0] == free
    phi = np.abs(RNG.standard_normal(form.size))
    X, y = RNG.standard_normal((7, 4)), RNG.standard_normal((7,) if outputs is None else (7, outputs))
    weight = RNG.uniform(0.5, 2, 7)
    matrix = form.free.matrix.toarray()
    plain = form.plain

    def misfit(phi):
        weights, output, bias, beta, intercept = plain.unpack(jnp.asarray(matrix) @ phi)
        fitted = jnp.tanh(X @ weights.T + bias) @ output + X @ beta + intercept
        return (jnp.sqrt(weight).reshape(-1, *[1] * (y.ndim - 1)) * (fitted - y)).ravel()

    with jax.enable_x64(True):
        expected = np.asarray(jax.jacfwd(misfit)(jnp.asarray(phi)))
        r, J = written_out(form, phi, X, y, np.sqrt(weight))
        np.testing.assert_allclose(r, misfit(phi), rtol=1e-12)
    np.testing.assert_allclose(J, expected, rtol=1e-11, atol=1e-12)
    fit = InMemoryLeastSquares(form, X, y, weight)
    hessian, gradient, _ = fit.normal_equations(phi)
    np.testing.assert_allclose(hessian, expected.T @ expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradient, expected.T @ r, rtol=1e-10, atol=1e-10)


def test_shifts_are_a_correlation_of_the_picture_with_the_filter():
    known = structure.Shifts((5, 4), (2, 3))
    form = Parametrisation(activations.get("tanh"), 20, 8, True, structure=structure.read(known))
    assert form.size == 6 + 8 + 1 + 1
    phi = RNG.standard_normal(form.size)
    weights, _, bias, _, _ = form.unpack(phi)
    picture = RNG.standard_normal((5, 4))
    expected = correlate(picture, phi[:6].reshape(2, 3), "valid")
    np.testing.assert_allclose((weights @ picture.ravel()).reshape(known.places), expected, rtol=1e-12)
    np.testing.assert_array_equal(bias, np.full(8, phi[14]))
    np.testing.assert_array_equal(known.filter_of(weights), phi[:6].reshape(2, 3))
    up, down, *_ = known.moves(weights)
    np.testing.assert_array_equal(known.filter_of(up)[1], phi[:3])
    np.testing.assert_array_equal(known.filter_of(down)[0], phi[3:6])
    assert not known.filter_of(up)[0].any()
    assert not known.filter_of(down)[1].any()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("known", "k", "free"), CASES)
def test_parameters_are_those_of_the_nearest_network_of_the_structure(known, k, free, bias):
    form = form_of(known, k, bias=bias)
    assert form.free is not None
    phi = np.abs(RNG.standard_normal(form.size))
    np.testing.assert_allclose(form.pack(*parts(form, phi)), phi, rtol=1e-10, atol=1e-12)
    theta = RNG.standard_normal(form.plain.size)
    found = form.pack(*parts(form.plain, theta))
    lower = np.full(form.size, -np.inf) if form.lower is None else form.lower
    nearest = lsq_linear(form.free.matrix.toarray(), theta, (lower, np.full(form.size, np.inf)))
    np.testing.assert_allclose(found, nearest.x, atol=1e-6)


def parts(form, theta):
    weights, output, bias, beta, intercept = form.unpack(theta)
    return weights, output, bias, beta, intercept


class Linear:
    """Least squares |A x - b|^2 with x at least 0."""

    def __init__(self, A, b):
        self.A, self.b, self.lower = A, b, np.zeros(A.shape[1])

    def loss(self, theta):
        return float(np.sum((self.A @ theta - self.b) ** 2))

    def normal_equations(self, theta, rough=False):
        r = self.A @ theta - self.b
        return self.A.T @ self.A, self.A.T @ r, float(r @ r)


@pytest.mark.parametrize("seed", range(5))
def test_projected_steps_solve_non_negative_least_squares(seed):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((30, 12)), rng.standard_normal(30)
    found = LevenbergMarquardt(200).solve(Linear(A, b), np.ones(12))
    expected, residual = nnls(A, b)
    assert 0 < np.sum(expected == 0) < 12
    np.testing.assert_allclose(found.theta, expected, atol=1e-6)
    np.testing.assert_array_equal(found.theta == 0, expected == 0)
    np.testing.assert_allclose(found.loss, residual**2, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_bounded_optima_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    form = form_of([structure.NonNegative(outputs=True)], 2)
    weights = np.array([[1.0, 0.0, 0.0, 0.7], [0.0, 0.8, 0.0, 1.2]])
    X, truth = rng.standard_normal((80, 4)), form.pack(weights, [1.5, 1.0], [0.3, -0.5], None, 0.2)
    y = form.predict(truth, X) + 0.1 * rng.standard_normal(80)
    fit = InMemoryLeastSquares(form, X, y)
    assert form.lower is not None
    start = np.where(np.isfinite(form.lower), truth + 0.2, truth)
    jacobian: Any = lambda phi: fit.jacobian(phi, slice(None))  # noqa: E731
    found = LevenbergMarquardt(500).solve(fit, start)
    theirs = least_squares(
        fit.residuals,
        start,
        jacobian,
        (form.lower, np.inf),
        xtol=1e-14,
        ftol=1e-14,
    )
    assert np.any(found.theta[np.isfinite(form.lower)] == 0)
    assert found.loss <= 2 * theirs.cost * (1 + 1e-9)
    np.testing.assert_allclose(found.theta, theirs.x, atol=2e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: structure.Shifts((3, 3), (4, 1)), "larger than the picture"),
        (lambda: structure.Shifts((3, 3), 2), "as many sizes"),
        (lambda: structure.Zeros([[True, True], [False, True]]), "no unit"),
        (lambda: structure.Zeros([0, 1]), "True or False"),
        (lambda: structure.Basis(np.ones((4, 2))), "linearly independent"),
        (lambda: structure.Basis(np.ones(4)), "shape"),
        (lambda: structure.NonNegative(inputs=False), "neither"),
        (lambda: structure.read("positive"), "nonnegative"),
        (lambda: structure.read([structure.Shifts(4, 2), structure.Basis(np.eye(4))]), "one other structure"),
        (lambda: form_of(structure.Basis(np.eye(5)), 2).free, "X has 4 columns"),
        (lambda: form_of(structure.Zeros(np.eye(5) > 0), 5).free, "X has 4 columns"),
        (lambda: form_of(structure.Shifts(5, 2), 4).free, "X has 4 columns"),
        (lambda: form_of(structure.Shifts(4, 2), 2).free, "3 units"),
        (lambda: oh.recover(np.zeros((9, 4)), np.zeros(9), 2, structure=structure.Shifts(4, 2)), "3 units"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make, words):
    with pytest.raises(ValueError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 220
