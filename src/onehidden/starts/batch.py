"""Many networks at once, as their hyperplanes: least-squares outputs and losses of a batch.

For any hyperplanes (a_i, b_i) the outputs, intercept and skip are a least-squares fit, so that a network is
its k hyperplanes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.precision import single

Planes = Float[jax.Array, "P k e"]
Losses = Float[jax.Array, " P"]


class Networks(NamedTuple):
    """Networks as their hyperplanes (P, k, e) and mean squared residuals (P,), best first."""

    planes: Float[np.ndarray, "P k e"]
    loss: Float[np.ndarray, " P"]

    def best(self, count: int) -> Networks:
        """Return the first so many."""
        return Networks(self.planes[:count], self.loss[:count])

    def joined(self, other: Networks) -> Networks:
        """Both, best first."""
        return networks(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def networks(planes: Float[np.ndarray, "P k e"], loss: Float[np.ndarray, " P"]) -> Networks:
    """Networks, best first; those of a loss that is not finite are left out, all but one."""
    finite = np.isfinite(loss)
    order = np.argsort(np.where(finite, loss, np.inf), kind="stable")[: max(int(finite.sum()), 1)]
    return Networks(planes[order], np.where(finite, loss, np.inf)[order])


@contextmanager
def single_precision() -> Iterator[None]:
    """Single precision, all 24 bits of it: an accelerator's default product keeps 10."""
    with single(), jax.default_matmul_precision("highest"):
        yield


class Table(NamedTuple):
    """What all networks of a batch share.

    ``x`` (n, d + 1) holds the inputs and a one, ``fixed`` (n, m) orthonormal columns of what every fit has:
    the constant and, with a skip, the inputs; ``root`` (n,) the square roots of the weights of the rows, and
    ``y`` (n, q) the targets times those roots, less their projection on ``fixed``.
    """

    x: jax.Array
    fixed: jax.Array
    root: jax.Array
    y: jax.Array


class Evaluated(NamedTuple):
    """A batch of networks on the rows.

    ``units`` (P, k, n) are the values of the units times the roots of the weights, ``output`` (P, k, q) the
    least-squares outputs, ``loss`` (P,) the mean squared residuals.
    """

    units: jax.Array
    output: jax.Array
    loss: Losses


def table(problem: Problem, form: Parametrisation, kind: type[np.floating] = np.float32) -> Table:
    """Return the rows of a problem as a table in a floating-point type."""
    n = problem.n
    root = np.ones(n) if problem.weight is None else np.sqrt(problem.weight)
    x = np.column_stack([problem.Z, np.ones(n)])
    fixed = np.linalg.qr(root[:, None] * x[:, slice(None) if form.skip else slice(form.d, None)])[0]
    y = root[:, None] * problem.y.reshape(n, -1)
    return Table(*(jnp.asarray(part, kind) for part in (x, fixed, root, y - fixed @ (fixed.T @ y))))


def evaluated(form: Parametrisation, rows: Table, planes: Planes) -> Evaluated:
    """Return the networks of these hyperplanes on the rows."""
    wide = planes if form.bias else jnp.pad(planes, ((0, 0), (0, 0), (0, 1)))
    units = form.g(jnp.einsum("pke,ne->pkn", wide, rows.x)) * rows.root
    along = units @ rows.fixed
    gram = units @ units.mT - along @ along.mT
    # A ridge of ten roundings of float32: parallel units would have a singular Gram matrix.
    ridge = 1e-6 * jnp.trace(gram, axis1=1, axis2=2) / form.k + jnp.finfo(gram.dtype).tiny
    factor = jnp.linalg.cholesky(gram + ridge[:, None, None] * jnp.eye(form.k, dtype=gram.dtype))
    output = jax.scipy.linalg.cho_solve((factor, True), units @ rows.y)
    fitted = units.mT @ output
    residual = fitted - rows.fixed @ (rows.fixed.T @ fitted) - rows.y
    return Evaluated(units, output, jnp.mean(residual**2, axis=(1, 2)))
