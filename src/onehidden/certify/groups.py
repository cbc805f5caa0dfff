"""Rows that belong together: a covariance that holds when rows of a group share noise, and its freedom.

With G_g = J_g' J_g and s_g = J_g' r_g over the rows of group g and C = (J'J)^+, the covariance CR2 (Bell and
McCaffrey 2002) is

    V = C [sum_g m_g m_g'] C,    m_g = (I - G_g C)^(-1/2) s_g,

unbiased where rows are independent. Everything it needs are sums over the rows of a group, so rows need not
be next to each other. The variance of c' V c, again for independent rows, gives the degrees of freedom of t
intervals (Satterthwaite): with C = L L', K = L' G_g L and h = L' c,

    nu = (sum_g b_gg)^2 / sum_gh b_gh^2,    b_gh = [g = h] h' K_g (I - K_g)^-1 h - t_g' t_h,

and t_g = K_g (I - K_g)^(-1/2) h.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.special import fdtri

from onehidden.fit.parametrisation import Parametrisation, jacobian_pieces
from onehidden.fit.samples import Inputs, Numbers, Summed, Target, Weight
from onehidden.machine import in_double


class GroupScatter(Summed):
    """Accumulator of J_g' J_g and J_g' r_g of every group.

    ``groups`` are numbers from 0 on, one a row of the sample, which ``update`` names by their places;
    ``piece`` is the size of one piece of the Jacobian in bytes.
    """

    summed = ("_squares", "_scores")

    def __init__(
        self,
        form: Parametrisation,
        theta: Float[np.ndarray, " p"],
        groups: Int[np.ndarray, " n"],
        piece: int = 32 << 20,
    ) -> None:
        self._form, self._theta, self._groups, self._piece = form, theta, groups, piece
        count = int(groups.max()) + 1
        self._squares = np.zeros((count, form.size, form.size))
        self._scores = np.zeros((count, form.size))

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> GroupScatter:
        """Add rows."""
        assert row is not None
        q, at = self._form.q, 0
        for r, J in jacobian_pieces(self._form, self._theta, Z, y, weight, self._piece):
            rows = len(r) // q
            found, own = np.unique(np.repeat(self._groups[row[at : at + rows]], q), return_inverse=True)
            squares, scores = sums_by_group(J, r, own)
            self._squares[found] += squares
            self._scores[found] += scores
            at += rows
        return self

    def result(self) -> tuple[Float[np.ndarray, "G p p"], Float[np.ndarray, "G p"]]:
        """The matrices and the scores."""
        return self._squares, self._scores


def sums_by_group(
    J: Float[np.ndarray, "n p"], r: Float[np.ndarray, " n"], groups: Int[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "G p p"], Float[np.ndarray, "G p"]]:
    """J_g' J_g and J_g' r_g of every group, numbered from 0 on."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return np.array([J[at].T @ J[at] for at in parts]), np.array([J[at].T @ r[at] for at in parts])


@dataclass(frozen=True)
class GroupedCovariance:
    """CR2 and its degrees of freedom.

    Attributes
    ----------
    squares, scores : ndarray of shape (G, p, p) and (G, p)
        J_g' J_g and J_g' r_g.
    inverse : ndarray of shape (p, p)
        C, the pseudo-inverse of J'J along the free directions.
    """

    squares: Float[np.ndarray, "G p p"] = field(repr=False)
    scores: Float[np.ndarray, "G p"] = field(repr=False)
    inverse: Float[np.ndarray, "p p"] = field(repr=False)

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
        """Degrees of freedom of c' V c for each contrast c.

        Parameters
        ----------
        contrasts : ndarray of shape (m, p)
            One contrast of the parameters a row.
        most : int
            Of more groups it is their number less one.

        Returns
        -------
        ndarray of shape (m,)
        """
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


def residual_correlation(
    residual: Float[np.ndarray, "n q"], groups: Int[np.ndarray, " n"]
) -> tuple[float, float]:
    """Correlation of two residuals of one group (analysis of variance), and rows a group, averaged for it.

    Parameters
    ----------
    residual : ndarray of shape (n, q)
        Residuals.
    groups : ndarray of shape (n,)
        Group of each row, from 0 on.

    Returns
    -------
    correlation, rows : float
        The correlation, at least zero, and n_0, the number of rows that groups of equal size would have.
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
