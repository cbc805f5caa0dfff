"""Sums behind T_m = E[y S_m(x)], m = 1 … 4, with standard errors, and the control variate taken off y before.

E[q(x) S_m(x)] = 0 for every polynomial q of degree below m, so y may be replaced by its residual: the
moment keeps its expectation and loses most of its variance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.moments.packing import pack, places, unpack, z_of_norm
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
        """Subtract from y the best fitted polynomial of degree below ``order``."""
        degree = min(order, len(self.coefficients)) - 1
        return y - polynomial(u, self.coefficients[degree])


def polynomial(u: Array, coefficients: np.ndarray) -> Array:
    """Return c + <l, u> + sum_{i<=j} q_ij u_i u_j at the rows of u, as one quadratic form."""
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
    """Return the least-squares coefficients of the leading columns, for each number of them.

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
    """Return the solutions and the least diagonal entry of the factor, on the device of the matrix."""
    scaled, scale = _scaled(jnp, gram)
    factor, right = jnp.linalg.cholesky(scaled), scale * cross
    solve = jax.scipy.linalg.cho_solve
    fits = [scale[:size] * solve((factor[:size, :size], True), right[:size]) for size in sizes]
    return [*fits, jnp.min(jnp.diag(factor))]


def _scaled(place: Any, gram: Any) -> tuple[Any, Any]:
    """Return the matrix with unit diagonal, and the scale of its columns."""
    diagonal = place.diag(gram)
    scale = 1 / place.sqrt(place.where(diagonal > 0, diagonal, 1.0))
    return gram * scale[:, None] * scale[None, :], scale


def _factor(gram: np.ndarray) -> np.ndarray | None:
    """Return the lower Cholesky factor; None where columns repeat each other."""
    try:
        lower = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        return None
    return lower if np.min(np.diag(lower)) > _INDEPENDENT else None


@dataclass(frozen=True)
class ScoreMoments:
    """The moments of a sample: ``t[m]`` is the (r, …, r) tensor T_m in the coordinates asked for.

    Attributes
    ----------
    n : int or float
        Samples behind the means; with weights v the number (sum v)^2 / sum(v^2) of equal ones.
    orders : tuple of int
        Which m are there.
    control_degree : int
        Degree of the control variate used (at order m never m or more).
    """

    n: int | float
    orders: tuple[int, ...]
    control_degree: int
    _mean: dict[int, np.ndarray] = field(repr=False)
    _variance: dict[int, np.ndarray] = field(repr=False)
    _r: int = field(repr=False)
    _transform: np.ndarray | None = field(repr=False, default=None)

    def __getitem__(self, order: int) -> np.ndarray:
        return self._dense(self._entry(self._mean, order), order, self._transform)

    def standard_error(self, order: int) -> np.ndarray:
        """Return the standard error of each entry of T_m.

        After an affine change of coordinates entries are combined as if uncorrelated, which they are
        when y carries no signal.

        Parameters
        ----------
        order : int
            The order m.

        Returns
        -------
        ndarray of shape (r, …, r)
            The standard errors.
        """
        squared = None if self._transform is None else self._transform**2
        variance = self._entry(self._variance, order) / self.n
        return np.sqrt(self._dense(variance, order, squared))

    def signal(self, order: int) -> float:
        """Compare |T_m|^2 with what noise alone gives.

        Parameters
        ----------
        order : int
            The order m.

        Returns
        -------
        float
            The difference in standard deviations of the noise.
        """
        error = self._entry(self._variance, order) / self.n
        return z_of_norm(self._mean[order], error, self._r, order)

    def _entry(self, table: dict[int, np.ndarray], order: int) -> np.ndarray:
        if order not in table:
            raise ValueError(f"order {order} was not accumulated: the orders are {self.orders}")
        return table[order]

    def _dense(self, values: np.ndarray, order: int, transform: np.ndarray | None) -> np.ndarray:
        full = unpack(values, self._r, order)
        if transform is not None:
            for _ in range(order):  # each contraction moves its axis to the end
                full = np.tensordot(full, transform, axes=(0, 1))
        return full


class MomentAccumulator:
    """Sums of (y - control) S_m(x) and of their squares.

    ``update`` takes the coordinates u (for the control) and the per-sample scores of the batch, either
    ``product`` = (s_1, …, s_4), each (n, r): scores of independent coordinates, whose products over
    distinct coordinates are the entries of S_m; or ``dense`` = {m: (n, r, …, r)}. With weights v the mean
    is sum(v e) / sum(v) and n counts (sum v)^2 / sum(v^2) samples.
    """

    def __init__(self, r: int, orders: tuple[int, ...], control: Control | None, control_degree: int) -> None:
        self.r, self.orders, self.control, self.control_degree = r, orders, control, control_degree
        self.n, self._weight, self._squared_weight = 0, 0.0, 0.0
        self._sum = {m: ProductSums(r, m) for m in orders}
        self._square = {m: ProductSums(r, m, roughly=True) for m in orders}

    def update(
        self,
        u: Array,
        y: Float[np.ndarray, " n"],
        product: tuple[Array, ...] | None = None,
        dense: Mapping[int, np.ndarray] | None = None,
        weight: Float[np.ndarray, " n"] | None = None,
    ) -> MomentAccumulator:
        # one row a coordinate: the factors of the sums are then runs of memory
        product = None if product is None else tuple(by_coordinate(s) for s in product)
        squared = None if product is None else tuple(s * s for s in product)
        target = beside(u, y)
        for m in self.orders:
            residual = target if self.control is None else self.control.residual(u, target, m)
            if weight is not None:
                residual = beside(u, weight) * residual
            if product is not None and squared is not None:
                self._sum[m].update(residual, product)
                self._square[m].update(residual**2, squared)
            else:
                assert dense is not None
                entries = pack(dense[m])
                values = np.asarray(residual)
                self._sum[m].add(values @ entries)
                self._square[m].add(values**2 @ entries**2)
        self.n += len(y)
        self._weight += len(y) if weight is None else float(np.sum(weight))
        self._squared_weight += len(y) if weight is None else float(np.sum(weight**2))
        return self

    def merge(self, other: MomentAccumulator) -> MomentAccumulator:
        if (self.r, self.orders) != (other.r, other.orders) or not _same(self.control, other.control):
            raise ValueError("only accumulators of the same coordinates, orders and control merge")
        for m in self.orders:
            self._sum[m].merge(other._sum[m])
            self._square[m].merge(other._square[m])
        self.n += other.n
        self._weight += other._weight
        self._squared_weight += other._squared_weight
        return self

    def result(self, transform: np.ndarray | None = None) -> ScoreMoments:
        if self.n == 0:
            raise ValueError("no samples were accumulated")
        if not self._weight > 0:
            raise ValueError("the weights of the samples add up to zero: give some of them weight")
        mean = {m: s.result() / self._weight for m, s in self._sum.items()}
        variance = {
            m: np.maximum(s.result() / self._squared_weight - mean[m] ** 2, 0.0)
            for m, s in self._square.items()
        }
        count = self._weight**2 / self._squared_weight
        n = int(count) if count == int(count) else count
        return ScoreMoments(n, self.orders, self.control_degree, mean, variance, self.r, transform)


def _same(one: Control | None, other: Control | None) -> bool:
    if one is None or other is None:
        return one is other
    pairs = zip(one.coefficients, other.coefficients, strict=False)
    same = len(one.coefficients) == len(other.coefficients)
    return same and all(np.array_equal(a, b) for a, b in pairs)
