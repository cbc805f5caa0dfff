"""What a box answers with: values, probabilities that become log-odds, or labels."""

from __future__ import annotations

import enum

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


def finite(y: Float[np.ndarray, "n q"]) -> Bool[np.ndarray, " n"]:
    """Rows that were answered."""
    return np.all(np.isfinite(y), axis=1)
