"""The certificate of a box of any size: fresh questions, sides, and the error that its answers allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Kind
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.ties import EXACT
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.certify.zero_sums import zero_sums
from onehidden.checks import About, Check, at_most, not_asked
from onehidden.fit.rounding import rounding_of
from onehidden.network import OneHiddenNet
from onehidden.oracle.answers import finite
from onehidden.oracle.box import BlackBox
from onehidden.oracle.descent import Activated, Asked, Layer, drawn, told

FAR = (1, 10, 100)  # scales from the centre at which fresh queries are asked
FRESH = 1e-8  # error at fresh queries, as a share of std(y), that still counts as the same function
_UNKNOWN = 0.3  # relative error of a row from which a unit says nothing
# Draws of the errors by the number of parameters: biases are one number each, rows have a mean over d.
_DRAWS = ((1200, 16), (20_000, 3), (float("inf"), 1))


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of the parameters of a layer in u that the coarseness of the answers leaves.

    Attributes
    ----------
    row, bias, output : (k,) of each unit: |error of the row| / |row|, bias / |row|, outputs / largest output.
    constant : (q,).
    """

    row: Float[np.ndarray, " k"]
    bias: Float[np.ndarray, " k"]
    output: Float[np.ndarray, " k"]
    constant: Float[np.ndarray, " q"]

    @property
    def worst(self) -> float:
        return float(max(np.max(self.row), np.max(self.bias), np.max(self.output)))


def attainable(layer: Layer, asked: Asked, g: Activated, box: BlackBox, rng: np.random.Generator) -> Errors:
    """What the parameters would move by if the answers were as wrong as they may be: a few draws of it."""
    squares = [np.zeros(len(layer.bias)) for _ in range(3)]
    constant = np.zeros(layer.output.shape[1])
    size = np.linalg.norm(layer.weights, axis=1)
    largest = np.maximum(np.max(np.abs(layer.output), axis=1), 1e-300)
    p = len(layer.pack())
    draws = next(count for most, count in _DRAWS if p <= most)
    level = box.noise_at(asked.U)[:, None]
    for move in drawn(layer, asked, g, lambda: level * rng.standard_normal(asked.Y.shape), draws):
        # The length of a row and the outputs of its unit are one number where g is homogeneous.
        along = np.sum(move.weights * layer.weights, axis=1) / size**2
        turned = move.weights - along[:, None] * layer.weights
        squares[0] += np.sum(turned**2, axis=1) / size**2
        squares[1] += (move.bias - along * layer.bias) ** 2 / np.maximum(size, np.abs(layer.bias)) ** 2
        squares[2] += np.max(np.abs(move.output + along[:, None] * layer.output), axis=1) ** 2 / largest**2
        constant += move.constant**2
    row, bias, output = (np.sqrt(total / draws) for total in squares)
    return Errors(row, bias, output, np.sqrt(constant / draws))


def outward(layer: Layer, box: BlackBox, activation: Activation) -> OneHiddenNet:
    """The layer as a network in x."""
    weights = layer.weights / box.scale
    output, constant = layer.output * box.units, layer.constant * box.units
    if box.q == 1:
        output, constant = output[:, 0], constant[0]
    return OneHiddenNet(weights, output, layer.bias - weights @ box.center, constant, activation)


