"""Structured estimators, selection and the baseline that fails."""

from __future__ import annotations

import numpy as np
import pytest
from plain_scores import log_derivatives

from onehidden import laws, scores

MIX = laws.GaussianMixture([0.5, 0.5], [[1.5, 1.5], [-1.5, -1.5]], np.eye(2))
ROTATION = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
ROTATED = laws.Affine(laws.Logistic(3), ROTATION)


def _error(found, law, Q, order):
    truth = law.score(Q, order).reshape(len(Q), -1)
    return np.median(np.linalg.norm(found.score(Q, order).reshape(len(Q), -1) - truth, axis=1)) / np.median(
        np.linalg.norm(truth, axis=1)
    )


def test_mixture_score_finds_components_and_beats_the_fitted_gaussian():
    X, Q = MIX.sample(2000, 0), MIX.sample(200, 1)
    s = scores.MixtureScore().fit(X)
    assert s.components_ == 2
    assert _error(s, MIX, Q, 4) < 0.3  # the zero answer has error 1
    assert _error(scores.GaussianScore().fit(X), MIX, Q, 4) > 0.6


def test_independent_score_beats_kernel_density_at_order_four():
    X, Q = ROTATED.sample(3000, 0), ROTATED.sample(20, 1)
    s = scores.IndependentScore().fit(X)
    ours = _error(s, ROTATED, Q, 4)
    assert ours < 0.8
    kernel = scores.KernelDensityScore().fit(X)
    assert _error(kernel, ROTATED, Q, 4) > 2 * ours
    u = ROTATION[:, 0]
    dense = np.einsum("nabcd,a,b,c,d->n", s.score(Q, 4), u, u, u, u)
    assert np.allclose(s.contract(Q, u, u, u, u), dense, rtol=1e-10, atol=1e-10)


def test_kernel_density_scores_are_those_of_a_mixture_of_samples():
    X = MIX.sample(40, 0)
    s = scores.KernelDensityScore(bandwidth=0.5).fit(X)
    cov = 0.25 * np.cov(X.T)
    exact = laws.GaussianMixture(np.ones(len(X)), X, cov)
    Q = MIX.sample(5, 1)
    for m in (1, 2, 3, 4):
        assert np.allclose(s.score(Q, m), exact.score(Q, m), rtol=1e-8, atol=1e-8)
    assert not np.allclose(s.score(Q, 1), -exact.score(Q, 1), rtol=1e-2)


@pytest.mark.parametrize(
    ("law", "expected"), [(laws.Gaussian(np.zeros(2), np.eye(2)), "gaussian"), (MIX, "mixture")]
)
def test_selection_takes_the_simplest_adequate_estimator_and_says_why(law, expected):
    X = law.sample(1500, 0)
    s = scores.select(X, candidates=["gaussian", "mixture", "local likelihood"])
    assert type(s) is {"gaussian": scores.GaussianScore, "mixture": scores.MixtureScore}[expected]
    assert len(s.selection) == 3
    assert s.reason
    assert s.score(X[:3], 2).shape == (3, 2, 2)


def test_rounded_columns_do_not_lure_selection_onto_spikes():
    X = np.round(laws.Gaussian(np.zeros(2), np.eye(2)).sample(600, 0), 1)
    X[:, 1] += 0.01 * np.random.default_rng(0).standard_normal(600)
    s = scores.select(X, candidates=["gaussian", "mixture"])
    assert min(s.selection.values()) > -2.0  # the truth is -1; a spike on the ties has no bound


def test_score_matching_prefers_the_true_law():
    X = MIX.sample(4000, 0)
    true = scores.score_matching(MIX, X)
    wrong = scores.score_matching(laws.Gaussian(MIX.mean, MIX.cov), X)
    gap = wrong - true
    assert gap.mean() > 3 * gap.std() / np.sqrt(len(X))
    # at the truth the loss is minus half the Fisher information
    fisher = 0.5 * np.sum(MIX.score(X, 1) ** 2, axis=1)
    total = true + fisher
    assert abs(total.mean()) < 4 * total.std() / np.sqrt(len(X))


def test_laplacian_is_the_divergence_of_the_estimated_field():
    s = scores.LocalLikelihood(bandwidth=0.9).fit(MIX.sample(500, 0))
    Q, step = MIX.sample(6, 1), 1e-5
    expected = sum(
        (-s.score(Q + step * e, 1) + s.score(Q - step * e, 1))[:, j] / (2 * step)
        for j, e in enumerate(np.eye(2))
    )
    assert np.allclose(s.laplacian(Q), expected, rtol=1e-4, atol=1e-4)
    plugged = np.trace(log_derivatives(s, Q, 2, np.eye(2))[1], axis1=1, axis2=2)
    assert not np.allclose(plugged, expected, rtol=1e-4, atol=1e-4)


def test_bad_choices_get_one_sentence():
    X = MIX.sample(100, 0)
    for build, sentence in [
        (lambda: scores.select(X, candidates=["magic"]), "candidates"),
        (lambda: scores.MixtureScore(components=0), "components"),
        (lambda: scores.MixtureScore(covariance="round"), "covariance"),
        (lambda: scores.KernelDensityScore(bandwidth=-1.0), "positive"),
        (lambda: scores.select(X[:4]), "rows"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            build()
