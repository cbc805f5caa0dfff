"""The answer for a box that gives labels alone: its decision boundary tells the units, up to scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import About, Check, at_most
from onehidden.oracle.attainable import Errors, attainable_check, parameter_errors
from onehidden.oracle.boundary import Piece, Sides
from onehidden.oracle.boundary_graph import Graph, entries, walked
from onehidden.oracle.boundary_units import Scaled, crossed, flips, scaled, solved, unit_planes
from onehidden.oracle.box import BlackBox
from onehidden.oracle.by_hinges import cut_short
from onehidden.oracle.evidence import order_of, outward, verdicts
from onehidden.oracle.faint import counts
from onehidden.oracle.layer import Layer, told
from onehidden.recovery.options import Options
from onehidden.refused import Refused
from onehidden.run import Run

_FRESH = 4000
_DRAWS = 6  # of the errors of the pieces, for those of the units
_NEAR = 1e-6  # of the distance from the centre: how close to the boundary fresh labels are asked
_FITS = 1e-5  # singular value left by the scales of the pieces, against the next: one hidden layer


def by_labels(
    box: BlackBox, high: float, options: Options, run: Run, rng: np.random.Generator
) -> Certificate:
    """The certificate of the units that bend the boundary.

    Parameters
    ----------
    high : the label where the function is positive.
    """
    if options.activation not in ("relu", "auto"):
        raise Refused(f"labels alone tell relu units, not {options.g.name}: give values or probabilities")
    sides = Sides(box, high)
    box.caller.hold_back()
    graph = walked(sides, run, rng)
    box.caller.let_go()
    edges = sorted(graph.edges)
    if not graph.pieces:
        raise Refused(
            "the decision boundary is curved, or was not met, wherever it was looked for: labels of relu "
            "units change across flat pieces"
        )
    if not edges:
        raise Refused(
            f"the decision boundary is flat as far as it was walked ({len(graph.pieces)} pieces seen, none "
            "bends into another): labels tell nothing of a unit"
        )
    unit = crossed(graph.pieces, edges)
    changed = flips(len(graph.pieces), edges, unit)
    found = None if changed is None else scaled(graph.pieces, changed)
    if found is None:
        raise Refused(
            f"the {len(graph.pieces)} pieces of the decision boundary and their {len(edges)} bends are not "
            "those of one hidden layer of relu units, or too few of them were found"
        )
    return _certificate(box, sides, graph, found, options, rng)


def _layer(found: Scaled, pieces: list[Piece]) -> Layer:
    """The units in u with unit rows, the largest output 1; beside them the base, where it is linear."""
    points = np.array([np.append(piece.point, 1.0) for piece in pieces])
    size = np.linalg.norm(found.units[:, :-1], axis=1)
    # w > 0 where what an active unit adds is positive on the side on which it is active.
    sign = np.where(np.all((points @ found.units.T > 0) == found.active, axis=0), 1.0, -1.0)
    planes, output = found.units * (sign / size)[:, None], sign * size
    largest = float(np.max(np.abs(output)))
    linear = None if found.closed else found.base[:-1, None] / largest
    constant = found.base[-1:] / largest
    return Layer(planes[:, :-1], planes[:, -1], output[:, None] / largest, constant, linear)


def _certificate(
    box: BlackBox, sides: Sides, graph: Graph, found: Scaled, options: Options, rng: np.random.Generator
) -> Certificate:
    layer, relu = _layer(found, graph.pieces), replace(options, activation="relu").g
    network = outward(layer, box, relu).canonical()
    errors = _errors(graph.pieces, found, layer, rng)
    order = order_of(network, layer, box)
    fresh, wrong = _fresh(box, sides, layer, rng)
    record = parameter_errors(network, errors, order, box)
    known = replace(errors, row=np.where(np.isfinite(errors.row), errors.row, 0.0))  # told by _left_open
    open_ = verdicts(network, record, known, order, _shares(layer, box, rng))
    open_ = tuple(
        _left_open(unit, int(j), found) for unit, j in zip(open_, order, strict=True)
    )  # in the order of the network
    k = len(found.units)
    checks = [
        at_most(
            "one hidden layer", found.off, _FITS,
            f"{len(graph.pieces)} flat pieces and {len(graph.edges)} bends of the boundary fit {k} units",
            About.FIT,
        ),
        *counts(k, options.hidden, []),
        fresh,
        _uncrossed(found),
        attainable_check(errors, True),
    ]  # fmt: skip
    if graph.spent:
        checks.append(cut_short(graph.spent))
    remarks = (
        "labels tell the network up to one positive factor: its largest output is set to 1 for unit rows",
        "units that never change a label are not seen",
        *(() if found.closed else ("the linear part is that of units that the boundary does not cross",)),
    )
    return Certificate(
        network, tuple(checks), open_, loss=wrong, noise_variance=wrong, standard_errors=record,
        curvature=np.zeros(0), mean_square=wrong, exact=fresh.passed, n=box.queries,
        freedom=k * (box.d + 1) + 1, noun="query", remarks=remarks, grain=1.0,
    )  # fmt: skip


def _errors(pieces: list[Piece], found: Scaled, layer: Layer, rng: np.random.Generator) -> Errors:
    """What the units would move by if the planes of the pieces were as wrong as they may be."""
    planes = unit_planes(pieces)
    error = np.array([piece.error for piece in pieces])
    squares, constant = np.zeros((3, len(layer.bias))), 0.0
    for _ in range(_DRAWS):
        noise = rng.standard_normal(planes.shape) * error[:, None] / np.sqrt(planes.shape[1])
        moved = solved(planes + noise, error.min() / error, found.active, found.closed)
        if moved is None:
            continue
        other = _layer(moved, pieces)
        squares[0] += np.sum((other.weights - layer.weights) ** 2, axis=1)
        squares[1] += ((other.bias - layer.bias) / np.maximum(1.0, np.abs(layer.bias))) ** 2
        squares[2] += ((other.output - layer.output)[:, 0] / layer.output[:, 0]) ** 2
        constant += float(other.constant[0] - layer.constant[0]) ** 2
    row, bias, output = np.sqrt(squares / _DRAWS)
    return Errors(np.where(found.known, row, np.inf), bias, output, np.array([np.sqrt(constant / _DRAWS)]))


def _fresh(box: BlackBox, sides: Sides, layer: Layer, rng: np.random.Generator) -> tuple[Check, float]:
    """Labels that were not used: typical ones, and on both sides of places where others change."""
    U = [box.typical(int(min(_FRESH, 0.3 * box.left)), rng)]
    for point, along in entries(sides, rng) if box.left > 2000 else []:
        aside = _NEAR * (np.sqrt(box.d) + float(np.linalg.norm(point))) * along
        U.append(np.stack([point + aside, point - aside]))
    rows = np.concatenate(U)
    label, value = sides(rows), told(layer, rows, _relu)[:, 0]
    wrong = int(np.sum((label != 0) & (label != np.sign(value))))
    advice = (
        f"labels of {len(rows)} queries that were not used, near the boundary too, that the network has wrong"
    )
    return at_most("fresh queries", float(wrong), 0.0, advice, About.FIT), wrong / len(rows)


def _relu(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(z, 0.0), (z > 0).astype(float)


def _shares(layer: Layer, box: BlackBox, rng: np.random.Generator) -> Float[np.ndarray, " k"]:
    """Variance of what each unit adds at typical questions, as a share of that of the function."""
    U = box.typical(500, rng)
    level = _relu(U @ layer.weights.T + layer.bias)[0] * layer.output[:, 0]
    return level.var(axis=0) / max(float(level.sum(axis=1).var()), 1e-300)


def _left_open(unit: UnitVerdict, j: int, found: Scaled) -> UnitVerdict:
    """What labels cannot tell of unit j of the layer."""
    name = f"unit {unit.index + 1}"
    if not found.known[j]:
        reason = f"{name} bends the boundary in one place only, which leaves its row open"
        return unit.undetermined(Cause.BLIND, reason)
    if not found.closed:
        reason = f"the row of {name} is known, its side and output are not: other units are never crossed"
        return unit.undetermined(Cause.TIE, reason)
    return unit


def _uncrossed(found: Scaled) -> Check:
    """Whether there is more to the boundary than the units that bend it."""
    advice = "the units that bend the boundary explain all of it"
    if not found.closed:
        advice = "beside the units that bend the boundary there is a linear part: of units it does not cross"
    return Check("units not crossed", float(not found.closed), 0.0, True, advice)
