"""Units from the pieces of a decision boundary: which bends are of one unit, and how the pieces are scaled.

On a piece the function is s <N, (u, 1)>, N known and s > 0 not; it is the sum of v_i = w_i (a_i, b_i) over
the active units, and of c. Pieces that meet in a bend differ by one unit. Two bends of one unit lie in one
hyperplane, so their four N span three dimensions only. All scales follow from linear equations, but for one
factor in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.oracle.boundary import Piece

_DEPENDENT = 1e-7  # singular value of four planes that span three dimensions only; known to about 1e-12 each
_APART = 1e-4  # of the next singular value: where that is as small, all four planes are nearly one
_NULL = 1e-7  # singular value of a system that has a solution
_MOST = 12  # units whose sides are tried, all 2^k


@dataclass(frozen=True, eq=False)
class Scaled:
    """Units whose sum has these pieces, up to one positive factor.

    Attributes
    ----------
    units : (k, d + 1) v_i, what an active unit adds. active : (p, k) on which pieces.
    base : (d + 1,) what is there beside them: (0, …, 0, c) where the units alone explain the boundary.
    closed : whether they do. known : (k,) whether the row of a unit is determined.
    off : the singular value that a solution leaves, against the next.
    """

    units: Float[np.ndarray, "k e"]
    active: Bool[np.ndarray, "p k"]
    base: Float[np.ndarray, " e"]
    closed: bool
    known: Bool[np.ndarray, " k"]
    off: float


def crossed(pieces: list[Piece], edges: list[tuple[int, int]]) -> Int[np.ndarray, " m"]:
    """For each bend the number of its unit, from 0."""
    planes = unit_planes(pieces)
    group = np.arange(len(edges))
    for (a, one), (b, two) in combinations(enumerate(edges), 2):
        if set(one) & set(two) or group[a] == group[b]:
            continue
        values = np.linalg.svd(planes[[*one, *two]], compute_uv=False)
        if values[3] <= min(_DEPENDENT, _APART * values[2]):
            group[group == group[b]] = group[a]
    return np.unique(group, return_inverse=True)[1]


def flips(
    count: int, edges: list[tuple[int, int]], unit: Int[np.ndarray, " m"]
) -> Bool[np.ndarray, "p k"] | None:
    """(p, k) which units change on the way from piece 0 to each; None where ways contradict each other."""
    k = int(unit.max()) + 1
    found: dict[int, np.ndarray] = {0: np.zeros(k, bool)}
    for _ in range(count):
        for (a, b), i in zip(edges, unit, strict=True):
            for here, there in ((a, b), (b, a)):
                if here not in found:
                    continue
                way = found[here].copy()
                way[i] ^= True
                if there in found and not np.array_equal(found[there], way):
                    return None
                found[there] = way
    if len(found) < count:
        return None
    table = np.array([found[i] for i in range(count)])
    return table if len(np.unique(table, axis=0)) == count else None


def scaled(pieces: list[Piece], changed: Bool[np.ndarray, "p k"]) -> Scaled | None:
    """The units behind the pieces, alone if they explain them for one choice of sides, else beside a base.

    None where not even the scales of the pieces fit together.
    """
    planes, k = unit_planes(pieces), changed.shape[1]
    error = np.array([piece.error for piece in pieces])
    found, sharp = [], error.min() / error
    for number in range(2**k if k <= _MOST else 0):
        active = changed ^ ((number >> np.arange(k)) & 1).astype(bool)
        if np.any(~active.any(axis=1)):
            continue  # without an active unit the function is constant: no boundary
        one = solved(planes, sharp, active, closed=True)
        if one is not None and _sided(one, pieces):
            found.append(one)
    if len(found) == 1:
        return found[0]
    return solved(planes, sharp, changed, closed=False)


def unit_planes(pieces: list[Piece]) -> Float[np.ndarray, "p e"]:
    """Planes of length one in all d + 1 numbers: an offset far from the centre would hide the normal."""
    planes = np.array([piece.plane for piece in pieces])
    return planes / np.linalg.norm(planes, axis=1, keepdims=True)


def solved(
    planes: Float[np.ndarray, "p e"],
    sharp: Float[np.ndarray, " p"],
    active: Bool[np.ndarray, "p k"],
    closed: bool,
) -> Scaled | None:
    """s, v and the base of s_p N_p = base + sum of active v_i; the base is (0, …, 0, c) where closed.

    The equations of a piece count as ``sharp`` as it is known; solved for is s_p sharp_p.
    """
    (p, e), k = planes.shape, active.shape[1]
    known = np.append(np.zeros(e - 1), 1.0)[None]
    basis = np.linalg.qr(np.concatenate([planes, known]).T)[0]  # (e, r): all that can come up
    N, last = planes @ basis, (known @ basis)[0]
    r = basis.shape[1]
    on = np.column_stack([active.astype(float), np.zeros((p, 0)) if closed else np.ones((p, 1))])
    on *= sharp[:, None]
    # What no choice of v (and of the base) can reach must vanish: linear in s (and c).
    left = np.eye(p) - on @ np.linalg.pinv(on)
    columns = [np.outer(left[:, i], N[i]).ravel() for i in range(p)]
    if closed:
        columns.append(-np.outer(left @ sharp, last).ravel())
    _, values, rows = np.linalg.svd(np.array(columns).T)
    values = np.concatenate([values, np.zeros(max(0, len(columns) - len(values)))])[: len(columns)]
    null = values <= _NULL  # all columns are of length one at most
    if not null.any() or (closed and null.sum() > 1):
        return None
    solutions = rows[: len(columns)][null]

    def units(solution: np.ndarray) -> np.ndarray:
        right = solution[:p, None] * N - (np.outer(sharp, solution[p] * last) if closed else 0.0)
        return np.linalg.pinv(on) @ right

    parts = np.array([units(one) for one in solutions])  # (solutions, k or k + 1, r)
    # A row is determined if it has one direction in all solutions, and no part of ``on`` leaves it open.
    free = np.linalg.svd(on)[2][np.linalg.matrix_rank(on) :]
    determined = np.array(
        [
            _one_direction(parts[:, i]) and (len(free) == 0 or np.max(np.abs(free[:, i])) < 1e-9)
            for i in range(k)
        ]
    )
    chosen = solutions[0] if len(solutions) == 1 else _positive(solutions, p)
    chosen = chosen * np.sign(np.sum(chosen[:p]))
    if np.any(chosen[:p] <= 0):
        return None
    told = units(chosen) @ basis.T
    base = chosen[p] * known[0] if closed else told[k]
    gap = values[~null][-1] if np.any(~null) else 1.0
    off = float(values[null][0] / gap) if len(solutions) == 1 else 0.0
    assert r <= e
    return Scaled(told[:k], active, base, closed, determined, off)


def _one_direction(rows: Float[np.ndarray, "s r"]) -> bool:
    values = np.linalg.svd(rows, compute_uv=False)
    return bool(values[0] > 0 and (len(values) == 1 or values[1] <= 1e-6 * values[0]))


def _positive(solutions: Float[np.ndarray, "s p"], p: int) -> Float[np.ndarray, " p"]:
    """A combination of solutions with all scales positive, where there is a simple one."""
    return np.linalg.lstsq(solutions[:, :p].T, np.ones(p), rcond=None)[0] @ solutions


def _sided(one: Scaled, pieces: list[Piece]) -> bool:
    """Whether every unit is active on one side of its hyperplane and not on the other."""
    points = np.array([np.append(piece.point, 1.0) for piece in pieces])
    side = points @ one.units.T > 0
    same = side == one.active
    return bool(np.all(same.all(axis=0) | (~same).all(axis=0)))
