"""Probabilities read as log-odds, where they still have digits, with the error that is left in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.oracle.answers import finite

_SUM = 1e-3  # probabilities of a softmax sum to one, in half precision to about this
_SMALL = 1e-2  # below, the digits of a probability tell whether it was computed as 1 - p
_ENOUGH = 4  # small probabilities that must lie on a grid for it to be one
_TINY = 1e-290  # closer to the least number that a double holds digits are lost
# 1 - p in double and in single precision: such a probability is known to 2^-53 or 2^-24, however small.
_COMPLEMENTS = (2.0**-53, 2.0**-24)


@dataclass(frozen=True, eq=False)
class LogOdds:
    """From probabilities to values: log p - mean log p over the classes of a softmax, else log p / (1 - p).

    Two classes are one number, log p_1 / p_0. Where a p has reached the bound below which its digits end
    nothing is known: NaN.

    Attributes
    ----------
    softmax : whether the outputs of a row sum to one.
    least : (c,) bound of each class; for one probability alone c = 2, of 1 - p and of p.
    grid : (c,) steps in which the probabilities of a class come, 0 where it has all its digits.
    """

    softmax: bool
    least: Float[np.ndarray, " c"]
    grid: Float[np.ndarray, " c"]

    @staticmethod
    def of(p: Float[np.ndarray, "n q"]) -> LogOdds:
        """The reading of answers, some of them from far away, where probabilities come to their bounds."""
        good = p[finite(p)]
        if np.any((good < 0) | (good > 1)):
            raise ValueError(f"answers of {good.min():.3g} to {good.max():.3g} are no probabilities")
        softmax = good.shape[1] > 1 and bool(np.all(np.abs(good.sum(axis=1) - 1) < _SUM))
        both = good if softmax else np.concatenate([1 - good, good], axis=1)
        grid = np.array([_grid(column) for column in both.T])
        if both.shape[1] == 2:
            # What is one less the other has no more digits than that difference, seen small or not.
            one, other = both.T
            told = [np.array_equal(one, 1 - other), np.array_equal(other, 1 - one)]
            grid = np.maximum(grid, np.where(told, _COMPLEMENTS[0], 0.0))
        elif not softmax:
            grid[: good.shape[1]] = np.maximum(grid[: good.shape[1]], _COMPLEMENTS[0])
        # An error of grid / p in log p: a fourth root leaves three quarters of the digits at the bound.
        least = np.maximum(np.maximum(_clipped(both), grid**0.25 * (grid > 0)), _TINY)
        return LogOdds(softmax, least, grid)

    def __call__(self, p: Float[np.ndarray, "n q"]) -> Float[np.ndarray, "n v"]:
        both = p if self.softmax else np.concatenate([1 - p, p], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = ~np.all(both > (1 + 1e-9) * self.least, axis=1)
            logs = np.log(both)
            if not self.softmax:
                q = p.shape[1]
                found = logs[:, q:] - np.log1p(-p)
            elif p.shape[1] == 2:
                found = logs[:, 1:] - logs[:, :1]
            else:
                found = logs - logs.mean(axis=1, keepdims=True)
        found[lost] = np.nan
        return found

    @property
    def blunt(self) -> float:
        """The largest standard error that the grid leaves in a value."""
        return float(np.max(self.grid / self.least)) / np.sqrt(12)

    def blur(self, values: Float[np.ndarray, "n v"]) -> Float[np.ndarray, " n"]:
        """The standard error that the grid leaves in each row of values."""
        if not np.any(self.grid):
            return np.zeros(len(values))
        if self.softmax and values.shape[1] > 1:
            odds = np.exp(values - values.max(axis=1, keepdims=True))
            p = odds / odds.sum(axis=1, keepdims=True)
        else:
            p = 1 / (1 + np.exp(np.clip(np.concatenate([values, -values], axis=1), -600, 600)))
        return np.max(self.grid / np.maximum(p, self.least), axis=1) / np.sqrt(12)


def _grid(p: Float[np.ndarray, " n"]) -> float:
    """The steps in which the probabilities of a class come, where they are not those of a number itself."""
    for decimals in range(1, 13):
        if np.array_equal(np.round(p, decimals), p):
            return 10.0**-decimals
    small = p[(p > 0) & (p < _SMALL)]
    for grid in _COMPLEMENTS[::-1]:
        if len(small) >= _ENOUGH and np.array_equal(np.rint(small / grid), small / grid):
            return grid
    return 0.0


def _clipped(p: Float[np.ndarray, "n c"]) -> float:
    """The bound that probabilities are clipped to, the same for all classes; 0 where there is none.

    A class of a box that levels off far away has a least probability, too, but one of its own.
    """
    least = float(np.min(p))
    held = np.sum(np.abs(p - least) <= 1e-9 * least, axis=0)
    return least if least > 0 and np.sum(held > 1) > 1 else 0.0
