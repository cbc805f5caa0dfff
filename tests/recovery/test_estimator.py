"""OneHiddenRegressor as scikit-learn users expect it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

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


# --- scikit-learn's own examination


def _failures(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 45
    assert sum(r["status"] == "passed" for r in results) > 45
    # The one check that scikit-learn skips by itself asks for its array-API mode.
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
    return [(r["check_name"], str(r["exception"])) for r in results if r["status"] in ("failed", "xfail")]


def test_scikit_learn_finds_nothing_to_fault():
    # A linear unit ends every search at its first candidate: the contract is examined, not the search.
    assert _failures(oh.OneHiddenRegressor(n_hidden=1, activation="linear")) == []


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"n_hidden": 1, "start": "random"}, {"activation": "tanh"}])
def test_scikit_learn_finds_nothing_to_fault_with_full_searches(settings):
    assert _failures(oh.OneHiddenRegressor(**settings)) == []


# --- weights


def test_whole_weights_are_repetitions_and_zero_is_absence(sample):
    X, _, net = sample
    rng = np.random.default_rng(3)
    X, y = X[:200], net.predict(X[:200]) + 0.1 * X[:200, 0] ** 2
    weight = rng.integers(0, 4, len(X))
    order = rng.permutation(int(weight.sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted, repeated, ignored = (
            clone(oh.OneHiddenRegressor(n_hidden=1, start="random")).fit(*rows)
            for rows in (
                (X, y, weight),
                (np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order]),
                (X, y),
            )
        )
    np.testing.assert_array_equal(weighted.network_.weights, repeated.network_.weights)
    assert weighted.recovery_.n_samples == weight.sum()
    assert np.max(np.abs(weighted.predict(X) - ignored.predict(X))) > 1e-3


def test_bad_weights_get_one_sentence(sample):
    X, y, _ = sample
    model = oh.OneHiddenRegressor(n_hidden=2)
    with pytest.raises(ValueError, match="zero"):
        model.fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, y, sample_weight=-np.ones(len(y)))


# --- tables on which no layer can be recovered still give a model


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("few rows", "bring at least"),
        ("two rows", "bring at least"),
        ("constant target", "y is constant"),
        ("constant inputs", "no column"),
        ("units beyond the rows", "of the 30 units asked for"),
        ("constant column", "weight zero: 1"),
        ("repeated column", "linearly dependent"),
    ],
)
def test_a_usable_model_is_left_with_the_advice(sample, case, words):
    X, y, _ = sample
    hidden = 2
    if case == "few rows":
        X, y = X[:5], y[:5]
    elif case == "two rows":
        X, y = X[:2], y[:2]
    elif case == "constant target":
        y = np.full(len(y), 3.5)
    elif case == "constant inputs":
        X = np.ones_like(X)
    elif case == "units beyond the rows":
        X, y, hidden = X[:20], y[:20], 30
    elif case == "constant column":
        X = np.insert(X, 1, 7.0, axis=1)
    elif case == "repeated column":
        X = np.column_stack([X, X[:, 0] - X[:, 1]])
    model = oh.OneHiddenRegressor(n_hidden=hidden, start="random")
    with pytest.warns(ConvergenceWarning, match=words):
        model.fit(X, y)
    predicted = model.predict(X)
    assert np.all(np.isfinite(predicted))
    assert model.network_.n_inputs == X.shape[1]
    # Never worse than the mean of y, which is what no model at all would give.
    assert np.mean((predicted - y) ** 2) <= np.var(y) + 1e-20
    if case.endswith("column"):
        np.testing.assert_allclose(predicted, y, atol=1e-8)


# --- frames, pipelines, searches, files


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_carry_their_names(sample, frame):
    X, y, _ = sample
    table = frame({"left": X[:, 0], "right": X[:, 1], "up": X[:, 2]})
    model = oh.OneHiddenRegressor(n_hidden=2, start="random").fit(table, y)
    assert list(model.feature_names_in_) == ["left", "right", "up"]
    assert model.recovery_.feature_names == ("left", "right", "up")
    np.testing.assert_allclose(model.predict(table), y, atol=1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"right": X[:, 1], "left": X[:, 0], "up": X[:, 2]}))


def test_a_grid_search_over_the_score_parameter_and_the_width(sample):
    X, y, _ = sample
    pipeline = make_pipeline(StandardScaler(), oh.OneHiddenRegressor(start="random")).set_output(
        transform="pandas"
    )
    prefix = "onehiddenregressor__"
    grid = [{prefix + "n_hidden": [1]}, {prefix + "n_hidden": [2], prefix + "score": ["auto", "gaussian"]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = GridSearchCV(pipeline, grid, cv=2, refit=False).fit(X, y)
    assert search.best_params_[prefix + "n_hidden"] == 2
    assert search.best_score_ > 1 - 1e-9


def test_a_fitted_model_survives_pickling(sample):
    X, y, _ = sample
    model = oh.OneHiddenRegressor(n_hidden=2, start="random").fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert copy.network_ == model.network_
    assert copy.get_params() == model.get_params()


def test_groups_and_offsets_reach_the_recovery_whatever_order_the_rows_are_sorted_in():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(25), 8)
    X = rng.normal(size=(200, 2))
    X[:, 0] = rng.normal(size=25)[groups]
    net = oh.OneHiddenNet([[0.8, 0.6]], [2.0], [0.3])
    offset = rng.normal(size=200)
    y = net.predict(X) + offset + 0.4 * rng.normal(size=25)[groups] + 0.4 * rng.normal(size=200)
    y = np.round(y, 1)  # numbers that repeat are sorted
    model = oh.OneHiddenRegressor(1, random_state=0).fit(X, y, groups=groups, offset=offset)
    r = oh.recover(X, y, 1, groups=groups, offset=offset)
    share = [next(c.value for c in one.checks if c.name == "groups") for one in (model.recovery_, r)]
    assert share[0] == pytest.approx(share[1], abs=1e-3)
    assert share[0] > 0.2
    lower, upper = model.predict_interval(X, offset=offset)
    middle = model.predict(X, offset)
    assert np.all((lower < middle) & (middle < upper))
    assert np.mean((lower < net.predict(X) + offset) & (net.predict(X) + offset < upper)) > 0.6
    with pytest.raises(ValueError, match="groups must have one entry for each of the 200 rows"):
        oh.OneHiddenRegressor(1).fit(X, y, groups=groups[:5])
