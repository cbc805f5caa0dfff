"""A network fit over a streamed source: every question a solver asks is one pass over all rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from onehidden.data.reduction import reduce
from onehidden.data.source import Batch, Source
from onehidden.objectives.normal_equations import GradientScatter, NormalEquations
from onehidden.objectives.residuals import Form
from onehidden.objectives.triangle import Triangle
from onehidden.recovery.coordinates import Coordinates


class FitPass:
    """Normal equations, or with ``kind=Triangle`` the triangle of J, in coordinates of one's own."""

    def __init__(
        self, kind: Any, form: Form, theta: np.ndarray, coordinates: Coordinates, share: float
    ) -> None:
        self._sums, self._coordinates, self._share = kind(form, theta), coordinates, share

    def update(self, batch: Batch) -> FitPass:
        assert batch.y is not None
        weight = None if batch.weight is None else batch.weight * self._share
        self._sums.update(self._coordinates.inputs(batch.X), self._coordinates.target(batch.y), weight)
        return self

    def merge(self, other: FitPass) -> FitPass:
        self._sums.merge(other._sums)
        return self

    def result(self) -> Any:
        return self._sums.result()


class StreamedFit:
    """The least-squares problem of ``solvers.levenberg`` over all rows of a source.

    Parameters
    ----------
    form, coordinates : which parameters are free, and in which coordinates they are.
    n, weight : rows, and the sum of their weights (weights are taken at mean one).
    client : Dask client or None.
    report : told ``(parts done, parts)`` in every pass.
    """

    def __init__(
        self,
        form: Form,
        source: Source,
        coordinates: Coordinates,
        n: int,
        weight: float,
        client: Any = None,
        report: Callable[[int, int], None] | None = None,
    ) -> None:
        self.form, self.n, self.passes = form, n, 0
        self._source, self._coordinates, self._share = source, coordinates, n / weight
        self._client, self._report = client, report
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray, float]] | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """The form, the source as far as its fingerprint tells, and the coordinates."""
        return self.form, self._source.fingerprint, self._coordinates, self.n, self._share

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r over all rows, never roughly: the pass of a loss may be asked for them later."""
        key = np.asarray(theta, float).tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._pass(NormalEquations, theta)
        return self._last[1]

    def loss(self, theta: np.ndarray) -> float:
        """r'r; the normal equations of the same pass are kept, since an accepted step asks for them next."""
        return self.normal_equations(theta)[2]

    def gradient_scatter(self, theta: np.ndarray) -> np.ndarray:
        """Sum of r_i^2 J_i' J_i over all rows, the middle of the sandwich covariance."""
        return self._pass(GradientScatter, theta)

    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and Q'r of the Jacobian of all rows."""
        return self._pass(Triangle, theta)

    def _pass(self, kind: Any, theta: np.ndarray) -> Any:
        self.passes += 1
        make = partial(FitPass, kind, self.form, np.asarray(theta, float), self._coordinates, self._share)
        return reduce(self._source, make, client=self._client, progress=self._report).result()
