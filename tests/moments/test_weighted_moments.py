"""Weights say how much each row counts: whole ones are repeated rows, zeros are rows that are not there."""

from __future__ import annotations

import numpy as np
import pytest
from plain_scores import LogisticProduct

from onehidden import laws
from onehidden.data import open as open_data
from onehidden_papers.moments import MomentPass, score_moments
from onehidden_papers.moments.passes import ControlPass
from onehidden_papers.starts.localised import component_moments

D, K, N = 5, 3, 600
LAWS = [laws.standard_normal(D), LogisticProduct(D)]


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = random.standard_normal((N, D))
    y = np.maximum(X @ random.standard_normal(D), 0) ** 2 + X[:, 0]
    V = np.linalg.qr(random.standard_normal((D, K)))[0]
    return X, y, V, random.integers(0, 4, N)


def rounding(*values):
    """Sums of N products of a few factors: the errors of two orders of summation stay below this."""
    return 64 * N * np.finfo(float).eps * max(float(np.abs(v).max()) for v in values)


def assert_same(weighted, repeated, ignored):
    tolerance = rounding(weighted, repeated)
    assert np.abs(weighted - repeated).max() <= tolerance
    assert np.abs(ignored - repeated).max() > 1e6 * tolerance  # what must fail: the weights not looked at


@pytest.mark.parametrize("law", LAWS, ids=["gaussian", "logistic"])
def test_whole_weights_are_repeated_rows_in_a_subspace(data, law):
    X, y, V, w = data
    XX, yy = np.repeat(X, w, axis=0), np.repeat(y, w)
    weighted = score_moments(X, y, law, control_degree=-1, subspace=V, weight=w * 7.0)
    repeated, ignored = (
        score_moments(*rows, law, control_degree=-1, subspace=V) for rows in ((XX, yy), (X, y))
    )
    for m in weighted.orders:
        assert_same(weighted[m], repeated[m], ignored[m])


@pytest.mark.parametrize("control", [-1, 1, 2])
def test_whole_weights_are_repeated_rows_in_score_moments(data, control):
    X, y, _, w = data
    law = laws.Gaussian(np.zeros(D), np.eye(D) + 0.3)
    weighted = score_moments(X, y, law, control_degree=control, weight=w)
    repeated = score_moments(np.repeat(X, w, axis=0), np.repeat(y, w), law, control_degree=control)
    ignored = score_moments(X, y, law, control_degree=control)
    for m in weighted.orders:
        assert_same(weighted[m], repeated[m], ignored[m])


def test_whole_weights_are_repeated_rows_in_every_component(data):
    X, y, _, w = data
    mixture = laws.GaussianMixture([0.5, 0.5], [[1.0] * D, [-1.0] * D], np.eye(D))
    weighted = component_moments(X, y, mixture, (2, 3), weight=w.astype(float))
    repeated = component_moments(np.repeat(X, w, axis=0), np.repeat(y, w), mixture, (2, 3))
    ignored = component_moments(X, y, mixture, (2, 3))
    assert len(weighted) == 2
    for c, one in weighted.items():
        for m in one.orders:
            assert_same(one[m], repeated[c][m], ignored[c][m])


@pytest.mark.parametrize("law", LAWS, ids=["gaussian", "logistic"])
def test_rows_of_weight_zero_are_not_there(data, law):
    X, y, V, w = data
    kept = w > 0
    weight = kept.astype(float)
    weighted = score_moments(X, y, law, (2, 4), -1, V, weight=weight)
    fewer, ignored = (score_moments(*rows, law, (2, 4), -1, V) for rows in ((X[kept], y[kept]), (X, y)))
    for m in (2, 4):
        np.testing.assert_allclose(weighted[m], fewer[m], atol=rounding(fewer[m]))
        np.testing.assert_allclose(weighted.standard_error(m), fewer.standard_error(m), rtol=1e-9)
        assert weighted.signal(m) == pytest.approx(fewer.signal(m), rel=1e-9)
        assert not np.allclose(ignored.standard_error(m), fewer.standard_error(m), rtol=1e-2)


def test_standard_errors_of_weighted_moments_are_the_spread_over_samples():
    law, runs, n = laws.Gaussian(np.zeros(2), np.eye(2)), 300, 800
    random = np.random.default_rng(1)
    found, errors, plain = [], [], []
    for _ in range(runs):
        X = random.standard_normal((n, 2))
        y = np.maximum(X[:, 0], 0) + random.standard_normal(n)
        weight = np.where(random.uniform(size=n) < 0.2, 5.0, 0.25)
        t = score_moments(X, y, law, orders=(2,), control_degree=1, weight=weight)
        found.append(t[2])
        errors.append(t.standard_error(2))
        plain.append(score_moments(X, y, law, orders=(2,), control_degree=1).standard_error(2))
    spread = np.std(found, axis=0)
    # A standard deviation of 300 runs has a relative error of 1/√600; four of them, and 5 % for the control,
    # which is fitted to the same rows.
    margin = 4 / np.sqrt(2 * runs) + 0.05
    assert np.abs(np.mean(errors, axis=0) / spread - 1).max() < margin
    assert np.abs(np.mean(plain, axis=0) / spread - 1).min() > 2 * margin  # errors that ignore the weights


def test_passes_take_weights_batch_by_batch_and_merge(data):
    X, y, _, w = data
    law, weight = laws.Gaussian(np.zeros(D), np.eye(D)), w.astype(float)
    halves = slice(0, 250), slice(250, None)
    batches = [(X[h], y[h], weight[h]) for h in halves]
    one, two = (ControlPass(law, 2).update(b) for b in batches)
    control = one.merge(two).result()
    first, second = (MomentPass(law, (2, 3), control).update(b) for b in batches)
    whole = score_moments(X, y, law, orders=(2, 3), weight=weight)
    merged = first.merge(second).result()
    for m in (2, 3):
        np.testing.assert_allclose(merged[m], whole[m], atol=rounding(whole[m]))
        np.testing.assert_allclose(merged.standard_error(m), whole.standard_error(m), rtol=1e-9)


@pytest.mark.parametrize(
    ("weight", "named"),
    [(np.ones(3), "one number for each"), (-np.ones(N), "not negative"), (np.full(N, np.nan), "finite"),
     (np.zeros(N), "above zero")],
)  # fmt: skip
def test_bad_weights_are_refused_with_a_sentence(data, weight, named):
    X, y, _, _ = data
    with pytest.raises(ValueError, match=named):
        score_moments(X, y, laws.Gaussian(np.zeros(D), np.eye(D)), weight=weight)


def test_a_source_brings_its_own_weights(data):
    X, y, _, w = data
    columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y, "w": w + 1.0}
    source = open_data(columns, target="y", weight="w", stream=True)
    law = laws.Gaussian(np.zeros(D), np.eye(D))
    np.testing.assert_allclose(
        score_moments(source, None, law, orders=(2,))[2],
        score_moments(X, y, law, orders=(2,), weight=w + 1.0)[2],
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="holds its target and weights"):
        score_moments(source, None, law, weight=w)
