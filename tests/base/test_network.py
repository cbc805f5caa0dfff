"""Networks: prediction, canonical form, files."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers import teacher
from safetensors.numpy import save_file

from onehidden import OneHiddenNet, activations


def random_net(name):
    return teacher(name, 3, 5, rows="gaussian", output="uneven", bias=1.0, intercept=0.6)


X = np.random.default_rng(9).standard_normal((200, 3))


def test_predict_is_the_formula():
    net = random_net("tanh")
    by_hand = [
        net.intercept
        + sum(w * np.tanh(a @ x + b) for a, b, w in zip(net.weights, net.bias, net.output, strict=True))
        for x in X
    ]
    np.testing.assert_allclose(net.predict(X), by_hand, rtol=1e-13)


@pytest.mark.parametrize("name", activations.names())
def test_canonical_form_keeps_the_function_and_is_idempotent(name):
    net = random_net(name)
    canonical = net.canonical()
    scale = np.abs(net.predict(X)).max()
    np.testing.assert_allclose(canonical.predict(X), net.predict(X), atol=1e-12 * scale)
    again = canonical.canonical()
    np.testing.assert_allclose(again.weights, canonical.weights, atol=1e-12)
    if net.activation.homogeneity:
        np.testing.assert_allclose(np.linalg.norm(canonical.weights, axis=1), 1.0)


@pytest.mark.parametrize("name", activations.names())
def test_symmetric_copies_share_one_canonical_form(name):
    """Permuted, rescaled and, where g allows it, turned units describe the same function."""
    net, rng = random_net(name), np.random.default_rng(1)
    order = rng.permutation(5)
    A, b, w, c = net.weights[order], net.bias[order], net.output[order], net.intercept
    g = net.activation
    if g.homogeneity:
        s = rng.uniform(0.5, 2, 5)
        A, b, w = A * s[:, None], b * s, w / s**g.homogeneity
    if g.sign_free:
        turn = np.array([True, False, True, False, False])
        c = c + sum(g.reversal.polynomial[:1]) * w[turn].sum()
        sign = np.where(turn, -1, 1)
        A, b, w = A * sign[:, None], b * sign, np.where(turn, g.reversal.parity * w, w)
    copy = OneHiddenNet(A, w, b, c, name)
    np.testing.assert_allclose(copy.predict(X), net.predict(X), atol=1e-11)
    one, other = copy.canonical(), net.canonical()
    for field in ("weights", "bias", "output", "intercept"):
        np.testing.assert_allclose(getattr(one, field), getattr(other, field), atol=1e-9)


def test_saved_networks_come_back_bit_for_bit(tmp_path):
    net = random_net("gelu")
    net.save(tmp_path / "net.safetensors")
    assert OneHiddenNet.load(tmp_path / "net.safetensors") == net


def test_foreign_and_newer_files_are_refused_with_a_sentence(tmp_path):
    path = tmp_path / "x.safetensors"
    with pytest.raises(ValueError, match="no model file"):
        OneHiddenNet.load(path)
    path.write_bytes(b"\x00" * 100)
    with pytest.raises(ValueError, match="not a onehidden model"):
        OneHiddenNet.load(path)
    save_file({"a": np.zeros(2)}, str(path))
    with pytest.raises(ValueError, match="not of a onehidden model"):
        OneHiddenNet.load(path)
    net = random_net("relu")
    tensors = {"weights": net.weights, "bias": net.bias, "output": net.output, "intercept": np.zeros(1)}
    save_file(
        tensors, str(path), metadata={"onehidden": json.dumps({"format_version": 99, "activation": "relu"})}
    )
    with pytest.raises(ValueError, match="upgrade"):
        OneHiddenNet.load(path)


def test_an_unknown_activation_is_named(tmp_path):
    own = replace(activations.get("relu"), name="swish")
    OneHiddenNet([[1.0]], [1.0], activation=own).save(tmp_path / "net.safetensors")
    with pytest.raises(ValueError, match="'swish', which is not part of this library: give it") as error:
        OneHiddenNet.load(tmp_path / "net.safetensors")
    assert "damaged" not in str(error.value)


def test_networks_are_immutable_and_checked():
    net = random_net("relu")
    with pytest.raises(ValueError, match="read-only"):
        net.weights[0, 0] = 1.0
    for arguments, message in (
        (((np.ones(3)), np.ones(3)), "matrix"),
        ((np.ones((2, 3)), np.ones(3)), "output"),
        ((np.full((2, 3), np.nan), np.ones(2)), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            OneHiddenNet(*arguments)
    with pytest.raises(ValueError, match=r"\(n, 3\)"):
        net.predict(np.ones((4, 2)))


def several(name="relu", q=3):
    rng = np.random.default_rng(7)
    weights, bias = rng.standard_normal((4, 5)), rng.standard_normal(4)
    return OneHiddenNet(weights, rng.standard_normal((4, q)), bias, rng.standard_normal(q), name)


@pytest.mark.parametrize("name", ["relu", "tanh", "sigmoid", "abs"])
def test_several_outputs_are_the_columns_one_by_one_and_survive_canonical_form_and_disk(name, tmp_path):
    net, X = several(name), np.random.default_rng(8).standard_normal((50, 5))
    columns = [
        OneHiddenNet(net.weights, net.output[:, j], net.bias, net.intercept[j], name).predict(X)
        for j in range(3)
    ]
    assert np.allclose(net.predict(X), np.column_stack(columns), rtol=0, atol=1e-14)
    assert np.allclose(net.canonical().predict(X), net.predict(X), rtol=0, atol=1e-13)
    net.save(tmp_path / "net.safetensors")
    assert OneHiddenNet.load(tmp_path / "net.safetensors") == net
    with pytest.raises(ValueError, match="one per output"):
        OneHiddenNet(net.weights, net.output, net.bias, [1.0, 2.0], name)


@pytest.mark.parametrize("weights", [[0.6, -0.6], [1.0, 1.0, -1.0], [0.8, -0.6, 0.0], [0.0, 0.7, -0.7]])
def test_noise_that_breaks_a_tie_of_weights_reverses_no_unit_beside_a_linear_part(weights):
    a = np.array([weights])
    signs = set()
    for j in range(a.shape[1]):
        moved = a.copy()
        moved[0, j] *= 1.001
        net = OneHiddenNet(moved, [1.0], linear=np.ones(a.shape[1])).canonical()
        signs.add(float(np.sign(net.weights @ a[0])[0]))
    assert len(signs) == 1
