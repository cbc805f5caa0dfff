"""Control variates: y less its regression on low-degree polynomials of x.

E[q(x) S_m(x)] = 0 for every polynomial q of degree below m, so y may be replaced by its residual: the
moment keeps its expectation and loses most of its variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.moments.packing import places
from onehidden.moments.products import Array, ProductSums, beside, by_coordinate

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
    """Normal equations of the leading columns, for each number of them, at unit diagonal.

    One Cholesky factor serves all, a pseudo-inverse where columns repeat each other.
    """
    from scipy.linalg import solve_triangular

    diagonal = np.diag(gram)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled, right, factor = gram * scale[:, None] * scale[None, :], scale * cross, None
    fits = []
    for size in reversed(sizes):
        if factor is None:
            factor = _factor(scaled[:size, :size])
        if factor is None:
            least = np.linalg.lstsq(np.asarray(scaled[:size, :size]), right[:size], rcond=1e-12)[0]
        else:
            lower = factor[:size, :size]
            least = solve_triangular(lower, right[:size], lower=True, check_finite=False)
            least = solve_triangular(lower, least, lower=True, trans=1, check_finite=False)
        fits.append(scale[:size] * least)
    return tuple(reversed(fits))


def _factor(gram: Array) -> np.ndarray | None:
    """The lower Cholesky factor, formed where the matrix is; None where columns repeat each other."""
    try:
        lower = np.asarray((jnp if isinstance(gram, jax.Array) else np).linalg.cholesky(gram))
    except np.linalg.LinAlgError:
        return None
    return lower if np.min(np.diag(lower)) > _INDEPENDENT else None  # not a number is not above it
