"""Least squares in all parameters at any size: Gauss–Newton steps from a residual in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from onehidden.oracle.jacobian import Jacobian
from onehidden.oracle.layer import Activated, Asked, Layer, told
from onehidden.run import Run

_SHORT = 3.0  # times the floor: what is left where a descent has stopped short
_LITTLE = 0.8  # of the loss: thorough steps go on until they gain less
_OUTER = 12


def descended(
    layer: Layer,
    asked: Asked,
    g: Activated,
    run: Run,
    homogeneous: bool,
    floor: float = 0.0,
    coarse: bool = False,
) -> Layer:
    """The layer after Gauss–Newton steps, each shortened until it leads downwards.

    They end where a step gains little: with ``floor``, the root mean square of the rounding, left long before
    that biases and outputs are still on their way, 10 to 50 times farther off than the rounding leaves them.
    In a coarse box the noise hides what a step gains, and steps are taken until they gain next to nothing.
    """

    def left(one: Layer) -> np.ndarray:
        return (asked.Y - told(one, asked.U, g)) * asked.weight[:, None]

    residual, thorough = left(layer), False
    loss = float(np.mean(residual**2))
    for step in range(2 * _OUTER):
        if run.expired() or (step >= _OUTER and not thorough):
            break
        move = Jacobian(layer, asked, g).solve([residual], thorough=thorough)[0]
        after, trial = residual, layer
        for shorter in (1.0, 0.5, 0.25, 0.1, 0.01):
            trial = layer.moved(layer.pack() + shorter * move)
            trial = trial.normalised() if homogeneous else trial
            after = left(trial)
            if np.mean(after**2) < loss:
                break
        gained = float(np.mean(after**2)) / loss
        if gained < 1:
            layer, residual, loss = trial, after, gained * loss
        run.report("least squares", step, loss)
        if gained > (0.995 if coarse else _LITTLE if thorough else 0.5):
            if thorough or loss <= (_SHORT * floor) ** 2:
                break
            thorough = True
    return layer


def drawn(
    layer: Layer, asked: Asked, g: Activated, noise: Callable[[], Float[np.ndarray, "n q"]], draws: int
) -> tuple[list[Layer], Layer]:
    """What the parameters would move by if the answers had such noise: their errors, as many draws of it.

    And the same of each parameter alone, the others held: the noise over the length of its column.
    """
    rights = [noise() * asked.weight[:, None] for _ in range(draws)]
    jacobian = Jacobian(layer, asked, g)
    moves = [layer.moved(step) for step in jacobian.solve(rights)]
    return moves, layer.moved(asked.least * jacobian.scale)
