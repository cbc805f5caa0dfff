"""OneHiddenRegressor and OneHiddenClassifier: recover() as scikit-learn estimators."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from onehidden.families import Gaussian
from onehidden.network import OneHiddenNet
from onehidden.options import Options, documented, hinting
from onehidden.recovery.estimating import (
    Estimating,
    WeightedSample,
    logistic_regression,
    must_be_readable,
    plain_fit,
    recovered_on,
    unit_of,
    varying_columns,
)
from onehidden.recovery.prediction import linear_predictor
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import most_units
from onehidden.refused import Refused


class _ScoreParameterAndMethod:
    """``score`` is a parameter (the input model) and, as for every regressor, a method (R squared).

    A data descriptor: assignment keeps the parameter in the instance, reading gives the method, and
    ``get_params`` reads the parameter.
    """

    def __get__(self, instance: RegressorMixin | None, owner: type) -> Any:
        return RegressorMixin.score if instance is None else MethodType(RegressorMixin.score, instance)

    def __set__(self, instance: RegressorMixin, value: object) -> None:
        vars(instance)["score"] = value


@documented
class OneHiddenRegressor(MultiOutputMixin, RegressorMixin, Estimating):
    """Regression by recovering the one-hidden-layer network behind the data.

    Parameters
    ----------
    **options : Options
        One field of ``onehidden.options.Options`` each.

    Attributes
    ----------
    recovery_ : Recovery
        The recovery with status, checks and standard errors.
    network_ : OneHiddenNet
        The recovered network; ``predict`` uses as much of it as held-out rows support.
    notes_ : tuple of str
        Why the answer is not certified, and what was given up for it, a sentence each.
    n_features_in_, feature_names_in_
        As scikit-learn defines them.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.abs(X[:, 0])
    >>> model = oh.OneHiddenRegressor(n_hidden=1, activation="abs", bias=False, random_state=0).fit(X, y)
    >>> model.predict([[-2.0, 1.0]]).round(3).tolist()
    [2.0]
    """

    recovery_: Recovery
    score: Any = _ScoreParameterAndMethod()

    @hinting
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
        random_intercept: bool = False,
        errors: str = "auto",
        verbose: bool = False,
    ) -> None:
        self._take(locals())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``score`` is the input model, not the method.

        Parameters
        ----------
        deep : bool
            As scikit-learn defines it.

        Returns
        -------
        dict
            Values by name.
        """
        return {**super().get_params(deep), "score": vars(self)["score"]}

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> OneHiddenRegressor:
        """Recover the network; a doubtful answer is kept and announced by a ``RecoveryWarning``.

        There is always a model to predict with: constant columns get weight zero, units that the rows
        cannot pay for are left out, and below one unit the fit is ridge regression or the mean.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Inputs.
        y : array_like of shape (n,) or (n, q)
            Target; q outputs share one hidden layer.
        sample_weight : array_like of shape (n,), optional
            A row of weight 2 counts as two rows, one of weight 0 as none.
        groups : array_like of shape (n,), optional
            Labels of rows that share noise, as in ``recover``.
        offset : array_like of shape (n,), optional
            Added to the network's output, as in ``recover``.

        Returns
        -------
        OneHiddenRegressor
            The estimator itself.
        """

        def numbers(target: np.ndarray) -> np.ndarray:
            try:
                target = np.asarray(target, dtype=np.float64)
            except ValueError:
                must_be_readable(X, y, True)
                raise
            if target.ndim == 2 and target.shape[1] == 1:
                warnings.warn("y is a column: its one output is taken", DataConversionWarning, stacklevel=4)
                target = target[:, 0]
            return target

        known = {"groups": groups, "offset": offset}
        rows = self._rows(X, y, sample_weight, numbers, known, y_numeric=True, multi_output=True)
        found, trouble = self._recovered(rows, self._options())
        self._keep(found, X, y)
        self._note(trouble)
        return self

    def _recovered(self, rows: WeightedSample, options: Options) -> tuple[Recovery, list[str]]:
        """The best that these rows allow, and what had to be given up for it."""
        n, d = rows.X.shape
        columns, hidden, trouble = varying_columns(rows.X), options.hidden, []
        still = np.atleast_1d(np.ptp(rows.y, axis=0) <= 1e-13 * np.max(np.abs(rows.y), axis=0))
        if np.any(still):
            reason = "y is constant, and so is the model"
            if not np.all(still):
                reason = f"output {int(np.argmax(still))} of y is constant: every output has ridge regression"
            return plain_fit(rows, columns, reason), trouble
        if len(columns) == 0:
            return plain_fit(rows, columns, "no column of X varies: the model is the mean of y"), trouble
        form = unit_of(rows, columns, options, None if rows.y.ndim == 1 else rows.y.shape[1])
        numbers = n * form.q
        most = most_units(form, numbers)
        if most < 1:
            plain = options.family in (None, Gaussian.name)
            instead = ", so ridge regression stands in" if plain else f" behind the {options.family} family"
            reason = (
                f"{n} rows cannot determine the {form.freedom} parameters of one unit of {len(columns)} "
                f"inputs{instead}: bring at least {4 * form.freedom} rows"
            )
            if not plain:
                raise ValueError(reason)
            return plain_fit(rows, columns, reason), trouble
        if len(columns) < d:
            left_out = ", ".join(str(j) for j in sorted(set(range(d)) - set(columns.tolist()))[:8])
            trouble.append(f"constant columns have weight zero: {left_out}")
        if hidden is not None and hidden > most:
            trouble.append(f"{n} rows pay for {most} of the {hidden} units asked for")
            hidden = most
        if hidden is None and numbers <= 4 * form.freedom:
            hidden = 1  # what choosing the width would come to, at a higher price
        if options.start == "auto" and numbers < 4 * form.freedom:
            options = replace(options, start="random")  # so few rows certify nothing: no schedule is needed
        if options.score == "auto" and (n < 300 or rows.repeated):
            options = replace(options, score="gaussian")  # few or repeated rows estimate no other input model
        return recovered_on(rows, columns, replace(options, hidden=hidden)), trouble

    def predict(self, X: npt.ArrayLike, offset: npt.ArrayLike | None = None) -> np.ndarray:
        """Predict y by the network, or by what did no worse than ridge regression on rows left out.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows.
        offset : array_like of shape (m,), optional
            Added to the network's output.

        Returns
        -------
        ndarray of shape (m,) or (m, q)
            The mean of y at each row.
        """
        matrix = self._inputs(X)
        return self.recovery_.predict(matrix, offset)

    def predict_interval(
        self,
        X: npt.ArrayLike,
        level: float = 0.95,
        of: str = "mean",
        offset: npt.ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals of the mean of y, or of a new observation, at each row.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows.
        level : float
            Coverage of each interval.
        of : {"mean", "observation"}
            "observation" adds the noise.
        offset : array_like of shape (m,), optional
            Added to the network's output.

        Returns
        -------
        lower, upper : ndarray of shape (m,) or (m, q)
            The ends of the intervals.
        """
        matrix = self._inputs(X)
        return self.recovery_.predict_interval(matrix, level, of, offset)


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
    plain_ : estimator or None
        The logistic regression of scikit-learn that stands in, of the numbers of the labels, else None.

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

    classes_: np.ndarray

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

        def codes(target: np.ndarray) -> np.ndarray:
            check_classification_targets(target)
            self.classes_, code = np.unique(target, return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"a classifier needs two classes, got one class: every label is {self.classes_[0]!r}"
                )
            return code.astype(float)

        rows = self._rows(X, y, sample_weight, codes, {"groups": groups})
        self.recovery_: Recovery | None = None
        self.network_: OneHiddenNet | None = None
        self.plain_: Any = None
        try:
            self._keep(self._recovered(rows, self._options()), X, y, classes=tuple(self.classes_.tolist()))
            self._note([])
        except Refused as reason:
            self.plain_ = logistic_regression(rows)
            self._note([f"{reason}: logistic regression stands in"])
        return self

    def _recovered(self, rows: WeightedSample, options: Options) -> Recovery:
        """The network; ``Refused`` with the reason why there is none."""
        columns, outputs = varying_columns(rows.X), len(self.classes_) - 1
        if len(columns) == 0 or len(np.unique(rows.y)) <= outputs:
            raise Refused("no column varies, or a class has no row")
        form, hidden = unit_of(rows, columns, options, outputs), options.hidden
        numbers = len(rows.y) * outputs
        most = most_units(form, numbers)
        if most < 1:
            raise Refused(f"{len(rows.y)} rows cannot determine one unit")
        if hidden is None and numbers < 20 * form.freedom:
            hidden = 1  # fewer than ten rows per parameter of two units determine no width
        hidden = hidden if hidden is None else min(hidden, most)
        return recovered_on(rows, columns, replace(options, hidden=hidden, family="softmax"))

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
        if self.recovery_ is None:
            odds = np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))
            odds = odds - odds[:, :1]
            return odds[:, 1] if len(self.classes_) == 2 else odds
        eta = linear_predictor(self.recovery_, self._inputs(X))
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
        matrix = self._inputs(X)
        if self.recovery_ is None:
            found = np.zeros((len(matrix), len(self.classes_)))  # zero for a class without rows
            found[:, self.plain_.classes_.astype(int)] = self.plain_.predict_proba(matrix)
            return found
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
