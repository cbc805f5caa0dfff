"""The network written out with its numbers and the names of the columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehidden.report.effects import Effects
from onehidden.report.marks import left_open
from onehidden.report.numbers import plural, short
from onehidden.report.subject import Subject

_WRITTEN = {"relu": "max(0, {})", "abs": "|{}|", "linear": "({})", "quadratic": "({})²"}
_DIGITS = 3
_WHOLE = 1e6  # numbers below it are written without a power of ten


def formula(subject: Subject, found: Effects, units: Sequence[int], most_inputs: int) -> tuple[str, ...]:
    """A line for y and the constant, then one for each of these units; what is cut is said.

    Where only w and the length of a together are determined and g has degree one, w stands inside: the
    numbers are then slopes of y. Behind each unit stands its number, and a question mark where the data leave
    it open.
    """
    net = subject.net
    target = str(dict(subject.get("options", {})).get("target", "y"))
    level = float(net.intercept)
    # Rounding is no number: what is far below all the rest is left out.
    tiny = 1e-12 * max(float(np.max(np.abs(net.output[:, None] * net.weights))), abs(level))
    lines = [f"{target} ≈ {_figure(level if abs(level) > tiny else 0.0)}"]
    inside = net.activation.homogeneity == 1
    for i in units:
        scale = abs(net.output[i]) if inside else 1.0
        chosen = found.largest(i, most_inputs)
        terms = [(scale * float(net.weights[i, j]), subject.names[j]) for j in chosen]
        terms = [(value, name) for value, name in terms if abs(value) > tiny]
        bias = scale * float(net.bias[i])
        body = _sum(terms, bias if abs(bias) > tiny else 0.0, len(chosen) < net.n_inputs)
        unit = _WRITTEN.get(net.activation.name, net.activation.name + "({})").format(body)
        sign = "−" if net.output[i] < 0 else "+"
        factor = "" if inside else f"{_figure(abs(float(net.output[i])))} "
        mark = " (?)" if left_open(subject.unit(i)) else ""
        lines.append(f"{sign} {factor}{unit} [{i + 1}]{mark}")
    if more := net.n_hidden - len(units):
        lines.append(f"+ … ({more} more {plural(more, 'unit')})")
    return tuple(lines)


def _figure(value: float) -> str:
    """A number of a formula: three digits, or the whole number where that has more."""
    if 10**_DIGITS <= abs(value) < _WHOLE:
        return short(round(value), 7)
    return short(value, _DIGITS)


def _sum(terms: list[tuple[float, str]], constant: float, cut: bool) -> str:
    """A sum of numbers times names, then the constant."""
    text = ""
    for value, name in [*terms, (constant, "")]:
        if value == 0 or not np.isfinite(value):
            continue
        sign = ("−" if value < 0 else "") if not text else (" − " if value < 0 else " + ")
        if not name and cut:
            text += " + …"
        text += sign + _figure(abs(value)) + (f" {name}" if name else "")
    if cut and constant == 0:
        text += " + …"
    return text or "0"
