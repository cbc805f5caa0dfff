"""Rows of a source: every question is one pass over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

import numpy as np
from jaxtyping import Float

from onehidden.data.reduction import reduce
from onehidden.data.source import Batch, Source
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.normal_equations import NormalEquations
from onehidden.fit.rounding import Rounding
from onehidden.fit.rows import A
from onehidden.fit.triangle import Triangle


class SeenFrom(Generic[A]):
    """An accumulator of batches that shows another one their rows in coordinates of its own."""

    def __init__(self, make: Callable[[], A], coordinates: Coordinates, share: float) -> None:
        self.inner, self._coordinates, self._share = make(), coordinates, share

    def update(self, batch: Batch) -> SeenFrom[A]:
        assert batch.y is not None
        weight = None if batch.weight is None else batch.weight * self._share
        Z, y = self._coordinates.inputs(batch.X), self._coordinates.target(batch.y)
        self.inner.update(Z, y, weight, batch.row)
        return self

    def merge(self, other: SeenFrom[A]) -> SeenFrom[A]:
        self.inner.merge(other.inner)
        return self

    def result(self) -> A:
        return self.inner


@dataclass(frozen=True)
class StreamedRows:
    """All rows of a source.

    Attributes
    ----------
    source : where they are.
    n, weight : rows, and the sum of their weights (weights are taken at mean one).
    rounding : how coarsely the target is known.
    client : Dask client or None.
    report : told ``(parts done, parts)`` in every pass.
    """

    source: Source = field(repr=False)
    n: int
    weight: float
    rounding: Rounding
    client: object = field(default=None, repr=False)
    report: Callable[[int, int], None] | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.feature_names

    @property
    def streamed(self) -> bool:
        return True

    def sums(self, form: Form, coordinates: Coordinates) -> StreamedFit:
        """The fit of a form in these coordinates."""
        return StreamedFit(form, self, coordinates)

    def fold(self, make: Callable[[], A], coordinates: Coordinates) -> A:
        """An accumulator that has seen all rows, here or on the workers of a cluster."""
        seen = partial(SeenFrom, make, coordinates, self.n / self.weight)
        return reduce(self.source, seen, client=self.client, progress=self.report).result()


class StreamedFit:
    """The least-squares problem of a form over all rows of a source; ``passes`` counts the readings."""

    def __init__(self, form: Form, rows: StreamedRows, coordinates: Coordinates) -> None:
        self.form, self.n, self.passes = form, rows.n, 0
        self._rows, self._coordinates = rows, coordinates
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray, float]] | None = None

    def normal_equations(
        self, theta: Float[np.ndarray, " p"], rough: bool = False
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"], float]:
        """J'J, J'r and r'r over all rows, never roughly: the pass of a loss may be asked for them later."""
        key = np.asarray(theta, float).tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._pass(NormalEquations, theta).result()
        return self._last[1]

    def loss(self, theta: Float[np.ndarray, " p"]) -> float:
        """r'r; the normal equations of the same pass are kept, since an accepted step asks for them next."""
        return self.normal_equations(theta)[2]

    def triangle(
        self, theta: Float[np.ndarray, " p"]
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"]]:
        """R and Q'r of the Jacobian of all rows."""
        return self._pass(Triangle, theta).result()

    def _pass(self, kind: Callable[[Form, np.ndarray], A], theta: np.ndarray) -> A:
        self.passes += 1
        return self._rows.fold(partial(kind, self.form, np.asarray(theta, float)), self._coordinates)
