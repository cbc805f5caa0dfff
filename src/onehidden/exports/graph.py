"""ONNX export: one float64 graph, built only from operators that run in double precision."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onehidden.exports.slope import slope_below
from onehidden.whole import write_whole

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet

OPSET = 17
IR_VERSION = 8  # what opset 17 came with: old runtimes read it too


def to_onnx(net: OneHiddenNet, path: str | Path) -> None:
    """Write the network as an ONNX graph: input ``X`` (n, d), output ``y`` (n,) or (n, q), both float64.

    Where ONNX Runtime has no double kernel (Erf, Softplus, Gelu) or an attribute would be rounded to
    float32 (LeakyRelu), the activation is spelt out in elementary operators instead.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        raise ValueError(
            "writing ONNX needs the package onnx, which is not installed: pip install 'onehidden[onnx]'"
        ) from None
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    graph = _Graph(onnx, slope_below(net))
    z = graph.add("Add", graph.add("MatMul", "X", graph.constant(net.weights.T)), graph.constant(net.bias))
    hidden = _ACTIVATIONS[net.activation.name](graph, z)
    out = graph.add("MatMul", hidden, graph.constant(net.output))
    if net.has_linear:
        out = graph.add("Add", out, graph.add("MatMul", "X", graph.constant(net.linear)))
    graph.add("Add", out, graph.constant(net.intercept), name="y")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "onehidden",
            [helper.make_tensor_value_info("X", double, ["n", net.n_inputs])],
            [helper.make_tensor_value_info("y", double, ["n", *net.output.shape[1:]])],
            graph.constants,
        ),
        producer_name="onehidden",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(model, {"activation": net.activation.name})
    onnx.checker.check_model(model, full_check=True)
    write_whole(Path(path), model.SerializeToString())


class _Graph:
    """Nodes and constants under construction; every method returns the name of a tensor.

    ``below`` is the slope of the activation below zero, where it has one.
    """

    def __init__(self, onnx: ModuleType, below: float) -> None:
        self._onnx, self.below = onnx, below
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, op: str, *inputs: str, name: str | None = None) -> str:
        name = name or f"t{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(op, list(inputs), [name]))
        return name

    def constant(self, value: npt.ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=np.float64, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def scaled(self, factor: float, x: str) -> str:
        return self.add("Mul", x, self.constant(factor))

    def shifted(self, x: str, shift: float) -> str:
        return self.add("Add", x, self.constant(shift))


def _power(q: int) -> Callable[[_Graph, str], str]:
    def build(graph: _Graph, z: str) -> str:
        base = power = graph.add("Relu", z)
        for _ in range(q - 1):
            power = graph.add("Mul", power, base)
        return power

    return build


def _softplus(graph: _Graph, z: str) -> str:
    # log(1 + e^z) = max(z, 0) + log(1 + e^{-|z|}): never overflows.
    decay = graph.add("Exp", graph.add("Neg", graph.add("Abs", z)))
    return graph.add("Add", graph.add("Relu", z), graph.add("Log", graph.shifted(decay, 1.0)))


def erfc_coefficients(degree: int = 27) -> np.ndarray:
    """Chebyshev coefficients, in 2t - 1, of P(t) = erfc(z) e^{z^2} / t with t = 2 / (2 + z), z >= 0."""
    from scipy.special import erfcx

    s = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    t = 0.5 * (s + 1)
    return np.polynomial.chebyshev.chebfit(s, erfcx(2 / t - 2) / t, degree)


def _erf(graph: _Graph, z: str) -> str:
    """erf z = sign(z) (1 - erfc|z|), erfc by its Chebyshev series: exact to a few 1e-16."""
    size = graph.add("Abs", z)
    t = graph.add("Div", graph.constant(2.0), graph.shifted(size, 2.0))
    doubled = graph.shifted(graph.scaled(4.0, t), -2.0)
    coefficients = erfc_coefficients()
    # Clenshaw: b_j = 2s b_{j+1} - b_{j+2} + c_j; the sum is s b_1 - b_2 + c_0.
    last, before = graph.constant(coefficients[-1]), graph.constant(0.0)
    for c in coefficients[-2:0:-1]:
        step = graph.add("Sub", graph.add("Mul", doubled, last), before)
        last, before = graph.shifted(step, float(c)), last
    s = graph.scaled(0.5, doubled)
    tail = graph.shifted(graph.add("Sub", graph.add("Mul", s, last), before), float(coefficients[0]))
    gauss = graph.add("Exp", graph.add("Neg", graph.add("Mul", size, size)))
    erfc = graph.add("Mul", graph.add("Mul", t, tail), gauss)
    return graph.add("Mul", graph.add("Sign", z), graph.add("Sub", graph.constant(1.0), erfc))


def _papers_erf(graph: _Graph, z: str) -> str:
    # The factor goes before the sign: ONNX Runtime would fuse a scalar factor next to MatMul as a float32.
    scaled = graph.scaled(0.5 * np.sqrt(np.pi), _erf(graph, graph.add("Abs", z)))
    return graph.add("Mul", graph.add("Sign", z), scaled)


def _gelu(graph: _Graph, z: str) -> str:
    cdf = graph.scaled(0.5, graph.shifted(_erf(graph, graph.scaled(np.sqrt(0.5), z)), 1.0))
    return graph.add("Mul", z, cdf)


_ACTIVATIONS: dict[str, Callable[[_Graph, str], str]] = {
    "relu": _power(1),
    "leaky_relu": lambda graph, z: graph.add("Max", z, graph.scaled(graph.below, z)),
    "squared_relu": _power(2),
    "cubed_relu": _power(3),
    "sigmoid": lambda graph, z: graph.add("Sigmoid", z),
    "tanh": lambda graph, z: graph.add("Tanh", z),
    "erf": _papers_erf,
    "softplus": _softplus,
    "gelu": _gelu,
    "abs": lambda graph, z: graph.add("Abs", z),
    "quadratic": lambda graph, z: graph.add("Mul", z, z),
    "linear": lambda graph, z: graph.add("Identity", z),
}
