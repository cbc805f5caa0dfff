"""A network for others to use: ONNX, PyTorch, scikit-learn, plain Python source, LaTeX."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from onehidden.atomic import write_atomically

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet

__all__ = ["to_latex", "to_onnx", "to_python", "to_sklearn", "to_torch"]


@runtime_checkable
class MeanOfFamily(Protocol):
    """What an export needs of a family: the mean of y at a linear predictor."""

    coupled: ClassVar[bool]

    @property
    def text(self) -> str: ...

    def export(self, o: Any, eta: Any) -> Any: ...


@runtime_checkable
class BoundedLine(Protocol):
    """x -> <slope, x> + level between bounds; slope (d,) or (d, q), the others numbers or (q,)."""

    @property
    def slope(self) -> np.ndarray: ...

    @property
    def level(self) -> Any: ...

    @property
    def least(self) -> Any: ...

    @property
    def most(self) -> Any: ...


@dataclass(frozen=True)
class Predictor:
    """What a recovery predicts: mean(l + share * clip(N - l, low, high)), l a linear function of x.

    Attributes
    ----------
    line : BoundedLine
        l, between bounds of its own.
    share, low, high : float, and numbers or (q,)
        How much of the network N is added to it, and between which bounds; all of it where the share is 1 and
        the bounds are infinite.
    family : MeanOfFamily or None
        Its link leads from the linear predictor to the mean of y.
    """

    line: BoundedLine
    share: float
    low: Any
    high: Any
    family: MeanOfFamily | None = None

    @property
    def alone(self) -> bool:
        """Whether the linear predictor is the network."""
        return self.share == 1 and bool(np.all(np.isinf([self.low, self.high])))


def to_onnx(
    net: OneHiddenNet,
    path: str | Path,
    predictor: Predictor | None = None,
    feature_names: Sequence[str] | None = None,
) -> None:
    """Write the network as an ONNX graph in float64, with input ``X`` (n, d) and output ``y``.

    Parameters
    ----------
    net : OneHiddenNet
        The network.
    path : str or Path
        The file to write. The package ``onnx`` is needed (``pip install 'onehidden[onnx]'``).
    predictor : Predictor, optional
        What a recovery makes of the network; ``Recovery.to_onnx`` gives it.
    feature_names : sequence of str, optional
        Names of the inputs, kept as the property ``feature_names`` of the model, a JSON list.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError:
        raise ValueError(
            "writing ONNX needs the package onnx, which is not installed: pip install 'onehidden[onnx]'"
        ) from None
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    graph = Graph(onnx)
    X = Tensor(graph, "X")
    hidden = net.activation.export(graph, X @ net.weights.T + net.bias)
    out = hidden @ net.output
    if net.has_linear:
        out = out + X @ net.linear
    out = out + net.intercept
    if predictor is not None:
        if not predictor.alone:
            line = X @ predictor.line.slope + predictor.line.level
            line = graph.minimum(graph.maximum(line, predictor.line.least), predictor.line.most)
            added = graph.minimum(graph.maximum(out - line, predictor.low), predictor.high)
            out = line + predictor.share * added
        out = out if predictor.family is None else predictor.family.export(graph, out)
    graph.add("Identity", out, name="y")
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "onehidden",
            [helper.make_tensor_value_info("X", double, ["n", net.n_inputs])],
            [helper.make_tensor_value_info("y", double, ["n", *net.output.shape[1:]])],
            graph.constants,
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


def _binary(op: str, reverse: bool = False) -> Callable[[Tensor, Tensor | npt.ArrayLike], Tensor]:
    """An operator of a tensor and another operand, which is the first one in reverse."""
    return lambda one, other: one.graph.add(op, *((other, one) if reverse else (one, other)))


