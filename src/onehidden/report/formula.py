"""The network written out with its numbers, and its effects: y per standard deviation of an input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehidden.certify.units import Cause
from onehidden.network import OneHiddenNet
from onehidden.report.subject import Subject, label, strongest
from onehidden.report.wording import left_open, more, short

# The network's output in terms of the mean of y, by the link of a family.
_LINKS = {
    "log": "log E[{}]", "logit": "logit P[{}]", "probit": "probit P[{}]", "cloglog": "cloglog P[{}]",
    "identity": "E[{}]", "inverse": "1 / E[{}]", "softplus": "softplus⁻¹ E[{}]",
    "softmax": "log P[{}] / P[{base}]",
}  # fmt: skip

Terms = list[tuple[float, str]]


def heading(subject: Subject) -> str:
    """What the effects of the units measure: y, where the spreads of the inputs are known."""
    known = len(subject.recovery.input_spread)
    return f"effect on {left_hand(subject)} of one sd at slope one" if known else "output × weight"


def straight(subject: Subject) -> dict[int, float]:
    """The units that are linear functions of the rows, with the slope of g there.

    All rows are on one side of their kink, or all but so few that they do not determine the unit.
    """
    net, mean = subject.net, subject.recovery.input_mean
    if net.activation.homogeneity != 1:
        return {}
    below, above = (float(slope) for slope in net.activation.derivative([-1.0, 1.0]))
    if below == above:
        return dict.fromkeys(range(net.n_hidden), above)
    found = {}
    for unit in subject.recovery.units:
        if unit.side:
            found[unit.index] = above if unit.side > 0 else below
        elif unit.cause is Cause.KINK and len(mean):
            # Nearly all rows are where their mean is; a unit that only a few rows see stays as it is.
            i = unit.index
            if net.weights[i] @ mean + net.bias[i] > 0:
                found[i] = above
    return found


def few_bend(subject: Subject) -> bool:
    """Whether some rows lie beyond the kinks of the units that ``straight`` returns."""
    found = straight(subject)
    kinked = subject.net.activation.kinked
    return kinked and any(unit.index in found and not unit.side for unit in subject.recovery.units)


def formula(subject: Subject, units: Sequence[int], most_inputs: int) -> tuple[str, ...]:
    """One line for y with the constant and the linear part, then one for each of these units.

    Where g has degree one, only w times the length of a is determined: w stands inside, and the numbers are
    slopes of y. Behind each unit stands its number, and a question mark where it is undetermined. Of several
    outputs each has a line in terms of the units h, and then come the units. Units that are linear functions
    of the rows are part of the linear part.
    """
    several, net, within = len(subject.outputs) > 1, subject.net, straight(subject)
    units = [i for i in units if i not in within]
    lines = _of_outputs(subject, units, most_inputs) if several else _of_one(subject, most_inputs)
    inside = net.activation.homogeneity == 1 and not several
    for i in units:
        scale = abs(net.output[i]) if inside else 1.0
        chosen = strongest(subject.effects[i], most_inputs)
        terms = [(scale * float(net.weights[i, j]), subject.names[j]) for j in chosen]
        body = _sum(
            terms, scale * float(net.bias[i]), len(chosen) < net.n_inputs, _tiny(subject) if inside else 0.0
        )
        unit = (net.activation.formula or net.activation.name + "({})").format(body)
        mark = " (?)" if left_open(subject.unit(i)) else ""
        if several:
            lines.append(f"h{i + 1} = {unit}{mark}")
            continue
        sign = "−" if net.output[i] < 0 else "+"
        factor = "" if inside else f"{_digits(abs(float(net.output[i])))} "
        lines.append(f"{sign} {factor}{unit} [{i + 1}]{mark}")
    if hidden := net.n_hidden - len(units) - len(within):
        lines.append(f"+ … ({more(hidden, 'unit')})")
    return tuple(lines)


def with_straight_units(net: OneHiddenNet, subject: Subject) -> tuple[float, np.ndarray]:
    """The constant and the slopes of an output, units that are linear functions of the rows included."""
    level, slopes = float(net.intercept), np.array(net.linear, dtype=float)
    for i, slope in straight(subject).items():
        level += float(net.output[i] * slope * net.bias[i])
        slopes += net.output[i] * slope * net.weights[i]
    return level, slopes


def left_hand(subject: Subject, which: int = 0) -> str:
    """What an output of the network is: y, or what the link makes of its mean."""
    name, classes = subject.outputs[which], subject.recovery.classes
    if subject.recovery.family is None:
        return name
    base = label(classes[0]) if classes else ""
    return _LINKS.get(subject.recovery.family.link, "f(E[{}])").format(name, base=base)


def _of_one(subject: Subject, most_inputs: int) -> list[str]:
    """The line of y and the constant; a linear part has a line of its own, which says what it holds."""
    net, tiny, within = subject.net, _tiny(subject), straight(subject)
    level, slopes = with_straight_units(net, subject)
    lines = [f"{left_hand(subject)} ≈ {_digits(level) if abs(level) > tiny else '0'}{_offset(subject)}"]
    if net.has_linear or (within and np.any(np.abs(slopes) > tiny)):
        body = _sum(_linear(subject, slopes, most_inputs), 0.0, most_inputs < net.n_inputs, tiny)
        body = body if body.startswith("−") else f"+ {body}"
        named = (
            f" [{', '.join(str(i + 1) for i in within)}: linear{' but for a few rows' * few_bend(subject)}]"
        )
        lines.append(body + named if within else body)
    return lines


def _of_outputs(subject: Subject, units: Sequence[int], most_inputs: int, most_outputs: int = 6) -> list[str]:
    """Each output as a sum of the units h."""
    lines, whole, within = [], subject.recovery.network, straight(subject)
    for which in range(min(len(subject.outputs), most_outputs)):
        net = whole.one_output(which)
        terms = [(float(net.output[i]), f"h{i + 1}") for i in units]
        level, slopes = with_straight_units(net, subject)
        has_linear = net.has_linear or bool(within)
        if has_linear:
            terms += _linear(subject, slopes, most_inputs)
        tiny = 1e-12 * max([abs(level), *(abs(value) for value, _ in terms)])
        cut = len(units) + len(within) < net.n_hidden or (has_linear and most_inputs < net.n_inputs)
        lines.append(f"{left_hand(subject, which)} ≈ {_sum(terms, level, cut, tiny)}{_offset(subject)}")
    left = len(subject.outputs) - most_outputs
    return [*lines, f"… ({more(left, 'output')})"] if left > 0 else lines


def _offset(subject: Subject) -> str:
    named = subject.recovery.options.get("offset")
    return f" + {named}" if named else ""


def _linear(subject: Subject, slopes: np.ndarray, most: int) -> Terms:
    """The strongest terms of a linear part."""
    return [(float(slopes[j]), subject.names[j]) for j in strongest(slopes * subject.spread, most)]


def _tiny(subject: Subject) -> float:
    """The size below which a number is rounding and left out."""
    net = subject.net
    return 1e-12 * max(float(np.max(np.abs(net.output[:, None] * net.weights))), abs(float(net.intercept)))


def _digits(value: float) -> str:
    """A number of a formula: three digits, or the whole number where that has more."""
    return short(round(value), 7) if 1e3 <= abs(value) < 1e6 else short(value, 3)


def _sum(terms: Terms, constant: float, cut: bool, tiny: float) -> str:
    """A sum of numbers times names, then "…" where it is cut, then the constant, without what is tiny."""
    text = ""
    if abs(constant) <= tiny:
        constant = 0.0
    for value, name in [*terms, (constant, "")]:
        if not name and cut:
            text += " + …"
        if abs(value) <= (tiny if name else 0.0) or not np.isfinite(value):
            continue
        sign = ("−" if value < 0 else "") if not text else (" − " if value < 0 else " + ")
        text += sign + _digits(abs(value)) + (f" {name}" if name else "")
    return text or "0"
