"""Noticing what a target is: 0/1, counts or labels that came without a word about their family.

Counts are told from labels by a law that every mixture of Poisson laws obeys, and so every regression of
counts whatever the inputs do: (j + 1) P(j + 1) / P(j) never falls. From the last two values seen it says how
many rows should lie one beyond the largest; labels and scales stop dead where that number is large. The
same mixtures have a variance of at least their mean. Counts so large that a normal law serves are left alone:
years, prices, ages and readings in whole numbers (25 to 346 in the diabetes table) are no counts here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.families.counts import Poisson
from onehidden.families.shares import Bernoulli
from onehidden.families.softmax import Softmax

LABELLED = Softmax.name
LABELS = 20  # whole numbers of more kinds than this are taken for amounts
BEYOND = 8.0  # rows expected beyond the largest value, none seen: e^-8, a chance of 1 in 3000
ENOUGH = 10  # rows at the largest value: with fewer that expectation is too rough
SMALL = 30  # half of the positive counts lie below this; above it a normal law is near
LEAST = 20  # rows from which on whole numbers are called counts or labels


@dataclass(frozen=True)
class Notice:
    """A family that suits a target better than normal noise.

    Attributes
    ----------
    family : its name; "softmax" for labels, which the classifier takes as they are.
    sentence : for a terminal.
    """

    family: str
    sentence: str


def notice(y: object) -> Notice | None:
    """What a target seems to be; None for an ordinary amount.

    Parameters
    ----------
    y : (n,) or (n, q) of numbers or text. Of several outputs all must be of the same kind.
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
    if len(y) < LEAST or len(value) < 2:
        return None
    if len(value) == 2:
        one, other = value
        said = f"y takes two values only, {one:g} and {other:g}: if they are labels, use OneHiddenClassifier."
        return Notice(LABELLED, said)
    last, gaps = int(value[-1]), np.diff(value) != 1
    if value[0] in (0, 1) and len(value) <= LABELS and not np.any(gaps) and _stops(last, rows):
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
    # Half of the positive values are small, and so are most kinds of them: no amounts in hundreds.
    above = np.cumsum(rows[1:]) / rows[1:].sum()
    middle = value[1:][np.searchsorted(above, 0.5)]
    seen = np.count_nonzero(value <= middle)
    if middle >= SMALL or seen < 0.8 * (middle + 1):
        return None
    said = (
        f"y holds whole numbers from 0 to {value[-1]:g} with mean {mean:.3g}: if they are counts, "
        'family="poisson" knows that their noise grows with their mean.'
    )
    return Notice(Poisson.name, said)


def _stops(last: int, rows: np.ndarray) -> bool:
    """Whether counts would go on beyond the last value j: P(j + 1) >= P(j)^2 j / ((j + 1) P(j - 1))."""
    expected = rows[-1] ** 2 / rows[-2] * last / (last + 1)
    return bool(rows[-1] >= ENOUGH and expected >= BEYOND)


def _binary(what: str) -> Notice:
    said = f'{what}: family="bernoulli" (or OneHiddenClassifier) models their probability.'
    return Notice(Bernoulli.name, said)


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
