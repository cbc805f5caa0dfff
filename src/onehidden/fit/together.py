"""Several sums over rows in one pass."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.rows import Accumulator


class Together:
    """Accumulators that all see every row; they merge one by one."""

    def __init__(self, *parts: Accumulator) -> None:
        self.parts = parts

    def update(
        self,
        Z: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        weight: Float[np.ndarray, " n"] | None,
        row: Int[np.ndarray, " n"],
    ) -> Together:
        for part in self.parts:
            part.update(Z, y, weight, row)
        return self

    def merge(self, other: Together) -> Together:
        for part, same in zip(self.parts, other.parts, strict=True):
            part.merge(same)
        return self
