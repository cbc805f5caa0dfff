"""OneHiddenRegressor: recover() as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onehidden.recovery.recover import recover


class _ScoreParameterAndMethod:
    """``score`` is a parameter (the input model) and, as for every regressor, a method (R squared).

    A data descriptor: assignment keeps the parameter in the instance, reading gives the method, and
    ``get_params`` reads the parameter.
    """

    def __get__(self, instance: Any, owner: type) -> Any:
        return RegressorMixin.score if instance is None else partial(RegressorMixin.score, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)["score"] = value


class OneHiddenRegressor(RegressorMixin, BaseEstimator):
    """Regression by recovering the one-hidden-layer network behind the data.

    Parameters
    ----------
    n_hidden : number of units; chosen from the data when None.
    activation, bias, score, start, max_seconds : as in ``recover``.
    random_state : seed of the starts.

    Attributes
    ----------
    recovery_ : the ``Recovery`` with status, checks and standard errors.
    network_ : the recovered ``OneHiddenNet``.
    """

    score: Any = _ScoreParameterAndMethod()

    def __init__(
        self,
        n_hidden: int | None = None,
        activation: str = "relu",
        bias: bool = True,
        score: str = "auto",
        start: str = "auto",
        random_state: Any = None,
        max_seconds: float | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.bias = bias
        self.score = score
        self.start = start
        self.random_state = random_state
        self.max_seconds = max_seconds

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``score`` is the input model, not the method."""
        return {**super().get_params(deep), "score": vars(self)["score"]}

    def fit(self, X: Any, y: Any) -> OneHiddenRegressor:
        """Recover the network; a doubtful answer is kept and announced by a ``ConvergenceWarning``."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = 0 if seed is None else int(check_random_state(seed).randint(2**31 - 1))
        self.recovery_ = recover(
            X,
            y,
            self.n_hidden,
            activation=self.activation,
            bias=self.bias,
            score=vars(self)["score"],
            start=self.start,
            seed=int(seed),
            max_seconds=self.max_seconds,
        )
        self.network_ = self.recovery_.network
        if not self.recovery_.converged:
            warnings.warn(
                f"the answer is {self.recovery_.status}: {self.recovery_.message}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The recovered network at the rows of X."""
        check_is_fitted(self)
        return self.network_.predict(validate_data(self, X, dtype=np.float64, reset=False))
