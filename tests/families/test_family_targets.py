"""Names, targets outside of a family, and what is noticed of a target that came without a word."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import one_sentence
from sklearn import datasets

from onehidden import families
from onehidden.families import NegativeBinomial, get
from onehidden.families.noticing import notice
from onehidden.families.shares import classes_of
from onehidden.run import stream

NAN = float("nan")


def test_names_are_those_of_the_contract_and_links_the_usual_ones():
    usual = {
        "gaussian": "identity",
        "poisson": "log",
        "bernoulli": "logit",
        "binomial": "logit",
        "gamma": "log",
    }
    for name, link in usual.items():
        assert get(name).link == link
        assert get(get(name)) == get(name)
    assert get("negative_binomial", alpha=0.5) == NegativeBinomial("log", 0.5)
    assert set(usual) | {"negative_binomial", "softmax"} == set(families.names())


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: get("poison"), ["poison", "poisson", "gamma"]),
        (lambda: get(3), ["unknown family 3"]),
        (lambda: get("poisson", "logit"), ["poisson", "log or softplus or identity", "logit"]),
        (lambda: get("gaussian", "log"), ["identity"]),
        (lambda: get(get("poisson"), "identity"), ["log", "identity"]),
        (lambda: get("negative_binomial", alpha=-1.0), ["alpha", "-1"]),
        (lambda: get("negative_binomial", alpha=NAN), ["alpha"]),
    ],
)
def test_what_cannot_be_asked_for_is_told_in_a_sentence(ask, words):
    with pytest.raises(ValueError) as error:
        ask()
    one_sentence(error, *words)


@pytest.mark.parametrize(
    ("name", "y", "words"),
    [
        ("poisson", [1, 2, -3], ["counts", "row 2 is -3"]),
        ("poisson", [1, 2.5, 0.5], ["whole", "row 1 is 2.5", "1 more"]),
        ("negative_binomial", [1, 2.5], ["negative_binomial", "whole"]),
        ("poisson", [0, 0, 0], ["every count is zero"]),
        ("poisson", [[0, 1], [0, 2]], ["every count is zero"]),
        ("bernoulli", [0, 1, 2], ["0 and 1", "OneHiddenClassifier"]),
        ("bernoulli", [1, 1, 1], ["nothing but 1"]),
        ("bernoulli", [0, 0, 0], ["no 1"]),
        ("binomial", [0.5, 1.2], ["between 0 and 1", "1.2"]),
        ("binomial", [0.5, 0.0], ["whole number of successes"]),
        ("gamma", [1.0, 0.0], ["above zero", "row 1 is 0"]),
    ],
)
def test_a_target_outside_its_family_is_refused_in_a_sentence(name, y, words):
    with pytest.raises(ValueError) as error:
        get(name).check_values(np.array(y, float))
    one_sentence(error, *words)


def test_shares_are_whole_successes():
    share, trials = np.array([0.5, 0.25, 1.0]), np.array([2.0, 4.0, 3.0])
    get("binomial").check_values(share, trials)
    with pytest.raises(ValueError) as error:
        get("binomial").check_values(share, np.array([2.0, 3.0, 3.0]))
    one_sentence(error, "successes")


def test_good_targets_pass():
    for name, y in (
        ("poisson", [0, 3, 1]),
        ("bernoulli", [True, False]),
        ("gamma", [1e-300, 1e300]),
        ("gaussian", [-1.5, 0]),
    ):
        get(name).check_values(np.array(y, float))


def test_labels_of_every_kind_become_rows_of_a_softmax():
    for labels in (["b", "a", "c", "a"], [2.0, 1.0, 7.0, 1.0], np.array(["b", "a", "c", "a"], object)):
        found, target = classes_of(labels)
        assert list(found) == sorted(set(labels))
        assert np.array_equal(target, [[1, 0], [0, 0], [0, 1], [0, 0]])
    assert np.array_equal(classes_of([True, False])[1], [[1], [0]])


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        (["a", "a"], "one label a"),
        ([1.0, NAN], "missing"),
        (np.array(["a", None], object), "missing"),
        (np.array(["a", NAN], object), "missing"),
        (np.array(["a", 1], object), "all numbers or all text"),
        ([], "no label"),
        ([[1, 2], [3, 4]], "(n,)"),
        ([1j, 2j], "all numbers or all text"),
    ],
)
def test_what_cannot_be_a_label_is_refused_in_a_sentence(labels, word):
    with pytest.raises(ValueError) as error:
        classes_of(labels)
    one_sentence(error, word)


def family_noticed(y):
    said = notice(y)
    assert "\n" not in said
    return next((name for name in ("bernoulli", "poisson") if name in said), None)


def test_the_targets_of_real_tables_are_told_apart():
    assert family_noticed(datasets.load_breast_cancer().target) == "bernoulli"
    for name in ("iris", "wine", "digits"):
        assert "labels are for OneHiddenClassifier" in notice(getattr(datasets, f"load_{name}")().target)
    assert notice(datasets.load_diabetes().target) == ""  # whole numbers from 25 to 346
    body = datasets.load_linnerud()  # weight, waist and pulse in whole numbers; chin-ups, sit-ups and jumps
    assert {notice(column) for column in [*body.target.T, *body.data.T]} == {""}
    for table in (datasets.load_diabetes(), datasets.load_iris(), datasets.load_breast_cancer()):
        measured = [column for column in table.data.T if len(np.unique(column)) > 2]
        assert {notice(column) for column in measured} == {""}


@pytest.mark.parametrize("mean", [0.3, 1.0, 5.0])
def test_counts_are_noticed_whatever_moves_their_mean(mean):
    rng = stream(1, "counts", str(mean))
    for n in (200, 2000, 20_000):
        for spread in (0.0, 0.7):
            rate = mean * np.exp(spread * rng.standard_normal(n))
            assert family_noticed(rng.poisson(rate)) == "poisson"
            assert family_noticed(rng.poisson(rate * rng.gamma(1.0, 1.0, n)).astype(float)) == "poisson"


def test_ordinary_targets_are_left_alone():
    rng = stream(2, "ordinary")
    for y in (
        rng.standard_normal(500),
        rng.exponential(1.0, 500),
        rng.integers(1950, 2020, 500),
        rng.integers(0, 90, 800),  # ages
        100 * rng.integers(0, 50, 500),  # prices
        np.rint(20 * rng.standard_normal(500)),
        np.where(rng.random(1000) < 0.9, 0, rng.integers(100, 90_000, 1000)),  # mostly nothing, else money
        np.arange(300.0),
        np.full(50, 3.0),
        np.array([1.0, NAN, 0.0]),
        np.array([0, 1, 2, 1]),
        np.array([]),
    ):
        assert family_noticed(y) is None


def test_zeros_and_ones_and_counts_are_noticed_in_a_column_of_several():
    rng = stream(3, "labels")
    assert family_noticed([True, False, True]) == "bernoulli"
    assert family_noticed([0, 1, 1]) == family_noticed([0.0, 1.0, 0.0]) == "bernoulli"
    assert family_noticed((rng.random((60, 3)) < 0.5).astype(float)) == "bernoulli"
    assert family_noticed(rng.poisson(1.0, (300, 2))) == "poisson"
    assert notice(np.array(["yes", "no"])) == ""
