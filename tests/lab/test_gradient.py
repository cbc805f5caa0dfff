"""Gradient descent with step 1/M_0: its step, its fixed point, its measured rate."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.machine import double
from onehidden_papers.lab.descents import descend, empirical_hessian, linear_rate
from onehidden_papers.problems.problem import conditioned_teacher


def problem(name="tanh"):
    random = np.random.default_rng(0)
    teacher = conditioned_teacher(5, 2, 2.0, name, random, signed=True)
    X = random.standard_normal((500, 5))
    move = 0.05 * random.standard_normal(teacher.weights.shape)
    return teacher, X, teacher.predict(X), replace(teacher, weights=teacher.weights + move)


def test_one_step_is_the_gradient_of_the_loss():
    teacher, X, y, start = problem()
    path = descend(start, X, y, smoothness=4.0, steps=1)
    with double():
        loss = lambda W: 0.5 * jnp.mean((jnp.tanh(X @ W.T) @ teacher.output - y) ** 2)  # noqa: E731
        step = np.asarray(jax.jit(jax.grad(loss))(jnp.asarray(start.weights)))
    assert np.array_equal(path[0], start.weights)
    assert np.allclose(path[1], start.weights - step / 4, atol=1e-14)
    assert not np.allclose(path[1], start.weights - step / 2, atol=1e-6)  # the loss without its ½


def test_distance_falls_linearly_within_the_bound():
    teacher, X, y, start = problem()
    spectrum = np.linalg.eigvalsh(empirical_hessian(teacher, X, y))
    path = descend(start, X, y, smoothness=float(spectrum[-1]), steps=1500)
    distances = np.linalg.norm(path - teacher.weights, axis=(1, 2))
    assert distances[-1] < 1e-10 * distances[0]
    assert linear_rate(distances**2) < 1 - 0.9 * spectrum[0] / spectrum[-1]
    assert np.all(np.diff(distances[distances > 1e-10]) < 0)


def test_rate_of_a_known_sequence():
    assert linear_rate(0.9 ** np.arange(200)) == pytest.approx(0.9, abs=1e-12)
    assert np.isnan(linear_rate(np.ones(100)))


def test_a_step_size_that_is_none_is_refused():
    _, X, y, start = problem("squared_relu")
    with pytest.raises(ValueError, match="smoothness"):
        descend(start, X, y, smoothness=0.0)
