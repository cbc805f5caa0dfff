"""Noise that rows of a group share against matrices of all rows, and the recovery that estimates it."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import minimize_scalar

import onehidden as oh
from onehidden.activations import get
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.shared_noise import SharedNoise, SharedNoiseLeastSquares, likely_ratio
from onehidden.run import stream

TRUTH = oh.OneHiddenNet([[1.2]], [3.0], [-0.5], 1.0, "tanh")


def rows(seed, weighted, n=40, count=6):
    rng = stream(seed, "shared noise")
    groups = rng.permutation(np.arange(n) % count)
    X = rng.standard_normal((n, 1))
    y = TRUTH.predict(X) + 0.7 * rng.standard_normal(count)[groups] + 0.3 * rng.standard_normal(n)
    return X, y, groups, rng.uniform(0.5, 1.5, n) if weighted else None


def covariance(groups, root, ratio):
    """V of all rows."""
    return np.eye(len(groups)) + ratio * np.outer(root, root) * (groups[:, None] == groups)


@pytest.mark.parametrize("weighted", [False, True])
def test_whitened_normal_equations_are_those_of_whole_matrices(weighted):
    X, y, groups, weight = rows(1, weighted)
    form = Parametrisation(get("tanh"), 1, 1, True, True)
    theta = np.array([1.0, 2.0, 0.1, 0.5])
    root = np.ones(40) if weight is None else np.sqrt(weight)
    plain = InMemoryLeastSquares(form, X, y, weight)
    fit = SharedNoiseLeastSquares(form, X, y, weight, SharedNoise(groups, root, 1.7))
    J, r, V = plain.jacobian(theta, slice(0, 40)), plain.residuals(theta), covariance(groups, root, 1.7)
    half = np.linalg.inv(sqrtm(V).real)
    assert fit.residuals(theta) == pytest.approx(half @ r, abs=1e-10)
    assert fit.jacobian(theta, np.array([3, 17])) == pytest.approx((half @ J)[[3, 17]], abs=1e-10)
    squares, gradient, loss = fit.normal_equations(theta)
    assert squares == pytest.approx(J.T @ np.linalg.solve(V, J), rel=1e-10)
    assert gradient == pytest.approx(J.T @ np.linalg.solve(V, r), rel=1e-10)
    assert loss == pytest.approx(fit.loss(theta)) == pytest.approx(r @ np.linalg.solve(V, r))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_ratio_of_variances_has_the_largest_restricted_likelihood(weighted):
    X, y, groups, weight = rows(2, weighted)
    form = Parametrisation(get("tanh"), 1, 1, True, True)
    theta, root = np.array([1.2, 3.0, -0.5, 1.0]), np.ones(40) if weight is None else np.sqrt(weight)
    fit = InMemoryLeastSquares(form, X, y, weight)
    J, r = fit.jacobian(theta, slice(0, 40)), fit.residuals(theta)

    def twice_negative(log_ratio):
        inverse = np.linalg.inv(covariance(groups, root, np.exp(log_ratio)))
        step = np.linalg.solve(J.T @ inverse @ J, J.T @ inverse @ r)
        left = r - J @ step
        determinants = -np.linalg.slogdet(inverse)[1] + np.linalg.slogdet(J.T @ inverse @ J)[1]
        return 36 * np.log(left @ inverse @ left) + determinants

    best = np.exp(minimize_scalar(twice_negative, bounds=(-5, 8), method="bounded").x)
    assert likely_ratio(fit, theta, groups, weight) == pytest.approx(best, rel=1e-3)
    # Groups that share nothing: rows of one group have opposite noise.
    alike = np.sort(groups)
    y = TRUTH.predict(X) + np.where(np.arange(40) % 2, 1.0, -1.0)
    assert likely_ratio(InMemoryLeastSquares(form, X, y), theta, alike, None) == 0.0


def test_a_random_intercept_is_fitted_at_its_likelihood():
    rng = stream(3, "shared noise")
    groups = np.repeat(np.arange(25), 8)
    X = rng.standard_normal((200, 1))
    y = TRUTH.predict(X) + 0.8 * rng.standard_normal(25)[groups] + 0.4 * rng.standard_normal(200)
    at = {"hidden": 1, "activation": "tanh", "groups": groups}
    found = oh.recover(X, y, **at, random_intercept=True, errors="classical")
    own = found.noise_variance - found.group_variance
    assert found.converged
    assert own == pytest.approx(0.16, rel=0.25)
    assert found.group_variance == pytest.approx(0.64, rel=0.6)
    # Generalised least squares with the variances reported: the estimate is stationary, the errors are its.
    V = covariance(groups, np.ones(200), found.group_variance / own)
    net = found.network
    t = np.tanh(net.weights[0, 0] * X[:, 0] + net.bias[0])
    slope = net.output[0] * (1 - t**2)
    J = np.column_stack([slope * X[:, 0], t, slope, np.ones(200)])
    C = own * np.linalg.inv(J.T @ np.linalg.solve(V, J))
    step = C @ J.T @ np.linalg.solve(V, y - net.predict(X)) / own
    errors = found.standard_errors
    mine = np.array([errors.weights[0, 0], errors.output[0], errors.bias[0], errors.intercept])
    assert np.abs(step) / mine == pytest.approx(np.zeros(4), abs=1e-4)
    assert mine == pytest.approx(np.sqrt(np.diag(C)), rel=1e-5)
    # Within groups the noise is small: errors of the slope are half of those of independent rows.
    alone = oh.recover(X, y, **at)
    robust = oh.recover(X, y, **at, random_intercept=True)
    assert robust.standard_errors.weights[0, 0] < 0.8 * alone.standard_errors.weights[0, 0]
    assert robust.error_freedom is not None
    assert np.isnan(alone.group_variance)
    assert found.loss == pytest.approx(np.mean((y - net.predict(X)) ** 2))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "give groups"),
        ({"groups": np.arange(60) % 6, "family": "poisson"}, "normal noise"),
    ],
)
def test_what_has_no_random_intercept_is_refused_in_one_sentence(more, words):
    rng = stream(4, "shared noise")
    with pytest.raises(ValueError, match=words):
        oh.recover(rng.standard_normal((60, 1)), rng.poisson(3.0, 60), 1, random_intercept=True, **more)
