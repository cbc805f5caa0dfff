"""Several sums over rows in one pass."""

from __future__ import annotations

from onehidden.fit.rows import Accumulator, Inputs, Numbers, Target, Weight


class Together:
    """Accumulators that all see every row; they merge one by one."""

    def __init__(self, *parts: Accumulator) -> None:
        self.parts = parts

    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> Together:
        for part in self.parts:
            part.update(Z, y, weight, row)
        return self

    def merge(self, other: Together) -> Together:
        for part, same in zip(self.parts, other.parts, strict=True):
            part.merge(same)
        return self
