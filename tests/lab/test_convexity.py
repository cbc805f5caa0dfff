"""Curvature at a network: quadrature against Monte Carlo, closed forms and automatic differentiation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.machine import double
from onehidden.network import OneHiddenNet
from onehidden_papers.lab import empirical_hessian
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.zsjbd import hessian_at_unit_rows


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_expected_hessian_at_unit_rows_is_the_mean_of_the_empirical_one(name):
    random = np.random.default_rng(0)
    net = OneHiddenNet(np.eye(3), np.ones(3), activation=name)
    H = hessian_at_unit_rows(net.activation, 3)
    parts = []
    for _ in range(40):
        X = random.standard_normal((5000, 3))
        parts.append(empirical_hessian(net, X, net.predict(X)))
    error = np.std(parts, axis=0) / np.sqrt(40)
    assert np.max(np.abs(np.mean(parts, axis=0) - H) / np.maximum(error, 1e-12)) < 5
    assert np.max(np.abs(np.mean(parts, axis=0)) / np.maximum(error, 1e-12)) > 50  # zero would fail


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
