"""What the fit needs of rows: sums over them in given coordinates; and rows in memory.

``recovery.streamed.StreamedRows`` read theirs anew on every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.coordinates import Coordinates, whitened
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Inputs, Numbers, Parametrisation, Target, Weight, roots
from onehidden.fit.rounding import EPS, Rounding, rounding_of
from onehidden.fit.shared_noise import SharedNoise, SharedNoiseLeastSquares
from onehidden.machine import in_double
from onehidden.run import fingerprint, stream
from onehidden.solvers import Dense


class Accumulator(Protocol):
    """A sum over rows in given coordinates."""

    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers, /) -> object:
        """Add rows: inputs, target, weights of mean one over all rows, and the numbers of rows or groups."""
        ...

    def merge(self, other: Self) -> object: ...


A = TypeVar("A", bound=Accumulator)


Terms = Callable[[Inputs, Target, Weight, Numbers], Sequence[Any]]  # of the sums, for some rows


class RowSum:
    """Accumulator of arrays or numbers that are sums over rows; ``terms`` gives those of some rows."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.sums: list[Any] = []

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> Self:
        self._add(self.terms(Z, y, weight, row))
        return self

    def merge(self, other: Self) -> Self:
        self._add(other.sums)
        return self

    def result(self) -> list[Any]:
        return self.sums

    def _add(self, terms: Sequence[Any]) -> None:
        if not self.sums:  # a part without rows has none
            self.sums = list(terms)
        elif terms:
            self.sums = [mine + new for mine, new in zip(self.sums, terms, strict=True)]


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

    @property
    def n_groups(self) -> int: ...  # zero where no rows belong together

    def least_squares(self, form: Parametrisation, coordinates: Coordinates) -> NetworkLeastSquares:
        """The loss of a parametrisation in these coordinates."""
        ...

    def fold(self, make: Callable[[], A], coordinates: Coordinates, by_group: bool = False) -> A:
        """An accumulator with all rows, in these coordinates; ``by_group`` numbers groups, not rows."""
        ...


