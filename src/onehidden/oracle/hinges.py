"""Hinges: hyperplanes where a piecewise linear function bends, and how strongly in every output."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Bool, Float

from onehidden.oracle.pieces import Pieces


@dataclass(frozen=True, eq=False)
class Hinges:
    """f has sum_i m_i |<n_i, u> + o_i| / 2 in it, whichever way the units behind it are turned.

    Attributes
    ----------
    weights : (r, d) unit rows n_i. bias : (r,) o_i. output : (r, q) strengths m_i.
    error : (r,) estimated error of the row, from the coarseness of the answers. blur : (r,) of o_i.
    point : (r, d) where the bend was seen.
    """

    weights: Float[np.ndarray, "r d"]
    bias: Float[np.ndarray, " r"]
    output: Float[np.ndarray, "r q"]
    error: Float[np.ndarray, " r"]
    blur: Float[np.ndarray, " r"]
    point: Float[np.ndarray, "r d"]

    def __len__(self) -> int:
        return len(self.bias)

    @staticmethod
    def none(d: int, q: int) -> Hinges:
        return Hinges(
            np.zeros((0, d)), np.zeros(0), np.zeros((0, q)), np.zeros(0), np.zeros(0), np.zeros((0, d))
        )

    def at(self, index: np.ndarray) -> Hinges:
        return Hinges(*(getattr(self, one.name)[index] for one in fields(self)))

    def joined(self, other: Hinges) -> Hinges:
        return Hinges(
            *(np.concatenate([getattr(self, one.name), getattr(other, one.name)]) for one in fields(self))
        )

    def explains(self, pieces: Pieces, mix: Float[np.ndarray, " q"]) -> Bool[np.ndarray, " b"]:
        """Which bends of a line are those of a known hinge: at its place, and of its strength."""
        if len(self) == 0 or len(pieces.place) == 0:
            return np.zeros(len(pieces.place), bool)
        line = pieces.line
        along = self.weights @ line.direction
        with np.errstate(divide="ignore"):
            place = -(self.weights @ line.start + self.bias) / along
        strength = np.abs(along) * np.asarray(self.output @ mix)
        order = np.argsort(place)
        place, strength = place[order], strength[order]
        ends = np.array([pieces.low[0], *pieces.place, pieces.high[-1]])
        half = 0.5 * (ends[1:] - ends[:-1])
        near = np.minimum(half[:-1], half[1:])
        doubt = (self.blur + self.error * line.radius)[order] / np.abs(along[order])
        found = np.zeros(len(pieces.place), bool)
        for step in (-1, 0):
            k = np.clip(np.searchsorted(place, pieces.place) + step, 0, len(place) - 1)
            room = np.minimum(100 * doubt[k] * (1 + np.abs(pieces.place) / line.radius), near)
            room = np.maximum(room, pieces.tolerance)
            same = np.abs(place[k] - pieces.place) <= room
            found |= same & (np.abs(strength[k] - pieces.change) <= 0.01 * np.abs(strength[k]) + pieces.slack)
        return found

    def distinct(self) -> Hinges:
        """Each hyperplane once, the sharper of two sightings."""
        order = np.argsort(self.error + self.blur)
        kept: list[int] = []
        planes = np.column_stack([self.weights, self.bias])
        for i in order:
            near = np.array(kept, int)
            side = np.where(self.weights[near] @ self.weights[i] < 0, -1.0, 1.0)
            tilt = np.linalg.norm(self.weights[near] - side[:, None] * self.weights[i], axis=1)
            shift = np.abs(planes[near, -1] - side * planes[i, -1])
            same = tilt <= 1e-9 + 30 * (self.error[near] + self.error[i])
            same &= shift <= 1e-9 * (1 + np.abs(planes[i, -1])) + 30 * (self.blur[near] + self.blur[i])
            if not same.any():
                kept.append(int(i))
        return self.at(np.array(sorted(kept), int))
