"""Whether a target can be of a family: one sentence for each way in which it cannot."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from onehidden.families.amounts import Gamma
from onehidden.families.counts import Poisson
from onehidden.families.family import Family, PerRow, Rows
from onehidden.families.shares import Bernoulli, Binomial, beside
from onehidden.families.softmax import Softmax


def check_target(family: Family, y: Rows, trials: PerRow = None) -> None:
    """Raise ``ValueError`` with one sentence where y (or its trials) is outside the family.

    Parameters
    ----------
    y : (n,) or (n, q); of a binomial the share of successes, of a softmax the rows of ``Softmax.target``.
    trials : of a binomial, whole numbers from one on.
    """
    y = np.asarray(y)
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"the {family.name} family needs numbers, and y holds {_kind(y)}: "
            "labels are for OneHiddenClassifier"
        )
    y = y.astype(float)
    _refuse(~np.isfinite(y), y, "y must be finite", "leave these rows out")
    if trials is not None:
        _check_trials(family, y, np.asarray(trials, float))
    if isinstance(family, Poisson):
        _refuse(y < 0, y, f"the {family.name} family is for counts, which are not negative")
        other = "gamma is for positive amounts, and an exposure is an offset"
        _refuse(y != np.rint(y), y, f"the {family.name} family is for whole counts", other)
        if np.any(np.all(y == 0, axis=0)):
            raise ValueError("every count is zero: nothing can be learned about their rate")
    elif isinstance(family, Binomial):
        rule = "the binomial family is for shares of successes between 0 and 1"
        _refuse((y < 0) | (y > 1), y, rule, "give successes divided by trials")
        won = beside(None if trials is None else np.asarray(trials, float), y) * y
        rule = "share times trials must be a whole number of successes"
        _refuse(np.abs(won - np.rint(won)) > 1e-6 * np.maximum(won, 1), y, rule)
        _both(y, "success")
    elif isinstance(family, Bernoulli):
        advice = "more labels than two are for OneHiddenClassifier, shares for the binomial family"
        _refuse((y != 0) & (y != 1), y, "the bernoulli family is for 0 and 1", advice)
        _both(y, "1")
    elif isinstance(family, Gamma):
        _refuse(y <= 0, y, "the gamma family is for amounts above zero")
    elif isinstance(family, Softmax):
        _check_classes(family, y)


def classes_of(labels: object) -> tuple[np.ndarray, Float[np.ndarray, "n m"]]:
    """The distinct labels in order, and the rows of ``Softmax.target``: numbers, text or True and False."""
    y = np.asarray(labels)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"labels must be (n,), one a row, got shape {y.shape}")
    if y.dtype.kind == "f":
        _refuse(~np.isfinite(y), y, "labels must be finite", "leave these rows out")
    elif y.dtype.kind not in "biuUSO":
        raise ValueError(f"labels must be numbers or text, and y holds {_kind(y)}")
    if y.dtype.kind == "O":
        # None, NaN and pandas' NA are no labels, and sorting text beside numbers has no meaning.
        missing = np.array([label is None or not _equals_itself(label) for label in y])
        if np.any(missing):
            raise ValueError(f"{missing.sum()} labels are missing: leave these rows out")
        kinds = {_sort(label) for label in y}
        if len(kinds) > 1:
            raise ValueError(f"labels must be of one kind, and y mixes {' and '.join(sorted(kinds))}")
    found, code = np.unique(y, return_inverse=True)
    if len(found) < 2:
        what = f"the one label {found[0]!s}" if len(found) else "no label"
        raise ValueError(f"a classifier needs two classes or more, and y holds {what}")
    return found, Softmax(classes=len(found)).target(code.reshape(-1))


def _equals_itself(label: object) -> bool:
    try:
        return bool(label == label)
    except TypeError:  # pandas' NA has no truth
        return False


def _sort(label: object) -> str:
    return "text" if isinstance(label, str) else "numbers" if np.isscalar(label) else type(label).__name__


def _kind(y: np.ndarray) -> str:
    return "text" if y.dtype.kind in "US" or any(isinstance(v, str) for v in y.flat) else f"{y.dtype} values"


def _refuse(wrong: Bool[np.ndarray, "*rows"], y: np.ndarray, rule: str, advice: str = "") -> None:
    """Name the first of the entries that break a rule, and how many they are."""
    if not np.any(wrong):
        return
    row = int(np.argwhere(wrong)[0, 0])
    others = int(np.sum(wrong)) - 1
    more = f" (and {others} more)" if others else ""
    tail = f"; {advice}" if advice else ""
    raise ValueError(f"{rule}: row {row} is {y[wrong][0]:.6g}{more}{tail}")


def _both(y: np.ndarray, one: str) -> None:
    if np.any(np.all(y == y[:1], axis=0) & ((y[0] == 0) | (y[0] == 1))):
        which = f"no {one}" if np.any(np.all(y == 0, axis=0)) else f"nothing but {one}"
        raise ValueError(f"y holds {which}: two kinds of response are needed to learn what makes them differ")


def _check_trials(family: Family, y: np.ndarray, trials: np.ndarray) -> None:
    if not family.counted:
        raise ValueError(f"trials are for the binomial family, not for {family.name}")
    if trials.shape != y.shape[:1]:
        raise ValueError(f"trials must have one entry for each of the {len(y)} rows, got {trials.shape}")
    wrong = ~np.isfinite(trials) | (trials < 1) | (trials != np.rint(trials))
    _refuse(wrong, trials, "trials must be whole numbers from one on")


def _check_classes(family: Softmax, y: np.ndarray) -> None:
    if y.ndim != 2 or y.shape[1] != family.outputs:
        raise ValueError(f"{family.classes} classes have targets (n, {family.outputs}), got {y.shape}")
    total = y.sum(axis=1)
    wrong = np.any(y < 0, axis=1) | (total > 1 + 1e-9)
    _refuse(wrong, total, "the shares of classes in a row must be between 0 and 1 and sum to one at most")
    absent = [j for j, mass in enumerate([np.sum(1 - total), *np.sum(y, axis=0)]) if mass <= 0]
    if absent:
        raise ValueError(f"class {absent[0]} has no row: a class must be seen to be learned")