@dataclass(frozen=True)
class Samples:
    """Rows in memory.

    A weight says how much a row counts: the noise of row i has variance sigma^2 / weight_i, or the row stands
    for that many. Weights have mean one; they may differ from output to output, (n, q), or be the information
    of a row, (n, q, q).
    """

    X: Float[np.ndarray, "n d"] = field(repr=False)
    y: Float[np.ndarray, "n ..."] = field(repr=False)  # (n,) or (n, q)
    weight: Float[np.ndarray, "n ..."] | None = field(repr=False, default=None)
    names: tuple[str, ...] = ()  # of the inputs
    precision: float = EPS  # relative rounding of y
    unit: float = 1.0  # sigma^2 for a dispersion of one
    dispersion: float | None = None  # where it is known
    noisy: bool = False  # y is random by its nature (a count, a class): no fit to it is one to rounding
    # Numbers of the rows in the caller's table, where rows were sorted; the test of dependence reads them.
    place: Int[np.ndarray, " n"] | None = field(repr=False, default=None)
    groups: Int[np.ndarray, " n"] | None = field(repr=False, default=None)  # numbers from 0 on
    # Variance that rows of a group share over that of a row's own noise; None where none is to be estimated.
    ratio: float | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def streamed(self) -> bool:
        return False

    @property
    def n_groups(self) -> int:
        """Groups of rows that belong together, zero where none are named."""
        return 0 if self.groups is None else int(self.groups.max()) + 1

    @cached_property
    def row_weight(self) -> Float[np.ndarray, " n"] | None:
        """(n,) weight of a row, averaged over its outputs; None where all are equal."""
        if self.weight is None or self.weight.ndim == 1:
            return self.weight
        own = self.weight if self.weight.ndim == 2 else np.einsum("nqq->nq", self.weight)
        return own.mean(axis=1)

    @property
    def shared(self) -> SharedNoise | None:
        """The noise that rows of a group share, where it was estimated."""
        if not self.ratio or self.groups is None:
            return None
        return SharedNoise(self.groups, roots(self.weight, self.n), self.ratio)

    @property
    def share(self) -> Float[np.ndarray, " n"]:
        """(n,) weights of sum one."""
        weight = self.row_weight
        return np.full(len(self.y), 1 / len(self.y)) if weight is None else weight / weight.sum()

    @property
    def rounding(self) -> Rounding:
        """Precision of y."""
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        spread = np.sqrt(self.share @ (self.y - self.share @ self.y) ** 2)
        found = rounding_of(np.max(np.abs(self.y), axis=0), spread, self.precision)
        return replace(found, noisy=self.noisy)

    @property
    def fingerprint(self) -> str:
        """Digest of the data."""
        own = fingerprint(self.X, self.y, self.weight)
        return own if self.groups is None else fingerprint(own, self.groups)

    def coordinates(self, bias: bool) -> Coordinates:
        """Whitened coordinates; without biases, about the origin where that shows more directions."""
        around = whitened(self.X, self.y, self.share)
        if bias or around.null.shape[1] == 0:
            return around
        raw = whitened(self.X, self.y, self.share, about_mean=False)
        return raw if raw.rank > around.rank else around

    def axes(self, around: Coordinates) -> Float[np.ndarray, "r r"]:
        """Orthonormal axes of z that follow from the rows: they turn with the inputs, whatever their units.

        Eigenvectors of E[(t + t^2) z z'], t the target of mean 0 and variance 1, each pointing to where t and
        the third moment of its coordinate are positive.
        """
        Z, t = around.inputs(self.X), around.target(self.y).reshape(self.n, -1).mean(axis=1)
        axes = np.linalg.eigh((Z * (self.share * (t + t**2))[:, None]).T @ Z)[1]
        along = Z @ axes
        return axes * np.where(self.share @ (t[:, None] * along + along**3) < 0, -1.0, 1.0)

    def in_canonical_order(self, around: Coordinates) -> Int[np.ndarray, " n"]:
        """The numbers of the rows in an order that follows from their values, not from that of the table.

        Rows are sorted by y, then by the linear fit, and mixed: a split by position is none by value.
        """
        Z, y = around.inputs(self.X), self.y.reshape(self.n, -1)
        line = Z @ (Z.T @ (self.share * (y - self.share @ y).sum(axis=1)))
        order = np.lexsort((np.sum(Z**2, axis=1), line, *y.T[::-1]))
        return order[stream(0, "order of the rows").permutation(self.n)]

    def take(self, index: Int[np.ndarray, " m"]) -> Samples:
        """The samples of these rows."""
        weight, place = (None if own is None else own[index] for own in (self.weight, self.place))
        groups = None if self.groups is None else np.unique(self.groups[index], return_inverse=True)[1]
        return replace(self, X=self.X[index], y=self.y[index], weight=weight, place=place, groups=groups)

    def least_squares(self, form: Parametrisation, coordinates: Coordinates) -> InMemoryLeastSquares:
        """The loss of a parametrisation in these coordinates."""
        rows = coordinates.inputs(self.X), coordinates.target(self.y), self.weight
        if (shared := self.shared) is None:
            return InMemoryLeastSquares(form, *rows)
        return SharedNoiseLeastSquares(form, *rows, shared)

    def fold(self, make: Callable[[], A], coordinates: Coordinates, by_group: bool = False) -> A:
        """An accumulator with all rows, block by block."""
        numbers = self.groups if by_group and self.groups is not None else np.arange(len(self))
        total, step = make(), max(1, (1 << 20) // self.X.shape[1])  # blocks of 8 MiB
        for at in range(0, len(self), step):
            part = slice(at, at + step)
            weight = None if self.weight is None else self.weight[part]
            Z, y = coordinates.inputs(self.X[part]), coordinates.target(self.y[part])
            total.update(Z, y, weight, numbers[part])
        return total
