"""What a box answers with: values, labels, or probabilities that are read as log-odds."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from onehidden.fit.rounding import decimal_step
from onehidden.oracle.domain import Outputs, PerPoint


class Answers(enum.StrEnum):
    """VALUE: numbers as they are. PROBABILITY: of one class or all. LABEL: a class. AUTO: detected."""

    AUTO = "auto"
    VALUE = "value"
    PROBABILITY = "probability"
    LABEL = "label"


def detected(y: Outputs) -> Answers:
    """What typical answers look like.

    A single output between 0 and 1 may be a value, so probabilities are detected only where the rows of
    several outputs sum to one.
    """
    if y.shape[1] == 1 and np.all((y == 0) | (y == 1)) and len(np.unique(y)) == 2:
        return Answers.LABEL
    if np.all((y >= 0) & (y <= 1)) and _softmax(y):
        return Answers.PROBABILITY
    return Answers.VALUE


def finite(y: Outputs) -> Bool[np.ndarray, " n"]:
    """Rows that were answered."""
    return np.all(np.isfinite(y), axis=1)


def _softmax(p: Outputs) -> bool:
    """Whether rows sum to one, as a softmax does in half precision to about 1e-3."""
    return p.shape[1] > 1 and bool(np.all(np.abs(p.sum(axis=1) - 1) < 1e-3))


@dataclass(frozen=True, eq=False)
class LogOdds:
    """From probabilities to values: log p - mean log p over the classes of a softmax, else log p / (1 - p).

    Two classes are one number, log p_1 / p_0. A probability below the bound where its digits end is NaN.
    """

    softmax: bool  # whether the outputs of a row sum to one
    least: Float[np.ndarray, " c"]  # bound of each class; of 1 - p and p for one probability
    step: Float[np.ndarray, " c"]  # spacing of the probabilities of a class, 0 where it has all digits

    @staticmethod
    def of(p: Outputs) -> LogOdds:
        """The reading of answers, some of them from far away, where probabilities come to their bounds."""
        good = p[finite(p)]
        if np.any((good < 0) | (good > 1)):
            raise ValueError(f"answers of {good.min():.3g} to {good.max():.3g} are no probabilities")
        softmax, complement = _softmax(good), 2.0**-53
        both = good if softmax else np.concatenate([1 - good, good], axis=1)
        step = np.array([_spacing(column) for column in both.T])
        if both.shape[1] == 2:
            # A probability computed as 1 - p has no more digits than that difference, even where it is large.
            one, other = both.T
            computed = [np.array_equal(one, 1 - other), np.array_equal(other, 1 - one)]
            step = np.maximum(step, np.where(computed, complement, 0.0))
        elif not softmax:
            step[: good.shape[1]] = np.maximum(step[: good.shape[1]], complement)
        # An error of step / p in log p: the fourth root leaves three quarters of the digits at the bound.
        # Near the least number that a double holds digits are lost, too.
        least = np.maximum(np.maximum(_clipped(both), step**0.25 * (step > 0)), 1e-290)
        return LogOdds(softmax, least, step)

    def __call__(self, p: Outputs) -> Float[np.ndarray, "n v"]:
        both = p if self.softmax else np.concatenate([1 - p, p], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = ~np.all(both > (1 + 1e-9) * self.least, axis=1)
            logs = np.log(both)
            if not self.softmax:
                value = logs[:, p.shape[1] :] - np.log1p(-p)
            elif p.shape[1] == 2:
                value = logs[:, 1:] - logs[:, :1]
            else:
                value = logs - logs.mean(axis=1, keepdims=True)
        value[lost] = np.nan
        return value

    @property
    def largest_error(self) -> float:
        """The largest standard error that the spacing of probabilities leaves in a value."""
        return float(np.max(self.step / self.least)) / np.sqrt(12)

    def error(self, values: Float[np.ndarray, "n v"]) -> PerPoint:
        """The standard error that the spacing of probabilities leaves in each row of values."""
        if not np.any(self.step):
            return np.zeros(len(values))
        if self.softmax and values.shape[1] > 1:
            odds = np.exp(values - values.max(axis=1, keepdims=True))
            p = odds / odds.sum(axis=1, keepdims=True)
        else:
            p = 1 / (1 + np.exp(np.clip(np.concatenate([values, -values], axis=1), -600, 600)))
        return np.max(self.step / np.maximum(p, self.least), axis=1) / np.sqrt(12)


def _spacing(p: PerPoint) -> float:
    """The spacing of the probabilities of a class; 0 where they have the digits of their own size."""
    if step := decimal_step(p, 12):
        return min(step, 0.1)
    small = p[(p > 0) & (p < 1e-2)]
    for step in (2.0**-24, 2.0**-53):  # of 1 - p in single and in double precision
        if len(small) >= 4 and np.array_equal(np.rint(small / step), small / step):
            return step
    return 0.0


def _clipped(p: Float[np.ndarray, "n c"]) -> float:
    """The bound that probabilities are clipped to, the same for all classes; 0 where there is none.

    A class that levels off far away has a least probability, too, but one of its own.
    """
    least = float(np.min(p))
    held = np.sum(np.abs(p - least) <= 1e-9 * least, axis=0)
    return least if least > 0 and np.sum(held > 1) > 1 else 0.0
