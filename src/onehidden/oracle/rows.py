"""The whole rows of the units that bend a line: differences of the gradient between neighbouring pieces.

On a straight piece the function is affine around the piece, too. Its gradient changes across a bend by
w_i a_i, row and strength of the unit in one; k + 1 gradients tell k units: d questions a unit and side.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.oracle.box import BlackBox
from onehidden.oracle.hinges import Hinges
from onehidden.oracle.pieces import Pieces

_ARM = 0.3  # of the length of a piece: how far the first questions around its middle go
_SHRINK = 4.0
_TRIES = 9
_SMOOTH = 8.0  # standard errors of a second difference beyond which an arm crossed another kink
_LONG = 1e-3  # of the distance from the centre: a longer arm says nothing
_PROBES = 6  # random places of a hyperplane where its kink is looked for


def gradients(
    box: BlackBox, pieces: Pieces, which: Int[np.ndarray, " m"], basis: Float[np.ndarray, "d d"]
) -> tuple[Float[np.ndarray, "m d q"], Float[np.ndarray, "m d"], Bool[np.ndarray, " m"]]:
    """Gradients of all outputs in the middle of some pieces, in the basis; standard errors; whether found.

    Along every direction one question is asked on either side: their mean must be the answer in the middle,
    or the arm reached over another kink and is shortened.
    """
    line, m, d = pieces.line, len(which), box.d
    middle = pieces.middle[which]
    base = line.at(middle)
    center = box.answers(base)
    arm = np.minimum(pieces.high - pieces.low, 2 * (line.radius + np.abs(pieces.middle)))[which] * _ARM
    arm = np.minimum(arm, box.margin(base) / np.max(np.abs(basis)))
    noise = pieces.noise[which]
    step = np.repeat(arm[:, None], d, axis=1)
    slope, open_ = np.zeros((m, d, box.q)), np.ones((m, d), bool)
    for _ in range(_TRIES):
        i, j = np.nonzero(open_)
        if len(i) == 0:
            break
        up = box.star(base, i, step[i, j], basis, j)
        down = box.star(base, i, -step[i, j], basis, j)
        bend = (up + down - 2 * center[i]) @ box.mix
        with np.errstate(invalid="ignore"):
            good = np.abs(bend) <= _SMOOTH * 2.5 * noise[i]
        slope[i[good], j[good]] = ((up - down) / (2 * step[i, j])[:, None])[good]
        open_[i[good], j[good]] = False
        step[i[~good], j[~good]] /= _SHRINK
    error = noise[:, None] / (np.sqrt(2) * step)
    return slope, error, np.logical_not(open_.any(axis=1))


def bending_units(
    box: BlackBox, pieces: Pieces, wanted: Bool[np.ndarray, " b"], basis: Float[np.ndarray, "d d"]
) -> Hinges:
    """The units behind the wanted bends of a line, one each; not yet looked for anywhere else."""
    at = np.flatnonzero(wanted & pieces.single)
    which = np.unique(np.concatenate([at, at + 1]))
    if len(at) == 0:
        return Hinges.none(box.d, box.q)
    slope, error, found = gradients(box, pieces, which, basis)
    before, after = np.searchsorted(which, at), np.searchsorted(which, at + 1)
    good = found[before] & found[after]
    at, before, after = at[good], before[good], after[good]
    change = slope[after] - slope[before]  # (r, d, q) in the basis
    mixed = change @ box.mix
    size = np.linalg.norm(mixed, axis=1)
    size = np.where(size > 0, size, 1.0)
    normal = mixed / size[:, None]
    # The sign of a kink seen along the line: its strength is that of the mixture, its row points along v.
    side = np.where((normal @ (basis @ pieces.line.direction)) < 0, -1.0, 1.0)
    normal = normal * side[:, None]
    output = np.einsum("rdq,rd->rq", change, normal)
    doubt = np.sqrt(np.sum(error[before] ** 2 + error[after] ** 2, axis=1)) / size
    rows = normal @ basis
    point = pieces.line.at(pieces.place[at])
    bias = -np.sum(rows * point, axis=1)
    # The place of the bend is where two fitted lines meet.
    change_along = np.abs(pieces.change[at])
    place = (pieces.noise[at] + pieces.noise[at + 1]) / np.where(change_along > 0, change_along, 1.0)
    far = np.linalg.norm(point, axis=1)
    # Errors of a row point anywhere: d^-1/2 of them along the way to the bend.
    blur = 2 * doubt * far / np.sqrt(box.d) + place * np.abs(rows @ pieces.line.direction)
    return Hinges(rows, bias, output, doubt, blur, point)


def continued(
    box: BlackBox, hinges: Hinges, radius: float, rng: np.random.Generator
) -> Float[np.ndarray, " r"]:
    """Share of random places of each hyperplane where a kink of the same strength is seen; NaN if untold.

    A unit bends the function along its whole hyperplane; what a second layer or a maximum does ends. Places
    that the box does not answer, as those outside of its domain, say nothing.
    """
    r, d = hinges.weights.shape
    if r == 0:
        return np.zeros(0)
    strength = hinges.output @ box.mix
    seen = np.zeros((r, _PROBES))
    for probe in range(_PROBES):
        at = box.typical(r, rng) * radius / np.sqrt(d)
        at -= (np.sum(at * hinges.weights, axis=1) + hinges.bias)[:, None] * hinges.weights
        noise = box.noise_at(at)
        # Far enough that an error of the row is small beside the arm, and that the kink stands out.
        arm = 20 * (hinges.blur + hinges.error * radius / np.sqrt(d)) + 100 * noise / np.abs(strength)
        arm = arm + 1e-9 * radius
        points = at[:, None] + np.array([-2.0, -1.0, 0.0, 1.0, 2.0])[None, :, None] * (
            arm[:, None, None] * hinges.weights[:, None]
        )
        y = box.ask(points)
        bend = (y[:, 3] + y[:, 1] - 2 * y[:, 2]) / (strength * arm)
        straight = np.abs(y[:, [0, 4]] - 2 * y[:, [1, 3]] + y[:, [2, 2]]).max(axis=1) / np.abs(strength * arm)
        # An arm as long as this meets other kinks: nothing can be said before the row is better known.
        told = (arm < _LONG * radius) & np.all(np.isfinite(y), axis=1)
        seen[:, probe] = np.where(told, (np.abs(bend - 1) < 0.15) & (straight < 0.15), np.nan)
    count = np.sum(np.isfinite(seen), axis=1)
    return np.where(count > 0, np.nansum(seen, axis=1) / np.maximum(count, 1), np.nan)
