"""Recoveries with a structure: exact ones, their errors, what is at a bound, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EXACT
from sklearn.base import clone

import onehidden as oh
from onehidden import structure

POSITIVE = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 2.0, 0.0, 1.0]])


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def bounds_of(found):
    return next(check for check in found.checks if check.name == "at a bound")


def test_weights_of_at_least_zero_are_exact_and_those_at_zero_are_named():
    truth = oh.OneHiddenNet(POSITIVE, [1.0, -2.0], [0.3, -0.2], 0.5)
    X = rows(200, 4)
    found = oh.recover(X, truth.predict(X), 2, structure="nonnegative")
    assert found.status == "exact"
    assert oh.match(found.network, truth).max_error < EXACT
    assert found.network.weights.min() == 0
    assert bounds_of(found).value == 4
    zero = np.argwhere(found.network.weights == 0)
    assert f"unit {zero[0, 0] + 1} on x{zero[0, 1]}" in bounds_of(found).advice
    assert found.freedom == 4 + 2 + 2 + 1 - 2  # weights, outputs, biases, intercept; two scales
    assert found.options["structure"] == "nonnegative"


def test_errors_are_those_of_the_parameters_off_their_bounds(tmp_path):
    truth = oh.OneHiddenNet(POSITIVE, [1.0, 2.0], [0.3, -0.2], 0.5, "tanh")
    X, rng = rows(400, 4), np.random.default_rng(1)
    y = truth.predict(X) + 0.1 * rng.standard_normal(400)
    known = structure.NonNegative(outputs=True)
    found = oh.recover(X, y, 2, activation="tanh", structure=known, errors="classical")
    net = found.network
    free = net.weights > 0
    assert not free.all()
    np.testing.assert_array_equal(found.standard_errors.weights[~free], 0)

    def fitted(theta):
        weights, output, bias = theta[:8].reshape(2, 4), theta[8:10], theta[10:12]
        return jnp.tanh(X @ weights.T + bias) @ output + theta[12]

    with jax.enable_x64(True):
        theta = np.concatenate([net.weights.ravel(), net.output, net.bias, [net.intercept]])
        J = np.asarray(jax.jacfwd(fitted)(jnp.asarray(theta)))
    kept = np.concatenate([free.ravel(), np.ones(5, bool)])
    spread = np.sum((net.predict(X) - y) ** 2) / (400 - kept.sum())
    expected = np.sqrt(spread * np.diag(np.linalg.inv(J[:, kept].T @ J[:, kept])))
    errors = found.standard_errors
    own = np.concatenate([errors.weights[free], errors.output, errors.bias, [errors.intercept]])
    np.testing.assert_allclose(own, expected, rtol=1e-6)
    found.save(tmp_path / "run")
    assert "outputs=True" in oh.load_recovery(tmp_path / "run").options["structure"]


def test_one_filter_at_every_place_takes_rows_for_its_own_parameters_only():
    known = structure.Shifts(12, 3)
    weights = np.zeros((10, 12))
    np.put_along_axis(weights, known.pixels, np.array([[1.0, -2.0, 0.5]]), axis=1)
    truth = oh.OneHiddenNet(weights, np.random.default_rng(3).standard_normal(10), np.full(10, 0.4), 1.0)
    X = rows(24, 12)  # 14 parameters; without the structure 131
    found = oh.recover(X, truth.predict(X), structure=known)
    assert found.status == "exact"
    np.testing.assert_allclose(found.network.weights, truth.canonical(ordered=False).weights, atol=1e-9)
    assert found.freedom == 3 + 10 + 1 + 1 - 1


def test_a_place_whose_output_is_zero_is_determined_by_the_others():
    known = structure.Shifts(8, 3)
    weights = np.zeros((6, 8))
    np.put_along_axis(weights, known.pixels, np.array([[1.0, -2.0, 0.5]]), axis=1)
    truth = oh.OneHiddenNet(weights, [1.0, -1.0, 0.0, 2.0, 1.5, -1.0], np.full(6, 0.4), 1.0)
    X = rows(300, 8)
    y = truth.predict(X) + 0.1 * np.random.default_rng(1).standard_normal(300)
    found = oh.recover(X, y, structure=known)
    assert abs(found.network.output[2]) < 4 * found.standard_errors.output[2]
    assert found.status == "consistent"


def test_a_basis_serves_several_outputs():
    matrix = np.repeat(np.eye(3), 2, axis=0)
    weights = np.array([[1.0, -1.0, 0.5], [0.3, 0.8, 0.0]]) @ matrix.T
    truth = oh.OneHiddenNet(weights, [[1.0, 0.5], [-1.0, 2.0]], [0.2, -0.4], [0.0, 1.0], "tanh")
    X = rows(60, 6)
    found = oh.recover(X, truth.predict(X), 2, activation="tanh", structure=structure.Basis(matrix))
    assert found.status == "exact"
    assert oh.match(found.network, truth).max_error < EXACT


def test_zeros_keep_the_units_apart_in_their_order():
    zero = POSITIVE == 0
    truth = oh.OneHiddenNet(-POSITIVE, [1.0, -2.0], [0.3, -0.2], 0.5)
    X = rows(100, 4)
    found = oh.recover(X, truth.predict(X), structure=structure.Zeros(zero))
    assert found.status == "exact"
    np.testing.assert_allclose(found.network.weights, truth.canonical(ordered=False).weights, atol=1e-9)
    np.testing.assert_array_equal(found.network.weights[zero], 0)


def test_counts_have_units_of_weights_of_at_least_zero():
    truth = oh.OneHiddenNet(POSITIVE, [0.5, 0.3], [0.3, -0.2], -0.5)
    X, rng = rows(1500, 4), np.random.default_rng(2)
    counts = rng.poisson(np.exp(truth.predict(X)))
    found = oh.recover(X, counts, 2, family="poisson", structure=structure.NonNegative(outputs=True))
    assert found.status == "consistent"
    assert oh.match(found.network, truth).max_error < 0.2
    assert min(found.network.weights.min(), found.network.output.min()) >= 0


def test_the_estimator_has_a_structure():
    truth = oh.OneHiddenNet(POSITIVE, [1.0, -2.0], [0.3, -0.2], 0.5)
    X = rows(200, 4)
    model: Any = clone(oh.OneHiddenRegressor(2, structure=structure.NonNegative()))
    model.fit(X, truth.predict(X))
    assert model.recovery_.status == "exact"
    assert model.network_.weights.min() == 0


@pytest.mark.parametrize(
    ("more", "error", "words"),
    [
        ({"start": "wide"}, oh.starts.Refused, "knows no structure"),
        ({"hidden": 40}, ValueError, "free parameters"),
        ({"structure": structure.Basis(np.eye(3))}, ValueError, "X has 4 columns"),
    ],
)
def test_what_does_not_go_with_a_structure_is_refused(more, error, words):
    X = rows(60, 4)
    with pytest.raises(error, match=words):
        oh.recover(X, X[:, 0], **({"hidden": 2, "structure": "nonnegative"} | more))


def test_bounds_that_exclude_all_units_are_said_in_one_sentence():
    X = rows(60, 1)
    asked: Any = {"hidden": 1, "activation": "exp", "structure": structure.NonNegative(outputs=True)}
    assert oh.recover(X, np.exp(X[:, 0]), **asked).status == "exact"
    with pytest.raises(oh.starts.Refused, match="exclude all units") as refusal:
        oh.recover(X, -np.exp(X[:, 0]), **asked)
    assert "\n" not in str(refusal.value)
