"""OneHiddenRegressor as scikit-learn users expect it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onehidden as oh


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    net = oh.OneHiddenNet(rng.standard_normal((2, 3)), [1.0, -1.0], [0.2, -0.4], 0.5)
    X = rng.standard_normal((600, 3))
    return X, net.predict(X), net


def test_fit_recovers_the_units_and_predicts_exactly(sample):
    X, y, net = sample
    model = oh.OneHiddenRegressor(n_hidden=2).fit(X, y)
    assert model.recovery_.status == "exact"
    assert oh.match(model.network_, net).max_error < 1e-8
    np.testing.assert_allclose(model.predict(X), y, atol=1e-10)
    assert model.score(X, y) == pytest.approx(1.0, abs=1e-12)
    assert model.score(X, -y) < 0.5


def test_score_is_a_parameter_and_a_method():
    model = oh.OneHiddenRegressor(n_hidden=2, score="gaussian")
    assert model.get_params()["score"] == "gaussian"
    copy = clone(model).set_params(score="auto")
    assert copy.get_params()["score"] == "auto"
    assert callable(copy.score)
    assert "score" in repr(model)


def test_works_in_pipelines_and_cross_validation(sample):
    X, y, _ = sample
    pipeline = make_pipeline(StandardScaler(), oh.OneHiddenRegressor(n_hidden=2))
    scores = cross_val_score(pipeline, X, y, cv=3)
    assert scores.min() > 1 - 1e-9


def test_a_doubtful_fit_warns_and_still_predicts(sample):
    X, _, _ = sample
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    with pytest.warns(ConvergenceWarning, match="doubtful|identifiable"):
        model = oh.OneHiddenRegressor(n_hidden=1, start="random").fit(X, y)
    assert np.all(np.isfinite(model.predict(X)))
