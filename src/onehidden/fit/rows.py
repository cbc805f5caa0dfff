"""Rows of samples, in memory or streamed: one protocol, two implementations.

``Samples`` hold their rows; ``StreamedRows`` read them anew on every pass. Whoever asks gives the coordinates
in which the rows are to be seen, and hears sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, Self, TypeVar

import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.rounding import Rounding

Inputs = Float[np.ndarray, "n d"]
Target = Float[np.ndarray, "n ..."]  # (n,), or (n, q) of several outputs
Weight = Float[np.ndarray, "n ..."] | None
Numbers = Int[np.ndarray, " n"] | None


class Accumulator(Protocol):
    """A sum over rows seen in some coordinates."""

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


class Sums(Protocol):
    """A form fitted to rows: everything that solvers and certificates ask of them at some parameters."""

    form: Form
    n: int

    def loss(self, theta: Float[np.ndarray, " p"]) -> float: ...

    def normal_equations(
        self, theta: Float[np.ndarray, " p"], rough: bool = False
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"], float]: ...

    def triangle(
        self, theta: Float[np.ndarray, " p"]
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]]: ...


class Rows(Protocol):
    """Where the samples are.

    Attributes
    ----------
    n : rows. names : of the inputs. streamed : whether a pass over the rows costs more than its arithmetic.
    rounding : how coarsely the target is known.
    """

    @property
    def n(self) -> int: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def streamed(self) -> bool: ...

    @property
    def rounding(self) -> Rounding: ...

    def sums(self, form: Form, coordinates: Coordinates) -> Sums:
        """The fit of a form in these coordinates."""
        ...

    def fold(self, make: Callable[[], A], coordinates: Coordinates) -> A:
        """An accumulator that has seen all rows in these coordinates."""
        ...
