"""The tangent space of a model at its fit, read in blocks of rows: a basis, leverages, Takeuchi's freedom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

RowsOfJacobian = Callable[[slice | np.ndarray], Float[np.ndarray, "m p"]]

_BLOCK = 1 << 20  # numbers in one block of the Jacobian
_RANK = 1e-10  # of the largest eigenvalue, columns brought to length one
_LARGEST = 0.99  # a leverage of one leaves no residual to speak of


@dataclass(frozen=True)
class Tangent:
    """Derivatives J of any rows, and the orthonormal basis Q = J ``to_basis`` of their columns over all rows.

    Attributes
    ----------
    jacobian : gives the derivatives of some rows, a slice or an index array.
    n : rows.
    to_basis : (p, r) such that Q'Q is the identity.
    """

    jacobian: RowsOfJacobian
    n: int
    to_basis: Float[np.ndarray, "p r"]

    @classmethod
    def of(cls, jacobian: Float[np.ndarray, "n p"] | RowsOfJacobian, n: int) -> Tangent:
        """The tangent space of a Jacobian given whole or by rows; nothing of its size is held."""
        of_rows = jacobian if callable(jacobian) else lambda rows: jacobian[rows]
        p = of_rows(slice(0, 1)).shape[1]
        gram = np.zeros((p, p))
        for block in blocks(n, p):
            J = np.asarray(of_rows(block), float)
            gram += J.T @ J
        length = np.sqrt(np.diag(gram))
        length = np.where(length > 0, length, 1)
        size, axes = np.linalg.eigh(gram / np.outer(length, length))
        kept = size > _RANK * max(float(size[-1]), np.finfo(float).tiny) if p else size > 0
        return cls(of_rows, n, axes[:, kept] / np.sqrt(size[kept]) / length[:, None])

    @property
    def rank(self) -> int:
        return self.to_basis.shape[1]

    def basis(self, rows: slice | np.ndarray) -> Float[np.ndarray, "m r"]:
        """Q of some rows."""
        return np.asarray(self.jacobian(rows), float) @ self.to_basis

    def leverages(self) -> Float[np.ndarray, " n"]:
        """The diagonal of the projection QQ'."""
        found = [leverages(self.basis(block)) for block in blocks(self.n, max(self.to_basis.shape))]
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


def leverages(Q: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " m"]:
    """|Q_i|^2 of each row of an orthonormal basis, at most .99."""
    return np.minimum(np.sum(Q**2, axis=1), _LARGEST)


def blocks(n: int, columns: int) -> Iterator[slice]:
    """Slices of n rows with about a million numbers each."""
    rows = max(256, _BLOCK // max(columns, 1))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))
