"""Samples and what linear part and polynomial of a few directions say of them: y ~ <l, x> + q(V'x)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from onehidden.moments.score_protocol import Score
from onehidden.moments.subspace_polynomial import Design, Polynomial
from onehidden.moments.weighting import Weight, of_rows, rooted, weighted_mean


@dataclass(frozen=True)
class Subspace:
    """The result.

    Attributes
    ----------
    basis : (d, k) orthonormal columns V.
    polynomial : q of z = V'x fitted to y less the linear part.
    linear : (d,) coefficients of the linear part (beside q).
    remainder : (n,) y - linear - q.
    slopes : (n, k) gradient of q at the points.
    misfit : mean of remainder², weighted as the rows are.
    """

    basis: Float[np.ndarray, "d k"]
    polynomial: Polynomial
    linear: Float[np.ndarray, " d"]
    remainder: Float[np.ndarray, " n"]
    slopes: Float[np.ndarray, "n k"]
    misfit: float


@dataclass(frozen=True)
class Rows:
    """The samples that a search looks at.

    Attributes
    ----------
    X, y : (n, d) and (n,).
    score : the input law; None for N(0, I).
    weight : (n,) how much each row counts, or None.
    """

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    score: Score | None = None
    weight: Weight = None

    def part(self, rows: slice) -> Rows:
        return Rows(self.X[rows], self.y[rows], self.score, of_rows(self.weight, rows))

    @cached_property
    def centred(self) -> Float[np.ndarray, " n"]:
        """y less its mean."""
        return self.y - float(weighted_mean(self.y, self.weight))

    @cached_property
    def scaled(self) -> Float[np.ndarray, "n d"]:
        """X with each row times the root of its weight."""
        return rooted(self.X, self.weight)

    def linear_fit(
        self, target: Float[np.ndarray, " n"], start: Float[np.ndarray, " d"] | None, steps: int
    ) -> Float[np.ndarray, " d"]:
        """Least squares without intercept by conjugate gradients: n d a step, no d × d matrix."""
        from scipy.sparse.linalg import lsqr

        target = rooted(target, self.weight)
        return lsqr(self.scaled, target, iter_lim=steps, atol=1e-8, btol=1e-8, x0=start)[0]

    def described(
        self, V: np.ndarray, linear: np.ndarray, design: Design, polynomial: Polynomial
    ) -> Subspace:
        """The subspace with this linear part and polynomial, and what they leave of y."""
        wanted = np.column_stack([polynomial.coefficients, polynomial.gradient_coefficients()])
        values = design.apply(wanted)
        remainder = self.y - self.X @ linear - values[:, 0]
        misfit = float(weighted_mean(remainder**2, self.weight))
        return Subspace(V, polynomial, linear, remainder, values[:, 1:], misfit)

    def design(self, V: np.ndarray, degree: int) -> Design:
        """The polynomials of z = V'x at these rows."""
        return Design(self.X @ V, degree, gaussian=self.score is None, weight=self.weight)
