"""Bounds, errors outside, probabilities and wrong assumptions; refusals are one sentence."""

import numpy as np
import pytest
from helpers import check_named, one_sentence, teacher, worst_error

import onehidden as oh

NET = teacher("relu", 6, 4, seed=0, rows="gaussian", output="uneven", bias=0.3, intercept=0.3)
CLOSE = 1e-12


def plain(X):
    return np.maximum(X @ NET.weights.T + NET.bias, 0) @ NET.output + NET.intercept


def test_no_question_leaves_the_domain():
    seen = []

    def watching(X):
        seen.append((X.min(axis=0), X.max(axis=0)))
        return plain(X)

    low, high = np.full(6, -1.0), np.array([1.0, 1, 1, 1, 1, 2])
    r = oh.recover_oracle(watching, 6, domain=(low, high))
    assert all(np.all(a >= low) and np.all(b <= high) for a, b in seen)
    assert max(b[5] for _, b in seen) > 1.5  # and the domain is used
    assert r.status == "exact", r.message
    assert worst_error(r.network, NET) < CLOSE


def test_whole_numbers_are_asked_where_only_those_are_understood():
    def strict(X):
        assert np.array_equal(np.rint(X), X)
        return plain(X)

    r = oh.recover_oracle(strict, 6, 4, domain=(-9, 9, "integer"), max_seconds=60)
    assert r.status == "exact", r.message
    assert worst_error(r.network, NET) < CLOSE


@pytest.mark.parametrize("way", ["nan", "raise"])
def test_a_box_that_fails_outside_is_asked_inside(way):
    def limited(X):
        outside = np.abs(X).max(axis=1) > 8
        if way == "raise" and outside.any():
            raise RuntimeError("outside")
        return np.where(outside, np.nan, plain(X))

    r = oh.recover_oracle(limited, 6)
    assert r.status == "exact", r.message
    assert worst_error(r.network, NET) < CLOSE


def test_a_column_that_never_varies_is_still_an_input():
    typical = np.random.default_rng(0).standard_normal((50, 6))
    typical[:, 2] = 3.0
    r = oh.recover_oracle(plain, 6, inputs=typical)
    assert r.status == "exact", r.message
    assert worst_error(r.network, NET) < CLOSE


def test_the_activation_is_noticed():
    assert oh.recover_oracle(plain, 6, activation="auto").network.activation.name == "relu"


def test_probabilities_of_a_softmax_are_read_as_log_odds_without_their_mean():
    rng = np.random.default_rng(4)
    output, level = rng.standard_normal((4, 3)), rng.standard_normal(3)

    def box(X):
        z = np.maximum(X @ NET.weights.T + NET.bias, 0) @ output + level
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True)

    truth = oh.OneHiddenNet(
        NET.weights, output - output.mean(axis=1, keepdims=True), NET.bias, level - level.mean()
    )
    r = oh.recover_oracle(box, 6)
    assert r.status == "exact", r.message
    assert worst_error(r.network, truth) < 1e-10


def test_the_probability_of_one_class_is_read_where_it_is_said_to_be_one():
    r = oh.recover_oracle(lambda X: 1 / (1 + np.exp(-plain(X))), 6, answers="probability")
    assert r.status == "exact", r.message
    assert worst_error(r.network, NET) < 1e-8


def test_wrong_assumptions_are_told_with_what_was_seen():
    B = np.random.default_rng(0).standard_normal((4, 6))

    def two_layers(X):
        return np.maximum(np.maximum(X @ B.T, 0) @ B[:, :4].T + 0.1, 0).sum(axis=1)

    r = oh.recover_oracle(two_layers, 6)
    assert not r.converged
    assert not check_named(r, "one hidden layer").passed
    assert "hyperplane" in r.message
    with_linear = oh.recover_oracle(lambda X: plain(X) + X @ B[0], 6)
    assert not with_linear.converged
    assert not check_named(with_linear, "linear part").passed


@pytest.mark.parametrize(
    ("fn", "choices", "words"),
    [
        (lambda X: X @ np.arange(6.0), {}, "straight"),
        (lambda X: (X[:, 0] > 0.1) * 3.0 + (X[:, 1] > 0), {"answers": "value"}, "jump"),
        (plain, {"domain": (1, 1)}, "no volume"),
        (plain, {"domain": (2, 1)}, "empty"),
        (plain, {"domain": "whole"}, "domain must be"),
        (plain, {"max_queries": 500}, "before a unit was found"),
        (plain, {"max_queries": 0}, "max_queries"),
        (plain, {"batch": 1.5}, "batch"),
        (plain, {"answers": "odds"}, "answers must be"),
        (plain, {"answers": "probability"}, "no probabilities"),
        (lambda X: np.ones((len(X), 2)), {}, "constant"),
        (lambda X: np.ones((len(X), 0)), {}, "one number per row"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(fn, choices, words):
    with pytest.raises(ValueError, match=r"\w") as caught:
        oh.recover_oracle(fn, 6, **choices)
    one_sentence(caught, words)
