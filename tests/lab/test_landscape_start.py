"""Landscape starts from exact moments, and output layers for known directions."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.laws import Gaussian
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden_papers.landscape import landscape_start
from onehidden_papers.objectives.sources import RankOne
from onehidden_papers.output_layer import (
    general_outputs,
    least_squares_outputs,
    orthonormal_outputs,
    score_outputs,
)


def exact_tensors(teacher):
    source = RankOne.of(teacher, (2, 4))
    U = np.asarray(source.directions)
    c2, c4 = (np.asarray(source.coefficients[m]) for m in (2, 4))
    return {2: np.einsum("i,ia,ib->ab", c2, U, U), 4: np.einsum("i,ia,ib,ic,id->abcd", c4, U, U, U, U)}


def skew(k, d, seed=0):
    rows = np.random.default_rng(seed).standard_normal((k, d)) / np.sqrt(d)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize(("k", "r", "sign"), [pytest.param(5, 5, 1, marks=pytest.mark.slow), (3, 5, -1)])
def test_landscape_start_finds_skew_rows_from_exact_moments(k, r, sign):
    teacher = OneHiddenNet(skew(k, r, 2), sign * np.linspace(1, 3, k))
    out = landscape_start(exact_tensors(teacher), k, starts=4)
    assert match(out.directions, teacher.weights).max_error < 1e-6
    assert match(skew(k, r, 11), teacher.weights).max_error > 0.1
    assert out.agreement == 1.0


@pytest.mark.slow
def test_landscape_start_first_order_route_agrees():
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((13, 13)))[0]
    teacher = OneHiddenNet(rows, np.ones(13))
    out = landscape_start(exact_tensors(teacher), 13, orthonormal=True, starts=2)
    assert match(out.directions, rows).honest_error < 1e-4


def test_landscape_start_refuses_what_it_cannot_do():
    teacher = OneHiddenNet(skew(3, 3), [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="indefinite"):
        landscape_start(exact_tensors(teacher), 3)
    with pytest.raises(ValueError, match="fewer than 3"):
        landscape_start(exact_tensors(OneHiddenNet(skew(2, 3), [1.0, 1.0])), 3)
    with pytest.raises(ValueError, match="between 1 and 3"):
        landscape_start(exact_tensors(teacher), 4)


def test_output_layer_algorithms_recover_outputs_and_orientations():
    rng = np.random.default_rng(0)
    n, d = 200_000, 4
    X = rng.standard_normal((n, d))
    turn = np.array([1, -1, 1, -1.0])
    w = np.array([1.0, 2.0, 1.5, 0.5])
    for rows, methods in (
        (np.linalg.qr(rng.standard_normal((d, d)))[0], [orthonormal_outputs, general_outputs]),
        (skew(4, 4), [general_outputs]),
    ):
        teacher = OneHiddenNet(rows, w)
        y = teacher.predict(X)
        error = 4 * 2 * np.sqrt(np.mean((y[:, None] * X) ** 2) * 4 / n) / np.linalg.svd(rows)[1].min()
        for method in methods:
            layer = method(rows * turn[:, None], X, y)
            np.testing.assert_allclose(layer.output, w, atol=error)
            np.testing.assert_allclose(layer.weights, rows, atol=1e-12)
        layer = score_outputs(rows * turn[:, None], X, y, Gaussian(np.zeros(d), np.eye(d)))
        np.testing.assert_allclose(layer.output, w, atol=error)
        assert error < 0.45  # all outputs equal to their mean must fail
    with pytest.raises(ValueError, match="expected B"):
        general_outputs(rows, X[:, :3], y)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "softplus", "gelu", "tanh", "abs"])
def test_least_squares_outputs_are_exact_for_any_orientation_and_sign(activation):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 4)) + 0.3
    teacher = OneHiddenNet(skew(4, 4), [1.0, -2.0, 1.5, -0.5], activation=activation)
    y = teacher.predict(X)
    turned = teacher.weights * np.array([1, -1, -1, 1.0])[:, None]
    layer = least_squares_outputs(turned, X, y, activation)
    found = layer.network(activation)
    np.testing.assert_allclose(found.predict(X), y, atol=1e-9)
    assert np.abs(OneHiddenNet(turned, teacher.output, activation=activation).predict(X) - y).max() > (
        0.1 if activation != "abs" else -1
    )