class Graph:
    """An ONNX graph under construction, with the operators that ``Activation.export`` may use."""

    def __init__(self, onnx: ModuleType) -> None:
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, op: str, *inputs: Tensor | npt.ArrayLike, name: str | None = None) -> Tensor:
        """A node; inputs that are numbers become constants."""
        name = name or f"t{len(self.nodes)}"
        names = [one.name if isinstance(one, Tensor) else self._constant(one) for one in inputs]
        self.nodes.append(self._onnx.helper.make_node(op, names, [name]))
        return Tensor(self, name)

    def _constant(self, value: npt.ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        array = np.array(value, dtype=np.float64, order="C")
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def __getattr__(self, name: str) -> Any:
        """The operators that are one node, such as relu, exp, tanh, maximum and divide."""
        operators = ("relu", "abs", "sign", "exp", "log", "tanh", "sigmoid", "sin")
        names = {one: one.capitalize() for one in operators}
        names |= {"maximum": "Max", "minimum": "Min", "divide": "Div"}
        if name not in names:
            raise AttributeError(f"an ONNX graph of this library has no operator {name}")
        return partial(self.add, names[name])

    def erf(self, z: Tensor) -> Tensor:
        """sign(z) (1 - erfc|z|), erfc by its Chebyshev series, exact to a few 1e-16."""
        size = self.abs(z)
        t = self.add("Div", 2.0, size + 2.0)
        series = self._chebyshev(erfc_coefficients(), t)
        return self.sign(z) * (1.0 - t * series * self.exp(-(size * size)))

    def atan(self, z: Tensor) -> Tensor:
        """From the arc of min(|z|, 1/|z|) by a Chebyshev series: ONNX Runtime has none in double."""
        size = self.abs(z)
        t = self.divide(self.minimum(size, 1.0), self.maximum(size, 1.0))
        arc = t * self._chebyshev(atan_coefficients(), t * t)
        return self.sign(z) * (0.25 * np.pi + self.sign(size - 1.0) * (0.25 * np.pi - arc))

    def _chebyshev(self, coefficients: np.ndarray, t: Tensor) -> Tensor:
        """A Chebyshev series in 2t - 1, by Clenshaw: b_j = 2s b_{j+1} - b_{j+2} + c_j, s b_1 - b_2 + c_0."""
        doubled = 4.0 * t - 2.0
        last, before = 0.0 * t + coefficients[-1], 0.0 * t
        for c in coefficients[-2:0:-1]:
            last, before = doubled * last - before + c, last
        return 0.5 * doubled * last - before + coefficients[0]


@dataclass(frozen=True)
class Tensor:
    """A named value of a graph; arithmetic adds nodes to it."""

    graph: Graph
    name: str

    __add__ = __radd__ = _binary("Add")
    __mul__ = __rmul__ = _binary("Mul")
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", reverse=True)
    __matmul__ = _binary("MatMul")

    def __neg__(self) -> Tensor:
        return self.graph.add("Neg", self)


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
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ValueError("to_torch needs PyTorch, which is not installed: pip install torch") from None
    export = net.activation.export

    class OneHiddenModule(torch.nn.Module):
        """y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i)."""

        def __init__(self) -> None:
            super().__init__()
            self.hidden = torch.nn.Linear(net.n_inputs, net.n_hidden, dtype=torch.float64)
            self.readout = torch.nn.Linear(net.n_hidden, net.n_outputs, dtype=torch.float64)
            if net.has_linear:
                self.beside = torch.nn.Linear(net.n_inputs, net.n_outputs, bias=False, dtype=torch.float64)

        def forward(self, x: object) -> object:
            out = self.readout(export(torch, self.hidden(x)))
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
        For an activation that scikit-learn does not have, and for a linear part next to units that cannot
        represent one exactly (ReLU can: v = relu(v) - relu(-v)).
    """
    from sklearn.neural_network import MLPRegressor

    name = net.activation.name
    theirs = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "linear": "identity"}
    if name not in theirs:
        raise ValueError(
            f"scikit-learn's MLPRegressor has no {name} activation, only {', '.join(theirs)}: use "
            "OneHiddenNet.predict, to_onnx or to_torch instead"
        )
    weights, bias, output = net.weights, net.bias, net.output.reshape(net.n_hidden, -1)
    if net.has_linear:
        signs = {"relu": (1.0, -1.0), "linear": (1.0,)}.get(name)  # of the units that make a linear function
        if signs is None:
            raise ValueError(
                f"scikit-learn's MLPRegressor has no linear part beside {name} units: use "
                "OneHiddenNet.predict, to_onnx or to_torch instead"
            )
        rows = net.linear.reshape(net.n_inputs, -1).T
        for sign in signs:
            weights, output = np.vstack([weights, sign * rows]), np.vstack([output, sign * np.eye(len(rows))])
            bias = np.append(bias, np.zeros(len(rows)))
    model = MLPRegressor(hidden_layer_sizes=(len(weights),), activation=theirs[name])
    model.coefs_ = [weights.T.copy(), output.copy()]
    model.intercepts_ = [bias.copy(), np.atleast_1d(net.intercept).astype(float)]
    model.n_features_in_ = net.n_inputs  # pyright: ignore[reportAttributeAccessIssue]
    model.n_layers_, model.n_outputs_, model.n_iter_, model.t_ = 3, net.n_outputs, 0, 0
    model.out_activation_ = "identity"
    return model


def to_python(
    net: OneHiddenNet, feature_names: Sequence[str] | None = None, predictor: Predictor | None = None
) -> str:
    """Python source of a function ``predict(x)`` that needs only the standard library.

    Numbers are written so that they read back to the same float64.

    Parameters
    ----------
    net : OneHiddenNet
        The network.
    feature_names : sequence of str, optional
        Names of the inputs.
    predictor : Predictor, optional
        What a recovery makes of the network; ``Recovery.to_python`` gives it.

    Returns
    -------
    str
        The source of a module.
    """
    names = _feature_names(net, feature_names)
    rows = "\n".join(f"    {row!r}," for row in net.weights.tolist())
    outputs, level = net.output.reshape(net.n_hidden, -1), np.atleast_1d(net.intercept)
    size = f"{net.n_hidden} units of {net.n_inputs} inputs"
    size += "" if net.output.ndim == 1 else f", {net.n_outputs} outputs"
    single = net.output.ndim == 1
    guard = "" if predictor is None else _predictor_in_python(predictor, single)
    last = "return y[0]" if single else "return y"
    if predictor is not None:
        last = "return mean(mixed(x, y))"
    return f'''"""y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i): {size}."""

import math

FEATURES = {tuple(names)!r}
A = [
{rows}
]
B = {net.bias.tolist()!r}
W = {outputs.tolist()!r}
V = {net.linear.reshape(net.n_inputs, -1).tolist()!r}
C = {level.tolist()!r}


def g(z):
    """{net.activation.name}."""
    return {net.activation.written("text")}


def predict(x):
    """The network at one row x, numbers in the order of FEATURES."""
    y = list(C)
    for v, xi in zip(V, x):
        y = [yo + vo * xi for yo, vo in zip(y, v)]
    for a, b, w in zip(A, B, W):
        unit = g(sum(ai * xi for ai, xi in zip(a, x)) + b)
        y = [yo + wo * unit for yo, wo in zip(y, w)]
    {last}
{guard}'''


def _predictor_in_python(predictor: Predictor, single: bool) -> str:
    """Source of ``mixed``, the linear predictor, and of ``mean``."""
    line = predictor.line
    slope = np.asarray(line.slope, float).reshape(len(line.slope), -1)
    size = slope.shape[1]

    def listed(values: Any) -> str:
        found = np.broadcast_to(np.asarray(values, float), (size,)).tolist()
        return "[" + ", ".join(f"float({str(v)!r})" if math.isinf(v) else repr(v) for v in found) + "]"

    mixed = "    return y\n"
    if not predictor.alone:
        mixed = f"""    line = {listed(line.level)}
    for v, xi in zip({slope.tolist()!r}, x):
        line = [lo + vo * xi for lo, vo in zip(line, v)]
    least, most = {listed(line.least)}, {listed(line.most)}
    line = [min(max(l, a), b) for l, a, b in zip(line, least, most)]
    low, high = {listed(predictor.low)}, {listed(predictor.high)}
    return [l + {predictor.share!r} * min(max(o - l, a), b) for o, l, a, b in zip(y, line, low, high)]
