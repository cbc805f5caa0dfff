"""What both scikit-learn estimators share: validation, seeds, and how many units the rows can pay for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from onehidden import activations
from onehidden.fit.form import Form

# scikit-learn has no annotations, and a checker takes the defaults' types for those of X and y.
validated: Callable[..., Any] = validate_data


def plain_seed(random_state: object) -> int:
    """A seed from what scikit-learn calls a random state."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def checked_weight(sample_weight: object, X: np.ndarray) -> np.ndarray | None:
    """(n,) weights that are not negative, not all zero; None when None."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weight > 0):  # scikit-learn before 1.8 lets it through
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    return weight


def one_unit(activation: str, bias: bool, d: int, linear: bool, outputs: int | None) -> Form:
    """The form of one unit of d inputs; of any activation where it is to be chosen."""
    g = activations.get("relu" if activation == "auto" else activation)
    return Form(g, max(d, 1), 1, bool(bias), True, bool(linear), outputs=outputs)
