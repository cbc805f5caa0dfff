"""Which activation a box has, from how a few lines through it bend."""

from __future__ import annotations

import numpy as np

from onehidden.oracle.box import BlackBox
from onehidden.oracle.hinge_survey import a_line
from onehidden.oracle.pieces import straight_pieces


def noticed_activation(box: BlackBox, rng: np.random.Generator) -> str:
    """A name of ``activations.names()``.

    Straight pieces with single bends between are ReLU's; a function that levels off far away is a sum of
    sigmoids, one that does not of softplus.
    """
    line = a_line(box, float(np.sqrt(box.d)), rng)
    pieces = straight_pieces(box, line)
    if pieces is not None and np.any(~pieces.lost) and pieces.single[~pieces.lost].mean() > 0.5:
        return "relu"
    if np.isfinite(box.reach):
        return "tanh"
    U = rng.standard_normal((64, box.d))
    near, far = (float(np.std(box.ask(1e4 * distance * U))) for distance in (1.0, 100.0))
    return "tanh" if far < 3 * near else "softplus"
