"""The network as text: Python source that needs no package, and a formula in LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from onehidden.exports.slope import slope_below

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet

# SLOPE stands for the slope below zero of the network's own activation.
_PYTHON = {
    "relu": "max(z, 0.0)",
    "leaky_relu": "z if z > 0 else SLOPE * z",
    "squared_relu": "max(z, 0.0) ** 2",
    "cubed_relu": "max(z, 0.0) ** 3",
    "sigmoid": "1.0 / (1.0 + math.exp(-z)) if z > 0 else math.exp(z) / (1.0 + math.exp(z))",
    "tanh": "math.tanh(z)",
    "erf": "0.5 * math.sqrt(math.pi) * math.erf(z)",
    "softplus": "max(z, 0.0) + math.log1p(math.exp(-abs(z)))",
    "gelu": "0.5 * z * math.erfc(-z / math.sqrt(2.0))",
    "abs": "abs(z)",
    "quadratic": "z * z",
    "linear": "z",
}

_LATEX = {
    "relu": r"\max(t, 0)",
    "leaky_relu": r"\max(t, SLOPE\,t)",
    "squared_relu": r"\max(t, 0)^2",
    "cubed_relu": r"\max(t, 0)^3",
    "sigmoid": r"\frac{1}{1 + e^{-t}}",
    "tanh": r"\tanh t",
    "erf": r"\int_0^t e^{-s^2}\,ds",
    "softplus": r"\log(1 + e^t)",
    "gelu": r"t\,\Phi(t)",
    "abs": r"\lvert t \rvert",
    "quadratic": r"t^2",
    "linear": "t",
}
_WRITTEN_OUT = 60  # entries of A above which a matrix reads better than a sum


def to_python(net: OneHiddenNet, feature_names: Sequence[str] | None = None) -> str:
    """Source of a module with one function ``predict(x)``; it needs the standard library alone.

    Numbers are written so that they read back to the same float64.
    """
    names = _feature_names(net, feature_names)
    rows = "\n".join(f"    {[float(v) for v in row]!r}," for row in net.weights)
    outputs, level = net.output.reshape(net.n_hidden, -1), np.atleast_1d(net.intercept)
    slope = net.linear.reshape(net.n_inputs, -1)
    size = f"{net.n_hidden} units of {net.n_inputs} inputs"
    size += "" if net.output.ndim == 1 else f", {net.n_outputs} outputs"
    answer = "y[0]" if net.output.ndim == 1 else "y"
    return f'''"""y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i): {size}."""

import math

FEATURES = {tuple(names)!r}
A = [
{rows}
]
B = {[float(v) for v in net.bias]!r}
W = {outputs.tolist()!r}
V = {slope.tolist()!r}
C = {level.tolist()!r}


def g(z):
    """{net.activation.name}."""
    return {_spelt_out(_PYTHON, net)}


def predict(x):
    """The network at one row x, numbers in the order of FEATURES."""
    y = list(C)
    for v, xi in zip(V, x):
        y = [yo + vo * xi for yo, vo in zip(y, v)]
    for a, b, w in zip(A, B, W):
        unit = g(sum(ai * xi for ai, xi in zip(a, x)) + b)
        y = [yo + wo * unit for yo, wo in zip(y, w)]
    return {answer}
'''


def to_latex(net: OneHiddenNet, feature_names: Sequence[str] | None = None, digits: int = 4) -> str:
    """The formula in LaTeX (amsmath): written out unit by unit, or as matrices when it is large."""
    if digits < 1:
        raise ValueError(f"digits must be 1 or more, got {digits}")
    where = rf"\qquad g(t) = {_spelt_out(_LATEX, net)}"
    if net.weights.size > _WRITTEN_OUT:
        body = _matrices(net, digits)
    else:
        if feature_names is None:
            symbols = [f"x_{{{j + 1}}}" for j in range(net.n_inputs)]
        else:
            symbols = [rf"\text{{{_escape(name)}}}" for name in _feature_names(net, feature_names)]
        body = " \\\\\n".join(_written_out(*one, symbols, digits) for one in _each_output(net))
    return f"\\[\n\\begin{{aligned}}\n{body} \\\\\n&{where}\n\\end{{aligned}}\n\\]\n"


def _spelt_out(formulas: dict[str, str], net: OneHiddenNet) -> str:
    """The formula of the network's activation."""
    return formulas[net.activation.name].replace("SLOPE", repr(slope_below(net)))


