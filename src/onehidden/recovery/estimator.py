"""OneHiddenRegressor: recover() as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from onehidden.data.arrays import must_be_aligned
from onehidden.families import Gaussian
from onehidden.recovery.estimating import checked_weight, one_unit, plain_seed, validated
from onehidden.recovery.fallback import (
    Rows,
    affordable_units,
    canonical_rows,
    plain_fit,
    rank,
    varying_columns,
    with_all_columns,
)
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import recover

_FEW = 300  # rows below which a fitted input model is worse than the Gaussian


class _ScoreParameterAndMethod:
    """``score`` is a parameter (the input model) and, as for every regressor, a method (R squared).

    A data descriptor: assignment keeps the parameter in the instance, reading gives the method, and
    ``get_params`` reads the parameter.
    """

    def __get__(self, instance: RegressorMixin | None, owner: type) -> Any:
        return RegressorMixin.score if instance is None else MethodType(RegressorMixin.score, instance)

    def __set__(self, instance: RegressorMixin, value: object) -> None:
        vars(instance)["score"] = value


class OneHiddenRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Regression by recovering the one-hidden-layer network behind the data.

    Parameters
    ----------
    n_hidden : number of units; chosen from the data when None.
    activation, bias, score, start, max_seconds, family, link, linear, errors : as in ``recover``.
    random_state : seed of the starts.
    verbose : whether progress is printed.

    Attributes
    ----------
    recovery_ : the ``Recovery`` with status, checks and standard errors.
    network_ : the recovered ``OneHiddenNet``; ``predict`` uses as much of it as rows left out speak for.
    n_features_in_, feature_names_in_ : as scikit-learn defines them.
    """

    score: Any = _ScoreParameterAndMethod()

    def __init__(
        self,
        n_hidden: int | None = None,
        activation: str = "relu",
        bias: bool = True,
        score: str = "auto",
        start: str = "auto",
        random_state: object = None,
        max_seconds: float | None = None,
        family: str | None = None,
        link: str | None = None,
        linear: bool = False,
        errors: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.bias = bias
        self.score = score
        self.start = start
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.family = family
        self.link = link
        self.linear = linear
        self.errors = errors
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``score`` is the input model, not the method."""
        return {**super().get_params(deep), "score": vars(self)["score"]}

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> OneHiddenRegressor:
        """Recover the network; a doubtful answer is kept and announced by a ``ConvergenceWarning``.

        There is always a model to predict with: constant columns get weight zero, units that the rows
        cannot pay for are left out, and below one unit the fit is ridge regression or the mean.

        Parameters
        ----------
        X : (n, d) array or data frame.
        y : (n,) target, or (n, q) of several outputs over one hidden layer.
        sample_weight : (n,) weights; a row of weight 2 counts as two rows, one of weight 0 as none.
        """
        must_be_aligned(X, y)
        matrix, target = validated(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=True, ensure_min_samples=2
        )
        target = np.asarray(target, dtype=np.float64)
        if target.ndim == 2 and target.shape[1] == 1:
            target = target[:, 0]
            warnings.warn("y is a column: its one output is taken", DataConversionWarning, stacklevel=2)
        weight, seed = checked_weight(sample_weight, matrix), plain_seed(self.random_state)
        rows = canonical_rows(matrix, target, weight, max(seed, 0))
        found, trouble = self._recovered(rows, varying_columns(rows.X), seed)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(matrix.shape[1])])
        self.recovery_ = replace(found, feature_names=tuple(str(name) for name in names))
        self.network_ = self.recovery_.network
        if not self.recovery_.converged:
            trouble.insert(0, f"the answer is {self.recovery_.status}: {self.recovery_.message}")
        if trouble:
            warnings.warn("; ".join(trouble), ConvergenceWarning, stacklevel=2)
        return self

    def _recovered(self, rows: Rows, columns: np.ndarray, seed: int) -> tuple[Recovery, list[str]]:
        """The best that these rows allow, and what had to be given up for it."""
        n, d = rows.X.shape
        hidden, start, trouble = self.n_hidden, self.start, []
        outputs = None if rows.y.ndim == 1 else rows.y.shape[1]
        form = one_unit(self.activation, self.bias, rank(rows.X[:, columns]), self.linear, outputs)
        numbers = n * form.q
        affordable = affordable_units(form, numbers)
        plain = self.family in (None, Gaussian.name)
        still = np.atleast_1d(np.ptp(rows.y, axis=0) <= 1e-13 * np.max(np.abs(rows.y), axis=0))
        if np.any(still):
            reason = "y is constant, and so is the model"
            if not np.all(still):
                reason = f"output {int(np.argmax(still))} of y is constant: every output has ridge regression"
            return plain_fit(rows, columns, reason), trouble
        if len(columns) == 0:
            return plain_fit(rows, columns, "no column of X varies: the model is the mean of y"), trouble
        if affordable < 1 and not plain:
            raise ValueError(
                f"{n} rows cannot determine the {form.freedom} parameters of one unit of {len(columns)} "
                f"inputs behind the {self.family} family: bring at least {4 * form.freedom} rows"
            )
        if affordable < 1:
            reason = (
                f"{n} rows cannot determine the {form.freedom} parameters of one unit of {len(columns)} "
                f"inputs, so ridge regression stands in: bring at least {4 * form.freedom} rows"
            )
            return plain_fit(rows, columns, reason), trouble
        if len(columns) < d:
            left_out = ", ".join(str(j) for j in sorted(set(range(d)) - set(columns.tolist()))[:8])
            trouble.append(f"constant columns have weight zero: {left_out}")
        if isinstance(hidden, (int, np.integer)) and hidden > affordable:
            trouble.append(f"{n} rows pay for {affordable} of the {hidden} units asked for")
            hidden = affordable
        if hidden is None and numbers <= 4 * form.freedom:
            hidden = 1  # what choosing the width would come to, without training a scout
        if start == "auto" and numbers < 4 * form.freedom:
            start = "random"  # no answer can be certified here, so a longer race has no end to reach
        score = vars(self)["score"]
        if isinstance(score, str) and score == "auto" and (n < _FEW or rows.repeated):
            score = "gaussian"  # no other input model can be estimated from few rows, or from repeated ones
        found = recover(
            rows.X[:, columns], rows.y, hidden, activation=self.activation, bias=self.bias,
            score=score, start=start, seed=seed, max_seconds=self.max_seconds, sample_weight=rows.weight,
            family=self.family, link=self.link, linear=self.linear, errors=self.errors,
            progress=self.verbose,
        )  # fmt: skip
        if not found.converged and found.prediction is not None:
            trouble.append(found.prediction.message)
        return with_all_columns(found, columns, d), trouble

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """The mean of y at the rows of X: the network, or what did no worse than ridge on rows left out."""
        check_is_fitted(self)
        return self.recovery_.predict(validated(self, X, dtype=np.float64, reset=False))
