"""Control variates: y less its regression on low-degree polynomials of x.

E[q(x) S_m(x)] = 0 for every polynomial q of degree below m, so y may be replaced by its residual: the
moment keeps its expectation and loses most of its variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.moments.packing import places
from onehidden.moments.products import Array, ProductSums, beside, by_coordinate
from onehidden.precision import in_double

# Least diagonal of the factor of a Gram matrix with unit diagonal whose columns count as independent.
_INDEPENDENT = 1e-6


@dataclass(frozen=True)
class Control:
    """A polynomial of degree 0, 1 or 2 in coordinates u: c + <l, u> + sum_{i<=j} q_ij u_i u_j.

    At order m only degrees under m leave the expectation alone, so one polynomial is fitted for each
    degree and ``residual`` takes the best that the order allows.
    """

    coefficients: tuple[np.ndarray, ...]  # one vector for each degree 0, 1, …

    def residual(self, u: Array, y: Array, order: int) -> Array:
        """y less the best fitted polynomial of degree below ``order``."""
        degree = min(order, len(self.coefficients)) - 1
        return y - polynomial(u, self.coefficients[degree])


def polynomial(u: Array, coefficients: np.ndarray) -> Array:
    """c + <l, u> + sum_{i<=j} q_ij u_i u_j at the rows of u, as one quadratic form."""
    r = u.shape[1]
    if len(coefficients) == 1:
        return np.full(len(u), coefficients[0])
    value = coefficients[0] + u @ coefficients[1 : 1 + r]
    if len(coefficients) > 1 + r:
        upper = np.zeros((r, r))
        upper[np.triu_indices(r)] = coefficients[1 + r :]
        # NumPy's functions would bring JAX arrays back to the host.
        einsum = jnp.einsum if isinstance(u, jax.Array) else np.einsum
        value = value + einsum("ni,ni->n", u @ upper, u)
    return value


class ControlAccumulator:
    """Normal equations of the regression, as a reduction over batches.

    The columns 1; u_i; u_i u_j have the raw moments of u up to order four as their Gram matrix, each of
    which is summed once.
    """

    def __init__(self, r: int, degree: int) -> None:
        if degree not in (0, 1, 2):
            raise ValueError(f"control_degree must be 0, 1 or 2, got {degree}")
        self.r, self.degree = r, degree
        self._n = self._total = 0.0
        self._moments = {m: ProductSums(r, m) for m in range(1, 2 * degree + 1)}
        self._cross = {m: ProductSums(r, m) for m in range(1, degree + 1)}

    def update(self, u: Array, y: np.ndarray, weight: np.ndarray | None = None) -> ControlAccumulator:
        first = by_coordinate(u)
        second = first * first
        powers = first, second, first * second, second * second
        values, counts = beside(u, y), beside(u, np.ones(len(y)) if weight is None else weight)
        self._n += float(counts.sum())
        self._total += float(counts @ values)
        for sums, factor in ((self._moments, counts), (self._cross, counts * values)):
            for one in sums.values():
                one.update(factor, powers)
        return self

    def merge(self, other: ControlAccumulator) -> ControlAccumulator:
        if (self.r, self.degree) != (other.r, other.degree):
            raise ValueError("only accumulators of the same coordinates and degree merge")
        self._n += other._n
        self._total += other._total
        for mine, theirs in ((self._moments, other._moments), (self._cross, other._cross)):
            for m, one in mine.items():
                one.merge(theirs[m])
        return self

    @in_double
    def result(self) -> Control:
        cross = np.concatenate([[self._total], *(one.result() for one in self._cross.values())])
        sizes = (1, 1 + self.r, len(cross))[: self.degree + 1]
        return Control(_solved(self._gram(), cross, sizes))

    def _gram(self) -> Array:
        moments = [np.array([self._n]), *(one.where_it_lies() for one in self._moments.values())]
        degrees = range(self.degree + 1)
        blocks = [[moments[i + j][places(self.r, i, j)] for j in degrees] for i in degrees]
        return jnp.block(blocks) if isinstance(moments[-1], jax.Array) else np.block(blocks)


def _solved(gram: Array, cross: np.ndarray, sizes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Normal equations of the leading columns, for each number of them, where the matrix is.

    One Cholesky factor at unit diagonal serves all, a pseudo-inverse where columns repeat each other.
    """
    if isinstance(gram, jax.Array):
        *fits, least = (np.asarray(part) for part in _by_factor_there(gram, cross, sizes))
        if least > _INDEPENDENT:  # not a number is not above it
            return tuple(fits)
        gram = np.asarray(gram)
    from scipy import linalg

    scaled, scale = _scaled(np, gram)
    fits, factor = [], None
    for size in reversed(sizes):
        factor = _factor(scaled[:size, :size]) if factor is None else factor[:size, :size]
        right = (scale * cross)[:size]
        if factor is None:
            solution = np.linalg.lstsq(scaled[:size, :size], right, rcond=1e-12)[0]
        else:
            solution = linalg.cho_solve((factor, True), right)
        fits.append(scale[:size] * solution)
    return tuple(reversed(fits))


@partial(jax.jit, static_argnums=2)
def _by_factor_there(gram: jax.Array, cross: jax.Array, sizes: tuple[int, ...]) -> list[jax.Array]:
    """The solutions, and the least diagonal of the factor."""
    scaled, scale = _scaled(jnp, gram)
    factor, right = jnp.linalg.cholesky(scaled), scale * cross
    solve = jax.scipy.linalg.cho_solve
    fits = [scale[:size] * solve((factor[:size, :size], True), right[:size]) for size in sizes]
    return [*fits, jnp.min(jnp.diag(factor))]


def _scaled(place: Any, gram: Any) -> tuple[Any, Any]:
    """The matrix with unit diagonal, and the scale of its columns."""
    diagonal = place.diag(gram)
    scale = 1 / place.sqrt(place.where(diagonal > 0, diagonal, 1.0))
    return gram * scale[:, None] * scale[None, :], scale


def _factor(gram: np.ndarray) -> np.ndarray | None:
    """The lower Cholesky factor; None where columns repeat each other."""
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    return lower if np.min(np.diag(lower)) > _INDEPENDENT else None
