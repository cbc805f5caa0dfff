"""Hinges of a coarse box, weighed against each other by typical answers.

A line shows a hinge with its output. With rows and biases held, outputs and the linear part are a linear
problem for typical answers: a hinge that is there is given the output that its own bend has shown. One that
is none, or that was seen twice a little apart, is given another, and goes; the others are solved for again.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.oracle.layer import Activated, Layer

_OFF = 0.5  # relative: how far the output of a hinge may be from the one that its bend has shown
ENOUGH = 1.5  # questions for every unknown


def weighed(layer: Layer, U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"], g: Activated) -> Layer:
    """The layer, with its linear part, of the hinges that the answers Y at U confirm; outputs are theirs."""
    affine = np.column_stack([U, np.ones(len(U))])
    Q, R = np.linalg.qr(affine)
    level = g(U @ layer.weights.T + layer.bias)[0]
    columns, rest = level - Q @ (Q.T @ level), Y - Q @ (Q.T @ Y)
    kept = np.arange(len(layer.bias))
    while len(kept):
        output = np.linalg.lstsq(columns[:, kept], rest, rcond=None)[0]
        shown = layer.output[kept]
        off = np.linalg.norm(output - shown, axis=1) / np.maximum(np.linalg.norm(shown, axis=1), 1e-300)
        worst = int(np.argmax(off))
        if off[worst] <= _OFF:
            break
        kept = np.delete(kept, worst)
    else:
        return layer
    solved = np.linalg.solve(R, Q.T @ (Y - level[:, kept] @ output))
    return Layer(layer.weights[kept], layer.bias[kept], output, solved[-1], solved[:-1])
