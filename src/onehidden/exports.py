"""A network for others to use: ONNX, PyTorch, scikit-learn, plain Python source."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onehidden.activations import OPERATORS
from onehidden.atomic import write_atomically

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet

__all__ = ["to_onnx", "to_python", "to_sklearn", "to_torch"]


class Operators:
    """Operators of formulas by name, such as ``relu``, ``exp`` and ``maximum``, each a node of an export.

    ``add`` of a subclass makes a value by the name of an operator and its inputs.
    """

    def __getattr__(self, name: str) -> Any:
        return partial(self.add, name)


def _binary(op: str, reverse: bool = False) -> Callable[[Value, Value | npt.ArrayLike], Value]:
    """An operator of a value and another operand, which is the first one in reverse."""
    return lambda one, other: one.of.add(op, *((other, one) if reverse else (one, other)))


@dataclass(frozen=True)
class Value:
    """A value of an export, by its name or its text; arithmetic gives further ones."""

    of: Operators
    name: str
    __array_ufunc__ = None  # numbers of NumPy leave arithmetic to this class

    __add__ = __radd__ = _binary("add")
    __mul__ = __rmul__ = _binary("mul")
    __sub__, __rsub__ = _binary("sub"), _binary("sub", reverse=True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", reverse=True)
    __matmul__ = _binary("matmul")

    def __neg__(self) -> Value:
        return 0.0 - self


def to_onnx(
    net: OneHiddenNet,
    path: str | Path,
    feature_names: Sequence[str] | None = None,
    prediction: Any = None,
    family: Any = None,
) -> None:
    """Write the network as an ONNX graph in float64, with input ``X`` (n, d) and output ``y``.

    Parameters
    ----------
    net : OneHiddenNet
        The network.
    path : str or Path
        The file to write. The package ``onnx`` is needed (``pip install 'onehidden[onnx]'``).
    feature_names : sequence of str, optional
        Names of the inputs, kept as the property ``feature_names`` of the model, a JSON list.
    prediction, family : Prediction and Family, optional
        What a recovery makes of the network; ``Recovery.to_onnx`` gives them.
    """
    onnx = _package("onnx", "writing ONNX", "'onehidden[onnx]'")
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    o = OnnxGraph(onnx)
    X = Value(o, "X")
    out = net.activation.export(o, X @ net.weights.T + net.bias) @ net.output
    if net.has_linear:
        out = out + X @ net.linear
    out = out + net.intercept
    if not (prediction is None or prediction.alone):
        line = X @ prediction.line.slope + prediction.line.level
        out = line + prediction.share * o.minimum(o.maximum(out - line, prediction.low), prediction.high)
    if family is not None:
        out = family.export(o, out)
    o.add("identity", out, name="y")
    model = helper.make_model(
        helper.make_graph(
            o.nodes,
            "onehidden",
            [helper.make_tensor_value_info("X", double, ["n", net.n_inputs])],
            [helper.make_tensor_value_info("y", double, ["n", *net.output.shape[1:]])],
            o.constants,
        ),
        producer_name="onehidden",
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,  # came with opset 17: old runtimes read it, too
    )
    props = {"activation": net.activation.name}
    if feature_names is not None:
        props["feature_names"] = json.dumps(_feature_names(net, feature_names))
    helper.set_model_props(model, props)
    onnx.checker.check_model(model, full_check=True)
    write_atomically(Path(path), model.SerializeToString())


class OnnxGraph(Operators):
    """An ONNX graph under construction; what ONNX Runtime lacks in double precision is composed."""

    def __init__(self, onnx: ModuleType) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, op: str, *inputs: Value | npt.ArrayLike, name: str | None = None) -> Value:
        """A node; inputs that are numbers become constants."""
        name = name or f"t{len(self.nodes)}"
        names = [one.name if isinstance(one, Value) else self._constant(one) for one in inputs]
        kind = {"maximum": "Max", "minimum": "Min", "matmul": "MatMul"}.get(op, op.capitalize())
        self.nodes.append(self._onnx.helper.make_node(kind, names, [name]))
        return Value(self, name)

    def _constant(self, value: npt.ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=np.float64, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def expm1(self, z: Value) -> Value:
        return self.exp(z) - 1.0

    def softplus(self, z: Value) -> Value:
        return self.relu(z) + self.log(1.0 + self.exp(-self.abs(z)))

    def ndtr(self, z: Value) -> Value:
        return 0.5 * (1.0 + self.erf(0.5**0.5 * z))

    def erf(self, z: Value) -> Value:
        """sign(z) (1 - erfc|z|), erfc by its Chebyshev series, exact to a few 1e-16."""
        size = self.abs(z)
        t = 2.0 / (size + 2.0)
        return self.sign(z) * (1.0 - t * _chebyshev(erfc_coefficients(), t) * self.exp(-(size * size)))

    def atan(self, z: Value) -> Value:
        """From the arc of min(|z|, 1/|z|) by a Chebyshev series."""
        size = self.abs(z)
        t = self.minimum(size, 1.0) / self.maximum(size, 1.0)
        arc = t * _chebyshev(atan_coefficients(), t * t)
        return self.sign(z) * (0.25 * np.pi + self.sign(size - 1.0) * (0.25 * np.pi - arc))


def _chebyshev(coefficients: np.ndarray, t: Value) -> Value:
    """A Chebyshev series in 2t - 1, by Clenshaw: b_j = 2s b_{j+1} - b_{j+2} + c_j, s b_1 - b_2 + c_0."""
    doubled = 4.0 * t - 2.0
    last, before = 0.0 * t + coefficients[-1], 0.0 * t
    for c in coefficients[-2:0:-1]:
        last, before = doubled * last - before + c, last
    return 0.5 * doubled * last - before + coefficients[0]


def erfc_coefficients(degree: int = 27) -> np.ndarray:
    """Chebyshev coefficients, in 2t - 1, of P(t) = erfc(z) e^{z^2} / t with t = 2 / (2 + z), z >= 0."""
    from scipy.special import erfcx

    s = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    t = 0.5 * (s + 1)
    return np.polynomial.chebyshev.chebfit(s, erfcx(2 / t - 2) / t, degree)


def atan_coefficients(degree: int = 21) -> np.ndarray:
    """Chebyshev coefficients, in 2t - 1, of atan(z) / z with t = z^2 <= 1."""
    z = np.sqrt((np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1)) + 1) / 2)
    return np.polynomial.chebyshev.chebfit(2 * z**2 - 1, np.arctan(z) / z, degree)


def to_torch(net: OneHiddenNet) -> Any:
    """Convert the network to PyTorch, in float64, with trainable ``hidden`` and ``readout``.

    A linear part is the layer ``beside``.

    Parameters
    ----------
    net : OneHiddenNet
        The network.

    Returns
    -------
    torch.nn.Module
        The same function, (n, d) -> (n,) or (n, q).
    """
    torch = _package("torch", "to_torch", "torch")
    own = {"softplus": lambda z: torch.logaddexp(z, torch.zeros_like(z)), "ndtr": torch.special.ndtr}
    rest = {name: getattr(torch, name) for name in OPERATORS if name not in own}
    operators = SimpleNamespace(**own, **rest)

    class OneHiddenModule(torch.nn.Module):
        """y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i)."""

        def __init__(self) -> None:
            super().__init__()
            self.hidden = torch.nn.Linear(net.n_inputs, net.n_hidden, dtype=torch.float64)
            self.readout = torch.nn.Linear(net.n_hidden, net.n_outputs, dtype=torch.float64)
            if net.has_linear:
                self.beside = torch.nn.Linear(net.n_inputs, net.n_outputs, bias=False, dtype=torch.float64)

        def forward(self, x: object) -> object:
            out = self.readout(net.activation.export(operators, self.hidden(x)))
            out = out + self.beside(x) if net.has_linear else out
            return out.squeeze(-1) if net.output.ndim == 1 else out

    module = OneHiddenModule()
    with torch.no_grad():
        module.hidden.weight.copy_(torch.tensor(net.weights))
        module.hidden.bias.copy_(torch.tensor(net.bias))
        module.readout.weight.copy_(torch.tensor(net.output.reshape(net.n_hidden, -1).T))
        module.readout.bias.copy_(torch.tensor(np.atleast_1d(net.intercept)))
        if net.has_linear:
            module.beside.weight.copy_(torch.tensor(net.linear.reshape(net.n_inputs, -1).T))
    return module


def to_sklearn(net: OneHiddenNet) -> Any:
    """Convert the network to scikit-learn.

    Parameters
    ----------
    net : OneHiddenNet
        The network.

    Returns
    -------
    sklearn.neural_network.MLPRegressor
        The same function, as a fitted estimator.

    Raises
    ------
    ValueError
        For a linear part, and for an activation that scikit-learn does not have.
    """
    from sklearn.neural_network import MLPRegressor

    name = net.activation.name
    theirs = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "linear": "identity"}
    if name not in theirs or net.has_linear:
        lacking = "linear part" if net.has_linear else f"{name} activation, only {', '.join(theirs)}"
        raise ValueError(
            f"scikit-learn's MLPRegressor has no {lacking}: use OneHiddenNet.predict, to_onnx or to_torch "
            "instead"
        )
    model = MLPRegressor(hidden_layer_sizes=(net.n_hidden,), activation=theirs[name])
    model.coefs_ = [net.weights.T.copy(), net.output.reshape(net.n_hidden, -1).copy()]
    model.intercepts_ = [net.bias.copy(), np.atleast_1d(net.intercept).astype(float)]
    model.n_features_in_ = net.n_inputs  # pyright: ignore[reportAttributeAccessIssue]
    model.n_layers_, model.n_outputs_, model.n_iter_, model.t_ = 3, net.n_outputs, 0, 0
    model.out_activation_ = "identity"
    return model


class PythonSource(Operators):
    """Formulas as expressions of Python, by the functions at the head of ``to_python``."""

    def add(self, op: str, *inputs: Value | npt.ArrayLike) -> Value:
        """A text; inputs that are numbers are written so that they read back the same."""
        texts = [one.name if isinstance(one, Value) else repr(float(np.asarray(one))) for one in inputs]
        sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}.get(op)
        return Value(self, f"({texts[0]} {sign} {texts[1]})" if sign else f"{op}({', '.join(texts)})")


def to_python(
    net: OneHiddenNet, feature_names: Sequence[str] | None = None, prediction: Any = None, family: Any = None
) -> str:
    """Python source of a function ``predict(x)`` that needs only the standard library.

    Numbers are written so that they read back to the same float64. ``prediction`` and ``family`` are what a
    recovery makes of the network; ``Recovery.to_python`` gives them.
    """
    o, single = PythonSource(), net.output.ndim == 1
    size = f"{net.n_hidden} units of {net.n_inputs} inputs"
    size += "" if single else f", {net.n_outputs} outputs"
    coupled = family is not None and family.coupled
    mean = Value(o, "t") if family is None or coupled else family.export(o, Value(o, "t"))
    last = f"[{mean.name} for t in y]"
    if coupled:
        last = "[exp(t) / (1.0 + sum(exp(u) for u in y)) for t in y]"
    rows = "\n".join(f"    {row!r}," for row in net.weights.tolist())
    return f'''"""y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i): {size}."""

import math
from math import atan, erf, expm1, inf, log, sin, sqrt, tanh

FEATURES = {tuple(_feature_names(net, feature_names))!r}
A = [
{rows}
]
B = {net.bias.tolist()!r}
W = {net.output.reshape(net.n_hidden, -1).T.tolist()!r}
V = {net.linear.reshape(net.n_inputs, -1).T.tolist()!r}
C = {np.atleast_1d(net.intercept).tolist()!r}


def exp(z):
    return math.exp(z) if z < 709.0 else inf


def relu(z):
    return max(z, 0.0)


def sigmoid(z):
    return exp(min(z, 0.0)) / (1.0 + exp(-abs(z)))


def softplus(z):
    return max(z, 0.0) + math.log1p(exp(-abs(z)))


def ndtr(z):
    return 0.5 * math.erfc(-z / sqrt(2.0))


def sign(z):
    return (z > 0.0) - (z < 0.0)


minimum, maximum = min, max


def dot(a, x):
    return sum(ai * xi for ai, xi in zip(a, x))


def g(z):
    """{net.activation.name}."""
    return {net.activation.export(o, Value(o, "z")).name}


def predict(x):
    """The prediction at one row x, numbers in the order of FEATURES."""
    units = [g(dot(a, x) + b) for a, b in zip(A, B)]
    y = [c + dot(v, x) + dot(w, units) for c, v, w in zip(C, V, W)]
{_mixture_in_python(prediction, net.n_outputs)}    mean = {last}
    return {"mean[0]" if single else "mean"}
'''


def _mixture_in_python(prediction: Any, outputs: int) -> str:
    """Source of the linear predictor from the network's output y and a penalised linear model."""
    if prediction is None or prediction.alone:
        return ""
    slope = np.asarray(prediction.line.slope, float).reshape(-1, outputs).T.tolist()
    each = (prediction.line.level, prediction.low, prediction.high)
    level, low, high = (np.broadcast_to(one, outputs).astype(float).tolist() for one in each)
    share = float(prediction.share)
    return f"""    line = [c + dot(v, x) for c, v in zip({level!r}, {slope!r})]
    y = [l + {share!r} * min(max(o - l, a), b) for o, l, a, b in zip(y, line, {low!r}, {high!r})]
"""


def _package(name: str, what: str, install: str) -> Any:
    """An optional package, or one sentence that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ValueError(
            f"{what} needs the package {name}, which is not installed: pip install {install}"
        ) from None


def _feature_names(net: OneHiddenNet, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [f"x{j}" for j in range(net.n_inputs)]
    if len(names) != net.n_inputs:
        raise ValueError(f"feature_names must have one name an input ({net.n_inputs}), got {len(names)}")
    return [str(name) for name in names]
