"""OneHiddenClassifier: labels by recovering the network behind their log-odds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from onehidden.network import OneHiddenNet
from onehidden.recovery.estimating import checked_weight, one_unit, plain_seed, validated
from onehidden.recovery.fallback import (
    affordable_units,
    canonical_rows,
    rank,
    varying_columns,
    with_all_columns,
)
from onehidden.recovery.options import checked_options
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import recover
from onehidden.refused import Refused

_FEW = 10  # rows a parameter below which one unit is looked for where the width is not given
_RIDGE = 1.0  # penalty on standardised columns of the logistic regression that stands in


class OneHiddenClassifier(ClassifierMixin, BaseEstimator):
    """Classification by recovering the one-hidden-layer network behind the log-odds of the labels.

    Two classes are a Bernoulli family, more a softmax over one hidden layer; the log-odds are against the
    first label. Where the rows cannot pay for a unit, or separate the labels, logistic regression stands in.

    Parameters
    ----------
    n_hidden : number of units; chosen from the data when None.
    activation, bias, start, max_seconds, linear, errors : as in ``recover``.
    random_state : seed of the starts.
    verbose : whether progress is printed.

    Attributes
    ----------
    classes_ : the labels in order.
    recovery_ : the ``Recovery``, None where logistic regression stands in.
    network_ : its network, whose outputs are log-odds; None likewise.
    plain_ : the logistic regression that stands in, else None.
    """

    def __init__(
        self,
        n_hidden: int | None = None,
        activation: str = "relu",
        bias: bool = True,
        start: str = "auto",
        random_state: object = None,
        max_seconds: float | None = None,
        linear: bool = False,
        errors: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_hidden = n_hidden
        self.activation = activation
        self.bias = bias
        self.start = start
        self.random_state = random_state
        self.max_seconds = max_seconds
        self.linear = linear
        self.errors = errors
        self.verbose = verbose

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> OneHiddenClassifier:
        """Recover the network; a doubtful answer is kept and announced by a ``ConvergenceWarning``."""
        matrix, target = validated(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(target)
        self.classes_, code = np.unique(target, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs two classes, got one class: every label is {self.classes_[0]!r}"
            )
        weight, seed = checked_weight(sample_weight, matrix), plain_seed(self.random_state)
        self.recovery_: Recovery | None = None
        self.network_: OneHiddenNet | None = None
        self.plain_: Any = None
        rows = canonical_rows(matrix, code.astype(float), weight, max(seed, 0))
        code = rows.y.astype(int)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(matrix.shape[1])])
        trouble = self._recovered(rows.X, code, rows.weight, seed, tuple(str(name) for name in names))
        if self.recovery_ is None:
            self.plain_ = StandIn.fitted(rows.X, code, rows.weight, len(self.classes_))
        if trouble:
            warnings.warn(trouble, ConvergenceWarning, stacklevel=2)
        return self

    def _recovered(
        self, X: np.ndarray, code: np.ndarray, weight: np.ndarray | None, seed: int, names: tuple[str, ...]
    ) -> str:
        """Fit the network; the reason why it is doubtful, or why there is none."""
        checked_options(
            hidden=self.n_hidden, activation=self.activation, bias=self.bias, start=self.start, seed=seed,
            max_seconds=self.max_seconds, linear=self.linear, errors=self.errors,
        )  # fmt: skip
        outputs, columns, d = len(self.classes_) - 1, varying_columns(X), X.shape[1]
        X = X[:, columns]
        if X.shape[1] == 0 or len(np.unique(code)) <= outputs:
            return "no column varies, or a class has no row: logistic regression stands in"
        form = one_unit(self.activation, self.bias, rank(X), self.linear, outputs)
        affordable, hidden = affordable_units(form, len(X) * outputs), self.n_hidden
        if affordable < 1:
            return f"{len(X)} rows cannot determine one unit: logistic regression stands in"
        if hidden is None and len(X) * outputs < _FEW * 2 * form.freedom:
            hidden = 1
        hidden = hidden if hidden is None else min(hidden, affordable)
        try:
            found: Recovery = recover(
                X, code, hidden, family="softmax", activation=self.activation, bias=self.bias,
                start=self.start, seed=seed, max_seconds=self.max_seconds,
                linear=self.linear,
                errors=self.errors, progress=self.verbose, sample_weight=weight,
            )  # fmt: skip
        except Refused as reason:
            return f"{reason}: logistic regression stands in"
        plain = StandIn.fitted(X, code, weight, outputs + 1)
        if not found.loss <= plain.loss(X, code, weight):
            return "the network predicts no better than logistic regression, which stands in"
        found = with_all_columns(found, columns, d)
        self.recovery_ = replace(found, feature_names=names, classes=tuple(self.classes_.tolist()))
        self.network_ = self.recovery_.network
        return "" if found.converged else f"the answer is {found.status}: {found.message}"

    def decision_function(self, X: npt.ArrayLike) -> np.ndarray:
        """Log-odds against the first label, (m,) of two classes; of more, (m, classes) up to a constant."""
        check_is_fitted(self)
        matrix = validated(self, X, dtype=np.float64, reset=False)
        if self.network_ is None:
            return self.plain_.decision_function(matrix)
        eta = self.network_.predict(matrix)
        return eta if eta.ndim == 1 else np.column_stack([np.zeros(len(eta)), eta])

    def predict_proba(self, X: npt.ArrayLike) -> np.ndarray:
        """(m, classes) probabilities."""
        check_is_fitted(self)
        matrix = validated(self, X, dtype=np.float64, reset=False)
        if self.recovery_ is None:
            return self.plain_.predict_proba(matrix)
        found = self.recovery_.predict(matrix).reshape(len(matrix), -1)
        return np.column_stack([1 - found.sum(axis=1), found])

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """The label of the largest probability."""
        largest = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[largest]


@dataclass(frozen=True)
class StandIn:
    """Ridge logistic regression on standardised columns; shares of the classes where only one has rows.

    Attributes
    ----------
    model : of scikit-learn, or None. seen : the numbers of the classes that have rows. classes : of all.
    """

    model: Any
    seen: np.ndarray
    classes: int

    @classmethod
    def fitted(cls, X: np.ndarray, code: np.ndarray, weight: np.ndarray | None, classes: int) -> StandIn:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        seen = np.unique(code)
        if len(seen) < 2:
            return cls(None, seen, classes)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=1 / _RIDGE, max_iter=1000))
        counts = {} if weight is None else {"logisticregression__sample_weight": weight}
        return cls(model.fit(X, code, **counts), seen, classes)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """(m, classes), zero for a class without rows."""
        found = np.zeros((len(X), self.classes))
        found[:, self.seen] = 1.0 if self.model is None else self.model.predict_proba(X)
        return found

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Log-odds against the first class, (m,) of two; of more those of all classes."""
        odds = np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))
        odds = odds - odds[:, :1]
        return odds[:, 1] if self.classes == 2 else odds

    def loss(self, X: np.ndarray, code: np.ndarray, weight: np.ndarray | None) -> float:
        """Mean deviance, per row and output."""
        own = self.predict_proba(X)[np.arange(len(code)), code]
        deviance = -2 * np.log(np.maximum(own, np.finfo(float).tiny))
        return float(np.average(deviance, weights=weight)) / (self.classes - 1)
