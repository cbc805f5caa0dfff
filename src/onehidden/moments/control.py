"""Control variates: y less its regression on low-degree polynomials of x.

E[q(x) S_m(x)] = 0 for every polynomial q of degree below m, so y may be replaced by its residual: the
moment keeps its expectation and loses most of its variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Control:
    """A polynomial of degree 0, 1 or 2 in coordinates u: c + <l, u> + sum_{i<=j} q_ij u_i u_j.

    At order m only degrees under m leave the expectation alone, so one polynomial is fitted for each
    degree and ``residual`` takes the best that the order allows.
    """

    coefficients: tuple[np.ndarray, ...]  # one vector for each degree 0, 1, …

    def residual(self, u: np.ndarray, y: np.ndarray, order: int) -> np.ndarray:
        """y less the best fitted polynomial of degree below ``order``."""
        degree = min(order, len(self.coefficients)) - 1
        return y - monomials(u, degree) @ self.coefficients[degree]


def monomials(u: np.ndarray, degree: int) -> np.ndarray:
    """Columns 1; u; u_i u_j (i <= j), up to the degree."""
    columns = [np.ones((len(u), 1))]
    if degree >= 1:
        columns.append(u)
    if degree >= 2:
        rows, cols = np.triu_indices(u.shape[1])
        columns.append(u[:, rows] * u[:, cols])
    return np.concatenate(columns, axis=1)


class ControlAccumulator:
    """Normal equations of the regression, as a reduction over batches."""

    def __init__(self, r: int, degree: int) -> None:
        if degree not in (0, 1, 2):
            raise ValueError(f"control_degree must be 0, 1 or 2, got {degree}")
        self.r, self.degree = r, degree
        size = (1, 1 + r, 1 + r + r * (r + 1) // 2)[degree]
        self._gram, self._cross = np.zeros((size, size)), np.zeros(size)

    def update(self, u: np.ndarray, y: np.ndarray) -> ControlAccumulator:
        columns = monomials(u, self.degree)
        self._gram += columns.T @ columns
        self._cross += columns.T @ y
        return self

    def merge(self, other: ControlAccumulator) -> ControlAccumulator:
        if (self.r, self.degree) != (other.r, other.degree):
            raise ValueError("only accumulators of the same coordinates and degree merge")
        self._gram += other._gram
        self._cross += other._cross
        return self

    def result(self) -> Control:
        fits = []
        for degree in range(self.degree + 1):
            size = (1, 1 + self.r, len(self._cross))[degree]
            fits.append(np.linalg.lstsq(self._gram[:size, :size], self._cross[:size], rcond=1e-12)[0])
        return Control(tuple(fits))
