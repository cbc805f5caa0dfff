"""R and Q'r of the QR factors of a fit's Jacobian, as a mergeable reduction over batches."""

from __future__ import annotations

import numpy as np

from onehidden.fit.form import Form, jacobian_pieces
from onehidden.fit.rows import Inputs, Numbers, Target, Weight
from onehidden.precision import in_double

_BYTES = 64 << 20  # one piece of the Jacobian


class Triangle:
    """Keeps all the digits of J where J'J would lose half of them; dearer, so used only then."""

    def __init__(self, form: Form, theta: np.ndarray) -> None:
        self.form, self.theta = form, np.asarray(theta, float)
        self._upper, self._projected = np.zeros((0, form.size)), np.zeros(0)

    @in_double
    def update(self, X: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> Triangle:
        for r, J in jacobian_pieces(self.form, self.theta, X, y, weight, _BYTES):
            self._stack(J, r)
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
