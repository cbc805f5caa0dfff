"""Noticing what a target is: 0/1, counts or labels given without a family.

Counts differ from labels by a law that every mixture of Poisson laws obeys, and so every regression of
counts whatever the inputs do: (j + 1) P(j + 1) / P(j) never falls. It predicts from the last two values
how many rows lie one beyond the largest; labels and scales stop where that number is large. The
same mixtures have a variance of at least their mean. Counts so large that a normal law serves are left alone:
years, prices, ages and readings in whole numbers (25 to 346 in the diabetes table) are no counts here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LABELLED = "softmax"


@dataclass(frozen=True)
class Notice:
    """A family that suits a target better than normal noise, and a sentence for a terminal."""

    family: str  # its name; "softmax" for labels, which the classifier takes as they are
    sentence: str


def notice(y: object) -> Notice | None:
    """What a target of numbers or text seems to be; None for an ordinary amount.

    Of several outputs (n, q) all must be of the same kind.
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        return _of_several(y)
    y = y.reshape(-1)
    if len(y) == 0:
        return None
    if y.dtype.kind in "US" or (y.dtype.kind == "O" and any(isinstance(value, str) for value in y)):
        kinds = len({str(value) for value in y})
        return Notice(LABELLED, f"y holds text, {kinds} different labels: use OneHiddenClassifier.")
    if y.dtype.kind == "b":
        return _binary("y holds True and False only")
    if y.dtype.kind not in "iuf" or not np.all(np.isfinite(y)):
        return None
    if np.any(y != np.rint(y)):
        return None
    value, rows = np.unique(y.astype(float), return_counts=True)
    if len(value) == 2 and value[0] == 0 and value[1] == 1:
        return _binary("y holds 0 and 1 only")
    if len(y) < 20 or len(value) < 2:
        return None
    if len(value) == 2:
        one, other = value
        said = f"y takes two values only, {one:g} and {other:g}: if they are labels, use OneHiddenClassifier."
        return Notice(LABELLED, said)
    last, gaps = int(value[-1]), np.diff(value) != 1
    if value[0] in (0, 1) and len(value) <= 20 and not np.any(gaps) and _stops(last, rows):
        said = (
            f"y holds the whole numbers {value[0]:g} to {last} and stops there: "
            "if they are labels, use OneHiddenClassifier."
        )
        return Notice(LABELLED, said)
    return _counts(value, rows)


def _counts(value: np.ndarray, rows: np.ndarray) -> Notice | None:
    """Whole numbers from 0 on that can be counts and are small enough for that to matter."""
    n = int(rows.sum())
    if value[0] != 0 or len(value) > n / 4 or _stops(int(value[-1]), rows):
        return None
    share = rows / n
    mean = float(share @ value)
    variance = float(share @ (value - mean) ** 2)
    if variance < mean * (1 - 3 * np.sqrt(2 / n)):  # the standard error of the ratio for Poisson counts
        return None
    # Half of the positive values are below 30, where a normal law is not near, and so are most kinds of them.
    above = np.cumsum(rows[1:]) / rows[1:].sum()
    middle = value[1:][np.searchsorted(above, 0.5)]
    seen = np.count_nonzero(value <= middle)
    if middle >= 30 or seen < 0.8 * (middle + 1):
        return None
    said = (
        f"y holds whole numbers from 0 to {value[-1]:g} with mean {mean:.3g}: if they are counts, "
        'family="poisson" knows that their noise grows with their mean.'
    )
    return Notice("poisson", said)


def _stops(last: int, rows: np.ndarray) -> bool:
    """Whether counts would go on beyond the last value j: P(j + 1) >= P(j)^2 j / ((j + 1) P(j - 1)).

    Where 8 rows are expected there, none is seen once in e^8 = 3000 times. With fewer than 10 rows at the
    last value the expectation is too rough.
    """
    expected = rows[-1] ** 2 / rows[-2] * last / (last + 1)
    return bool(rows[-1] >= 10 and expected >= 8)


def _binary(what: str) -> Notice:
    said = f'{what}: family="bernoulli" (or OneHiddenClassifier) models their probability.'
    return Notice("bernoulli", said)


def _of_several(y: np.ndarray) -> Notice | None:
    """Of several outputs: one class in each row, or what all of them are alike."""
    if y.dtype.kind in "biuf" and np.all((y == 0) | (y == 1)):
        if np.all(y.sum(axis=1) == 1):
            said = "y marks one column in each row, like classes: give the labels to OneHiddenClassifier."
            return Notice(LABELLED, said)
        return _binary("y holds 0 and 1 only")
    each = [notice(y[:, j]) for j in range(y.shape[1])]
    first = each[0]
    alike = first is not None and all(one is not None and one.family == first.family for one in each)
    return first if alike else None
