"""The tangent space of a fit: an orthonormal basis of its Jacobian, leverages, and the linear fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

from onehidden.fit.final import linear_network
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import Problem

RowsOfJacobian = Callable[[slice | np.ndarray], Float[np.ndarray, "m p"]]


@dataclass(frozen=True)
class Tangent:
    """The tangent space of a model at its fit, read in blocks of rows.

    It holds an orthonormal basis Q of the columns of J over all rows: Q L' = J / |J|. L is a pivoted Cholesky
    factor of J'J with columns of length one: a twentieth of the time of eigenvectors, and columns in the span
    of the chosen ones are left out.
    """

    jacobian: RowsOfJacobian  # gives the derivatives of some rows, a slice or an index array
    n: int
    columns: Int[np.ndarray, " r"]  # those chosen
    lengths: Float[np.ndarray, " r"]  # of their columns
    factor: Float[np.ndarray, "r r"]  # L

    @classmethod
    def of(
        cls,
        jacobian: Float[np.ndarray, "n p"] | RowsOfJacobian,
        n: int,
        gram: Float[np.ndarray, "p p"] | None = None,
    ) -> Tangent:
        """The tangent space of a Jacobian given whole or by rows; ``gram`` is J'J where it is known."""
        from scipy.linalg.lapack import dpstrf  # pyright: ignore[reportAttributeAccessIssue]

        of_rows = jacobian if callable(jacobian) else lambda rows: jacobian[rows]
        if gram is None:
            p = of_rows(slice(0, 1)).shape[1]
            gram = np.zeros((p, p))
            for block in blocks(n, p):
                J = np.asarray(of_rows(block), float)
                gram += J.T @ J
        length = np.sqrt(np.diag(gram))
        length = np.where(length > 0, length, 1)
        if not len(gram):
            return cls(of_rows, n, np.zeros(0, int), length, gram)
        # 1e-10 of a column's square must be left of it beyond the columns chosen before.
        factor, order, rank, _ = dpstrf((gram / np.outer(length, length)).T, tol=1e-10, lower=1)
        kept = order[:rank] - 1
        return cls(of_rows, n, kept, length[kept], np.tril(factor[:rank, :rank]))

    @classmethod
    def of_network(cls, fit: InMemoryLeastSquares, theta: Float[np.ndarray, " p"]) -> Tangent:
        """The tangent space of a network at these parameters."""
        return cls.of(lambda rows: fit.jacobian(theta, rows), fit.n, fit.normal_equations(theta)[0])

    @property
    def rank(self) -> int:
        return len(self.columns)

    def basis(self, rows: slice | np.ndarray) -> Float[np.ndarray, "m r"]:
        """Q of some rows."""
        J = np.asarray(self.jacobian(rows), float)[:, self.columns] / self.lengths
        return solve_triangular(self.factor, J.T, lower=True, check_finite=False, overwrite_b=True).T

    def leverages(self) -> Float[np.ndarray, " n"]:
        """The diagonal of the projection QQ'."""
        found = [leverages(self.basis(block)) for block in blocks(self.n, max(self.rank, 1))]
        return np.concatenate(found) if found else np.zeros(0)


def leverages(Q: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " m"]:
    """|Q_i|^2 of each row of an orthonormal basis; at most .99, since 1 leaves no residual."""
    return np.minimum(np.sum(Q**2, axis=1), 0.99)


def blocks(n: int, columns: int) -> Iterator[slice]:
    """Slices of n rows with about a million numbers each."""
    rows = max(256, (1 << 20) // max(columns, 1))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))


def linear_fit(problem: Problem) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n q"]]:
    """The weighted columns of a linear function, and the residuals of its fit of each output.

    Weights that differ from output to output are taken at their mean.
    """
    seen = problem.at(linear_network(problem))
    Z, y = seen.search_coordinates.inputs(seen.samples.X), seen.search_coordinates.target(seen.samples.y)
    design, target = seen.weighted(np.column_stack([np.ones(len(Z)), Z])), seen.weighted(y)
    left = design @ np.linalg.lstsq(design, target, rcond=None)[0] - target
    return design, left.reshape(len(left), -1)
