"""Names, targets outside of a family."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import one_sentence

from onehidden import families
from onehidden.families import NegativeBinomial, get
from onehidden.families.shares import classes_of

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
        (lambda: get("poison"), ["poison", "poisson"]),
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
