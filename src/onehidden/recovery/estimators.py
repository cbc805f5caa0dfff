"""OneHiddenRegressor and OneHiddenClassifier: recover() as scikit-learn estimators."""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin

from onehidden.options import documented, hinting
from onehidden.recovery.estimating import Estimating
from onehidden.recovery.prediction import linear_predictor
from onehidden.recovery.record import Recovery


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
        structure: object = None,
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
        cannot pay for are left out, and below one unit the fit is a penalised linear model.

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
        return self._fit(X, y, sample_weight, groups=groups, offset=offset)

    def predict(self, X: npt.ArrayLike, offset: npt.ArrayLike | None = None) -> np.ndarray:
        matrix = self._inputs(X)
        return self.recovery_.predict(matrix, offset)

    predict.__doc__ = Recovery.predict.__doc__

    def predict_interval(
        self,
        X: npt.ArrayLike,
        level: float = 0.95,
        of: str = "mean",
        offset: npt.ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        matrix = self._inputs(X)
        return self.recovery_.predict_interval(matrix, level, of, offset)

    predict_interval.__doc__ = Recovery.predict_interval.__doc__


@documented
class OneHiddenClassifier(ClassifierMixin, Estimating):
    """Classification by recovering the one-hidden-layer network behind the log-odds of the labels.

    Two classes are a Bernoulli family, more a softmax over one hidden layer; the log-odds are against the
    first label. Where the rows cannot pay for a unit a penalised linear model stands in.

    Parameters
    ----------
    **options : Options
        One field of ``onehidden.options.Options`` each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels in order, of rows that count.
    recovery_ : Recovery
        The recovery, with the log-odds for outputs.
    network_ : OneHiddenNet
        The recovered network; ``predict`` uses as much of it as held-out rows support.
    notes_ : tuple of str
        Why the answer is not certified, and what was given up for it, a sentence each.

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
        structure: object = None,
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
        self._fit(X, y, sample_weight, groups=groups)
        self.classes_ = np.array(self.recovery_.classes)
        return self

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
        matrix = self._inputs(X)
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
        matrix = self._inputs(X)
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