"""
    family = predictor.family
    if family is not None and family.coupled:
        mean = "    odds = [math.exp(t) for t in eta]\n    return [o / (1 + sum(odds)) for o in odds]\n"
    else:
        text = "t" if family is None else family.text
        each = f"[{text} for t in eta]"
        mean = f"    return {each}{'[0]' if single else ''}\n"
    return f'''

def mixed(x, y):
    """The linear predictor: the network's output y beside a penalised linear model."""
{mixed}

def mean(eta):
    """The mean of the target at a linear predictor."""
{mean}'''


def to_latex(
    net: OneHiddenNet, feature_names: Sequence[str] | None = None, digits: int = 4, most_weights: int = 60
) -> str:
    """The formula in LaTeX (amsmath).

    Parameters
    ----------
    net : OneHiddenNet
        The network.
    feature_names : sequence of str, optional
        Names of the inputs.
    digits : int
        Significant digits of the numbers.
    most_weights : int
        Number of weights above which the formula is written with matrices.

    Returns
    -------
    str
        The formula, unit by unit or as matrices.
    """
    if digits < 1:
        raise ValueError(f"digits must be 1 or more, got {digits}")
    if net.weights.size > most_weights:
        body = _matrices(net, digits)
    else:
        symbols = [f"x_{{{j + 1}}}" for j in range(net.n_inputs)]
        if feature_names is not None:
            symbols = [rf"\text{{{_escaped(name)}}}" for name in _feature_names(net, feature_names)]
        several = net.output.ndim == 2
        body = " \\\\\n".join(
            _written_out(rf"\hat y_{{{o + 1}}}" if several else r"\hat y", net.one_output(o), symbols, digits)
            for o in range(net.n_outputs)
        )
    where = rf"\qquad g(t) = {net.activation.written('latex')}"
    return f"\\[\n\\begin{{aligned}}\n{body} \\\\\n&{where}\n\\end{{aligned}}\n\\]\n"


def _written_out(name: str, net: OneHiddenNet, symbols: list[str], digits: int) -> str:
    first = _sum([net.intercept, *net.linear], ["", *symbols], digits)
    lines = []
    for a, b, w in zip(net.weights, net.bias, net.output, strict=True):
        inside = _sum([*a, b], [*symbols, ""], digits) or "0"
        sign = "-" if w < 0 else "+" if lines or first else ""
        lines.append(rf"{sign} {_number(abs(w), digits)}\, g\bigl({inside}\bigr)".strip())
    if first:
        lines[0] = f"{first} {lines[0]}"
    return name + " ={}& " + " \\\\\n& ".join(lines)


def _matrices(net: OneHiddenNet, digits: int) -> str:
    def matrix(values: np.ndarray) -> str:
        columns = values[:, None] if values.ndim == 1 else values
        rows = (" & ".join(_number(float(v), digits) for v in row) for row in columns)
        return r"\begin{bmatrix}" + r" \\ ".join(rows) + r"\end{bmatrix}"

    level = _number(net.intercept, digits) if net.output.ndim == 1 else matrix(net.intercept)
    trend = r" + V^\top x" if net.has_linear else ""
    beside = f",\\quad V = {matrix(net.linear)}" if net.has_linear else ""
    return (
        rf"\hat y ={{}}& {level}{trend} + w^\top g(A x + b) \\"
        f"\n& A = {matrix(net.weights)} \\\\"
        f"\n& b = {matrix(net.bias)},\\quad w = {matrix(net.output)}{beside}"
    )


def _sum(values: Sequence[float], symbols: Sequence[str], digits: int) -> str:
    """A sum of numbers times symbols, zeros left out."""
    text = ""
    for value, symbol in zip(values, symbols, strict=True):
        if value != 0:
            sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
            text += f"{sign}{_number(abs(value), digits)}" + (rf"\,{symbol}" if symbol else "")
    return text


def _number(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    if not exponent and abs(math.log10(abs(value))) < 15:
        return text
    return rf"{mantissa} \times 10^{{{int(exponent or 0)}}}"


def _escaped(text: str) -> str:
    """A name as plain text: no command of LaTeX survives in it."""
    named = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    escapes = named | {letter: f"\\{letter}" for letter in "&%$#_{}"}
    return "".join(escapes.get(one, one if one.isprintable() else " ") for one in str(text))


def _feature_names(net: OneHiddenNet, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [f"x{j}" for j in range(net.n_inputs)]
    if len(names) != net.n_inputs:
        raise ValueError(f"feature_names must have one name an input ({net.n_inputs}), got {len(names)}")
    return [str(name) for name in names]
