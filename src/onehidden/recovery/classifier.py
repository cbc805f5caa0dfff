"""OneHiddenClassifier: labels by recovering the network behind their log-odds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from onehidden.data.arrays import must_be_aligned
from onehidden.network import OneHiddenNet
from onehidden.options import Options, documented, hinting
from onehidden.recovery.estimating import (
    Estimating,
    WeightedSample,
    canonical_rows,
    checked_weight,
    no_finding,
    rank,
    validated,
    varying_columns,
    with_all_columns,
)
from onehidden.recovery.prediction import linear_predictor
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import most_units, recover_sample
from onehidden.recovery.target import names_of
from onehidden.refused import Refused


@documented
class OneHiddenClassifier(ClassifierMixin, Estimating):
    """Classification by recovering the one-hidden-layer network behind the log-odds of the labels.

    Two classes are a Bernoulli family, more a softmax over one hidden layer; the log-odds are against the
    first label. Where the rows cannot pay for a unit, or separate the labels, logistic regression stands in.

    Parameters
    ----------
    **options : Options
        One field of ``onehidden.options.Options`` each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels in order.
    recovery_ : Recovery or None
        The recovery; None where logistic regression stands in.
    network_ : OneHiddenNet or None
        Its network, whose outputs are log-odds; None likewise.
    notes_ : tuple of str
        Why the answer is not certified, or why there is none.
    plain_ : LogisticFallback or None
        The logistic regression that stands in, else None.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> labels = np.where(np.abs(X[:, 0]) + 0.5 * rng.logistic(size=500) > 1, "far", "near")
    >>> model = oh.OneHiddenClassifier(n_hidden=1, activation="abs", bias=False, random_state=0)
    >>> model.fit(X, labels).predict([[3.0, 0.0], [0.0, 0.0]]).tolist()
    ['far', 'near']
    """

    @hinting
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
        self._take(locals())

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> OneHiddenClassifier:
        """Recover the network; a doubtful answer is kept and announced by a ``RecoveryWarning``.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs.
        y : array_like of shape (n,)
            Labels.
        sample_weight : array_like of shape (n,), optional
            A row of weight 2 counts as two rows, one of weight 0 as none.
        groups : array_like of shape (n,), optional
            Labels of rows that belong together, as in ``recover``.

        Returns
        -------
        OneHiddenClassifier
            The estimator itself.
        """
        must_be_aligned(X, y)
        if y is None:
            matrix, target = validated(self, X, y, dtype=np.float64)  # which refuses it
        matrix, target = self._read(X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(target)
        self.classes_, code = np.unique(target, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"a classifier needs two classes, got one class: every label is {self.classes_[0]!r}"
            )
        weight, options = checked_weight(sample_weight, matrix), self._options()
        self.recovery_: Recovery | None = None
        self.network_: OneHiddenNet | None = None
        self.plain_: Any = None
        rows = canonical_rows(matrix, code.astype(float), weight)
        code = rows.y.astype(int)
        trouble = self._recovered(rows, options, rows.of_rows(groups, "groups", len(matrix)))
        if self.recovery_ is not None:
            named = {**self.recovery_.options, **names_of(X, y)}
            self.recovery_ = replace(self.recovery_, options=named)
        else:
            self.plain_ = LogisticFallback.fitted(rows.X, code, rows.weight, len(self.classes_))
        self._note([trouble] if trouble else [], self.recovery_ is not None and no_finding(self.recovery_))
        return self

    def _recovered(self, rows: WeightedSample, options: Options, groups: np.ndarray | None) -> str:
        """Fit the network; the reason why it is doubtful, or why there is none."""
        X, code, weight = rows.X, rows.y.astype(int), rows.weight
        outputs, columns, d = len(self.classes_) - 1, varying_columns(X), X.shape[1]
        X = X[:, columns]
        if X.shape[1] == 0 or len(np.unique(code)) <= outputs:
            return "no column varies, or a class has no row: logistic regression stands in"
        form = replace(options, hidden=1).form(max(rank(X), 1), outputs)
        most, hidden = most_units(form, len(X) * outputs), options.hidden
        if most < 1:
            return f"{len(X)} rows cannot determine one unit: logistic regression stands in"
        if hidden is None and len(X) * outputs < 20 * form.freedom:
            hidden = 1  # fewer than ten rows per parameter of two units determine no width
        hidden = hidden if hidden is None else min(hidden, most)
        options = replace(options, hidden=hidden, family="softmax")
        try:
            found = recover_sample(X, code, weight, rows.place, options, groups)
        except Refused as reason:
            return f"{reason}: logistic regression stands in"
        plain = LogisticFallback.fitted(X, code, weight, outputs + 1)
        if not found.loss <= plain.loss(X, code, weight):
            return "the network predicts no better than logistic regression, which stands in"
        found = with_all_columns(found, columns, d)
        self.recovery_ = replace(found, feature_names=self._names(d), classes=tuple(self.classes_.tolist()))
        self.network_ = self.recovery_.network
        return "" if found.converged else f"the answer is {found.status}: {found.message}"

    def decision_function(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute the log-odds of the labels.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,) or (m, n_classes)
            Log-odds against the first label; of more than two labels a column each, up to a constant.
        """
        check_is_fitted(self)
        matrix = self._read(X, dtype=np.float64, reset=False)
        if self.recovery_ is None:
            return self.plain_.decision_function(matrix)
        eta = linear_predictor(self.recovery_, matrix)
        return eta if eta.ndim == 1 else np.column_stack([np.zeros(len(eta)), eta])

    def predict_proba(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute the probabilities of the labels.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m, n_classes)
            Probabilities; rows sum to one.
        """
        check_is_fitted(self)
        matrix = self._read(X, dtype=np.float64, reset=False)
        if self.recovery_ is None:
            return self.plain_.predict_proba(matrix)
        found = self.recovery_.predict(matrix).reshape(len(matrix), -1)
        return np.column_stack([1 - found.sum(axis=1), found])

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Predict the label of the largest probability.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
            The labels.
        """
        largest = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[largest]


@dataclass(frozen=True)
class LogisticFallback:
    """Ridge logistic regression on standardised columns; shares of the classes where only one has rows."""

    model: Any  # of scikit-learn, or None
    present: np.ndarray  # numbers of the classes that have rows
    classes: int  # how many there are

    @classmethod
    def fitted(
        cls, X: np.ndarray, code: np.ndarray, weight: np.ndarray | None, classes: int
    ) -> LogisticFallback:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        present = np.unique(code)
        if len(present) < 2:
            return cls(None, present, classes)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        counts = {} if weight is None else {"logisticregression__sample_weight": weight}
        return cls(model.fit(X, code, **counts), present, classes)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """(m, classes), zero for a class without rows."""
        found = np.zeros((len(X), self.classes))
        found[:, self.present] = 1.0 if self.model is None else self.model.predict_proba(X)
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
