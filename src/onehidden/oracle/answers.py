"""What a box answers with: values, or probabilities that become log-odds."""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

_SUM = 1e-3  # probabilities of a softmax sum to one, in half precision to about this


class Answers(enum.StrEnum):
    """VALUE : numbers as they are. PROBABILITY : of one class or all. LABEL : a class. AUTO : noticed."""

    AUTO = "auto"
    VALUE = "value"
    PROBABILITY = "probability"
    LABEL = "label"


def noticed(y: Float[np.ndarray, "n q"]) -> Answers:
    """What typical answers look like.

    Answers that are all 0 or 1 are labels. Numbers between 0 and 1 are taken for probabilities only where the
    rows of several outputs sum to one: a single output in that range may be a value as well.
    """
    if y.shape[1] == 1 and np.all((y == 0) | (y == 1)) and len(np.unique(y)) == 2:
        return Answers.LABEL
    inside = bool(np.all((y >= 0) & (y <= 1)))
    if inside and y.shape[1] > 1 and bool(np.all(np.abs(y.sum(axis=1) - 1) < _SUM)):
        return Answers.PROBABILITY
    return Answers.VALUE


def clipped(p: Float[np.ndarray, "n q"]) -> float:
    """The smallest probability that the box gives, where it gives it often enough to be a bound; else 0."""
    least = float(np.min(p))
    return least if np.sum(p == least) > max(3, 0.002 * p.size) else 0.0


def log_odds(softmax: bool, least: float) -> Callable[[np.ndarray], np.ndarray]:
    """From probabilities to values: log p - mean log p over the classes of a softmax, else log p / (1 - p).

    Two classes are one number, log p_1 / p_0. Where p has reached 0, 1 or the bound of a clipped box nothing
    is known: NaN.

    Parameters
    ----------
    softmax : whether the outputs of a row sum to one.
    least : probabilities of this size or less are clipped.
    """

    def values(p: np.ndarray) -> np.ndarray:
        lost = np.any((p <= least) | (p >= 1 - least), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            if softmax:
                lost = np.any(p <= least, axis=1)
                logs = np.log(p)
                found = (
                    logs[:, 1:] - logs[:, :1] if p.shape[1] == 2 else logs - logs.mean(axis=1, keepdims=True)
                )
            else:
                found = np.log(p) - np.log1p(-p)
        found[lost | ~np.all(np.isfinite(found), axis=1)] = np.nan
        return found

    return values


def finite(y: Float[np.ndarray, "n q"]) -> Bool[np.ndarray, " n"]:
    """Rows that were answered."""
    return np.all(np.isfinite(y), axis=1)
