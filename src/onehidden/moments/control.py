"""Control variates: y less its regression on low-degree polynomials of x.

E[q(x) S_m(x)] = 0 for every polynomial q of degree below m, so y may be replaced by its residual: the
moment keeps its expectation and loses most of its variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.moments.packing import places_of_pairs, unpack
from onehidden.moments.products import Array, ProductSums, by_coordinate


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
        weight = np.ones(len(y)) if weight is None else weight
        self._n += float(np.sum(weight))
        self._total += float(weight @ y)
        for sums, factor in ((self._moments, weight), (self._cross, weight * y)):
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
        gram = self._gram()
        fits = []
        for degree in range(self.degree + 1):
            size = (1, 1 + self.r, len(cross))[degree]
            fits.append(_solve(gram[:size, :size], cross[:size]))
        return Control(tuple(fits))

    def _gram(self) -> np.ndarray:
        r, moments = self.r, {m: one.result() for m, one in self._moments.items()}
        blocks = [[np.array([[self._n]])]]
        if self.degree >= 1:
            first = moments[1]
            blocks = [[blocks[0][0], first[None, :]], [first[:, None], unpack(moments[2], r, 2)]]
        if self.degree == 2:
            i, j = np.triu_indices(r)
            blocks[0].append(moments[2][None, :])
            blocks[1].append(unpack(moments[3], r, 3)[:, i, j])
            blocks.append([blocks[0][2].T, blocks[1][2].T, moments[4][places_of_pairs(r)]])
        return np.block(blocks)


def _solve(gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Normal equations at unit diagonal: Cholesky, or a pseudo-inverse where columns repeat each other."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal = np.diag(gram)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = gram * scale[:, None] * scale[None, :]
    try:
        factor = cho_factor(scaled, lower=True)
        if np.min(np.diag(factor[0])) > 1e-6:
            return scale * cho_solve(factor, scale * cross)
    except LinAlgError:
        pass
    return scale * np.linalg.lstsq(scaled, scale * cross, rcond=1e-12)[0]
