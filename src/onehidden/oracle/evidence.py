"""The certificate of a box of any size: fresh questions, sides, and the error that its answers allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Kind
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.ties import EXACT
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.certify.zero_sums import ZeroSums, zero_sums
from onehidden.checks import About, Check, at_most, not_asked
from onehidden.fit.rounding import rounding_of
from onehidden.network import OneHiddenNet
from onehidden.oracle.answers import finite
from onehidden.oracle.attainable import UNKNOWN, Errors, attainable_check, parameter_errors
from onehidden.oracle.box import BlackBox
from onehidden.oracle.fresh import fresh
from onehidden.oracle.lattice import LARGEST, relations
from onehidden.oracle.layer import Activated, Asked, Layer, told
from onehidden.oracle.signs import spanned

_TIMES = 100.0  # its error: what a change of the linear part must exceed to be seen
_SAME = 1e-12  # of the strongest unit: a change of the linear part that no answer shows


def outward(layer: Layer, box: BlackBox, activation: Activation) -> OneHiddenNet:
    """The layer as a network in x."""
    weights = layer.weights / box.scale
    output, constant = layer.output * box.units, layer.constant * box.units
    linear = None if layer.linear is None else layer.linear * box.units / box.scale[:, None]
    if linear is not None:
        constant = constant - box.center @ linear
    if box.q == 1:
        output, constant = output[:, 0], constant[0]
        linear = None if linear is None else linear[:, 0]
    return OneHiddenNet(weights, output, layer.bias - weights @ box.center, constant, activation, linear)


def certificate(
    layer: Layer,
    asked: Asked | None,
    errors: Errors | None,
    g: Activated,
    activation: Activation,
    box: BlackBox,
    questions: list[Check],
    rng: np.random.Generator,
) -> Certificate:
    """What the answers say of a layer in u without a linear part; further questions are answered already.

    Parameters
    ----------
    asked, errors : what it was fitted to, and the errors that leaves; None where it was not.
    """
    k = len(layer.bias)
    network = outward(layer, box, activation).canonical()
    U, Y = _near(box, rng) if asked is None else _nearest(asked, box)
    rest, spread = told(layer, U, g) - Y, np.maximum(Y.std(axis=0), 1e-300)
    rms = float(np.max(np.sqrt(np.mean(rest**2, axis=0)) / spread))
    coarse = box.coarse
    level = float(np.max(np.max(np.abs(Y), axis=0) / spread))
    bound = rounding_of(level, 1.0, box.rounding).exact
    exact = rms <= bound
    order = order_of(network, layer, box)
    answered, farthest = fresh(layer, g, box, rng)
    checks = [
        *questions,
        at_most(
            "fit", rms, bound, "share of std(y) left: the network gives the answers to rounding", About.FIT
        ),
        answered,
        _sides(network, box, EXACT if errors is None else max(_SAME, _TIMES * _largest(layer, errors))),
        attainable_check(errors, coarse),
    ]
    remarks = [f"fresh queries were asked within {farthest:g} scales of the centre"]
    if errors is not None:
        remarks.append(f"parameters are known to about {errors.worst:.0e} of their size")
    record = parameter_errors(network, errors, order, box)
    return Certificate(
        network,
        tuple(checks),
        verdicts(network, record, errors, order, _shares(layer, g, U, Y)),
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
    if not found.complete and not found.sets and _no_relation(columns, min(tolerance, 1e-3)):
        found = ZeroSums(True, (), "the shortest relation of a reduced basis is longer than any set")
    advice = f"sets of units that can be turned around together without changing the function: {found.reason}"
    if not found.complete and not found.sets:
        return not_asked(
            name, 0.0, f"whether units can be turned around was not settled: {found.reason}", About.UNITS
        )
    return at_most(name, float(len(found.sets)), 0.0, advice, About.UNITS)


def _largest(layer: Layer, errors: Errors) -> float:
    """The largest error of a unit's part of the linear part, as a share of the strongest unit's part."""
    strength = np.linalg.norm(layer.weights, axis=1) * np.linalg.norm(layer.output, axis=1)
    return float(np.max(np.maximum(errors.row, errors.output) * strength) / np.max(strength))


def _no_relation(columns: Float[np.ndarray, "m k"], tolerance: float) -> bool:
    """Whether a reduced lattice proves that no set of columns sums to zero."""
    k, size = columns.shape[1], np.linalg.norm(columns, axis=0)
    if k > LARGEST or np.any(size == 0):
        return False
    return relations(spanned(columns).T @ columns / size.max(), tolerance * np.sqrt(k)).proven


def _shares(
    layer: Layer, g: Activated, U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"]
) -> Float[np.ndarray, " k"]:
    """Variance of what each unit adds, as a share of that of all outputs."""
    level = g(np.asarray(U, float) @ layer.weights.T + layer.bias)[0]
    return level.var(axis=0) * np.sum(layer.output**2, axis=1) / max(float(np.sum(Y.var(axis=0))), 1e-300)


def verdicts(
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
        if errors is not None and max(errors.row[j], errors.output[j]) > UNKNOWN:
            reason = f"unit {i + 1} cannot be told from the coarseness of the answers"
            unit = unit.undetermined(Cause.NOTHING, reason)
        found.append(unit)
    return tuple(found)


def order_of(network: OneHiddenNet, layer: Layer, box: BlackBox) -> Int[np.ndarray, " k"]:
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
