"""Copies of rows, and mirror images where units cannot tell them apart, are no evidence for an exact fit."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import EXACT, normal, planted, teacher, worst_error

import onehidden as oh
from onehidden.certify.replicates import count_distinct, different

# 2 tanh units of 2 inputs with biases: 9 parameters.
NET = oh.OneHiddenNet([[0.9, -0.4], [0.3, 1.1]], [1.0, -1.2], [0.3, -0.4], activation="tanh")


def noisy(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, NET.predict(X) + 1e-3 * rng.standard_normal(n)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("jitter", [0.0, 4e-16])
def test_as_many_rows_as_parameters_are_not_certified_by_copies(seed, jitter):
    X, y = noisy(9, seed)
    X, y = np.vstack([X, X * (1 + jitter)]), np.append(y, y)
    r = oh.recover(X, y, 2, activation="tanh", seed=seed, max_seconds=3)
    assert r.status not in ("exact", "consistent")


def test_mirrored_rows_are_no_evidence_for_odd_units():
    net = oh.OneHiddenNet([[0.9, -0.4, 0.2], [0.3, 1.1, -0.7]], [1.0, -1.2], activation="tanh")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 3))
    y = net.predict(X) + 1e-3 * rng.standard_normal(8)
    X, y = np.vstack([X, -X]), np.append(y, -y)
    r = oh.recover(X, y, 2, activation="tanh", bias=False, max_seconds=3)
    assert r.status not in ("exact", "consistent")


def test_one_row_more_than_parameters_still_certifies_what_a_network_computed():
    X = np.random.default_rng(3).standard_normal((11, 2))
    r = oh.recover(X, NET.predict(X), 2, activation="tanh", seed=1, max_seconds=6)
    assert r.status == "exact"
    assert worst_error(r.network, NET) < EXACT


@pytest.mark.parametrize(
    ("activation", "bias", "expected"), [("tanh", 0.0, 30), ("tanh", 0.5, 60), ("relu", 0.0, 60)]
)
def test_mirror_images_count_once_where_units_have_one_parity_and_no_biases(activation, bias, expected):
    X = normal(30, 4)
    problem = planted(teacher(activation, 4, 2, bias=bias), np.vstack([X, -X, X[:5]]), bias=bias > 0)
    assert count_distinct(problem) == expected


def test_distinct_rows_agree_with_unique():
    X = normal(200, 3).round() * -1.0  # with zeros of both signs
    assert different(X.T) == len(np.unique(X, axis=0))
