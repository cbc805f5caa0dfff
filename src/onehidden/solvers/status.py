"""How a solver ended: the text of a member is the message a user reads."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """Endings; those that are ``good`` leave a usable stationary point."""

    EXACT = "residuals vanish to rounding"
    STATIONARY = "the gradient vanishes: a stationary point of the loss"
    NO_PROGRESS = "no step lowers the loss any more: rounding, or a kink of the loss"
    STALLED = "the loss falls too slowly to be worth going on"
    STEP_LIMIT = "the step limit was reached before convergence: allow more steps"
    OUT_OF_TIME = "the time budget ran out before convergence: allow more seconds"
    NOT_FINITE = "the loss became infinite or NaN: rescale the data or start elsewhere"

    @property
    def good(self) -> bool:
        return self in (Status.EXACT, Status.STATIONARY, Status.NO_PROGRESS)
