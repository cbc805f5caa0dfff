"""The certificate of a box: fresh queries, orientations, and the errors that its answers leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.certify import levels
from onehidden.certify.certificate import AlternativeKind, Certificate, certificate_of
from onehidden.certify.equivalent import EXACT, equivalent_sets, orientation_check
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.units import Cause, Undetermined
from onehidden.checks import About, Check, at_most, not_evaluated
from onehidden.fit.rounding import rounding_of
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import EPS, Outputs, PerUnit, Points, UnitRows
from onehidden.oracle.final_fit import DENSE, simulated_errors
from onehidden.oracle.layer import Layer, Queries
from onehidden.oracle.signs import column_space, relations

UNKNOWN = 0.3  # relative error of a row or output from which a unit is undetermined


@dataclass(frozen=True, eq=False)
class Errors:
    """Relative errors of the parameters of a layer."""

    row: PerUnit  # |error of the row| / |row|
    bias: PerUnit  # over max(|row|, |bias|)
    output: PerUnit  # over the largest output of the unit
    constant: Float[np.ndarray, " q"]

    @property
    def worst(self) -> float:
        return float(max(np.max(self.row), np.max(self.bias), np.max(self.output)))


def parameter_errors(box: BlackBox, layer: Layer, queries: Queries) -> Errors:
    """Errors in x of the parameters of a fitted layer in u, from a few draws of the errors of the answers.

    Where g is homogeneous, the length of a row and the outputs of its unit are one number.
    """
    homogeneous = layer.form.activation.homogeneity is not None

    def in_x(one: Layer) -> tuple[UnitRows, PerUnit]:
        rows = one.weights / box.scale
        return rows, one.bias - rows @ box.center

    # Biases are one number each; rows have a mean over d.
    p = len(layer.pack())
    draws = 16 if p <= DENSE else 6 if p <= 20_000 else 1
    (rows, bias), largest = in_x(layer), np.maximum(np.max(np.abs(layer.output), axis=1), 1e-300)
    size = np.linalg.norm(rows, axis=1)
    reach = np.maximum(size, np.abs(bias))
    squares, constant = np.zeros((3, layer.k)), np.zeros(layer.output.shape[1])
    for move in simulated_errors(box, layer, queries, draws):
        tilted, shifted = in_x(move)
        along = np.sum(tilted * rows, axis=1) / size**2 * homogeneous
        squares[0] += np.sum((tilted - along[:, None] * rows) ** 2, axis=1) / size**2
        squares[1] += ((shifted - along * bias) / reach) ** 2
        output = move.output + along[:, None] * layer.output
        squares[2] += np.max(np.abs(output), axis=1) ** 2 / largest**2
        constant += move.constant**2
    row, shift, output = np.sqrt(squares / draws + (2 * EPS) ** 2)
    if draws < 16:  # of few draws one may be near zero
        shift, output = (np.maximum(one, np.median(one)) for one in (shift, output))
    return Errors(row, shift, output, np.sqrt(constant / draws))


def attainable_check(errors: Errors | None) -> Check:
    """The largest of the errors, a note beside the answer."""
    name = "attainable error"
    if errors is None:
        advice = "too few queries were left to estimate the errors of the parameters"
        return not_evaluated(name, UNKNOWN, advice)
    advice = "largest relative error of a row, bias or output that the precision of the answers leaves"
    return at_most(name, errors.worst, UNKNOWN, advice, About.NOTE)


def standard_errors(
    network: OneHiddenNet, errors: Errors | None, order: Int[np.ndarray, " k"], box: BlackBox
) -> ParameterRecord:
    """One number per parameter, in x; infinite where the errors are unknown.

    ``order`` gives for each unit of the network its number in the layer. The error of a row is equal in every
    u_j, and in x_j larger where the input has little spread.
    """
    if errors is None:
        return ParameterRecord.unknown(network)
    size = np.linalg.norm(network.weights, axis=1)
    weights = np.outer(errors.row[order] * size, 1 / box.scale / np.linalg.norm(1 / box.scale))
    largest = np.abs(network.output).reshape(network.n_hidden, -1).max(axis=1) * errors.output[order]
    bias = errors.bias[order] * np.maximum(size, np.abs(network.bias))
    constant = errors.constant * box.units
    intercept: Any = float(constant[0]) if box.q == 1 else constant
    linear = np.full(network.linear.shape, np.inf) if network.has_linear else None
    return ParameterRecord(weights, (np.ones(network.output.shape).T * largest).T, bias, intercept, linear)


def layer_certificate(
    layer: Layer,
    queries: Queries | None,
    errors: Errors | None,
    box: BlackBox,
    hidden: int | None,
    checks: list[Check],
) -> Certificate:
    """The certificate of a layer in u without a linear part, as of samples, with queries for rows.

    ``queries`` are what it was fitted to and ``errors`` those of the fit, None where there was no fit;
    ``checks`` are those of the search.
    """
    network = layer.network(box)
    U, Y = box.answered(int(min(400, 0.3 * box.caller.left)))
    share, bound = left_over(layer, U, Y, box.rounding)
    shares = (
        layer.levels(U).var(axis=0)
        * np.sum(layer.output**2, axis=1)
        / max(float(np.sum(Y.var(axis=0))), 1e-300)
    )
    advice = "share of std(y) left: the network gives the answers to rounding"
    fit = at_most("fit", share, bound, advice, About.FIT)
    fresh, where = fresh_check(network, box)
    remarks = [where]
    if errors is not None:
        remarks.append(f"parameters are known to about {errors.worst:.0e} of their size")
    return finished(
        layer,
        box,
        hidden,
        [*checks, fit, fresh, _orientation(network, box, layer, errors)],
        errors,
        {},
        shares=shares,
        remarks=remarks,
        loss=float(np.mean((layer.predict(U) - Y) ** 2)),
        mean_square=share**2,
        exact=share <= bound,
        n=len(U) if queries is None else len(queries.U),
        output_precision=box.rounding if box.low_precision else 0.0,
    )


def finished(
    layer: Layer,
    box: BlackBox,
    hidden: int | None,
    checks: list[Check],
    errors: Errors | None,
    left_open: Undetermined,
    shares: PerUnit,
    remarks: list[str],
    **more: Any,
) -> Certificate:
    """The certificate of a layer in u, with what values and labels have in common; ``more`` are its fields.

    Units, those ``left_open`` by the queries among them, have the order of the layer.
    """
    network = layer.network(box)
    canonical = network.canonical()
    order = np.argsort(match(canonical, network).permutation)  # the number in the layer of each unit
    counted = count_checks(layer.k, hidden)
    if counted[0].value:
        remarks = [f"dead units: {counted[0].advice}", *remarks]
    return certificate_of(
        canonical,
        [*counted, *checks, attainable_check(errors)],
        n_parameters=layer.form.freedom,
        errors=standard_errors(canonical, errors, order, box),
        shares=shares[order],
        undetermined=_undetermined(errors, left_open, order),
        noun="query",
        remarks=tuple(remarks),
        **more,
    )


def fresh_check(network: OneHiddenNet, box: BlackBox) -> tuple[Check, str]:
    """Whether queries that were not used to fit are answered alike; and where they lie, in words."""
    found, where, count = [], "no fresh query was answered", 0
    everywhere = ((2, 2000),) if box.enclosed else ()
    for distance, most in ((1, 2000), *everywhere, (10, 500), (100, 500)):
        most = int(min(most, 0.5 * box.caller.left))
        if (distance > 2 and distance * 3.0 > box.reach) or most < 10:
            continue
        U = box.spread_out(most) if distance == 2 else box.typical(most) * distance
        U, Y = box.answers_at(U)
        X = box.domain.within(box.inputs(U))
        if not len(X):
            continue
        size = np.maximum(np.max(np.abs(Y), axis=0), np.finfo(float).tiny)
        # Near the centre as a share of std(y), far away of the size there: sums are rounded at that size.
        scale = _spread(Y) if distance == 1 else size
        times = 1e3 if box.precision.absolute == 0 else 30
        error = box.precision.at(np.max(size)) / np.max(size) * size + _argument_error(network, X, box)
        allowed = np.maximum(levels.FRESH_QUERIES.value, times * error / scale)
        off = np.abs(network.predict(X).reshape(Y.shape) / box.units - Y) / scale
        worst = np.unravel_index(int(np.argmax(off / allowed)), off.shape)
        found.append((float(off[worst] / allowed[worst]), float(allowed[worst]), distance))
        count += len(X)
        if not box.enclosed:
            where = f"fresh queries lie within {distance:g} scales of the centre"
        elif distance == 2:
            where = _corners_in_words(len(box.domain.sides), len(X) // 2)
    box.must_not_change()
    if not found:
        advice = "no query that was not used to fit was answered"
        return not_evaluated("fresh queries", levels.FRESH_QUERIES.value, advice, About.FIT), where
    ratio, allowed, distance = max(found)
    advice = (
        f"largest error at {count} queries that were not used to fit, as a share of the function there "
        f"(worst {distance:g} scales from the centre): above the bound the network is not the function"
    )
    return at_most("fresh queries", ratio * allowed, allowed, advice, About.FIT), where


def _corners_in_words(sides: int, queried: int) -> str:
    """Which corners of a bounded domain were queried, and what may be unseen: a share of 3 / n (95 %)."""
    if 2**sides <= queried:
        return "fresh queries include every corner of the domain"
    return f"a unit active in less than {3 / max(queried, 3):.1%} of the corners of the domain may be unseen"


def _spread(Y: Outputs) -> Float[np.ndarray, " q"]:
    """Standard deviation of each output, its size where it is constant."""
    spread, size = Y.std(axis=0), np.max(np.abs(Y), axis=0)
    return np.maximum(np.where(spread > 1e-13 * size, spread, size), np.finfo(float).tiny)


def left_over(layer: Layer, U: Points, Y: Outputs, rounding: float) -> tuple[float, float]:
    """Share of the spread of an output, the largest, that a layer leaves; and the share that is rounding."""
    spread, rest = _spread(Y), layer.predict(U) - Y
    level = float(np.max(np.max(np.abs(Y), axis=0) / spread))
    return float(np.max(np.sqrt(np.mean(rest**2, axis=0)) / spread)), rounding_of(level, 1.0, rounding).exact


def _argument_error(network: OneHiddenNet, X: Points, box: BlackBox) -> Outputs:
    """What the rounding of the arguments of the units adds to answers: far away, where a unit changes."""
    z = X @ network.weights.T + network.bias
    slope = np.abs(network.activation.derivative(z))
    size = np.linalg.norm(network.weights * box.scale, axis=1)
    away = np.linalg.norm((X - box.center) / box.scale, axis=1, keepdims=True) / np.sqrt(box.d)
    outputs = np.abs(network.output).reshape(network.n_hidden, -1) / box.units
    return box.precision.relative * away * ((slope * size) @ outputs)


def _orientation(network: OneHiddenNet, box: BlackBox, layer: Layer, errors: Errors | None) -> Check:
    """Whether units could be reoriented together without changing any output.

    A change of the linear part is seen from 100 times its error, as a share of the strongest unit.
    """
    tolerance, k, reversal = EXACT, network.n_hidden, network.activation.reversal
    if box.run.expired():
        return not_evaluated(AlternativeKind.ORIENTATION.value, 0.0, "no time was left", About.UNITS)
    if errors is not None:
        strength = np.linalg.norm(layer.weights, axis=1) * np.linalg.norm(layer.output, axis=1)
        largest = float(np.max(np.maximum(errors.row, errors.output) * strength) / np.max(strength))
        tolerance = min(max(1e-12, 100 * largest), 1e-3)
    found = equivalent_sets(network, centre=box.center, spread=box.scale, tolerance=tolerance)
    if not (found.complete or found.sets) and reversal is not None and reversal.degree == 1:
        # A reduced lattice may prove that no set of units of degree one has a sum of zero.
        output = network.output.reshape(k, -1)
        columns = np.einsum("kq,kd->qdk", output, network.weights * box.scale).reshape(-1, k)
        size = float(np.max(np.linalg.norm(columns, axis=0)))
        swaps = int(min(4e5, 1e4 * box.run.left()))
        lattice = relations(column_space(columns).T @ columns / size, tolerance * np.sqrt(k), swaps=swaps)
        if lattice is not None and lattice.proven:
            reason = "the shortest relation of a reduced basis is longer than any set"
            found = found._replace(complete=True, reason=reason)
    return orientation_check(found, AlternativeKind.ORIENTATION.value)


def _undetermined(
    errors: Errors | None, left_open: Undetermined, order: Int[np.ndarray, " k"]
) -> Undetermined:
    """Units, in this order, that are left open, or have errors as large as their parameters."""
    unknown = np.zeros(len(order)) if errors is None else np.maximum(errors.row, errors.output)
    imprecise = Cause.NOTHING, "unit {} cannot be determined at the precision of the answers"
    found = {
        i: left_open.get(j, imprecise) for i, j in enumerate(order) if j in left_open or unknown[j] > UNKNOWN
    }
    return {i: (cause, reason.format(i + 1)) for i, (cause, reason) in found.items()}


def count_checks(found: int, hidden: int | None) -> list[Check]:
    """Units without a trace, and the number of those found against the number asked for."""
    absent = 0 if hidden is None else max(hidden - found, 0)
    advice = f"{absent} units leave no trace in any query: zero, or on the hyperplane of another"
    checks = [Check("dead units", float(absent), float("inf"), True, advice)]
    if hidden is not None:
        advice = "units found, against those asked for: ask for more"
        checks.append(at_most("units", float(found), float(hidden), advice, About.FIT))
    return checks


def cut_short_check(reason: str) -> Check:
    """A search that came to the end of its budget."""
    return not_evaluated("search", 0.0, f"{reason}: what was found until then may not be all", About.SEARCH)
