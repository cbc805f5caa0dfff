"""Rows that belong together: a covariance that holds when rows of a group share noise, and its freedom.

With G_g = J_g' J_g and s_g = J_g' r_g over the rows of group g and C = (J'J)^+, the covariance CR2 (Bell and
McCaffrey 2002) is

    V = C [sum_g m_g m_g'] C,    m_g = (I - G_g C)^(-1/2) s_g,

unbiased where rows are independent. The variance of c' V c, again for independent rows, gives the degrees of
freedom of t intervals (Satterthwaite): with C = L L', K = L' G_g L and h = L' c,

    nu = (sum_g b_gg)^2 / sum_gh b_gh^2,    b_gh = [g = h] h' K_g (I - K_g)^-1 h - t_g' t_h,

and t_g = K_g (I - K_g)^(-1/2) h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtri

from onehidden.fit.least_squares import InMemoryLeastSquares

Groups = Int[np.ndarray, " n"]  # of each row, numbers from 0 on


def parts_of(groups: Groups) -> list[tuple[int, Int[np.ndarray, " m"]]]:
    """The groups that there are, and the places of the rows of each."""
    order = np.argsort(groups, kind="stable")
    found, first = np.unique(groups[order], return_index=True)
    return list(zip(found.tolist(), np.split(order, first[1:]), strict=True))


@dataclass(frozen=True)
class GroupedCovariance:
    """CR2 and its degrees of freedom."""

    squares: Float[np.ndarray, "G p p"] = field(repr=False)  # J_g' J_g
    scores: Float[np.ndarray, "G p"] = field(repr=False)  # J_g' r_g
    inverse: Float[np.ndarray, "p p"] = field(repr=False)  # C, of J'J along the free directions

    @classmethod
    def of(
        cls, fit: InMemoryLeastSquares, theta: np.ndarray, groups: Groups, inverse: np.ndarray
    ) -> GroupedCovariance:
        """That of a fit at these parameters."""
        count, p, residuals = int(groups.max()) + 1, len(theta), fit.residuals(theta).reshape(len(groups), -1)
        squares, scores = np.zeros((count, p, p)), np.zeros((count, p))
        for group, rows in parts_of(groups):
            J = fit.jacobian(theta, rows)
            squares[group], scores[group] = J.T @ J, J.T @ residuals[rows].ravel()
        return cls(squares, scores, inverse)

    @cached_property
    def _root(self) -> Float[np.ndarray, "p f"]:
        """L, with L L' = C."""
        value, vector = np.linalg.eigh(self.inverse)
        kept = value > 1e-14 * value[-1]
        return vector[:, kept] * np.sqrt(value[kept])

    @cached_property
    def _spectra(self) -> tuple[Float[np.ndarray, "G f"], Float[np.ndarray, "G f f"]]:
        """Eigenvalues and eigenvectors of K_g; what a group alone determines has the value one."""
        value, vector = np.linalg.eigh(self._root.T @ self.squares @ self._root)
        return np.clip(value, 0.0, 1.0), vector

    def _of_remainder(self, power: float) -> Float[np.ndarray, "G f"]:
        """Eigenvalues of (I - K_g)^-power; zero where the group alone determines a direction."""
        left = 1 - self._spectra[0]
        seen = left > 1e-8
        return np.where(seen, np.where(seen, left, 1.0) ** -power, 0.0)

    @cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """V of the parameters."""
        vector = self._spectra[1]
        along = np.einsum("gab,ga->gb", vector, self.scores @ self._root)
        adjusted = np.einsum("gab,gb->ga", vector, self._of_remainder(0.5) * along)
        half = adjusted @ self._root.T
        return half.T @ half

    def freedom(self, contrasts: Float[np.ndarray, "m p"], most: int = 2000) -> Float[np.ndarray, " m"]:
        """Degrees of freedom of c' V c for each contrast c: G - 1 of more than ``most`` groups."""
        count = len(self.scores)
        if count > most:
            return np.full(len(contrasts), count - 1.0)
        value, vector = self._spectra
        found = np.empty(len(contrasts))
        for i, h in enumerate(contrasts @ self._root):
            along = np.einsum("gab,a->gb", vector, h)
            own = np.sum(along**2 * value * self._of_remainder(1.0), axis=1)
            t = np.einsum("gab,gb->ga", vector, value * self._of_remainder(0.5) * along)
            between = np.diag(own) - t @ t.T
            square = float(np.sum(between**2))
            found[i] = float(np.trace(between)) ** 2 / square if square > 0 else count - 1.0
        return np.maximum(found, 1.0)


def residual_correlation(residual: Float[np.ndarray, "n q"], groups: Groups) -> tuple[float, float]:
    """Correlation of two residuals of one group, at least zero, and rows a group (analysis of variance).

    The latter is n_0, the number of rows that groups of equal size would have.
    """
    sizes = np.bincount(groups).astype(float)
    count, n = len(sizes), len(groups)
    rows = (n - float(sizes @ sizes) / n) / max(count - 1, 1)
    if count < 2 or n <= count:
        return 0.0, rows
    means = np.array([np.bincount(groups, one, count) for one in residual.T]).T / sizes[:, None]
    between = float(np.sum(sizes[:, None] * (means - residual.mean(axis=0)) ** 2)) / (count - 1)
    within = float(np.sum((residual - means[groups]) ** 2)) / (n - count)
    if between <= within:
        return 0.0, rows
    return (between - within) / (between + (rows - 1) * within), rows


def correlation_by_chance(n: int, count: int, rows: float, level: float) -> float:
    """The correlation within ``count`` groups that independent noise exceeds at this level (F test)."""
    ratio = float(fdtri(max(count - 1, 1), max(n - count, 1), 1 - level))
    return max((ratio - 1) / (ratio - 1 + rows), 0.0)


def independent_rows(n: int, correlation: float, rows: float) -> float:
    """Independent rows that say as much about a mean as n rows in groups of ``rows`` (Kish)."""
    return n / (1 + (max(rows, 1.0) - 1) * correlation)
