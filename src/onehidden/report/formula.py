"""The network written out with its numbers and the names of the columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehidden.report.effects import Effects
from onehidden.report.marks import left_open
from onehidden.report.numbers import plural, short
from onehidden.report.subject import Subject, label, one_output

_WRITTEN = {"relu": "max(0, {})", "abs": "|{}|", "linear": "({})", "quadratic": "({})²"}
# What the network's output is of the mean of y, by the link of a family.
_LINKED = {
    "log": "log E[{}]", "logit": "logit P[{}]", "probit": "probit P[{}]", "cloglog": "cloglog P[{}]",
    "identity": "E[{}]", "inverse": "1 / E[{}]", "softplus": "softplus⁻¹ E[{}]",
    "softmax": "log P[{}] / P[{base}]",
}  # fmt: skip
_DIGITS = 3
_WHOLE = 1e6  # numbers below it are written without a power of ten
OUTPUTS = 6  # that are written out


def formula(subject: Subject, found: Effects, units: Sequence[int], most_inputs: int) -> tuple[str, ...]:
    """A line for y with the constant and the linear part, then one for each of these units.

    Where only w and the length of a together are determined and g has degree one, w stands inside: the
    numbers are then slopes of y. Behind each unit stands its number, and a question mark where the data leave
    it open. Of several outputs there is a line each, in terms of the units h, and then what those are.
    """
    several = subject.n_outputs > 1
    lines = _of_outputs(subject, units, most_inputs) if several else _of_one(subject, most_inputs)
    net = subject.net
    tiny = _tiny(subject)
    inside = net.activation.homogeneity == 1 and not several
    for i in units:
        scale = abs(net.output[i]) if inside else 1.0
        chosen = found.largest(i, most_inputs)
        terms = [(scale * float(net.weights[i, j]), subject.names[j]) for j in chosen]
        bias = scale * float(net.bias[i])
        body = _sum(terms, bias, len(chosen) < net.n_inputs, tiny if inside else 0.0)
        unit = _WRITTEN.get(net.activation.name, net.activation.name + "({})").format(body)
        mark = " (?)" if left_open(subject.unit(i)) else ""
        if several:
            lines.append(f"h{i + 1} = {unit}{mark}")
            continue
        sign = "−" if net.output[i] < 0 else "+"
        factor = "" if inside else f"{_figure(abs(float(net.output[i])))} "
        lines.append(f"{sign} {factor}{unit} [{i + 1}]{mark}")
    if more := net.n_hidden - len(units):
        lines.append(f"+ … ({more} more {plural(more, 'unit')})")
    return tuple(lines)


def _of_one(subject: Subject, most_inputs: int) -> list[str]:
    """y and the constant; beside units a linear part has a line of its own."""
    net, level, tiny = subject.net, float(subject.net.intercept), _tiny(subject)
    lines = [f"{left_hand(subject, 0)} ≈ {_figure(level if abs(level) > tiny else 0.0)}{_offset(subject)}"]
    if net.has_linear:
        body = _sum(_linear(subject, net.linear, most_inputs), 0.0, most_inputs < net.n_inputs, tiny)
        lines.append(body if body.startswith("−") else f"+ {body}")
    return lines


def _of_outputs(subject: Subject, units: Sequence[int], most_inputs: int) -> list[str]:
    """Each output as a sum of the units h."""
    lines, whole = [], subject.recovery.network
    for which, _ in enumerate(subject.outputs[:OUTPUTS]):
        net = one_output(whole, which)
        terms = [(float(net.output[i]), f"h{i + 1}") for i in units]
        if net.has_linear:
            terms += _linear(subject, net.linear, most_inputs)
        level = float(net.intercept)
        tiny = 1e-12 * max(abs(level), *(abs(value) for value, _ in terms))
        cut = len(units) < net.n_hidden or (net.has_linear and most_inputs < net.n_inputs)
        body = _sum(terms, level, cut, tiny)
        lines.append(f"{left_hand(subject, which)} ≈ {body}{_offset(subject)}")
    more = subject.n_outputs - OUTPUTS
    return [*lines, f"… ({more} more {plural(more, 'output')})"] if more > 0 else lines


def left_hand(subject: Subject, which: int) -> str:
    """What the network's output is: y, or what the link makes of its mean."""
    name = subject.outputs[which]
    if subject.family is None:
        return name
    classes = subject.get("classes", ())
    return _LINKED.get(subject.family.link, "f(E[{}])").format(
        name, base=label(classes[0]) if classes else ""
    )


def _offset(subject: Subject) -> str:
    named = dict(subject.get("options", {})).get("offset")
    return f" + {named}" if named else ""


def _linear(subject: Subject, slopes: np.ndarray, most: int) -> list[tuple[float, str]]:
    """The strongest terms of a linear part."""
    spread = np.ones(len(slopes)) if subject.spread is None else subject.spread
    chosen = np.argsort(-np.abs(slopes * spread), kind="stable")[:most].tolist()
    return [(float(slopes[j]), subject.names[j]) for j in chosen]


def _tiny(subject: Subject) -> float:
    """Rounding is no number: what is far below all the rest is left out."""
    net = subject.net
    return 1e-12 * max(float(np.max(np.abs(net.output[:, None] * net.weights))), abs(float(net.intercept)))


def _figure(value: float) -> str:
    """A number of a formula: three digits, or the whole number where that has more."""
    if 10**_DIGITS <= abs(value) < _WHOLE:
        return short(round(value), 7)
    return short(value, _DIGITS)


def _sum(terms: list[tuple[float, str]], constant: float, cut: bool, tiny: float) -> str:
    """A sum of numbers times names, then the constant; what is below ``tiny`` is left out."""
    text = ""
    constant = constant if abs(constant) > tiny else 0.0
    for value, name in [*terms, (constant, "")]:
        if not abs(value) > (tiny if name else 0.0) or not np.isfinite(value):
            continue
        sign = ("−" if value < 0 else "") if not text else (" − " if value < 0 else " + ")
        if not name and cut:
            text += " + …"
        text += sign + _figure(abs(value)) + (f" {name}" if name else "")
    if cut and constant == 0:
        text += " + …"
    return text or "0"
