"""Exports: the same predictions elsewhere, to 1e-10 of the largest, or a sentence that says why not."""

from __future__ import annotations

import builtins
import importlib.util

import numpy as np
import pytest

from onehidden import activations
from onehidden.activations import Activation
from onehidden.exports import erfc_coefficients
from onehidden.network import OneHiddenNet

D, K, N = 6, 9, 10_000
TOLERANCE = 1e-10
SKLEARN = ("relu", "tanh", "sigmoid", "linear")
X = 2 * np.random.default_rng(1).standard_normal((N, D))


def _net(activation: str, seed: int = 0) -> OneHiddenNet:
    rng = np.random.default_rng(seed)
    A, w, b = rng.standard_normal((K, D)), rng.standard_normal(K), rng.standard_normal(K)
    return OneHiddenNet(A, w, b, 0.7, activation)


def _agree(net: OneHiddenNet, values: np.ndarray) -> None:
    expected = net.predict(X)
    assert values.shape == expected.shape
    allowed = TOLERANCE * np.max(np.abs(expected))
    assert np.max(np.abs(values - expected)) <= allowed
    # What must fail: the zero answer and another network.
    assert np.max(np.abs(expected)) > allowed
    assert np.max(np.abs(_net(net.activation.name, 1).predict(X) - expected)) > allowed


@pytest.mark.parametrize("activation", activations.names())
def test_onnx_predicts_the_same(activation, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    net = _net(activation)
    net.to_onnx(tmp_path / "net.onnx")
    session = ort.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    (values,) = session.run(None, {"X": X})
    assert values.dtype == np.float64
    _agree(net, values)
    # Double throughout: a float32 anywhere in the graph, even from the runtime's optimiser, shows here.
    scale = np.abs(net.activation(X @ net.weights.T + net.bias)).max() * np.abs(net.output).sum()
    assert np.max(np.abs(values - net.predict(X))) <= 100 * np.finfo(float).eps * scale


def test_chebyshev_series_of_erfc_is_exact_to_rounding():
    from scipy.special import erfc

    z = np.linspace(0, 26, 4001)
    t = 2 / (2 + z)
    ours = t * np.polynomial.chebyshev.chebval(2 * t - 1, erfc_coefficients()) * np.exp(-(z**2))
    # exp(-z^2) alone carries a relative error of z^2 eps.
    allowed = (20 + 2 * z**2) * np.finfo(float).eps * erfc(z) + np.finfo(float).tiny
    assert np.all(np.abs(ours - erfc(z)) <= allowed)
    short = t * np.polynomial.chebyshev.chebval(2 * t - 1, erfc_coefficients(10)) * np.exp(-(z**2))
    assert not np.all(np.abs(short - erfc(z)) <= allowed)


def test_an_activation_without_a_written_form_is_one_sentence():
    bare = Activation("bare", lambda t: t**2)
    net = OneHiddenNet([[1.0]], [1.0], activation=bare)
    with pytest.raises(ValueError, match="the activation bare cannot be exported"):
        net.to_python()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("activation", activations.names())
def test_torch_predicts_the_same(activation):
    import torch

    net = _net(activation)
    module = net.to_torch()
    with torch.no_grad():
        values = module(torch.tensor(X)).numpy()
    assert values.dtype == np.float64
    _agree(net, values)
    assert sum(p.numel() for p in module.parameters()) == K * D + 2 * K + 1


@pytest.mark.parametrize("activation", SKLEARN)
def test_sklearn_predicts_the_same(activation):
    net = _net(activation)
    model = net.to_sklearn()
    _agree(net, model.predict(X))
    assert model.score(X, net.predict(X)) == pytest.approx(1.0)


@pytest.mark.parametrize("activation", [name for name in activations.names() if name not in SKLEARN])
def test_sklearn_says_which_activations_it_lacks(activation):
    with pytest.raises(ValueError, match=f"no {activation} activation, only relu, tanh, sigmoid, linear"):
        _net(activation).to_sklearn()


@pytest.mark.parametrize("activation", activations.names())
def test_python_source_predicts_the_same(activation):
    net = _net(activation)
    module: dict = {}
    exec(net.to_python(), module)
    _agree(net, np.array([module["predict"](row) for row in X.tolist()]))
    far = 1e4 if np.isfinite(net.activation(1e4)) else 10.0
    assert module["predict"]([far] * D) == pytest.approx(net.predict(np.full((1, D), far))[0])


def test_python_source_survives_hostile_names():
    names = ['"""\nraise SystemExit\n"""', "a\\", "'", "\N{SNOWMAN}", "x", "y"]
    module: dict = {}
    exec(_net("relu").to_python(names), module)
    assert list(module["FEATURES"]) == names


@pytest.mark.parametrize(("name", "call"), [("onnx", "to_onnx"), ("torch", "to_torch")])
def test_missing_package_is_named_in_a_sentence(name, call, monkeypatch, tmp_path):
    import importlib

    real = importlib.import_module

    def without(module, *args):
        if module == name:
            raise ImportError(module)
        return real(module, *args)

    monkeypatch.setattr(importlib, "import_module", without)
    arguments = [tmp_path / "a.onnx"] if name == "onnx" else []
    with pytest.raises(ValueError, match=f"not installed: pip install .*{name}"):
        getattr(_net("relu"), call)(*arguments)


def test_import_of_exports_needs_neither_onnx_nor_torch(monkeypatch):
    import sys

    real = builtins.__import__

    def guarded(name, *args, **kwargs):
        assert name.split(".")[0] not in ("onnx", "torch", "sklearn")
        return real(name, *args, **kwargs)

    for name in [n for n in sys.modules if n.startswith("onehidden.exports")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", guarded)
    importlib.import_module("onehidden.exports")


@pytest.mark.parametrize("q", [None, 2])
def test_several_outputs_and_a_linear_part_are_exported_whole(q, tmp_path):
    rng = np.random.default_rng(3)
    tail = () if q is None else (q,)
    net = OneHiddenNet(
        rng.standard_normal((3, D)), rng.standard_normal((3, *tail)), rng.standard_normal(3),
        rng.standard_normal(tail), "relu", rng.standard_normal((D, *tail)),
    )  # fmt: skip
    bare = OneHiddenNet(net.weights, net.output, net.bias, net.intercept, net.activation)
    expected = net.predict(X[:200])
    assert np.max(np.abs(bare.predict(X[:200]) - expected)) > 1
    module: dict[str, object] = {}
    exec(net.to_python(), module)
    predict = module["predict"]
    assert callable(predict)
    np.testing.assert_allclose([predict(row) for row in X[:20].tolist()], expected[:20], atol=1e-10)
    if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
        import onnxruntime as ort

        net.to_onnx(tmp_path / "net.onnx")
        session = ort.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(session.run(None, {"X": X[:200]})[0], expected, atol=1e-10)
    np.testing.assert_allclose(bare.to_sklearn().predict(X[:200]), bare.predict(X[:200]), atol=1e-10)
    with pytest.raises(ValueError, match="no linear part"):
        net.to_sklearn()
