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
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtri

from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation, roots, weighed, written_out
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Inputs, Samples, Target, Weight

Groups = Int[np.ndarray, " n"]  # of each row, numbers from 0 on


@dataclass(frozen=True)
class GroupedFreedom:
    """Degrees of freedom of c' V c, from what each group has of the information."""

    root: Float[np.ndarray, "p f"] = field(repr=False)  # L, with L L' = C
    shares: Float[np.ndarray, "G f f"] = field(repr=False)  # K_g; none where they are too many to keep
    otherwise: float  # degrees of freedom without them

    @cached_property
    def spectra(self) -> tuple[Float[np.ndarray, "G f"], Float[np.ndarray, "G f f"]]:
        """Eigenvalues and eigenvectors of K_g; what a group alone determines has the value one."""
        value, vector = np.linalg.eigh(self.shares)
        return np.clip(value, 0.0, 1.0), vector

    def of_remainder(self, power: float) -> Float[np.ndarray, "G f"]:
        """Eigenvalues of (I - K_g)^-power; zero where the group alone determines a direction."""
        left = 1 - self.spectra[0]
        seen = left > 1e-8
        return np.where(seen, np.where(seen, left, 1.0) ** -power, 0.0)

    def of(self, contrasts: Float[np.ndarray, "m p"]) -> Float[np.ndarray, " m"]:
        """Degrees of freedom of c' V c for each contrast c."""
        found = np.full(len(contrasts), self.otherwise)
        if not len(self.shares):
            return found
        value, vector = self.spectra
        single, half = value * self.of_remainder(1.0), value * self.of_remainder(0.5)
        for i, h in enumerate(contrasts @ self.root):
            along = np.einsum("gab,a->gb", vector, h)
            t = np.einsum("gab,gb->ga", vector, half * along)
            between = np.diag(np.sum(along**2 * single, axis=1)) - t @ t.T
            square = float(np.sum(between**2))
            found[i] = float(np.trace(between)) ** 2 / square if square > 0 else self.otherwise
        return np.maximum(found, 1.0)

    def moved(self, outward: Any, most: int = 100_000) -> GroupedFreedom:
        """That of other parameters, a linear map of these; more than ``most`` numbers are not kept."""
        kept = self.shares.size <= most
        return GroupedFreedom(outward @ self.root, self.shares if kept else self.shares[:0], self.otherwise)


@dataclass(frozen=True)
class GroupedCovariance:
    """CR2 and its degrees of freedom; CR1 with G - 1 where the squares are too many to hold."""

    squares: Float[np.ndarray, "G p p"] = field(repr=False)  # J_g' J_g, or none
    scores: Float[np.ndarray, "G p"] = field(repr=False)  # J_g' r_g
    inverse: Float[np.ndarray, "p p"] = field(repr=False)  # C, of J'J along the free directions

    @classmethod
    def of(
        cls, problem: Problem, theta: Float[np.ndarray, " p"], inverse: np.ndarray, most: int = 1 << 24
    ) -> GroupedCovariance:
        """That of rows with groups at these parameters; ``most`` bounds the numbers of the squares."""
        count, p, rows = problem.rows.n_groups, len(theta), problem.rows
        squares = np.zeros((count if count * p**2 <= most else 0, p, p))
        shared = rows.shared if isinstance(rows, Samples) else None
        if shared is None:
            known = _sums_of_groups, problem.form, theta, squares, count
            squares, scores = problem.sums(*known, by_group=True)
        else:
            fit = problem.least_squares
            assert isinstance(fit, InMemoryLeastSquares)
            r, J = fit.residuals(theta), fit.jacobian(theta, slice(0, rows.n))
            squares, scores = _squares_and_scores(squares, count, r, J, shared.groups)
        return cls(squares, scores, inverse)

    @cached_property
    def freedom(self) -> GroupedFreedom:
        """What gives degrees of freedom."""
        size = np.sqrt(np.diag(self.inverse))  # of a unit that hardly acts it exceeds the others by far
        size = np.where(size > 0, size, 1.0)
        value, vector = np.linalg.eigh(self.inverse / size / size[:, None])
        kept = value > 1e-14 * value[-1]
        root = size[:, None] * vector[:, kept] * np.sqrt(value[kept])
        return GroupedFreedom(root, root.T @ self.squares @ root, len(self.scores) - 1.0)

    @cached_property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """V of the parameters."""
        if len(self.squares):
            adjusted = self._by_spectrum(self.freedom.of_remainder(0.5))
        else:
            adjusted = self.scores @ self.freedom.root * np.sqrt(len(self.scores) / (len(self.scores) - 1))
        half = adjusted @ self.freedom.root.T
        return half.T @ half

    @property
    def shifts(self) -> Float[np.ndarray, "G p"]:
        """a_g with (I - H_g)^(-1/2) r_g = r_g + J_g a_g, H_g the block of the projection on J."""
        if not len(self.squares):
            return np.zeros_like(self.scores)
        # What a group determines alone says nothing about its noise.
        left = np.sqrt(1 - np.minimum(self.freedom.spectra[0], 1 - 1e-3))
        change = 1 / (left * (1 + left))  # ((1 - v)^(-1/2) - 1) / v
        return self._by_spectrum(change) @ self.freedom.root.T

    def _by_spectrum(self, factor: Float[np.ndarray, "G f"]) -> Float[np.ndarray, "G f"]:
        """L' s_g, along each eigenvector of K_g times a factor."""
        vector = self.freedom.spectra[1]
        along = np.einsum("gab,ga->gb", vector, self.scores @ self.freedom.root)
        return np.einsum("gab,gb->ga", vector, factor * along)


