"""Probabilities are read as log-odds wherever they have digits, place by place, and never beyond."""

import warnings

import numpy as np
import pytest
from helpers import check_named, one_sentence, teacher, worst_error

import onehidden as oh
from onehidden.oracle.answers import LogOdds

NET = teacher("relu", 6, 4, seed=0, rows="gaussian", output="uneven", bias=0.3, intercept=0.3)


def scores(X, output):
    return np.maximum(X @ NET.weights.T + NET.bias, 0) @ output


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


def logistic(z):
    return 1 / (1 + np.exp(-z))


def digits(width, two, activation="relu"):
    """A classifier of scikit-learn on real digits, and the network of its log-odds."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, label = load_digits(return_X_y=True)
    label = label >= 5 if two else label
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((width,), activation=activation, max_iter=40, random_state=0).fit(X / 16, label)
    output, level = model.coefs_[1], model.intercepts_[1]
    if two:
        output, level = output[:, 0], level[0]
    else:
        output, level = output - output.mean(axis=1, keepdims=True), level - level.mean()
    return X / 16, model, oh.OneHiddenNet(model.coefs_[0].T, output, model.intercepts_[0], level, activation)


@pytest.mark.parametrize(
    ("width", "two", "activation"),
    [
        pytest.param(8, False, "relu", marks=pytest.mark.slow),
        (8, True, "relu"),
        (8, True, "tanh"),
        pytest.param(32, False, "relu", marks=pytest.mark.slow),
        pytest.param(32, True, "relu", marks=pytest.mark.slow),
    ],
)
def test_a_classifier_of_digits_is_given_back_through_its_probabilities(width, two, activation):
    X, model, inside = digits(width, two, activation)
    r = oh.recover_oracle(model.predict_proba, 64, activation=activation, inputs=X)
    assert r.status == "exact", r.message
    assert worst_error(r.network, inside) < 1e-8
    odds = np.log(model.predict_proba(X[:50]))
    odds = odds[:, 1] - odds[:, 0] if two else odds - odds.mean(axis=1, keepdims=True)
    assert np.max(np.abs(r.predict(X[:50]) - odds)) < 1e-8


def test_digits_that_one_less_p_has_lost_are_not_read():
    z = np.linspace(-40, 40, 401)
    p = logistic(z)
    for answers in (np.column_stack([1 - p, p]), p[:, None]):
        reading = LogOdds.of(answers)
        value = reading(answers)[:, 0]
        known = np.isfinite(value)
        assert known[z < 9].all()  # small p keep their digits
        assert not known[z > 10].any()  # 1 - p does not
        error = np.abs(value - z)[known]
        own = 64 * np.finfo(float).eps * np.maximum(1, np.abs(z[known]))
        assert np.all(error <= 6 * reading.error(value[known, None]) + own)
    both = softmax(np.column_stack([0 * z, z]))
    assert np.isfinite(LogOdds.of(both)(both)).all()  # a softmax has all digits on both sides


@pytest.mark.parametrize(
    ("box", "closeness"),
    [
        (lambda X, output: np.clip(softmax(scores(X, output)), 1e-6, 1), 1e-9),
        (lambda X, output: softmax(scores(X, output)).astype(np.float32), 1e-3),
    ],
    ids=["clipped", "single precision"],
)
def test_spoilt_probabilities_of_three_classes_are_read_where_they_tell(box, closeness):
    output = np.random.default_rng(4).standard_normal((4, 3))
    truth = oh.OneHiddenNet(NET.weights, output - output.mean(axis=1, keepdims=True), NET.bias, np.zeros(3))
    r = oh.recover_oracle(lambda X: box(X, output), 6)
    assert r.converged, r.message
    error = worst_error(r.network, truth)
    assert error < closeness
    assert error < 4 * check_named(r, "attainable error").value + 1e-12


def test_probabilities_that_say_yes_or_no_everywhere_are_refused_in_a_sentence():
    output = 300 * np.random.default_rng(4).standard_normal((4, 2))
    with pytest.raises(ValueError, match="digits") as caught:
        oh.recover_oracle(lambda X: np.round(softmax(scores(X, output)), 3), 6)
    one_sentence(caught, "close to 0 or 1")
