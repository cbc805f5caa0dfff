"""The loss of a network over samples in memory, and its normal equations.

The loss is that of squared residuals, or the deviance of a family. At any parameters a family makes the rows
a weighted least-squares problem, with a working target and the information of each row as its weight: its J'J
is the Fisher information, its J'r half the gradient of the deviance. Levenberg–Marquardt on these normal
equations, with the deviance as the loss, is Fisher scoring.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.activations import quietly
from onehidden.families.family import Family
from onehidden.fit.normal_equations import by_pairs, normal_equations
from onehidden.fit.parametrisation import (
    Parametrisation,
    Target,
    placed,
    residuals,
    residuals_and_jacobian,
    roots,
    written_out,
)
from onehidden.machine import in_double


class InMemoryLeastSquares:
    """Residuals of a form over samples (x, y, weight), as sums over batches of one shape.

    The last batch is filled up with rows of weight zero, so that one compiled function serves all. ``batch``
    is the number of bytes of one batch's Jacobian. On a CPU it should stay in the cache: J'J of 100 000 x 10
    with 4 units takes 27 ms with 8 MiB and 44 ms with 64.
    """

    @in_double
    def __init__(
        self,
        form: Parametrisation,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        batch: int | None = None,
    ) -> None:
        n, self.form = len(X), form
        self._on_cpu = jax.default_backend() == "cpu" or form.free is not None
        batch = batch or ((8 if self._on_cpu else 64) << 20)
        rows = max(256, batch // (8 * form.width * form.q))
        count = max(1, -(-n // rows))
        rows = -(-n // count)
        padded = count * rows - n
        root = roots(weight, n)
        x, target, root = (np.pad(v, ((0, padded),) + ((0, 0),) * (v.ndim - 1)) for v in (X, y, root))
        self.n, self._height = n, rows
        keep = np.asarray if isinstance(placed(form, np.zeros(form.size), rows), np.ndarray) else jnp.asarray
        self._batches = [
            tuple(keep(v[i : i + rows]) for v in (x, target, root)) for i in range(0, len(x), rows)
        ]
        self._given, self._root = (X, y, weight), root[:n]
        alike = weight is None or weight.ndim == 1  # for every output
        self._by_pairs = self._on_cpu and alike and by_pairs(form)

    @property
    def lower(self) -> np.ndarray | None:
        """(p,) lower bounds of the parameters; None where there are none."""
        return self.form.lower

    @in_double
    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """(n,) weighted residuals, prediction minus y; of q outputs (n q,)."""
        return np.concatenate(list(self._batchwise(theta)))[: self.n * self.form.q]

    @quietly
    @in_double
    def loss(self, theta: np.ndarray) -> float:
        """Sum of squared residuals."""
        return float(sum(float(r @ r) for r in self._batchwise(theta)))

    @in_double
    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r; J is never held for more than one batch, and where that pays not at all."""
        if not self._on_cpu:
            batches = tuple(jnp.stack(part) for part in zip(*self._batches, strict=True))
            hessian, gradient, loss = _on_device(self.form, jnp.asarray(theta), batches)
            return np.asarray(hessian), np.asarray(gradient), float(loss)
        return normal_equations(self.form, theta, *self._given, rough=rough, pairs=self._by_pairs)

    @in_double
    def jacobian(self, theta: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """(m, p) the weighted Jacobian of some rows; of q outputs (m q, p)."""
        X, y, _ = self._given
        return written_out(self.form, theta, X[rows], y[rows], self._root[rows])[1]

    def _batchwise(self, theta: np.ndarray) -> Iterator[np.ndarray]:
        at = placed(self.form, theta, self._height)
        return (np.asarray(residuals(self.form, at, *batch)) for batch in self._batches)


@partial(jax.jit, static_argnums=0)
def _on_device(
    form: Parametrisation, theta: jax.Array, batches: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """J'J, J'r and r'r of all batches (c, m, …) in one program: nothing waits for the host between them."""

    def one(total: tuple[jax.Array, ...], batch: tuple[jax.Array, ...]):
        r, J = residuals_and_jacobian(form, theta, *batch)
        return (total[0] + J.T @ J, total[1] + J.T @ r, total[2] + r @ r), None

    nothing = jnp.zeros((form.size, form.size)), jnp.zeros(form.size), jnp.zeros(())
    return jax.lax.scan(one, nothing, batches)[0]


class FisherScoring:
    """The deviance of a form over rows, and a step of Fisher scoring at any parameters.

    ``weight`` (n,) holds the trials of a binomial, too; ``offset`` is added to the network's output.
    """

    def __init__(
        self,
        form: Parametrisation,
        X: Float[np.ndarray, "n d"],
        y: Target,
        family: Family,
        weight: Float[np.ndarray, " n"] | None = None,
        offset: Target | None = None,
    ) -> None:
        self.form, self.n = form, len(X)
        self._X, self._y, self._family, self._weight = X, y, family, weight
        self._offset = np.zeros_like(y) if offset is None else offset
        self._plain = InMemoryLeastSquares(form, X, np.zeros_like(y))

    @property
    def lower(self) -> np.ndarray | None:
        """(p,) lower bounds of the parameters; None where there are none."""
        return self.form.lower

    def output(self, theta: np.ndarray) -> Target:
        """The network's output at every row, without the offset."""
        return self._plain.residuals(theta).reshape(self._y.shape)

    def loss(self, theta: np.ndarray) -> float:
        """The deviance."""
        with np.errstate(over="ignore", invalid="ignore"):
            eta = self.output(theta) + self._offset
            return float(np.sum(deviances(self._family, self._y, eta, self._weight)))

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The information, half the gradient of the deviance, and the deviance."""
        target, weight = self._working(theta)
        pairs = False if weight.ndim > 1 else None
        hessian, gradient, _ = normal_equations(
            self.form, theta, self._X, target, weight, rough=rough, pairs=pairs
        )
        return hessian, gradient, self.loss(theta)

    def _working(self, theta: np.ndarray) -> tuple[Target, np.ndarray]:
        output = self.output(theta)
        return working_rows(self._family, self._y, output, self._offset, self._weight)


def deviances(
    family: Family, y: Target, eta: Target, weight: Float[np.ndarray, " n"] | None
) -> Float[np.ndarray, " n"]:
    """(n,) unit deviances times the weights of their rows, added up over outputs."""
    found = family.deviance(y, eta)
    found = found if found.ndim == 1 else found.sum(axis=1)
    return found if weight is None else weight * found


def working_rows(
    family: Family, y: Target, output: Target, offset: Target, weight: Float[np.ndarray, " n"] | None
) -> tuple[Target, Float[np.ndarray, "n ..."]]:
    """The target and the weights, (n,), (n, q) or (n, q, q), of a step of Fisher scoring at this output."""
    residual, information = family.working(y, output + offset)
    if weight is not None:
        information = information * weight.reshape(-1, *[1] * (information.ndim - 1))
    return output - residual, information
