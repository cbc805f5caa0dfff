"""Which units switch on which rows: counted in one pass, whoever holds the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.rows import Inputs, Numbers, Summed, Target, Weight
from onehidden.network import OneHiddenNet

_ON_KINK = 1e-9  # of the largest argument of a unit: a row nearer to its kink may lie on either side
_MARGIN = 2  # rows beyond the parameters of an affine function: with none to spare any two units fit


@dataclass(frozen=True)
class Patterns:
    """What the rows see of the units.

    Attributes
    ----------
    n : rows.
    beyond : (k,) rows on the lesser side of each unit.
    apart : (k, k) rows that see one of two units switch and not the other: where both are on, or one is on
        exactly where the other is off, only their sum or difference is seen. The diagonal is n.
    sure : (k,) rows on which each unit is not always, or never, on.
    spread : (k,) standard deviation of w_i g(<a_i, z> + b_i), as a share of std(y); over outputs on average.
    """

    n: int
    beyond: Int[np.ndarray, " k"]
    apart: Int[np.ndarray, "k k"]
    sure: Int[np.ndarray, " k"]
    spread: Float[np.ndarray, " k"]

    def closest(self) -> tuple[int, tuple[int, int] | None]:
        """Fewest rows that tell two units apart, or one from a unit that is always on (then None)."""
        i, j = np.unravel_index(int(np.argmin(self.apart)), self.apart.shape)
        if len(self.sure) < 2 or self.sure.min() < self.apart[i, j]:
            return int(self.sure.min()), None
        return int(self.apart[i, j]), (int(min(i, j)), int(max(i, j)))


class CountPatterns(Summed):
    """Accumulator of ``Patterns`` for a network in the coordinates of the rows."""

    summed = ("n", "_both", "_below", "_sum", "_square")

    def __init__(self, network: OneHiddenNet) -> None:
        k = network.n_hidden
        self.network, self.n = network, 0
        self._both = np.zeros((k + 1, k + 1), np.int64)
        self._below = np.zeros(k, np.int64)
        self._sum, self._square = np.zeros(k), np.zeros(k)

    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> CountPatterns:
        net = self.network
        t = Z @ net.weights.T + net.bias
        # A row on the kink itself, but for rounding, is on neither side.
        edge = _ON_KINK * np.max(np.abs(t), axis=0, initial=0.0)
        on = np.column_stack([t > edge, np.ones(len(t), bool)]).astype(float)
        self._both += np.rint(on.T @ on).astype(np.int64)
        self._below += np.sum(t < -edge, axis=0)
        units = net.activation(t)
        self._sum += units.sum(axis=0)
        self._square += np.sum(units**2, axis=0)
        self.n += len(Z)
        return self

    def result(self) -> Patterns:
        n, k = self.n, len(self._below)
        count = np.diag(self._both)
        differ = count[:, None] + count[None, :] - 2 * self._both
        fewest = np.minimum(differ, n - differ)
        apart = fewest[:k, :k].copy()
        apart[np.diag_indices(k)] = n
        variance = np.maximum(self._square / n - (self._sum / n) ** 2, 0)
        return Patterns(
            n,
            np.minimum(count[:k], self._below),
            apart,
            fewest[:k, k],
            np.sqrt(np.mean(self.network.output.reshape(k, -1) ** 2, axis=1) * variance),
        )


def rows_needed(d: int) -> int:
    """Rows that settle which of two units is which: more than the d + 1 numbers of an affine function."""
    return d + 1 + _MARGIN
