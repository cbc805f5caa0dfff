"""T_m = E[y S_m(x)], m = 1..4, as a streaming, mergeable reduction with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onehidden.moments.control import Control
from onehidden.moments.packing import multiplicities, pack, sorted_indices, unpack


@dataclass(frozen=True)
class ScoreMoments:
    """The moments of a sample: ``t[m]`` is the (r, …, r) tensor T_m in the coordinates asked for.

    Attributes
    ----------
    n : samples behind the means.
    orders : which m are there.
    control_degree : degree of the control variate used (at order m never m or more).
    """

    n: int
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
        """How far |T_m|^2 stands above what noise alone gives, in its standard deviations.

        Without signal |T_m|_F^2 has mean sum_e se_e^2 and variance about 2 sum_e se_e^4 over the entries.
        """
        count = multiplicities(self._r, order)
        error = self._entry(self._variance, order) / self.n
        excess = np.sum(count * (self._mean[order] ** 2 - error))
        spread = np.sqrt(2 * np.sum((count * error) ** 2))
        return float(excess / spread) if spread > 0 else 0.0

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
    distinct coordinates are the entries of S_m; or ``dense`` = {m: (n, r, …, r)}.
    """

    def __init__(self, r: int, orders: tuple[int, ...], control: Control | None, control_degree: int) -> None:
        self.r, self.orders, self.control, self.control_degree = r, orders, control, control_degree
        self.n = 0
        sizes = {m: len(sorted_indices(r, m)) for m in orders}
        self._sum = {m: np.zeros(size) for m, size in sizes.items()}
        self._square = {m: np.zeros(size) for m, size in sizes.items()}

    def update(self, u, y, product=None, dense=None) -> MomentAccumulator:
        for m in self.orders:
            residual = y if self.control is None else self.control.residual(u, y, m)
            if product is not None:
                first = product_sums(residual, product, m)
                second = product_sums(residual**2, tuple(s**2 for s in product), m)
            else:
                assert dense is not None
                entries = pack(dense[m])
                first, second = residual @ entries, residual**2 @ entries**2
            self._sum[m] += first
            self._square[m] += second
        self.n += len(y)
        return self

    def merge(self, other: MomentAccumulator) -> MomentAccumulator:
        if (self.r, self.orders) != (other.r, other.orders) or not _same(self.control, other.control):
            raise ValueError("only accumulators of the same coordinates, orders and control merge")
        for m in self.orders:
            self._sum[m] += other._sum[m]
            self._square[m] += other._square[m]
        self.n += other.n
        return self

    def result(self, transform: np.ndarray | None = None) -> ScoreMoments:
        if self.n == 0:
            raise ValueError("no samples were accumulated")
        mean = {m: s / self.n for m, s in self._sum.items()}
        variance = {m: np.maximum(self._square[m] / self.n - mean[m] ** 2, 0.0) for m in self.orders}
        return ScoreMoments(self.n, self.orders, self.control_degree, mean, variance, self.r, transform)


def _same(one: Control | None, other: Control | None) -> bool:
    if one is None or other is None:
        return one is other
    pairs = zip(one.coefficients, other.coefficients, strict=False)
    same = len(one.coefficients) == len(other.coefficients)
    return same and all(np.array_equal(a, b) for a, b in pairs)


def product_sums(weight: np.ndarray, scores: tuple[np.ndarray, ...], order: int) -> np.ndarray:
    """Sum over samples of weight * S_m entry, for every sorted multi-index, as matrix products.

    An entry of S_m is the product over distinct coordinates of the 1-D score of its multiplicity, so each
    is a product of two factors, each a function of one or two coordinates: a pair table times a pair
    table. Only runs of three or four equal indices need s_3 and s_4. Squares of
    entries are the same sums over squared scores.
    """
    s1, s2, s3, s4 = scores
    r = s1.shape[1]
    indices = sorted_indices(r, order)
    weighted = weight[:, None]
    if order == 1:
        return weight @ s1
    if order == 2:
        table = (weighted * s1).T @ s1
        table[np.diag_indices(r)] = weight @ s2
        return table[tuple(indices.T)]
    rows, cols = np.triu_indices(r)
    pairs = s1[:, rows] * s1[:, cols]
    pairs[:, rows == cols] = s2
    place = np.zeros((r, r), dtype=int)
    place[rows, cols] = place[cols, rows] = np.arange(len(rows))
    triple = (weighted * s3).T @ s1  # [i, j]: s_3 at i, s_1 at j
    if order == 3:
        table = (weighted * pairs).T @ s1
        i, j, k = indices.T
        # pair the equal indices: (i, j | k), or (j, k | i) when the last two agree
        last = j == k
        values = np.where(last, table[place[j, k], i], table[place[i, j], k])
        return np.where((i == j) & last, (weight @ s3)[i], values)
    table = (weighted * pairs).T @ pairs
    i, j, k, l = indices.T
    middle = (j == k) & (i != j) & (k != l)
    values = np.where(middle, table[place[j, k], place[i, l]], table[place[i, j], place[k, l]])
    values = np.where((i == j) & (j == k) & (k != l), triple[i, l], values)
    values = np.where((i != j) & (j == k) & (k == l), triple[l, i], values)
    return np.where((i == j) & (j == k) & (k == l), (weight @ s4)[i], values)
