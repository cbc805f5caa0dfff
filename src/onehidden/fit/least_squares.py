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
from onehidden.fit.normal_equations import normal_equations
from onehidden.fit.parametrisation import (
    Parametrisation,
    Target,
    pieces,
    residuals,
    residuals_and_jacobian,
    roots,
    written_out,
)
from onehidden.machine import in_double


class InMemoryLeastSquares:
    """Residuals of a form over samples (x, y, weight), as sums over pieces of the rows.

    On a CPU a piece should stay in the cache: J'J of 100 000 x 10 with 4 units takes 27 ms with 8 MiB and 44
    ms with 64. An accelerator holds all rows, in batches of ``batch`` bytes of the Jacobian.
    """

    @in_double
    def __init__(
        self,
        form: Parametrisation,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        batch: int = 64 << 20,
    ) -> None:
        self.form, self.n, self._given = form, len(X), (X, y, weight)
        self._held: tuple[jax.Array, ...] | None = None
        if jax.default_backend() != "cpu" and form.free is None:
            count = -(-self.n // max(256, batch // (8 * form.width * form.q)))
            more, given = -self.n % count, (X, y, roots(weight, self.n))
            filled = (np.pad(v, ((0, more),) + ((0, 0),) * (v.ndim - 1)) for v in given)
            self._held = tuple(jnp.asarray(v.reshape(count, -1, *v.shape[1:])) for v in filled)

    @property
    def lower(self) -> np.ndarray | None:
        """(p,) lower bounds of the parameters; None where there are none."""
        return self.form.lower

    @in_double
    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """(n,) weighted residuals, prediction minus y; of q outputs (n q,)."""
        return np.concatenate(list(self._by_piece(theta)))[: self.n * self.form.q]

    @quietly
    @in_double
    def loss(self, theta: np.ndarray) -> float:
        """Sum of squared residuals."""
        return float(sum(float(r @ r) for r in self._by_piece(theta)))

    @in_double
    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r; J is never held for more than one piece, and where that pays not at all."""
        if self._held is not None:
            hessian, gradient, loss = _on_device(self.form, jnp.asarray(theta), self._held)
            return np.asarray(hessian), np.asarray(gradient), float(loss)
        return normal_equations(self.form, theta, *self._given, rough=rough)

    @in_double
    def jacobian(self, theta: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """(m, p) the weighted Jacobian of some rows; of q outputs (m q, p)."""
        X, y, weight = self._given
        return written_out(self.form, theta, X[rows], y[rows], roots(weight, self.n)[rows])[1]

    def _by_piece(self, theta: np.ndarray) -> Iterator[np.ndarray]:
        if self._held is None:
            return pieces(residuals, self.form, theta, *self._given)
        at = jnp.asarray(theta)
        return (np.asarray(residuals(self.form, at, *batch)) for batch in zip(*self._held, strict=True))


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


class FisherScoring(InMemoryLeastSquares):
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
        super().__init__(form, X, np.zeros_like(y))  # whose residuals are the outputs
        self._y, self._family, self._weight = y, family, weight
        self._offset = np.zeros_like(y) if offset is None else offset

    def output(self, theta: np.ndarray) -> Target:
        """The network's output at every row, without the offset."""
        return self.residuals(theta).reshape(self._y.shape)

    def loss(self, theta: np.ndarray) -> float:
        """The deviance."""
        with np.errstate(over="ignore", invalid="ignore"):
            eta = self.output(theta) + self._offset
            return float(np.sum(deviances(self._family, self._y, eta, self._weight)))

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The information, half the gradient of the deviance, and the deviance."""
        rows = working_rows(self._family, self._y, self.output(theta), self._offset, self._weight)
        hessian, gradient, _ = normal_equations(self.form, theta, self._given[0], *rows, rough=rough)
        return hessian, gradient, self.loss(theta)


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
