"""Units that a coarse box has shown twice, a little apart: the sighting that explains more stays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.oracle.layer import Activated, Layer, told

_ALIKE = 0.9  # cosine of two rows that may be one unit; sightings of one were seen to differ by 0.99
_STRENGTH = 0.2  # of the larger output: how far the outputs of two sightings may differ


def once_each(layer: Layer, U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"], g: Activated) -> Layer:
    """The layer without the unit of a pair of look-alikes whose absence leaves less of the answers Y.

    Two units that are both there are kept: without either more is left. The linear part is fitted anew.
    """
    left = _left(layer, U, Y, g)
    while True:
        for i, j in _pairs(layer):
            tried = [_fitted(_without(layer, one), U, Y, g) for one in (i, j)]
            rest = [_left(one, U, Y, g) for one in tried]
            if min(rest) < left:
                left, layer = min(rest), tried[int(np.argmin(rest))]
                break
        else:
            return layer


def _pairs(layer: Layer) -> list[tuple[int, int]]:
    """Units with nearly the same row and output, whichever way they are turned."""
    rows = layer.weights / np.linalg.norm(layer.weights, axis=1, keepdims=True)
    size = np.maximum(np.linalg.norm(layer.output, axis=1), 1e-300)
    alike = np.abs(rows @ rows.T) > _ALIKE
    apart = np.linalg.norm(layer.output[:, None] - layer.output[None], axis=2)
    alike &= apart < _STRENGTH * np.maximum(size[:, None], size[None])
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(alike, 1))]


def _without(layer: Layer, i: int) -> Layer:
    kept = np.arange(len(layer.bias)) != i
    return replace(layer, weights=layer.weights[kept], bias=layer.bias[kept], output=layer.output[kept])


def _fitted(layer: Layer, U: np.ndarray, Y: np.ndarray, g: Activated) -> Layer:
    """The layer with the linear part that the answers ask for."""
    assert layer.linear is not None
    bare = replace(layer, constant=np.zeros_like(layer.constant), linear=None)
    solved = np.linalg.lstsq(np.column_stack([U, np.ones(len(U))]), Y - told(bare, U, g), rcond=None)[0]
    return replace(layer, linear=solved[:-1], constant=solved[-1])


def _left(layer: Layer, U: np.ndarray, Y: np.ndarray, g: Activated) -> float:
    return float(np.mean((told(layer, U, g) - Y) ** 2))
