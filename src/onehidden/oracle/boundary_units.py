"""Units from the pieces of a decision boundary: which kinks are of one unit, and how pieces are scaled.

On a piece the function is s <N, (u, 1)>, N known and s > 0 not; it is the sum of v_i = w_i (a_i, b_i) over
the active units, and of c. Pieces that meet in a kink differ by one unit. Two kinks of one unit lie in one
hyperplane, so their four N span three dimensions only. All scales follow from linear equations, up to one
common factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.oracle.boundary import Piece

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


def unit_planes(pieces: list[Piece]) -> Float[np.ndarray, "p e"]:
    return np.array([piece.plane for piece in pieces])


def units_of_kinks(pieces: list[Piece], edges: list[tuple[int, int]]) -> Int[np.ndarray, " m"]:
    """For each kink the number of its unit, from 0."""
    planes, group = unit_planes(pieces), np.arange(len(edges))
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


def scaled(pieces: list[Piece], changed: Bool[np.ndarray, "p k"], most: int = 12) -> Scaled | None:
    """The units behind the pieces, alone if they explain them for one choice of sides, else beside a base.

    All 2^k sides of up to ``most`` units are tried. None where not even the scales of the pieces fit.
    """
    planes, k = unit_planes(pieces), changed.shape[1]
    error = np.array([piece.error for piece in pieces])
    points = np.array([np.append(piece.point, 1.0) for piece in pieces])
    found, weight = [], error.min() / error
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
    base = chosen[p] * constant if closed else found[k]
    gap = values[~null][-1] if np.any(~null) else 1.0
    off = float(values[null][0] / gap) if len(solutions) == 1 else 0.0
    return Scaled(found[:k], active, base, closed, np.array(known, bool), off)


def _one_direction(rows: Float[np.ndarray, "s r"]) -> bool:
    values = np.linalg.svd(rows, compute_uv=False)
    return bool(values[0] > 0 and (len(values) == 1 or values[1] <= 1e-6 * values[0]))
