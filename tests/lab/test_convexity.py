"""Curvature at a network: quadrature against Monte Carlo, closed forms and automatic differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.machine import double
from onehidden.network import OneHiddenNet
from onehidden_papers.lab.convexity import (
    empirical_hessian,
    local_convexity,
    population_eigenvalues,
    population_hessian,
)
from onehidden_papers.lab.descents import basin
from onehidden_papers.problems.problem import conditioned_teacher


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_expected_hessian_is_the_mean_of_the_empirical_one(name):
    random = np.random.default_rng(0)
    net = OneHiddenNet(
        random.standard_normal((3, 4)), [1.0, -0.7, 1.3], 0.4 * random.standard_normal(3), 0.0, name
    )
    H = population_hessian(net)
    parts = []
    for _ in range(40):
        X = random.standard_normal((5000, 4))
        parts.append(empirical_hessian(net, X, net.predict(X)))
    error = np.std(parts, axis=0) / np.sqrt(40)
    assert np.max(np.abs(np.mean(parts, axis=0) - H) / error) < 5
    assert np.max(np.abs(np.mean(parts, axis=0)) / error) > 50  # zero would fail


def test_relu_blocks_have_their_closed_form():
    # E[1(a>0) 1(b>0)] = (π - θ)/(2π) for unit rows at angle θ
    angle = 0.7
    net = OneHiddenNet([[1, 0, 0], [np.cos(angle), np.sin(angle), 0]], [1, 1], activation="relu")
    H = population_hessian(net).reshape(2, 3, 2, 3)
    assert H[0, 2, 1, 2] == pytest.approx((np.pi - angle) / (2 * np.pi), abs=1e-10)
    assert H[0, 0, 0, 0] == pytest.approx(0.5, abs=1e-12)
    assert not H[0, 2, 1, 2] == pytest.approx(0.25, abs=1e-2)  # independent half-spaces


def test_eigenvalues_without_the_full_matrix():
    net = conditioned_teacher(6, 2, 2.0, "tanh", np.random.default_rng(1), signed=True)
    full = np.linalg.eigvalsh(population_hessian(net))
    few = population_eigenvalues(net)
    assert few[0] == pytest.approx(full[0], abs=1e-12)
    assert few[-1] == pytest.approx(full[-1], abs=1e-12)


def test_empirical_hessian_away_from_the_truth_matches_autodiff():
    random = np.random.default_rng(2)
    net = conditioned_teacher(3, 2, 2.0, "tanh", random, signed=True)
    X = random.standard_normal((50, 3))
    y = random.standard_normal(50)
    with double():
        loss = lambda W: 0.5 * jnp.mean((jnp.tanh(X @ W.reshape(2, 3).T) @ net.output - y) ** 2)  # noqa: E731
        expected = np.asarray(jax.jit(jax.hessian(loss))(jnp.asarray(net.weights.ravel())))
    assert np.allclose(empirical_hessian(net, X, y), expected, atol=1e-12)
    assert not np.allclose(empirical_hessian(net, X, net.predict(X)), expected, atol=1e-3)


@pytest.mark.parametrize(("name", "positive"), [("linear", False), ("quadratic", False), ("tanh", True)])
def test_polynomial_activations_are_flat_somewhere(name, positive):
    found = local_convexity(OneHiddenNet(np.eye(3), np.ones(3), activation=name))
    assert found.checks[0].passed is positive
    assert (found.rho > 0) is positive
    assert (found.m0 > 0) is positive


def test_condition_numbers_are_those_of_the_theorem():
    net = OneHiddenNet(np.diag([4.0, 2.0, 1.0]), [1, -1, 1], activation="relu")
    X = np.random.default_rng(3).standard_normal((2000, 3))
    found = local_convexity(net, X)
    assert found.kappa == pytest.approx(4)
    assert found.lam == pytest.approx(8)
    assert found.M0 == pytest.approx(3)
    assert found.m0 == pytest.approx((0.25 - 1 / (2 * np.pi)) / 16 / 8)
    assert 0 < found.empirical[0] < found.empirical[1]
    assert len(found.checks) == 2


def test_descent_returns_from_nearby():
    net = conditioned_teacher(3, 2, 1.5, "tanh", np.random.default_rng(4), signed=True)
    X = np.random.default_rng(5).standard_normal((400, 3))
    found = basin(net, X, radii=(0.05, 8.0), trials=3, steps=1500)
    assert found.returned[0] == 1.0
    assert found.convex[0] == 1.0
    assert found.convex_radius == 0.05  # far away the loss is not convex