def _each_output(net: OneHiddenNet) -> list[tuple[str, OneHiddenNet]]:
    """The name of each output, and the network of it alone."""
    if net.output.ndim == 1:
        return [(r"\hat y", net)]
    return [
        (
            rf"\hat y_{{{o + 1}}}",
            type(net)(net.weights, w, net.bias, c, net.activation, v),
        )
        for o, (w, c, v) in enumerate(zip(net.output.T, net.intercept, net.linear.T, strict=True))
    ]


def _written_out(name: str, net: OneHiddenNet, symbols: list[str], digits: int) -> str:
    plain = [(v, symbol) for v, symbol in zip(net.linear, symbols, strict=True) if v != 0]
    first = _sum([*([(net.intercept, "")] if net.intercept != 0 else []), *plain], digits)
    lines = []
    for a, b, w in zip(net.weights, net.bias, net.output, strict=True):
        terms = [(v, symbol) for v, symbol in zip(a, symbols, strict=True) if v != 0]
        inside = _sum([*terms, *([(b, "")] if b != 0 else [])], digits) or "0"
        sign = "-" if w < 0 else "+" if lines or first else ""
        lines.append(rf"{sign} {_number(abs(w), digits)}\, g\bigl({inside}\bigr)".strip())
    if first:
        lines[0] = f"{first} {lines[0]}"
    return name + " ={}& " + " \\\\\n& ".join(lines)


def _matrices(net: OneHiddenNet, digits: int) -> str:
    def matrix(values: np.ndarray) -> str:
        rows = (" & ".join(_number(float(v), digits) for v in row) for row in np.atleast_2d(values))
        return r"\begin{bmatrix}" + r" \\ ".join(rows) + r"\end{bmatrix}"

    def column(values: np.ndarray) -> str:
        return matrix(values[:, None] if values.ndim == 1 else values)

    level = _number(net.intercept, digits) if net.output.ndim == 1 else column(net.intercept)
    trend = r" + V^\top x" if net.has_linear else ""
    beside = f",\\quad V = {column(net.linear)}" if net.has_linear else ""
    return (
        rf"\hat y ={{}}& {level}{trend} + w^\top g(A x + b) \\"
        f"\n& A = {matrix(net.weights)} \\\\"
        f"\n& b = {column(net.bias)},\\quad w = {column(net.output)}{beside}"
    )


def _sum(terms: list[tuple[float, str]], digits: int) -> str:
    text = ""
    for value, symbol in terms:
        sign = "-" if value < 0 else "+" if text else ""
        text += f" {sign} {_number(abs(value), digits)}" + (rf"\,{symbol}" if symbol else "")
    return text.strip().replace("- ", "-", 1) if text.startswith(" - ") else text.strip()


def _number(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    mantissa, _, exponent = text.partition("e")
    if not exponent and abs(math.log10(abs(value))) < 15:
        return text
    return rf"{mantissa} \times 10^{{{int(exponent or 0)}}}"


_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}


def _escape(text: str) -> str:
    """A name as plain text: no command of LaTeX survives in it."""
    return "".join(_ESCAPES.get(mark, mark if mark.isprintable() else " ") for mark in str(text))


def _feature_names(net: OneHiddenNet, names: Sequence[str] | None) -> list[str]:
    if names is None:
        return [f"x{j}" for j in range(net.n_inputs)]
    if len(names) != net.n_inputs:
        raise ValueError(f"feature_names must have one name an input ({net.n_inputs}), got {len(names)}")
    return [str(name) for name in names]
