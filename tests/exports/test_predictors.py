"""What ``predict`` computes, exported: the same to 1e-10 as ONNX, as Python source and as an estimator."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers import simulated

import onehidden as oh
from onehidden import families
from onehidden.families import Softmax
from onehidden.run import stream


def fitted(kind, seed=0):
    """A quick fit; what it predicts need not be good, but it must be a mixture in some of them."""
    rng = stream(seed, "exports of predictors", kind)
    X = rng.standard_normal((80, 3))
    eta = 0.7 * X[:, 0] + np.abs(X[:, 1]) - 0.5
    options = dict(max_seconds=6, start="random")
    if kind == "gaussian":
        return X, oh.recover(X, eta + rng.standard_normal(80), 1, **options)
    if kind == "outputs":
        return X, oh.recover(X, np.column_stack([eta, -eta]) + rng.standard_normal((80, 2)), 1, **options)
    if kind == "bounded":
        y = rng.poisson(np.exp(eta)).astype(float)
        r = oh.recover(X, y, 1, family="poisson", **options)
        return X, replace(r, prediction=replace(r.prediction, share=0.5, low=-0.5, high=0.5))
    if kind == "classes":
        code = np.argmax(np.column_stack([0 * eta, eta, X[:, 2]]) + rng.gumbel(size=(80, 3)), axis=1)
        return X, oh.recover(X, np.array(["a", "b", "c"])[code], 1, **options)
    name, link = kind.split(" ")
    family = families.get(name, link)
    eta = 4 * np.abs(eta) + 0.3 if link in ("identity", "inverse", "sqrt") else eta
    y = simulated(family, eta, rng, phi=0.1 if family.scaled else 1.0)
    return X, oh.recover(X, y, 1, family=name, link=link, **options)


KINDS = (
    "gaussian",
    "outputs",
    "classes",
    "bounded",
    *(f"poisson {link}" for link in families.Poisson.links),
    *(f"bernoulli {link}" for link in families.Bernoulli.links),
    "gamma log",
    "gamma inverse",
)


def agree(found, expected):
    scale = np.max(np.abs(expected))
    assert np.max(np.abs(np.asarray(found).reshape(expected.shape) - expected)) <= 1e-10 * max(scale, 1.0)
    assert np.ptp(expected) > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_exports_predict_as_the_recovery_does(kind, tmp_path):
    r = fitted(kind)[1]
    Z = 1.5 * stream(1, "rows of exports").standard_normal((200, 3))
    expected = r.predict(Z)
    scope = {}
    exec(r.to_python(), scope)
    agree([scope["predict"](row) for row in Z.tolist()], expected)
    model = r.to_sklearn()
    if kind == "classes":
        agree(model.predict_proba(Z)[:, 1:], expected)
        assert set(model.predict(Z)) <= {"a", "b", "c"}
        odds = model.decision_function(Z)
        assert np.array_equal(np.argmax(odds, axis=1), np.argmax(model.predict_proba(Z), axis=1))
    else:
        agree(model.predict(Z), expected)
    ort = pytest.importorskip("onnxruntime")
    r.to_onnx(tmp_path / "model.onnx")
    session = ort.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    agree(session.run(None, {"X": Z})[0], expected)
    names = session.get_modelmeta().custom_metadata_map["feature_names"]
    assert json.loads(names) == ["x0", "x1", "x2"]


def test_a_mixture_is_exported_as_the_mixture():
    X, r = fitted("gaussian", 2)
    assert r.prediction.share < 1
    net = {}
    exec(r.network.to_python(), net)
    assert abs(net["predict"](X[0].tolist()) - r.predict(X[:1])[0]) > 1e-6


@pytest.mark.parametrize("classes", [2, 4])
def test_the_mean_of_classes_is_exported(classes):
    """By NumPy as the operators."""
    family = Softmax("softmax", classes)
    eta = stream(3, "softmax").standard_normal((50, classes - 1))
    np.testing.assert_allclose(family.export(np, eta), family.mean(eta), rtol=1e-12)


def test_a_family_without_an_export_is_one_sentence():
    @dataclass(frozen=True)
    class Unwritten(oh.families.Gamma):
        name = "unwritten"
        export = oh.families.Family.export

    with pytest.raises(ValueError, match="the unwritten family cannot be exported: define its method"):
        Unwritten().export(None, 0.0)
