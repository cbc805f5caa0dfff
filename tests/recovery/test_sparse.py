"""Units of few inputs: which weights leave and enter, what half of the rows choose, errors of the others."""

from __future__ import annotations

import numpy as np
import pytest

import onehidden as oh
from onehidden.recovery.sparse import Linearised
from onehidden.structure import NonNegative, Sparse, Zeros


def linear_problem(charge, seed=0):
    """Nine weights in three groups of each of two units, the last two groups not free, beside a constant."""
    rng = np.random.default_rng(seed)
    columns, y = rng.standard_normal((80, 9)), rng.standard_normal(80)
    y = y + columns @ [1.0, 0.0, 0.1, 0.3, 0.0, 0.0, 0.0, 2.0, 0.0]
    labels = np.array([0, 0, 1, 2, 3, 3, 3, 4, 5])
    inside, rest = labels < 4, np.ones((80, 1))
    best = np.linalg.lstsq(np.hstack([columns[:, inside], rest]), y, rcond=None)[0]
    weights = np.where(inside, np.append(best[:-1], [0, 0]), 0)
    residual = columns @ weights + best[-1] - y
    return Linearised(weights, columns, rest, residual, inside, labels, 2, np.full(6, charge)), y


def squares(local, y, free):
    design = np.hstack([local.columns[:, free], local.rest])
    return float(np.sum((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2))


@pytest.mark.parametrize("seed", range(3))
def test_weights_leave_and_enter_as_refits_of_all_groups_say(seed):
    local, y = linear_problem(6.0, seed)
    inside, labels = local.inside.copy(), local.labels
    noise = squares(local, y, inside) / (80 - inside.sum() - 1)
    np.testing.assert_allclose(local.noise, noise, rtol=1e-10)
    enters = [
        squares(local, y, inside) - squares(local, y, inside | (labels == one)) > 6 * noise
        for one in range(6)
    ]
    np.testing.assert_array_equal(local.entering(), np.array(enters)[labels] & ~inside)
    while True:  # backward elimination by refits; the only group of the second unit stays
        left = [one for one in (0, 1, 2) if np.any(inside & (labels == one))]
        costs = [squares(local, y, inside & (labels != one)) - squares(local, y, inside) for one in left]
        if len(left) == 1 or min(costs) > 6 * noise:
            break
        inside &= labels != left[int(np.argmin(costs))]
    np.testing.assert_array_equal(local.inside & ~np.isin(labels, local.leaving()), inside)
    assert local.entering().any()
    assert local.leaving()


def sparse_rows(groups, n=500, d=24):
    rng = np.random.default_rng(1)
    weights = np.zeros((2, d))
    weights[0, groups == 2], weights[1, groups == 5] = 0.9, [0.7] * np.sum(groups == 5)
    weights[1, groups == 7] = 1.1
    truth = oh.OneHiddenNet(weights, [1.0, 2.0], [0.3, -0.2], 0.5, "tanh")
    X = rng.standard_normal((n, d))
    return truth, X, truth.predict(X) + 0.2 * rng.standard_normal(n)


def test_half_of_the_rows_choose_inputs_and_the_others_are_fitted(tmp_path):
    truth, X, y = sparse_rows(np.arange(24))
    found = oh.recover(X, y, 2, activation="tanh", structure="sparse", errors="classical")
    order = oh.match(found.network, truth).permutation
    np.testing.assert_array_equal(found.network.weights[order] != 0, truth.weights != 0)
    assert found.status == "consistent"
    assert (found.n_samples, found.n_choosing) == (250, 250)
    assert "250 other rows chose" in found.assumptions[0]
    assert found.options["structure"] == "sparse"
    assert found.freedom == 3 + 2 + 2 + 1
    chosen = Zeros(found.network.weights == 0)
    whole = oh.recover(X, y, activation="tanh", structure=chosen, errors="classical")
    assert whole.n_choosing == 0
    assert len(whole.assumptions) == len(found.assumptions) - 1
    own = found.network.weights != 0
    ratio = found.standard_errors.weights[own] / whole.standard_errors.weights[own]
    np.testing.assert_allclose(ratio, np.sqrt(2), rtol=0.25)  # half of the rows
    found.save(tmp_path / "run")
    assert oh.load_recovery(tmp_path / "run").assumptions == found.assumptions


def test_inputs_of_a_category_come_together_and_weights_are_at_least_zero():
    groups = np.repeat(np.arange(8), 3)
    truth, X, y = sparse_rows(groups)
    found = oh.recover(X, y, 2, activation="tanh", structure=[Sparse(groups), NonNegative()])
    order = oh.match(found.network, truth).permutation
    some = np.array([[np.any(row[groups == g]) for g in range(8)] for row in found.network.weights[order]])
    np.testing.assert_array_equal(some, truth.weights[:, ::3] != 0)
    assert found.network.weights.min() >= 0


@pytest.mark.parametrize(
    ("known", "rows", "words"),
    [
        (Sparse(), 9, "half of the rows"),
        (Sparse(np.zeros(3)), 100, "X has 24 columns"),
    ],
)
def test_what_cannot_be_chosen_is_refused(known, rows, words):
    _, X, y = sparse_rows(np.arange(24))
    with pytest.raises(ValueError, match=words):
        oh.recover(X[:rows], y[:rows], 2, structure=known)
