"""T_m = E[y S_m(x)], m = 1..4, as a streaming, mergeable reduction with standard errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from onehidden.moments.control import Control
from onehidden.moments.packing import pack, unpack, z_of_norm
from onehidden.moments.products import Array, ProductSums, beside, by_coordinate


@dataclass(frozen=True)
class ScoreMoments:
    """The moments of a sample: ``t[m]`` is the (r, …, r) tensor T_m in the coordinates asked for.

    Attributes
    ----------
    n : samples behind the means; with weights v the number (sum v)^2 / sum(v^2) of equal ones.
    orders : which m are there.
    control_degree : degree of the control variate used (at order m never m or more).
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
        """Standard error of each entry of T_m.

        After an affine change of coordinates entries are combined as if uncorrelated, which they are
        when y carries no signal.
        """
        squared = None if self._transform is None else self._transform**2
        variance = self._entry(self._variance, order) / self.n
        return np.sqrt(self._dense(variance, order, squared))

    def signal(self, order: int) -> float:
        """How far |T_m|^2 stands above what noise alone gives, in its standard deviations."""
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
