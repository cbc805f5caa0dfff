"""recover() for several outputs, families and a linear part: the units come back, with errors and bands."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers import EXACT, simulated, worst_error
from sklearn.exceptions import ConvergenceWarning

import onehidden as oh
from onehidden.recovery.target import read_target
from onehidden.run import stream

D, K = 4, 2


def planted(q: int | None = None, activation: str = "relu", linear: bool = False, size: float = 1.0):
    rng = stream(0, "test", "kinds of y", "teacher")
    A = rng.standard_normal((K, D))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    tail = () if q is None else (q,)
    w = size * np.where(rng.standard_normal((K, *tail)) > 0, 1.0, -1.0) * rng.uniform(0.7, 1.3, (K, *tail))
    v = 0.5 * rng.standard_normal((D, *tail)) if linear else None
    return oh.OneHiddenNet(A, w, [0.2, -0.3], 0.1 * rng.standard_normal(tail), activation, v)


def inputs(n: int, seed: int = 1) -> np.ndarray:
    return stream(seed, "test", "kinds of y", "inputs").standard_normal((n, D))


@pytest.mark.parametrize(("activation", "linear"), [("relu", False), ("tanh", False), ("relu", True)])
def test_three_outputs_are_recovered_exactly(activation, linear):
    net, X = planted(3, activation, linear), inputs(40)
    r = oh.recover(X, net.predict(X), K, activation=activation, linear=linear)
    assert r.status == "exact"
    m = oh.match(r.network, net)
    assert max(worst_error(r.network, net), m.linear_error) < EXACT
    assert r.predict(X).shape == (40, 3)


def test_a_linear_part_is_recovered_and_the_side_of_a_unit_is_a_convention():
    net, X = planted(linear=True), inputs(120)
    r = oh.recover(X, net.predict(X), K, linear=True)
    assert r.status == "exact"
    assert oh.match(r.network, net).linear_error < EXACT
    turned = net.canonical()
    assert np.all(turned.weights[np.arange(K), np.argmax(np.abs(turned.weights), axis=1)] > 0)
    np.testing.assert_allclose(turned.predict(X), net.predict(X), atol=1e-12)
    # Without the linear part two units cannot say it.
    assert oh.recover(X, net.predict(X), K, start="random", max_seconds=5).status != "exact"


def test_noise_of_several_outputs_is_told_with_its_covariance_and_bands_hold_new_rows():
    net, X = planted(2), inputs(800)
    mixing = np.array([[0.3, 0.0], [0.2, 0.1]])
    noise = stream(2, "test", "kinds of y").standard_normal((1600, 2)) @ mixing.T
    y = net.predict(X) + noise[:800]
    r = oh.recover(X, y, K)
    assert r.status == "consistent"
    np.testing.assert_allclose(r.noise_covariance, mixing @ mixing.T, atol=0.02)
    assert oh.match(r.network, net).max_error < 0.1
    fresh = inputs(800, seed=5)
    low, high = r.predict_interval(fresh, of="observation")
    new = net.predict(fresh) + noise[800:]
    share = np.mean((low <= new) & (new <= high))
    assert 0.92 < share < 0.98  # .95 and four standard errors of 800 rows
    assert r.units[0].output.shape == (2,)


@pytest.mark.parametrize(
    "name",
    [
        "poisson",
        pytest.param("bernoulli", marks=pytest.mark.slow),
        pytest.param("gamma", marks=pytest.mark.slow),
    ],
)
def test_units_behind_a_family_are_recovered_with_errors_of_the_right_size(name, tmp_path):
    n = {"poisson": 1500, "bernoulli": 4000, "gamma": 1000}[name]
    net, X = planted(size=2.0 if name == "bernoulli" else 1.0), inputs(n)
    family = oh.families.get(name)
    y = simulated(family, net.predict(X), stream(8, "test", "kinds of y"), 0.25 if name == "gamma" else 1.0)
    r = oh.recover(X, y, K, family=name, max_seconds=60)
    assert r.status == "consistent"
    order = oh.match(r.network, net).permutation
    z = (r.network.weights[order] - net.weights) / r.standard_errors.weights[order]
    assert 0.3 < np.sqrt(np.mean(z**2)) < 2.2  # 8 numbers, 6 of them free: between the .1 % quantiles
    assert r.noise_variance == pytest.approx(0.25 if name == "gamma" else 1.0, rel=0.3)
    assert 0 < r.linear_r_squared < r.r_squared < 1
    low, high = r.predict_interval(X)
    mean = r.predict(X)
    assert np.all((low < mean) & (mean < high))
    assert np.all(mean > 0)
    r.save(tmp_path / "run")
    again = oh.load_recovery(tmp_path / "run")
    np.testing.assert_array_equal(again.predict(X), mean)
    np.testing.assert_array_equal(again.predict_interval(X)[0], low)


def test_an_offset_is_an_exposure():
    net, X = planted(), inputs(600)
    rng = stream(8, "test", "kinds of y")
    exposure = np.exp(0.8 * X[:, 3]) * rng.uniform(0.5, 2, 600)  # an input acts on it, too
    y = rng.poisson(exposure * np.exp(net.predict(X)))
    r = oh.recover(X, y, K, family="poisson", offset=np.log(exposure), start="random", max_seconds=6)
    rate = r.predict(X)
    assert np.mean(np.abs(rate / np.exp(net.predict(X)) - 1)) < 0.25
    assert np.mean(np.abs(exposure * rate / np.exp(net.predict(X)) - 1)) > 0.5
    assert 0 < r.linear_r_squared < r.r_squared < 0.8  # of what the exposure does not explain
    np.testing.assert_allclose(r.predict(X, offset=np.log(exposure)), exposure * rate, rtol=1e-12)


def test_text_is_labels_and_their_log_odds_are_the_networks_outputs():
    net, X = planted(2, size=2.0), inputs(2000)
    family = oh.families.Softmax("softmax", 3)
    p = family.probabilities(net.predict(X))
    code = np.sum(stream(9, "test", "kinds of y").random((2000, 1)) > np.cumsum(p, axis=1)[:, :-1], axis=1)
    labels = np.array(["blue", "green", "red"])[code]
    r = oh.recover(X, labels, K, start="random", max_seconds=8)
    assert r.classes == ("blue", "green", "red")
    found = r.predict(X)
    assert found.shape == (2000, 2)
    assert np.mean(np.abs(found - p[:, 1:])) < 0.03
    base = np.mean(np.abs(np.mean(p[:, 1:], axis=0) - p[:, 1:]))
    assert base > 0.1


def test_an_idle_input_is_told_from_one_that_acts():
    net = planted()
    weights = net.weights.copy()
    weights[:, 3] = 0.0
    net, X = oh.OneHiddenNet(weights, net.output, net.bias, net.intercept), inputs(600)
    y = net.predict(X) + 0.2 * stream(10, "test", "kinds of y").standard_normal(600)
    r = oh.recover(X, y, K, start="random", max_seconds=6)
    tested = r.input_test()
    assert tested.p_value[3] > 1e-3
    assert np.all(tested.p_value[:3] < 1e-6)


@pytest.mark.parametrize(
    ("y", "options", "said"),
    [
        (np.r_[np.ones(49), -1.0], {"family": "poisson"}, "not negative"),
        (np.r_[np.ones(49), 0.5], {"family": "poisson"}, "whole counts"),
        (np.r_[np.ones(49), 2.0], {"family": "bernoulli"}, "0 and 1"),
        (np.r_[np.ones(49), 0.0], {"family": "gamma"}, "above zero"),
        (np.array(["a"] * 50), {}, "two classes or more"),
        (np.zeros((50, 2)), {}, "constant"),
        (np.ones((50, 60)), {}, "60 outputs but only 50 rows"),
        (np.arange(50.0), {"family": "cauchy"}, "unknown family"),
        (np.arange(50.0), {"family": "poisson", "link": "logit"}, "has the link"),
        (np.arange(50.0), {"family": "binomial", "trials": np.ones(50)}, "successes among its trials"),
        (np.arange(50.0), {"trials": np.ones(50)}, "trials are for the binomial family"),
        (np.arange(50.0), {"family": "poisson", "offset": np.ones(3)}, "one entry for each of the 50 rows"),
        (np.r_[np.ones(49), np.nan], {"family": "poisson"}, "finite"),
    ],
)
def test_what_cannot_be_of_a_family_is_refused_in_one_sentence(y, options, said):
    with pytest.raises(ValueError, match=said) as caught:
        oh.recover(inputs(50), y, 1, **options)
    assert "\n" not in str(caught.value)


def test_a_classifier_recovers_the_log_odds_and_stands_in_where_rows_are_few():
    net, X = planted(size=2.0), inputs(3000)
    p = 1 / (1 + np.exp(-net.predict(X)))
    y = np.where(stream(11, "test", "kinds of y").random(3000) < p, "yes", "no")
    with warnings.catch_warnings():  # with little time the answer is right, but not held against others
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = oh.OneHiddenClassifier(n_hidden=K, start="random", max_seconds=8).fit(X, y)
    assert list(model.classes_) == ["no", "yes"]
    assert np.mean(np.abs(model.predict_proba(X)[:, 1] - p)) < 0.03
    with pytest.warns(UserWarning, match="a penalised bernoulli model stands in"):
        few = oh.OneHiddenClassifier(n_hidden=K).fit(X[:6], y[:6])
    np.testing.assert_allclose(few.predict_proba(X).sum(axis=1), 1, atol=1e-12)


def test_a_regressor_takes_several_outputs():
    net, X = planted(2), inputs(200)
    y = net.predict(X)
    model = oh.OneHiddenRegressor(n_hidden=K).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-9)
    assert model.score(X, y) == pytest.approx(1.0, abs=1e-12)


def test_a_class_without_weight_is_none():
    X = inputs(60)
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    with pytest.warns(UserWarning, match="not identifiable|doubtful"):
        model = oh.OneHiddenClassifier(n_hidden=1).fit(X, y, sample_weight=(y != "b").astype(float))
    found = model.predict_proba(X)
    assert list(model.classes_) == ["a", "c"]
    assert found.shape == (60, 2)
    assert set(model.predict(X)) == {"a", "c"}
    with pytest.raises(ValueError, match="start must be one of"):
        oh.OneHiddenClassifier(start="nonsense").fit(X, y)


def test_rows_of_weight_zero_take_their_offset_and_trials_with_them():
    net, X = planted(), inputs(120)
    rng = stream(12, "test", "kinds of y")
    weight, trials = rng.integers(0, 2, 120), rng.integers(1, 6, 120)
    won = rng.binomial(trials, 1 / (1 + np.exp(-net.predict(X))))
    kept, offset = weight > 0, rng.standard_normal(120)
    whole = read_target(X, won, weight, "binomial", None, offset, trials)
    cut = read_target(X[kept], won[kept], None, "binomial", None, offset[kept], trials[kept])
    for ours, wanted in (
        (whole.samples.X, cut.samples.X),
        (whole.samples.y, cut.samples.y),
        (whole.samples.weight, cut.samples.weight),
        (whole.offset, cut.offset),
        (whole.trials, cut.trials),
    ):
        np.testing.assert_array_equal(ours, wanted)
    assert 30 < kept.sum() < 90
