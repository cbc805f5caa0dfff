"""Where to ask for the finish: the typical region, and along the hyperplane of every unit, near and far.

Close to the hyperplane of a unit, at a distance from the centre where the others have settled, the answers
depend on its parameters alone: the least-squares problem falls apart into one a unit, however alike two
units look near the centre.
"""

from __future__ import annotations

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.tails import Tail

_EACH = 4  # targeted queries a parameter
_FARTHEST = {0: (1e4, 1e5, 50.0), 1: (1e3, 1e5, 50.0)}  # of smooth units, in 1/|a|, by degree and plan
_FARTHEST_SHARP = {1: (5.0, 1e3, 20.0)}
PLANS = 3


def queries(
    net: OneHiddenNet,
    tail: Tail,
    box: BlackBox,
    rng: np.random.Generator,
    plan: int = 0,
    each: int = _EACH,
    kind: type = float,
) -> np.ndarray:
    """(n, d) rows of u to fit the network on, ``each`` times as many as parameters near the hyperplanes.

    Plan 1 goes farther out, for nearly parallel units; plan 2 stays close, for rows of different length.
    """
    k, d = net.weights.shape
    parameters = k * (d + 2)
    around = rng.standard_normal((max(1000, each * parameters // 2), d)).astype(kind)
    around[: len(around) // 3] *= 2.0
    rows = [around[np.max(np.abs(around), axis=1) <= box.reach]]
    count = each * (d + 2)
    farthest = (_FARTHEST_SHARP if tail.sharp else _FARTHEST).get(tail.degree, (5.0, 50.0, 2.0))[plan]
    if box.rounding > 1e-12:  # in single precision distance costs digits that are not there
        farthest = min(farthest, 30.0)
    for a, b in zip(net.weights, net.bias, strict=True):
        size = float(np.linalg.norm(a))
        side = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
        if tail.sharp:
            scale = np.exp(rng.uniform(np.log(0.5), np.log(farthest), count))
            z = side * size * np.exp(rng.uniform(np.log(0.01), np.log(3.0), count))
        else:
            far = max(farthest / size, 2.0)
            scale = np.exp(rng.uniform(0.0, np.log(far), count))
            z = rng.uniform(-4, 4, count)
        if np.isfinite(box.reach):
            scale = np.minimum(scale, box.reach / 3)
        point = scale[:, None] * rng.standard_normal((count, d))
        point += ((tail.root + z - point @ a - b) / size**2)[:, None] * a
        rows.append(point[np.max(np.abs(point), axis=1) <= box.reach].astype(kind))
    return np.vstack(rows)