def certificate(
    layer: Layer,
    asked: Asked | None,
    g: Activated,
    activation: Activation,
    box: BlackBox,
    questions: list[Check],
    rng: np.random.Generator,
) -> Certificate:
    """What the answers say of a layer in u without a linear part; further questions are answered already."""
    k = len(layer.bias)
    network = outward(layer, box, activation).canonical()
    U, Y = _near(box, rng) if asked is None else _nearest(asked, box)
    rest, spread = told(layer, U, g) - Y, np.maximum(Y.std(axis=0), 1e-300)
    rms = float(np.max(np.sqrt(np.mean(rest**2, axis=0)) / spread))
    coarse = box.grain.coarse(box.level)
    level = float(np.max(np.max(np.abs(Y), axis=0) / spread))
    bound = rounding_of(level, 1.0, box.rounding).exact
    exact = rms <= bound
    errors = None if asked is None else attainable(layer, asked, g, box, rng)
    order = _order(network, layer, box)
    answered, farthest = fresh(layer, g, box, rng)
    checks = [
        *questions,
        at_most(
            "fit", rms, bound, "share of std(y) left: the network gives the answers to rounding", About.FIT
        ),
        answered,
        _sides(network, box, max(EXACT, 0.0 if errors is None else 100 * errors.worst)),
        _attainable(errors, coarse),
    ]
    remarks = [f"fresh queries were asked within {farthest:g} scales of the centre"]
    if errors is not None:
        remarks.append(f"parameters are known to about {errors.worst:.0e} of their size")
    record = _record(network, errors, order, box)
    return Certificate(
        network,
        tuple(checks),
        _verdicts(network, record, errors, order, _shares(layer, g, U, Y)),
        loss=float(np.mean(rest**2)),
        noise_variance=float(np.mean(rest**2)),
        standard_errors=record,
        curvature=np.zeros(0),
        mean_square=rms**2,
        exact=exact,
        n=len(U) if asked is None else len(asked.U),
        freedom=len(layer.pack()) - (k if activation.homogeneity is not None else 0),
        noun="query",
        remarks=tuple(remarks),
        grain=box.rounding if coarse else 0.0,
    )


