"""R and Q'r of the QR factors of a fit's Jacobian, as a mergeable reduction over batches."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.form import Form, residuals_and_jacobian
from onehidden.precision import in_double

_BYTES = 64 << 20  # one piece of the Jacobian


class Triangle:
    """Keeps all the digits of J where J'J would lose half of them; dearer, so used only then."""

    def __init__(self, form: Form, theta: np.ndarray) -> None:
        self.form, self.theta = form, np.asarray(theta, float)
        self._upper, self._projected = np.zeros((0, form.size)), np.zeros(0)

    @in_double
    def update(
        self,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        weight: Float[np.ndarray, " n"] | None = None,
        row: Int[np.ndarray, " n"] | None = None,
    ) -> Triangle:
        root = np.ones(len(y)) if weight is None else np.sqrt(weight)
        rows = max(256, _BYTES // (8 * self.form.size))
        theta = jnp.asarray(self.theta)
        for at in range(0, len(y), rows):
            part = slice(at, at + rows)
            r, J = residuals_and_jacobian(self.form, theta, X[part], y[part], root[part])
            self._stack(np.asarray(J), np.asarray(r))
        return self

    def merge(self, other: Triangle) -> Triangle:
        self._stack(other._upper, other._projected)
        return self

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """R (p, p) and Q'r (p,); rows of zeros where there were fewer samples than parameters."""
        missing = self.form.size - len(self._upper)
        return np.pad(self._upper, ((0, missing), (0, 0))), np.pad(self._projected, (0, missing))

    def _stack(self, J: np.ndarray, r: np.ndarray) -> None:
        self._upper, self._projected = stacked_triangle(self._upper, self._projected, J, r)


def stacked_triangle(upper: np.ndarray, projected: np.ndarray, J: np.ndarray, r: np.ndarray):
    """R and Q'r of [upper; J] against [projected; r], without Q: the right side rides along as a column."""
    top, bottom = (np.column_stack(pair) for pair in ((upper, projected), (J, r)))
    R = np.asarray(np.linalg.qr(np.vstack([top, bottom]), mode="r"))
    rows = min(len(R), J.shape[1])
    return R[:rows, :-1], R[:rows, -1]
