"""Boxes in single precision: as many units as inputs, several outputs, smooth units; errors."""

from __future__ import annotations

import numpy as np
import pytest

import onehidden as oh
from onehidden import activations
from onehidden.fit.parametrisation import Parametrisation
from onehidden.oracle.examine import stored_precision
from onehidden.oracle.layer import Layer
from onehidden.oracle.search import confirmed
from onehidden.run import stream

SINGLE = np.finfo(np.float32).eps


def layer_of(rows, output, bias, linear, constant):
    """Units without their orientations."""
    (k, d), q = rows.shape, output.shape[1]
    form = Parametrisation(activations.get("relu"), d, k, bias=True, skip=True, symmetrised=True, outputs=q)
    return Layer(form, rows, output, bias, linear, constant)


def in_single(net: oh.OneHiddenNet):
    """The network with weights and sums in single precision, and the network of the rounded weights."""
    A, w, b = (np.asarray(one, np.float32) for one in (net.weights, net.output, net.bias))
    c, g = np.asarray(net.intercept, np.float32), net.activation.name
    half = np.float32(0.5)
    apply = {
        "relu": lambda z: np.maximum(z, 0),
        "tanh": np.tanh,
        "sigmoid": lambda z: half + half * np.tanh(half * z),
    }
    level = float(c) if c.ndim == 0 else c.astype(float)
    inside = oh.OneHiddenNet(A.astype(float), w.astype(float), b.astype(float), level, g)
    return (lambda X: apply[g](X.astype(np.float32) @ A.T + b) @ w + c), inside


def test_a_hinge_that_is_none_and_one_that_was_seen_twice_are_weighed_out():
    rng = np.random.default_rng(0)
    k, d, n = 12, 20, 400
    rows = rng.standard_normal((k, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    output = rng.choice([-1.0, 1.0], (k, 2)) * rng.uniform(0.2, 1.0, (k, 2))
    true = layer_of(rows, output, 0.3 * rng.standard_normal(k), rng.standard_normal((d, 2)), np.ones(2))
    U = rng.standard_normal((n, d))
    Y = 0.5 * np.abs(U @ rows.T + true.bias) @ output + U @ true.linear + 1.0
    false = rng.standard_normal((2, d))
    false[1] = rows[4] + 0.02 * false[1]
    false /= np.linalg.norm(false, axis=1, keepdims=True)
    seen = layer_of(
        np.concatenate([rows, false]),
        np.concatenate([output, [[0.4, -0.3], output[4]]]),
        np.append(true.bias, [0.1, true.bias[4]]),
        np.zeros((d, 2)),
        np.zeros(2),
    )
    found = confirmed(seen, U, Y)
    assert np.array_equal(found.weights, rows)
    assert np.allclose(found.output, output, rtol=0, atol=1e-12)
    assert np.allclose(found.linear, true.linear, rtol=0, atol=1e-12)


def test_the_format_of_answers_is_seen_through_a_change_of_units():
    y = np.random.default_rng(0).standard_normal(200).astype(np.float32).astype(float)
    units = 0.37
    assert stored_precision(y).relative == pytest.approx(SINGLE / np.sqrt(12))
    assert stored_precision(y / units * units) == stored_precision(y)
    assert stored_precision(np.round(y, 3)).absolute == pytest.approx(1e-3 / np.sqrt(12))


@pytest.mark.parametrize(
    ("name", "d", "k", "q"),
    [("relu", 40, 40, 6), ("tanh", 12, 10, 1), ("sigmoid", 20, 4, 2)],
    ids=["a unit for every input", "tanh", "sigmoid of two outputs"],
)
def test_units_of_a_box_in_single_precision_are_known_as_well_as_is_told(name, d, k, q):
    rng = stream(3, "single precision", name)
    scale = {"relu": 1.0, "tanh": 1.5, "sigmoid": 3.0}[name]
    output = rng.choice([-1.0, 1.0], (k, q)) * rng.uniform(0.1, 1.0, (k, q))
    net = oh.OneHiddenNet(
        scale * rng.standard_normal((k, d)) / np.sqrt(d),
        output if q > 1 else output[:, 0],
        0.3 * rng.standard_normal(k),
        np.full(q, 0.2) if q > 1 else 0.2,
        name,
    )
    fn, inside = in_single(net)
    r = oh.recover_oracle(fn, d, activation=name)
    assert r.status == "consistent", r.message
    assert r.network.n_hidden == k
    m = oh.match(r.network, inside)
    size = np.linalg.norm(r.network.weights, axis=1)
    row = float(np.max(np.linalg.norm(r.standard_errors.weights, axis=1) / size))
    bias = float(np.max(r.standard_errors.bias / np.maximum(size, np.abs(r.network.bias))))
    assert m.max_error < 4 * row < 1e4 * SINGLE
    assert m.bias_error < 4 * bias < 1e4 * SINGLE
