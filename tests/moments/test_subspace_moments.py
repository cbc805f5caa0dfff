"""Moments inside a subspace against dense tensors, and the exact part of the control variate."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.polynomial import hermite_e
from plain_scores import GaussianMixture, LogisticProduct, from_derivatives

from onehidden.moments.in_subspace import (
    Design,
    Polynomial,
    cross,
    features,
    indices,
    largest_degree,
    moment,
)


class PlainGaussian:
    """N(0, I) of five inputs through the general interface."""

    n_inputs = 5

    def score(self, X, order, subspace=None):
        B = np.eye(X.shape[1]) if subspace is None else subspace
        z, r = X @ B, B.shape[1]
        metric = np.broadcast_to(B.T @ B, (len(X), r, r))
        G = [-z, -metric, np.zeros((len(X), r, r, r)), np.zeros((len(X), r, r, r, r))]
        return from_derivatives(G, order)


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((400, 5))
    y = np.maximum(X @ random.standard_normal(5), 0) ** 2 + X[:, 0]
    V = np.linalg.qr(random.standard_normal((5, 3)))[0]
    return X, y, V


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_hermite_formulas_match_the_general_score(data, order):
    X, y, V = data
    ours, general = moment(X, y, V, order), moment(X, y, V, order, PlainGaussian())
    assert np.allclose(ours.tensor, general.tensor, atol=1e-10)
    for p in permutations(range(order)):
        assert np.allclose(ours.tensor, ours.tensor.transpose(p), atol=1e-10)
    if order == 4:  # the misprint: every pairing of I ⊗ I counted twice
        eye = np.eye(3)
        pairs = sum(np.einsum(e, eye, eye) for e in ("ab,cd->abcd", "ac,bd->abcd", "ad,bc->abcd"))
        assert not np.allclose(ours.tensor + np.mean(y) * pairs, general.tensor, atol=1e-2)


def test_moments_are_contractions_of_the_full_tensor(data):
    X, y, V = data
    dense = np.einsum("n,nabcd->abcd", y, PlainGaussian().score(X, 4)) / len(y)
    inside = np.einsum("abcd,ai,bj,ck,dl->ijkl", dense, V, V, V, V)
    assert np.allclose(moment(X, y, V, 4).tensor, inside, atol=1e-10)


@pytest.mark.parametrize("order", [2, 3])
def test_cross_moment_leaves_one_index_free(data, order):
    X, y, V = data
    dense = np.tensordot(y, PlainGaussian().score(X, order), axes=1) / len(y)
    expected = dense @ V if order == 2 else np.einsum("abc,bj,ck->ajk", dense, V, V).reshape(5, 9)
    assert np.allclose(cross(X, y, V, order), expected, atol=1e-10)
    assert np.allclose(cross(X, y, V, order, PlainGaussian()), expected, atol=1e-10)
    wrong = cross(X, y - np.mean(y), V, order) if order == 2 else cross(X, -y, V, order)
    assert not np.allclose(wrong, expected, atol=1e-3)


@pytest.mark.parametrize("law", [LogisticProduct(3), GaussianMixture(np.array([0.8, -0.5, 0.3]))])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_moment_of_a_polynomial_is_its_expected_derivative(law, order):
    # E[q S_m] = E[∇^m q] within four standard errors, for a law that is not Gaussian
    random = np.random.default_rng(1)
    X = law.sample(60_000, random)
    names = indices(3, 3)
    q = Polynomial(3, 3, random.standard_normal(len(names)) / 5, features(X, 3).mean(axis=0))
    values = features(X, 3) @ q.coefficients
    seen = moment(X, values, np.eye(3), order, law)
    gap = np.abs(seen.tensor - q.expected_derivative(order)) / np.sqrt(seen.variance)
    assert np.max(gap) < 4.5
    assert np.max(np.abs(seen.tensor) / np.sqrt(seen.variance)) > 10  # zero would fail


def test_derivatives_of_hermite_products_match_numpy():
    random = np.random.default_rng(2)
    z = random.standard_normal((50, 2))
    names = indices(2, 4)
    c = random.standard_normal(len(names))
    q = Polynomial(2, 4, c, features(z, 4).mean(axis=0))
    table = np.zeros((5, 5))
    for value, name in zip(c, names, strict=True):
        table[name.count(0), name.count(1)] = value

    def derivative(place):
        out = table
        for axis in (0, 1):
            out = hermite_e.hermeder(out, place.count(axis), axis=axis)
        return hermite_e.hermeval2d(z[:, 0], z[:, 1], out)

    assert np.allclose(features(z, 4) @ c, derivative(()), atol=1e-10)
    for order in (1, 2, 3, 4):
        ours = q.expected_derivative(order)
        for place in np.ndindex(ours.shape):
            assert ours[place] == pytest.approx(np.mean(derivative(place)), abs=1e-10)
    gradient = np.column_stack([derivative((0,)), derivative((1,))])
    assert np.allclose(features(z, 4) @ q.gradient_coefficients(), gradient, atol=1e-10)
    assert not np.allclose(features(z, 4) @ q.gradient_coefficients()[:, ::-1], gradient, atol=1e-2)


def test_least_squares_recovers_the_polynomial():
    random = np.random.default_rng(3)
    z = random.standard_normal((500, 3))
    c = random.standard_normal(len(indices(3, 3)))
    design = Design(z, 3, gaussian=True)
    assert np.allclose(design.fit(features(z, 3) @ c).coefficients, c, atol=1e-7)
    assert largest_degree(5, 125) == 4
    assert largest_degree(5, 124) == 3


def test_signal_is_calibrated_where_there_is_none():
    values = []
    for seed in range(60):
        random = np.random.default_rng(seed)
        X, y = random.standard_normal((500, 3)), random.standard_normal(500)
        values.append(moment(X, y, np.eye(3), 2).signal)
    # z-values of a null: mean 0 and deviation about 1 (a weighted chi-square, so a wide margin)
    assert abs(np.mean(values)) < 4 / np.sqrt(60)
    assert 0.6 < np.std(values) < 1.5
    X = np.random.default_rng(0).standard_normal((500, 3))
    assert moment(X, np.abs(X[:, 0]) - np.mean(np.abs(X[:, 0])), np.eye(3), 2).signal > 10
