"""Matching: the truth scores zero, and nothing else does."""

import numpy as np
import pytest
from helpers import teacher

from onehidden import OneHiddenNet, activations, match


def net(name):
    return teacher(
        name, 4, 6, rows="gaussian", output=[0.5, 2.0, 1.1, 0.8, 1.7, 1.3], bias=1.0, intercept=0.3
    )


@pytest.mark.parametrize("name", activations.names())
def test_permuted_network_matches_exactly(name):
    truth = net(name)
    order = np.random.default_rng(1).permutation(6)
    shuffled = OneHiddenNet(truth.weights[order], truth.output[order], truth.bias[order], 0.3, name)
    m = match(shuffled, truth)
    assert m.max_error < 1e-15
    assert m.output_error < 1e-15
    assert order[m.permutation].tolist() == list(range(6))


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "abs", "erf"])
def test_turned_units_match_where_the_function_is_the_same(name):
    truth = net(name)
    sign = np.array([1, -1, 1, -1, -1, 1])
    parity = truth.activation.reversal.parity
    shift = sum(truth.activation.reversal.polynomial[:1]) * truth.output[sign < 0].sum()
    turned = OneHiddenNet(
        truth.weights * sign[:, None],
        np.where(sign < 0, parity * truth.output, truth.output),
        truth.bias * sign,
        0.3 + shift,
        name,
    )
    m = match(turned, truth)
    assert max(m.max_error, m.output_error, m.bias_error, m.intercept_error) < 1e-14
    assert m.signs.tolist() == sign.tolist()


def test_a_turned_relu_is_an_error():
    truth = net("relu")
    sign = np.array([1, 1, 1, 1, 1, -1])
    turned = OneHiddenNet(truth.weights * sign[:, None], truth.output, truth.bias, 0.3)
    assert match(turned, truth).max_error > 1


def test_wrong_answers_fail():
    truth = net("relu")
    rng = np.random.default_rng(2)
    zero = OneHiddenNet(np.zeros((6, 4)), np.zeros(6))
    random = OneHiddenNet(rng.standard_normal((6, 4)), rng.standard_normal(6))
    for wrong in (zero, random):
        assert match(wrong, truth).max_error > 0.3
    fewer = OneHiddenNet(truth.weights[:5], truth.output[:5], truth.bias[:5], 0.3)
    assert match(fewer, truth).max_error == np.inf


def test_error_is_the_relative_distance_of_the_worst_row():
    rows = np.eye(3)
    moved = rows + np.array([[0, 0, 0], [0, 0, 1e-3], [0, 0, 0]])
    assert match(moved, rows).max_error == pytest.approx(1e-3, rel=1e-6)
    assert match(-moved[[2, 0, 1]], rows).max_error == pytest.approx(1e-3, rel=1e-6)


def test_printed_error_is_blind_where_the_honest_one_is_not():
    """(4.1) of [GLM]: with the printed min, rows that all equal e_1 score 0."""
    collapsed, truth = np.tile(np.eye(3)[0], (3, 1)), np.eye(3)
    m = match(collapsed, truth)
    assert m.printed_error == pytest.approx(0.0, abs=1e-15)
    assert m.honest_error == pytest.approx(1.0)
    assert m.max_error > 1


def test_mixed_or_foreign_arguments_are_refused():
    with pytest.raises(ValueError, match="not one of each"):
        match(np.eye(3), net("relu"))
    with pytest.raises(ValueError, match="cannot match"):
        match(net("relu"), net("tanh"))
    with pytest.raises(ValueError, match="inputs and outputs"):
        match(np.eye(3), np.eye(4))


def test_networks_of_several_outputs_are_matched_up_to_order_and_sign():
    rng = np.random.default_rng(3)
    truth = OneHiddenNet(
        rng.standard_normal((4, 3)), rng.standard_normal((4, 2)), rng.standard_normal(4), 0.5, "tanh"
    )
    order, sign = rng.permutation(4), np.array([1.0, -1.0, -1.0, 1.0])
    weights, output, bias = (part[order] for part in (truth.weights, truth.output, truth.bias))
    turned = OneHiddenNet(
        weights * sign[:, None], output * sign[:, None], bias * sign, truth.intercept, "tanh"
    )
    m = match(turned, truth)
    assert max(m.max_error, m.output_error, m.bias_error, m.intercept_error) < 1e-14
    off = OneHiddenNet(weights, output + np.array([0.0, 0.1]), bias, truth.intercept, "tanh")
    assert match(off, truth).output_error > 0.01
    with pytest.raises(ValueError, match="outputs"):
        match(OneHiddenNet(weights, output[:, 0], bias, 0.5, "tanh"), truth)
