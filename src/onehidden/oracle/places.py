"""Biases of hinges whose rows are known: far away noise that does not grow shows rows well, places badly.

At a distance R such noise tilts a row by noise / R, but shifts the place of its kink by as much as at any
other distance. The rows stand; what is left are k numbers, told by questions around the centre.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.oracle.layer import Layer

_GRID = 81  # biases tried for a unit at once
_SWEEPS = 4  # over all units, each time with a finer grid
_FINER = 0.25
_STEPS = 8  # Gauss–Newton steps in all biases at the end


def placed(
    layer: Layer, blur: Float[np.ndarray, " k"], U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"]
) -> Layer:
    """The layer of hinges m |<n, u> + o| / 2 with the biases o, and the constant, that the answers ask for.

    Parameters
    ----------
    blur : (k,) how far each bias may be off. U, Y : typical questions and all outputs.
    """
    assert layer.linear is not None
    z, rest = U @ layer.weights.T, Y - U @ layer.linear
    bias, output = layer.bias.copy(), layer.output
    # Beyond all questions a hinge is linear wherever it lies.
    farthest = np.max(np.abs(z), axis=0)
    width = np.minimum(3 * blur, farthest)

    def left(of: np.ndarray) -> np.ndarray:
        found = rest - 0.5 * np.abs(z + of) @ output
        return found - found.mean(axis=0)

    for sweep in range(_SWEEPS):
        for i in np.argsort(-np.linalg.norm(output, axis=1)):
            others = left(bias) + 0.5 * np.abs(z[:, [i]] + bias[i]) * output[i]
            tried = np.append(bias[i] + width[i] * _FINER**sweep * np.linspace(-1, 1, _GRID), bias[i])
            own = 0.5 * np.abs(z[:, [i]] + tried)  # (n, tried)
            own -= own.mean(axis=0)
            others -= others.mean(axis=0)
            # |others - own m|², all outputs, but for what no choice changes
            loss = np.sum(own**2, axis=0) * np.sum(output[i] ** 2) - 2 * (others @ output[i]) @ own
            bias[i] = tried[int(np.argmin(loss))]
    for _ in range(_STEPS):
        slope = 0.5 * np.sign(z + bias)[:, None, :] * output.T  # (n, q, k)
        slope = (slope - slope.mean(axis=0)).reshape(-1, len(bias))
        now = left(bias)
        step = np.linalg.lstsq(slope, now.ravel(), rcond=1e-6)[0]
        if not np.sum(left(bias + step) ** 2) < np.sum(now**2):
            break
        bias = bias + step
    constant = np.mean(rest - 0.5 * np.abs(z + bias) @ output, axis=0)
    return replace(layer, bias=bias, constant=constant)
