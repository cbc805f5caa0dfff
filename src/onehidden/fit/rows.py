"""What the fit needs of the rows of a sample: sums over them in given coordinates.

``fit.samples.Samples`` hold their rows; ``recovery.streamed.StreamedRows`` read them anew on every pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, Self, TypeVar

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.parametrisation import Inputs, Numbers, Parametrisation, Target, Weight
from onehidden.fit.rounding import Rounding
from onehidden.solvers import Dense


class Accumulator(Protocol):
    """A sum over rows in given coordinates."""

    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers, /) -> object:
        """Add rows: inputs, target, weights of mean one over all rows, and the numbers that name the rows."""
        ...

    def merge(self, other: Self) -> object: ...


class Summed:
    """An accumulator whose attributes named in ``summed`` add up."""

    summed: ClassVar[tuple[str, ...]]

    def merge(self, other: Self) -> Self:
        for name in self.summed:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


A = TypeVar("A", bound=Accumulator)


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


class NetworkLeastSquares(Dense, Protocol):
    """The loss of a parametrisation over rows, with its normal equations."""

    form: Parametrisation
    n: int


class Rows(Protocol):
    """Where the samples are; ``streamed`` says that a pass over the rows costs more than its arithmetic."""

    @property
    def n(self) -> int: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def streamed(self) -> bool: ...

    @property
    def rounding(self) -> Rounding: ...

    def least_squares(self, form: Parametrisation, coordinates: Coordinates) -> NetworkLeastSquares:
        """The loss of a parametrisation in these coordinates."""
        ...

    def fold(self, make: Callable[[], A], coordinates: Coordinates) -> A:
        """An accumulator with all rows, in these coordinates."""
        ...
