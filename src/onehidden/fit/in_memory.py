"""A network fit as a least-squares problem: samples in padded batches, reductions over them."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.fit.form import Form, placed, residuals, residuals_and_jacobian, roots, written_out
from onehidden.fit.normal_equations import NormalEquations, by_pairs
from onehidden.fit.triangle import stacked_triangle
from onehidden.precision import in_double

# One batch's Jacobian. On a CPU it should stay in the cache: J'J of 100 000 x 10 with 4 units takes 27 ms
# with 8 MiB and 44 ms with 64, of 20 000 x 20 with 10 units 46 and 83.
_ON_CPU, _ON_DEVICE = 8 << 20, 64 << 20


class NetworkFit:
    """Residuals of a form over samples (x, y, weight), as sums over batches of one shape.

    The last batch is filled up with rows of weight zero, so that one compiled function serves all.
    """

    @in_double
    def __init__(self, form: Form, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> None:
        n, self.form = len(X), form
        self._on_cpu = jax.default_backend() == "cpu"
        rows = max(256, (_ON_CPU if self._on_cpu else _ON_DEVICE) // (8 * form.size * form.q))
        count = max(1, -(-n // rows))
        rows = -(-n // count)
        padded = count * rows - n
        root = roots(weight, n)
        x, target, root = (np.pad(v, ((0, padded),) + ((0, 0),) * (v.ndim - 1)) for v in (X, y, root))
        self.n, self._height = n, rows
        keep = np.asarray if isinstance(self._placed(np.zeros(form.size)), np.ndarray) else jnp.asarray
        self._batches = [
            tuple(keep(v[i : i + rows]) for v in (x, target, root)) for i in range(0, len(x), rows)
        ]
        self._samples = X, y, root[:n]
        alike = weight is None or weight.ndim == 1  # for every output
        self._rows = (X, y, weight) if self._on_cpu and alike and by_pairs(form) else None

    @in_double
    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """(n,) weighted residuals, prediction minus y; of q outputs (n q,)."""
        found = np.concatenate([np.asarray(r) for r in self._residual_batches(theta)])
        return found[: self.n * self.form.q]

    @in_double
    def loss(self, theta: np.ndarray) -> float:
        """Sum of squared residuals."""
        return float(sum(float(r @ r) for r in map(np.asarray, self._residual_batches(theta))))

    @in_double
    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r; J is never held for more than one batch, and where that pays not at all."""
        if self._rows is not None:
            return NormalEquations(self.form, theta, rough).update(*self._rows).result()
        if not self._on_cpu:
            batches = tuple(jnp.stack(part) for part in zip(*self._batches, strict=True))
            hessian, gradient, loss = _on_device(self.form, jnp.asarray(theta), batches)
            return np.asarray(hessian), np.asarray(gradient), float(loss)
        hessian = gradient = loss = 0.0
        for r, J in self._jacobian_batches(theta):
            # NumPy turns J.T @ J into a symmetric rank-k product, half the work of XLA's on the CPU.
            r, J = np.asarray(r), np.asarray(J)
            hessian, gradient, loss = hessian + J.T @ J, gradient + J.T @ r, loss + r @ r
        return np.asarray(hessian), np.asarray(gradient), float(loss)

    @in_double
    def gradient(self, theta: np.ndarray) -> tuple[np.ndarray, float] | None:
        """J'r and r'r; None where J'J costs little more."""
        if self._rows is None:
            return None
        return NormalEquations(self.form, theta, bare=True).update(*self._rows).gradient()

    @in_double
    def jacobian(self, theta: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """(m, p) the weighted Jacobian of some rows; of q outputs (m q, p)."""
        X, y, root = self._samples
        return written_out(self.form, theta, X[rows], y[rows], root[rows])[1]

    @in_double
    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and Q'r of J = QR, one batch at a time on top of the triangle so far."""
        p = len(theta)
        upper, projected = np.zeros((0, p)), np.zeros(0)
        for r, J in self._jacobian_batches(theta):
            upper, projected = stacked_triangle(upper, projected, np.asarray(J), np.asarray(r))
        if len(upper) < p:  # fewer rows than parameters
            upper = np.vstack([upper, np.zeros((p - len(upper), p))])
            projected = np.concatenate([projected, np.zeros(p - len(projected))])
        return upper, projected

    def _placed(self, theta: np.ndarray):
        return placed(self.form, theta, self._height)

    def _residual_batches(self, theta: np.ndarray):
        at = self._placed(theta)
        return (residuals(self.form, at, *batch) for batch in self._batches)

    def _jacobian_batches(self, theta: np.ndarray):
        at = self._placed(theta)
        return (residuals_and_jacobian(self.form, at, *batch) for batch in self._batches)


@partial(jax.jit, static_argnums=0)
def _on_device(
    form: Form, theta: jax.Array, batches: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """J'J, J'r and r'r of all batches (c, m, …) in one program: nothing waits for the host between them."""

    def one(total: tuple[jax.Array, ...], batch: tuple[jax.Array, ...]):
        r, J = residuals_and_jacobian(form, theta, *batch)
        return (total[0] + J.T @ J, total[1] + J.T @ r, total[2] + r @ r), None

    nothing = jnp.zeros((form.size, form.size)), jnp.zeros(form.size), jnp.zeros(())
    return jax.lax.scan(one, nothing, batches)[0]
