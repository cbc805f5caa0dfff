"""Curvature at a network: quadrature against Monte Carlo, closed forms and automatic differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.machine import double
from onehidden.network import OneHiddenNet
from onehidden_papers.lab import empirical_hessian, population_hessian
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
