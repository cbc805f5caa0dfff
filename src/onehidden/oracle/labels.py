"""The answer for a box of labels: its decision boundary, traced piece by piece, gives units up to scale.

On a piece the function is s <N, (u, 1)>, N known and s > 0 not; it is the sum of v_i = w_i (a_i, b_i) over
the active units, and of c. Pieces that meet in a kink differ by one unit. Two kinks of one unit lie in one
hyperplane, so their four N span three dimensions only. All scales follow from linear equations, up to one
common factor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden import activations
from onehidden.certify.certificate import Certificate
from onehidden.certify.units import Cause, Undetermined
from onehidden.checks import About, Check, at_most
from onehidden.fit.parametrisation import Parametrisation
from onehidden.options import Options
from onehidden.oracle.boundary import Labels, Piece, beyond, flat_piece, kinks_along
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.certificate import Errors, cut_short_check, finished
from onehidden.oracle.domain import Vector
from onehidden.oracle.layer import Layer
from onehidden.refused import Refused

_NULL = 1e-7  # singular value of equations that have a solution: planes are known to about 1e-12


@dataclass(frozen=True, eq=False)
class Scaled:
    """Units whose sum has these pieces, up to one positive factor."""

    units: Float[np.ndarray, "k e"]  # v_i, what an active unit adds
    active: Bool[np.ndarray, "p k"]  # on which pieces
    base: Float[np.ndarray, " e"]  # what is left: (0, …, 0, c) where closed
    closed: bool  # whether the units alone explain the boundary
    known: Bool[np.ndarray, " k"]  # whether the row is determined
    off: float  # singular value that the solution leaves, against the next
    spread: Float[np.ndarray, " k"]  # error of a unit, as a multiple of that of the best plane


def units_of_kinks(planes: Float[np.ndarray, "p e"], edges: list[tuple[int, int]]) -> Int[np.ndarray, " m"]:
    """For each kink the number of its unit, from 0."""
    group = np.arange(len(edges))
    for (a, one), (b, two) in combinations(enumerate(edges), 2):
        if set(one) & set(two) or group[a] == group[b]:
            continue
        values = np.linalg.svd(planes[[*one, *two]], compute_uv=False)
        # Where the third value is small, too, all four planes are nearly one.
        if values[3] <= min(_NULL, 1e-4 * values[2]):
            group[group == group[b]] = group[a]
    return np.unique(group, return_inverse=True)[1]


def changes(
    count: int, edges: list[tuple[int, int]], unit: Int[np.ndarray, " m"]
) -> Bool[np.ndarray, "p k"] | None:
    """(p, k) which units change from piece 0 to each piece; None where two ways contradict each other."""
    k = int(unit.max()) + 1
    found: dict[int, np.ndarray] = {0: np.zeros(k, bool)}
    for _ in range(count):
        for (a, b), i in zip(edges, unit, strict=True):
            for here, there in ((a, b), (b, a)):
                if here not in found:
                    continue
                way = found[here] ^ (np.arange(k) == i)
                if not np.array_equal(found.setdefault(there, way), way):
                    return None
    if len(found) < count:
        return None
    table = np.array([found[i] for i in range(count)])
    return table if len(np.unique(table, axis=0)) == count else None


def scaled(boundary: Boundary, changed: Bool[np.ndarray, "p k"], most: int = 12) -> Scaled | None:
    """The units behind the pieces, alone if they explain them for one choice of sides, else beside a base.

    All 2^k sides of up to ``most`` units are tried. None where not even the scales of the pieces fit.
    """
    planes, points, error = boundary.arrays
    found, weight, k = [], error.min() / error, changed.shape[1]
    for number in range(2**k if k <= most else 0):
        active = changed ^ ((number >> np.arange(k)) & 1).astype(bool)
        if np.any(~active.any(axis=1)):
            continue  # without an active unit the function is constant: no boundary
        one = solved(planes, weight, active, closed=True)
        if one is None:
            continue
        same = (points @ one.units.T > 0) == active  # each unit is active on one side of its hyperplane
        if np.all(same.all(axis=0) | (~same).all(axis=0)):
            found.append(one)
    return found[0] if len(found) == 1 else solved(planes, weight, changed, closed=False)


def solved(
    planes: Float[np.ndarray, "p e"],
    weight: Float[np.ndarray, " p"],
    active: Bool[np.ndarray, "p k"],
    closed: bool,
) -> Scaled | None:
    """s, v and the base of s_p N_p = base + sum of active v_i; the base is (0, …, 0, c) where closed.

    The equations of a piece count by ``weight``; solved for is s_p weight_p.
    """
    (p, e), k = planes.shape, active.shape[1]
    constant = np.eye(e)[-1]
    basis = np.linalg.qr(np.concatenate([planes, constant[None]]).T)[0]  # (e, r)
    N, last = planes @ basis, constant @ basis
    on = np.column_stack([active.astype(float), np.zeros((p, 0)) if closed else np.ones((p, 1))])
    on *= weight[:, None]
    # What no choice of v (and of the base) can reach must vanish: linear in s (and c).
    left = np.eye(p) - on @ np.linalg.pinv(on)
    columns = [np.outer(left[:, i], N[i]).ravel() for i in range(p)]
    if closed:
        columns.append(-np.outer(left @ weight, last).ravel())
    _, values, rows = np.linalg.svd(np.array(columns).T)
    values = np.concatenate([values, np.zeros(max(0, len(columns) - len(values)))])[: len(columns)]
    null = values <= _NULL  # all columns are of length one at most
    if not null.any() or (closed and null.sum() > 1):
        return None
    solutions = rows[: len(columns)][null]

    def units(solution: np.ndarray) -> np.ndarray:
        right = solution[:p, None] * N - (np.outer(weight, solution[p] * last) if closed else 0.0)
        return np.linalg.pinv(on) @ right

    parts = np.array([units(one) for one in solutions])  # (solutions, k or k + 1, r)
    # A row is determined if it has one direction in all solutions, and no part of ``on`` leaves it open.
    free = np.linalg.svd(on)[2][np.linalg.matrix_rank(on) :]
    known = [_one_direction(parts[:, i]) and np.all(np.abs(free[:, i]) < 1e-9) for i in range(k)]
    # A combination of solutions with all scales positive, where there is a simple one.
    chosen = solutions[0]
    if len(solutions) > 1:
        chosen = np.linalg.lstsq(solutions[:, :p].T, np.ones(p), rcond=None)[0] @ solutions
    chosen = chosen * np.sign(np.sum(chosen[:p]))
    if np.any(chosen[:p] <= 0):
        return None
    found = units(chosen) @ basis.T
    spread = np.linalg.norm(np.linalg.pinv(on)[:k] * (chosen[:p] / weight), axis=1)
    base = chosen[p] * constant if closed else found[k]
    gap = values[~null][-1] if np.any(~null) else 1.0
    off = float(values[null][0] / gap) if len(solutions) == 1 else 0.0
    return Scaled(found[:k], active, base, closed, np.array(known, bool), off, spread)


def _one_direction(rows: Float[np.ndarray, "s r"]) -> bool:
    values = np.linalg.svd(rows, compute_uv=False)
    return bool(values[0] > 0 and (len(values) == 1 or values[1] <= 1e-6 * values[0]))


@dataclass(eq=False)
class Boundary:
    """Flat pieces and the pairs (i, j), i < j, that meet in a kink; why the tracing ended early, if so."""

    pieces: list[Piece] = field(default_factory=list)
    edges: set[tuple[int, int]] = field(default_factory=set)
    cut_short: str = ""

    @property
    def arrays(self) -> tuple[Float[np.ndarray, "p e"], Float[np.ndarray, "p e"], Float[np.ndarray, " p"]]:
        """Planes (d + 1 numbers each), points with a one appended, and errors of the pieces."""
        points = np.array([np.append(piece.point, 1.0) for piece in self.pieces])
        error = np.array([piece.error for piece in self.pieces])
        return np.array([piece.plane for piece in self.pieces]), points, error

    def found(self, labels: Labels, point: Vector, along: Vector, arm: float) -> int | None:
        """The number of the piece at a point, a new one if need be; None where it is not flat."""
        nearest = min(range(len(self.pieces)), key=lambda i: abs(self.pieces[i].height(point)), default=None)
        if nearest is not None and self.pieces[nearest].contains(point):
            return nearest
        piece = flat_piece(labels, point, along, arm)
        if piece is None:
            return None
        self.pieces.append(piece)
        return len(self.pieces) - 1


def label_answer(box: BlackBox, options: Options) -> Certificate:
    """The certificate of the units whose kinks bend the boundary."""
    if options.activation not in ("relu", "auto"):
        raise Refused(f"labels alone determine relu units, not {options.g.name}: return probabilities")
    labels = Labels(box)
    box.caller.reserve()
    boundary = _traced(labels)
    box.caller.release()
    count, edges = len(boundary.pieces), sorted(boundary.edges)
    if not count:
        raise Refused("the decision boundary is curved, or was not met: that of relu units has flat pieces")
    if not edges:
        raise Refused("the decision boundary is flat as far as it was traced: labels say nothing of a unit")
    changed = changes(count, edges, units_of_kinks(boundary.arrays[0], edges))
    found = None if changed is None else scaled(boundary, changed)
    if found is None:
        raise Refused(
            f"the {count} pieces of the decision boundary and their {len(edges)} bends are not "
            "those of one hidden layer of relu units, or too few of them were found"
        )
    return _certificate(labels, boundary, found, options)


def _traced(labels: Labels, most: int = 48) -> Boundary:
    """Every piece that tracing comes to; a boundary of more pieces is that of more units than are found."""
    boundary = Boundary()
    try:
        for point, along in _entries(labels):
            boundary.found(labels, point, along, 0.25 * max(1.0, float(np.linalg.norm(point))))
        done = 0
        while done < len(boundary.pieces) <= most:
            _trace_from(boundary, labels, done)
            done += 1
            labels.box.run.report(f"{len(boundary.pieces)} pieces", labels.box.caller.queries, float("nan"))
    except BudgetExceeded as ended:
        if not boundary.pieces:
            raise
        boundary.cut_short = str(ended)
    return boundary


def _entries(labels: Labels, most: int = 12) -> list[tuple[np.ndarray, np.ndarray]]:
    """Boundary points between typical queries of different labels, and the way the label rises."""
    U = labels.box.typical(256)
    label = labels(U)
    up, down = U[label == 1], U[label == -1]
    if len(up) == 0 or len(down) == 0:
        return []
    count = min(most, max(len(up), len(down)))
    one, other = (part[np.arange(count) % len(part)] for part in (down, up))
    along = other - one
    size = np.linalg.norm(along, axis=1)
    along /= size[:, None]
    t = labels.crossing(one, along, np.zeros(count), size)
    return [(one[i] + t[i] * along[i], along[i]) for i in np.flatnonzero(np.isfinite(t))]


def _trace_from(boundary: Boundary, labels: Labels, index: int, count: int = 12) -> None:
    """Trace from a piece to those around it, along some tangents to both sides."""
    piece, d = boundary.pieces[index], labels.box.d
    tangents = labels.box.rng.standard_normal((count, d))
    tangents -= np.outer(tangents @ piece.normal, piece.normal)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    tangents = np.concatenate([tangents, -tangents])
    scale = float(np.sqrt(d))
    t = kinks_along(labels, piece, tangents, scale, 1e4 * scale)
    ended = np.flatnonzero(np.isfinite(t))
    points, room = beyond(labels, piece, tangents[ended], t[ended])
    corners = piece.point + t[ended, None] * tangents[ended]
    for point, corner, arm in zip(points, corners, room, strict=True):
        if not np.isfinite(arm):
            continue
        other = boundary.found(labels, point, piece.normal, float(arm))
        # Two pieces that meet in a kink both contain it; else a piece between them was jumped over.
        if other is not None and other != index and boundary.pieces[other].contains(corner):
            boundary.edges.add((min(index, other), max(index, other)))


def _layer(found: Scaled, points: Float[np.ndarray, "p e"]) -> Layer:
    """The units in u with unit rows, the largest output 1; the base beside them, where it is linear."""
    size = np.linalg.norm(found.units[:, :-1], axis=1)
    # w > 0 where what an active unit adds is positive on the side on which it is active.
    sign = np.where(np.all((points @ found.units.T > 0) == found.active, axis=0), 1.0, -1.0)
    planes, output = found.units * (sign / size)[:, None], sign * size
    largest = float(np.max(np.abs(output)))
    relu, base = activations.get("relu"), found.base[:, None] / largest
    form = Parametrisation(relu, len(base) - 1, len(size), True, True, not found.closed, outputs=1)
    return Layer(form, planes[:, :-1], output[:, None] / largest, planes[:, -1], base[:-1], base[-1])


def _certificate(labels: Labels, boundary: Boundary, found: Scaled, options: Options) -> Certificate:
    box, layer, k = labels.box, _layer(found, boundary.arrays[1]), len(found.units)
    own = found.spread * boundary.arrays[2].min() / np.linalg.norm(found.units[:, :-1], axis=1)
    errors = Errors(np.where(found.known, own, np.inf), own, own, np.max(own) * np.abs(layer.constant))
    fresh, wrong = _fresh_check(labels, layer)
    level = layer.levels(box.typical(500)) * layer.output[:, 0]
    uncrossed = "1 where a linear part stands for units that the boundary does not cross"
    bends = (
        f"{len(boundary.pieces)} flat pieces of the boundary and {len(boundary.edges)} bends fit {k} units"
    )
    checks = [
        at_most("one hidden layer", found.off, 1e-5, bends, About.FIT),
        fresh,
        Check("units not crossed", float(not found.closed), 0.0, True, uncrossed),
    ]
    if boundary.cut_short:
        checks.append(cut_short_check(boundary.cut_short))
    remarks = [
        "labels fix the network up to one positive factor: its largest output is set to 1 for unit rows",
        "units that never change a label are not found",
    ]
    return finished(
        layer, box, options.hidden, checks, errors, _left_open(found),
        shares=level.var(axis=0) / max(float(level.sum(axis=1).var()), 1e-300), remarks=remarks,
        loss=wrong, exact=fresh.passed, n=box.caller.queries, output_precision=1.0,
    )  # fmt: skip


def _fresh_check(labels: Labels, layer: Layer) -> tuple[Check, float]:
    """Labels that were not used: typical ones, and on both sides of other points of the boundary."""
    box = labels.box
    box.must_not_change()
    rows = [box.typical(int(min(4000, 0.3 * box.caller.left)))]
    for point, along in _entries(labels) if box.caller.left > 2000 else []:
        aside = 1e-6 * (np.sqrt(box.d) + float(np.linalg.norm(point))) * along
        rows.append(np.stack([point + aside, point - aside]))
    U = np.concatenate(rows)
    label, value = labels(U), layer.predict(U)[:, 0]
    wrong = int(np.sum((label != 0) & (label != np.sign(value))))
    advice = (
        f"labels of {len(U)} queries that were not used, near the boundary too, that the network has wrong"
    )
    return at_most("fresh queries", float(wrong), 0.0, advice, About.FIT), wrong / len(U)


def _left_open(found: Scaled) -> Undetermined:
    """What labels leave open of the units."""
    bent = "unit {} bends the boundary in one place only, which leaves its row undetermined"
    turned = "the row of unit {} is known, its orientation and output are not: other units are never crossed"
    return {
        i: (Cause.EQUIVALENT, turned) if known else (Cause.BLIND, bent)
        for i, known in enumerate(found.known)
        if not (known and found.closed)
    }