def _sums_of_groups(
    form: Parametrisation,
    theta: np.ndarray,
    squares: np.ndarray,
    count: int,
    Z: Inputs,
    y: Target,
    weight: Weight,
    group: Groups,
) -> list[np.ndarray]:
    """Squares and scores of some rows."""
    r, J = written_out(form, theta, Z, y, roots(weight, len(Z)))
    return _squares_and_scores(squares, count, r, J, np.repeat(group, form.q))


def _squares_and_scores(
    squares: np.ndarray, count: int, r: np.ndarray, J: np.ndarray, group: Groups
) -> list[np.ndarray]:
    """J_g' J_g, where they are held, and J_g' r_g."""
    squares, order = np.zeros_like(squares), np.argsort(group, kind="stable")
    found, first = np.unique(group[order], return_index=True)
    for one, part in zip(found, np.split(order, first[1:]), strict=True) if len(squares) else ():
        squares[one] = J[part].T @ J[part]
    return [squares, sums_by_group(count, J * r[:, None], group)[1]]


def residual_correlation(residual: Float[np.ndarray, "n q"], groups: Groups) -> tuple[float, float]:
    """Correlation of two residuals of one group, at least zero, and rows a group (analysis of variance).

    The latter is n_0, the number of rows that groups of equal size would have.
    """
    return _correlation(*sums_by_group(int(groups.max()) + 1, residual, groups))


def correlation_within(problem: Problem, theta: Float[np.ndarray, " p"]) -> tuple[float, float]:
    """The same of the residuals of a network."""
    known = _residual_sums, problem.form, theta, problem.rows.n_groups
    return _correlation(*problem.sums(*known, by_group=True))


def _residual_sums(
    form: Parametrisation, theta: np.ndarray, count: int, Z: Inputs, y: Target, weight: Weight, group: Groups
) -> list[np.ndarray]:
    residual = weighed(roots(weight, len(Z)), form.predict(theta, Z) - y)
    return sums_by_group(count, residual.reshape(len(Z), -1), group)


def sums_by_group(count: int, values: Float[np.ndarray, "n q"], groups: Groups) -> list[np.ndarray]:
    """Rows of each group, the sums of their values, and the sum of all squares."""
    sums = np.array([np.bincount(groups, one, count) for one in values.T]).T
    return [np.bincount(groups, minlength=count).astype(float), sums, np.sum(values**2)]


def _correlation(
    sizes: Float[np.ndarray, " G"], sums: Float[np.ndarray, "G q"], square: Any
) -> tuple[float, float]:
    count, n = len(sizes), float(sizes.sum())
    rows = (n - float(sizes @ sizes) / n) / max(count - 1, 1)
    if count < 2 or n <= count:
        return 0.0, rows
    means = sums / sizes[:, None]
    between = float(np.sum(sizes[:, None] * (means - sums.sum(axis=0) / n) ** 2)) / (count - 1)
    within = float(square - np.sum(sizes[:, None] * means**2)) / (n - count)
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