def _near(box: BlackBox, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A few typical questions with their answers."""
    U = box.typical(int(min(400, 0.3 * box.left)), rng)
    Y = box.answers(U)
    return U[finite(Y)], Y[finite(Y)]


def _nearest(asked: Asked, box: BlackBox) -> tuple[np.ndarray, np.ndarray]:
    """Those of the questions of a fit that lie in the typical region."""
    U, Y = asked.U[:6000], asked.Y[:6000]
    size = np.linalg.norm(U, axis=1)
    near = size <= max(3 * np.sqrt(box.d), float(np.quantile(size, 0.3)))
    return U[near], Y[near]


def fresh(layer: Layer, g: Activated, box: BlackBox, rng: np.random.Generator) -> tuple[Check, float]:
    """Whether questions that were not used to fit are answered alike; and how far away they were asked."""
    far, farthest, asked = [], 0.0, 0
    for distance in FAR:
        if distance > 1 and distance * 3.0 > box.reach:
            continue
        count = int(min(2000 if distance == 1 else 500, 0.5 * box.left))
        if count < 10:
            continue
        U = box.typical(count, rng) * distance
        Y = box.answers(U)
        good = finite(Y)
        if not good.any():
            continue
        U, Y = U[good], Y[good]
        size = np.maximum(np.max(np.abs(Y), axis=0), np.finfo(float).tiny)
        # Near the centre as a share of std(y), far away of its size there: sums are rounded at that size.
        spread = Y.std(axis=0)
        scale = np.where(spread > 1e-13 * size, spread, size) if distance == 1 else size
        error = box.grain.at(box.level * distance) / (box.level * distance)
        allowed = np.maximum(FRESH, (1e3 if not box.grain.absolute else 30) * error * size / scale)
        ratio = np.max(np.abs(told(layer, U, g) - Y), axis=0) / scale / allowed
        worst = int(np.argmax(ratio))
        far.append((float(ratio[worst]), float(np.broadcast_to(allowed, ratio.shape)[worst]), distance))
        farthest, asked = distance, asked + len(U)
    if not far:
        advice = "no query that was not used to fit was answered"
        return not_asked("fresh queries", FRESH, advice, About.FIT), farthest
    ratio, allowed, distance = max(far)
    advice = (
        f"largest error at {asked} queries that were not used to fit, near and far, as a share of the "
        f"function there (worst {distance:g} scales from the centre); above the bound the network is not "
        "the function"
    )
    return at_most("fresh queries", ratio * allowed, allowed, advice, About.FIT), farthest


def _sides(network: OneHiddenNet, box: BlackBox, tolerance: float) -> Check:
    """Whether a set of units could be turned around together without changing any output.

    Turning a set changes the linear part by sum_S w_i a_i in every output; full rank proves there is none.
    """
    name, g = Kind.SIDES.value, network.activation
    if g.sign_free or g.reflection is None:
        return at_most(
            name, 0.0, 0.0, "turning a unit changes nothing that canonical form does not fix", About.UNITS
        )
    k = network.n_hidden
    rows, output = network.weights * box.scale, network.output.reshape(k, -1)
    columns = np.einsum("kq,kd->qdk", output, rows).reshape(-1, k)
    found = zero_sums(columns, min(tolerance, 1e-3))
    advice = f"sets of units that can be turned around together without changing the function: {found.reason}"
    if not found.complete and not found.sets:
        return not_asked(
            name, 0.0, f"whether units can be turned around was not settled: {found.reason}", About.UNITS
        )
    return at_most(name, float(len(found.sets)), 0.0, advice, About.UNITS)


def _attainable(errors: Errors | None, coarse: bool) -> Check:
    if errors is None:
        return not_asked(
            "attainable error", _UNKNOWN, "too few queries were left to tell the errors of the parameters"
        )
    why = "the box answers coarsely" if coarse else "the rounding of the answers"
    return at_most(
        "attainable error", errors.worst, _UNKNOWN,
        f"largest relative error of a row, bias or output that these answers leave ({why})", About.NOTE,
    )  # fmt: skip


def _shares(
    layer: Layer, g: Activated, U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"]
) -> Float[np.ndarray, " k"]:
    """Variance of what each unit adds, as a share of that of all outputs."""
    level = g(np.asarray(U, float) @ layer.weights.T + layer.bias)[0]
    return level.var(axis=0) * np.sum(layer.output**2, axis=1) / max(float(np.sum(Y.var(axis=0))), 1e-300)


def _verdicts(
    network: OneHiddenNet,
    record: ParameterRecord,
    errors: Errors | None,
    order: Int[np.ndarray, " k"],
    share: Float[np.ndarray, " k"],
) -> tuple[UnitVerdict, ...]:
    """One verdict a unit, in the order of the canonical network."""
    found = []
    for i, j in enumerate(order):
        output: Any = network.output[i] if network.output.ndim > 1 else float(network.output[i])
        unit = UnitVerdict(
            i, network.weights[i], float(network.bias[i]), output,
            (record.weights[i], float(record.bias[i]), record.output[i]), float(share[j]),
        )  # fmt: skip
        if errors is not None and max(errors.row[j], errors.output[j]) > _UNKNOWN:
            reason = f"unit {i + 1} cannot be told from the coarseness of the answers"
            unit = unit.undetermined(Cause.NOTHING, reason)
        found.append(unit)
    return tuple(found)


def _record(
    network: OneHiddenNet, errors: Errors | None, order: Int[np.ndarray, " k"], box: BlackBox
) -> ParameterRecord:
    """The errors as one number a parameter, in x; infinite where they are not known."""
    if errors is None:
        weights, output = np.full(network.weights.shape, np.inf), np.full(network.output.shape, np.inf)
        return ParameterRecord(
            weights, output, np.full(network.n_hidden, np.inf), network.intercept * 0 + np.inf
        )
    size = np.linalg.norm(network.weights * box.scale, axis=1)
    weights = (errors.row[order] * size)[:, None] / (np.sqrt(box.d) * box.scale)
    largest = np.abs(network.output).reshape(network.n_hidden, -1).max(axis=1) * errors.output[order]
    inner = network.bias + network.weights @ box.center
    bias = np.hypot(errors.bias[order] * np.maximum(size, np.abs(inner)), weights @ np.abs(box.center))
    constant = errors.constant * box.units
    intercept: Any = float(constant[0]) if box.q == 1 else constant
    return ParameterRecord(weights, (np.ones(network.output.shape).T * largest).T, bias, intercept)


def _order(network: OneHiddenNet, layer: Layer, box: BlackBox) -> Int[np.ndarray, " k"]:
    """For each unit of the canonical network its place in the layer."""
    weights = layer.weights / box.scale
    mine, theirs = (
        np.column_stack([rows, bias]) / np.linalg.norm(rows, axis=1)[:, None]
        for rows, bias in (
            (weights, layer.bias - weights @ box.center),
            (network.weights, network.bias),
        )
    )
    distance = [np.minimum(*(np.linalg.norm(mine - s * one, axis=1) for s in (1, -1))) for one in theirs]
    return np.array([int(np.argmin(one)) for one in distance])
