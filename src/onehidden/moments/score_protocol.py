"""What moments ask of an input law, known or estimated."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt


@runtime_checkable
class Score(Protocol):
    """The field S_m(x) = (-1)^m ∇^m f(x) / f(x) of a density f: laws and fitted scores both are one."""

    @property
    def n_inputs(self) -> int:
        """d."""
        ...

    def score(self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None) -> np.ndarray:
        """S_m at the rows of X, (n, d, …, d); with ``subspace`` (d, r) contracted to (n, r, …, r)."""
        ...
