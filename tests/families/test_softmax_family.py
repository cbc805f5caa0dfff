"""Classes: probabilities, information and its triangular root against JAX's own derivatives."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import one_sentence, simulated

from onehidden.families import Bernoulli, Softmax
from onehidden.machine import double
from onehidden.run import stream

EPS = np.finfo(float).eps
FIVE = Softmax(classes=5)


def rows(n=40, classes=5, spread=2.0):
    rng = stream(2, "softmax", n, classes)
    eta = spread * rng.standard_normal((n, classes - 1))
    return Softmax(classes=classes).target(np.arange(n) % classes), eta


def cost(eta, y):
    """-log of the probability of the label, the first class having eta = 0."""
    return jax.nn.logsumexp(jnp.concatenate([jnp.zeros(1), eta])) - y @ eta


def test_score_and_information_are_the_derivatives():
    y, eta = rows()
    with double():
        all_three = jax.jit(
            jax.vmap(lambda e, t: (cost(e, t), jax.grad(cost)(e, t), jax.hessian(cost)(e, t)))
        )
        value, gradient, hessian = map(np.asarray, all_three(jnp.asarray(eta), jnp.asarray(y)))
    np.testing.assert_allclose(FIVE.gradient(y, eta), gradient, atol=20 * EPS)
    np.testing.assert_allclose(FIVE.information(eta), hessian, atol=20 * EPS)
    np.testing.assert_allclose(FIVE.deviance(y, eta), 2 * value, rtol=1e-12, atol=1e-14)
    assert np.min(np.linalg.eigvalsh(hessian)) < 1e-3 < np.max(hessian)  # rows from sure to open


def test_residual_and_weight_make_plain_least_squares():
    y, eta = rows()
    residual, weight = FIVE.working(y, eta)
    np.testing.assert_allclose(weight, FIVE.information(eta), atol=20 * EPS)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", weight, residual), FIVE.gradient(y, eta), atol=1e-11)


def test_expected_score_is_zero_and_its_covariance_the_information():
    eta = rows(8)[1]
    p = FIVE.probabilities(eta)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=10 * EPS)
    score = np.stack([FIVE.gradient(FIVE.target(np.full(8, c)), eta) for c in range(5)])
    np.testing.assert_allclose(np.einsum("nc,cni->ni", p, score), 0, atol=10 * EPS)
    spread = np.einsum("nc,cni,cnj->nij", p, score, score)
    np.testing.assert_allclose(spread, FIVE.information(eta), atol=10 * EPS)


def test_nothing_is_lost_where_probabilities_underflow():
    corner = [
        [700, -700, 0, 3],
        [-700] * 4,
        [700] * 4,
        [0, 700, 700, -700],
        [-60, -50, 40, 39],
        [700, 699, 0, -1],
    ]
    eta = np.array(corner, float)
    with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for c in range(5):
            y = FIVE.target(np.full(len(eta), c))
            residual, weight = FIVE.working(y, eta)
            for part in (residual, weight, FIVE.deviance(y, eta)):
                assert np.all(np.isfinite(part))
            np.testing.assert_allclose(weight, FIVE.information(eta), rtol=1e-10, atol=1e-29)
    d = FIVE.deviance(FIVE.target(np.array([2])), eta[:1])[0]
    assert d == pytest.approx(2 * 1400, rel=1e-12)


def test_two_classes_are_the_bernoulli_family():
    y, eta = rows(30, 2)
    two, one = Softmax(classes=2), Bernoulli()
    for ours, theirs in zip(two.working(y, eta), one.working(y[:, 0], eta[:, 0]), strict=True):
        np.testing.assert_allclose(ours.ravel(), theirs, rtol=1e-12)
    np.testing.assert_allclose(two.deviance(y, eta), one.deviance(y[:, 0], eta[:, 0]), rtol=1e-12)
    assert two.start(y)[0] == pytest.approx(one.start(y[:, 0]), rel=1e-12)


def test_draws_follow_the_probabilities():
    eta, n = np.array([[0.3, -1.0, 0.0, 1.2]]), 50_000
    y = simulated(FIVE, np.repeat(eta, n, axis=0), stream(4, "draws"))
    p = FIVE.mean(eta)[0]
    assert np.all(np.abs(y.mean(axis=0) - p) < 4.5 * np.sqrt(p * (1 - p) / n))
    assert set(y.sum(axis=1)) == {0.0, 1.0}


def test_start_gives_the_shares_of_the_classes():
    y = FIVE.target(np.repeat(np.arange(5), [10, 20, 30, 40, 100]))
    p = FIVE.probabilities(np.atleast_2d(FIVE.start(y)))[0]
    np.testing.assert_allclose(p, np.array([10.5, 20.5, 30.5, 40.5, 100.5]) / 202.5, rtol=1e-12)
    assert np.all(np.isfinite(FIVE.start(np.zeros((6, 4)))))


def test_nonsense_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="two classes") as error:
        Softmax(classes=1)
    one_sentence(error)
