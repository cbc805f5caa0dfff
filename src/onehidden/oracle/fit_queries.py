"""Where to ask for a fit of all parameters: around the centre, and on both sides of every hyperplane."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.oracle.answers import finite
from onehidden.oracle.box import BlackBox
from onehidden.oracle.layer import Asked

MEMORY = 1.5 * 2**30  # bytes that a fit may hold beside the network
# The singular values of a random Jacobian lie in 1 +- (parameters / questions)^1/2: with three times as many
# questions LSMR gains 0.58 a product, with twice 0.71.
_EACH = 3.0  # questions a parameter; more where answers are coarse and an average of them helps
_FARTHEST = 1e4  # times: beyond, sums of near and far questions lose the near ones
_EACH_COARSE = 4.0


def memory_for(n: int, d: int, k: int, q: int) -> float:
    """Bytes that a fit to n questions holds: questions, activations, slopes in single, answers in double."""
    return n * (4.0 * d + 8.0 * k + 4.0 * k + 40.0 * q)


def hinge_queries(
    box: BlackBox, weights: Float[np.ndarray, "k d"], bias: Float[np.ndarray, " k"], rng: np.random.Generator
) -> Asked:
    """Questions for units with unit rows, half of them typical ones, half near the hyperplanes; answered."""
    (k, d), q = weights.shape, box.q
    parameters = k * (d + 1) + d + 1
    each = _EACH_COARSE if box.coarse else _EACH
    n = int(max(400, each * parameters + 200))
    while memory_for(n, d, k, q) > MEMORY:
        n = int(0.9 * n)
    n = int(min(n / box.share, 0.8 * box.left))  # some are not answered
    U = np.empty((n, d), np.float32)
    around = n // 2
    for begin in range(0, n, 8192):
        part = slice(begin, min(begin + 8192, n))
        rows = box.typical(part.stop - part.start, rng)
        far = np.arange(part.start, part.stop) >= around
        unit = np.arange(part.start, part.stop) % k
        # Moved along its row by its bias: the unit now sees them as if it went through the centre.
        rows -= np.where(far, bias[unit], 0.0)[:, None] * weights[unit]
        # From far away noise that does not grow is small beside the answers: rows are told there, and biases
        # by all of them.
        rows[::3] *= min(box.farther, _FARTHEST)
        U[part] = rows
    inside = box.margin(np.asarray(U, float)) >= 0 if box.domain.bounded else np.ones(n, bool)
    U = U[inside]
    Y = box.answers(U)
    good = finite(Y)
    U, Y = (U, Y) if good.all() else (U[good], Y[good])
    return Asked(U, Y, box.noise_at(U, Y))
