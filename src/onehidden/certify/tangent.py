"""The tangent space of a model at its fit, read in blocks of rows: a basis, leverages, Takeuchi's freedom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

RowsOfJacobian = Callable[[slice | np.ndarray], Float[np.ndarray, "m p"]]

_BLOCK = 1 << 20  # numbers in one block of the Jacobian
_RANK = 1e-10  # of a column's square, what must be left of it beyond the columns chosen before
_LARGEST = 0.99  # a leverage of one leaves no residual to speak of


@dataclass(frozen=True)
class Tangent:
    """Derivatives J of any rows, and the orthonormal basis Q of their columns over all rows: Q L' = J / |J|.

    L is a Cholesky factor of J'J with pivots, columns brought to length one: a twentieth of the time that
    eigenvectors take, and columns that the chosen ones span are left out.

    Attributes
    ----------
    jacobian : gives the derivatives of some rows, a slice or an index array.
    n : rows.
    columns, lengths : (r,) the columns chosen, and their lengths.
    factor : (r, r) L.
    """

    jacobian: RowsOfJacobian
    n: int
    columns: Int[np.ndarray, " r"]
    lengths: Float[np.ndarray, " r"]
    factor: Float[np.ndarray, "r r"]

    @classmethod
    def of(
        cls,
        jacobian: Float[np.ndarray, "n p"] | RowsOfJacobian,
        n: int,
        gram: Float[np.ndarray, "p p"] | None = None,
    ) -> Tangent:
        """The tangent space of a Jacobian given whole or by rows; nothing of its size is held.

        ``gram`` is J'J, where somebody has summed it already.
        """
        from scipy.linalg.lapack import dpstrf  # pyright: ignore[reportAttributeAccessIssue]

        of_rows = jacobian if callable(jacobian) else lambda rows: jacobian[rows]
        gram = _gram(of_rows, n) if gram is None else gram
        length = np.sqrt(np.diag(gram))
        length = np.where(length > 0, length, 1)
        if not len(gram):
            return cls(of_rows, n, np.zeros(0, int), length, gram)
        scaled = gram / length[:, None]
        scaled /= length
        factor, order, rank, _ = dpstrf(scaled.T, tol=_RANK, lower=1)
        kept = order[:rank] - 1
        return cls(of_rows, n, kept, length[kept], np.tril(factor[:rank, :rank]))

    @property
    def rank(self) -> int:
        return len(self.columns)

    def basis(self, rows: slice | np.ndarray) -> Float[np.ndarray, "m r"]:
        """Q of some rows."""
        from scipy.linalg import solve_triangular

        J = np.asarray(self.jacobian(rows), float)[:, self.columns] / self.lengths
        return solve_triangular(self.factor, J.T, lower=True, check_finite=False, overwrite_b=True).T

    def leverages(self) -> Float[np.ndarray, " n"]:
        """The diagonal of the projection QQ'."""
        found = [leverages(self.basis(block)) for block in blocks(self.n, max(self.rank, 1))]
        return np.concatenate(found) if found else np.zeros(0)

    def freedom(self, residual: Float[np.ndarray, " n"]) -> float:
        r"""tr(H^-1 S), Takeuchi's number of parameters: :math:`\sum_i h_i r_i^2 / \overline{r^2}`.

        With equal noise it is near the rank of J; a model that bends to noisy rows is charged more. The
        residuals are taken before the fit shrank them, r^2 / (1 - h).
        """
        h = self.leverages()
        square = residual**2 / (1 - h)
        mean = float(np.mean(square))
        return float(np.sum(h * square)) / mean if mean > 0 else float(np.sum(h))


def _gram(of_rows: RowsOfJacobian, n: int) -> Float[np.ndarray, "p p"]:
    """J'J, a block of rows at a time."""
    p = of_rows(slice(0, 1)).shape[1]
    gram = np.zeros((p, p))
    for block in blocks(n, p):
        J = np.asarray(of_rows(block), float)
        gram += J.T @ J
    return gram


def leverages(Q: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " m"]:
    """|Q_i|^2 of each row of an orthonormal basis, at most .99."""
    return np.minimum(np.sum(Q**2, axis=1), _LARGEST)


def blocks(n: int, columns: int) -> Iterator[slice]:
    """Slices of n rows with about a million numbers each."""
    rows = max(256, _BLOCK // max(columns, 1))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))
