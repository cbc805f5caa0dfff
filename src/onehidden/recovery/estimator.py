"""OneHiddenRegressor: recover() as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from onehidden.data.arrays import must_be_aligned
from onehidden.families import Gaussian
from onehidden.options import Options, documented, hinting
from onehidden.recovery.estimating import (
    Estimating,
    WeightedSample,
    canonical_rows,
    checked_weight,
    must_be_readable,
    no_finding,
    plain_fit,
    rank,
    validated,
    varying_columns,
    with_all_columns,
)
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import most_units, recover_sample
from onehidden.recovery.target import names_of


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
        must_be_aligned(X, y)
        if y is None:
            matrix, target = validated(self, X, y, dtype=np.float64)  # which refuses it
        matrix, target = self._read(
            X, y, dtype=np.float64, y_numeric=True, multi_output=True, ensure_min_samples=2
        )
        try:
            target = np.asarray(target, dtype=np.float64)
        except ValueError:
            must_be_readable(X, y, True)
            raise
        if target.ndim == 2 and target.shape[1] == 1:
            target = target[:, 0]
            warnings.warn("y is a column: its one output is taken", DataConversionWarning, stacklevel=2)
        weight, options = checked_weight(sample_weight, matrix), self._options()
        rows = canonical_rows(matrix, target, weight)
        n = len(matrix)
        known = {
            name: rows.of_rows(values, name, n) for name, values in (("groups", groups), ("offset", offset))
        }
        found, trouble = self._recovered(rows, varying_columns(rows.X), options, **known)
        named = {**found.options, **names_of(X, y)}
        self.recovery_ = replace(found, feature_names=self._names(matrix.shape[1]), options=named)
        self.network_ = self.recovery_.network
        quiet = no_finding(self.recovery_) and not trouble
        if not self.recovery_.converged:
            trouble.insert(0, f"the answer is {self.recovery_.status}: {self.recovery_.message}")
            said = "" if found.prediction is None else found.prediction.message
            trouble += [said] if said not in ("", found.message) else []
        self._note(trouble, quiet)
        return self

    def _recovered(
        self,
        rows: WeightedSample,
        columns: np.ndarray,
        options: Options,
        groups: np.ndarray | None,
        offset: np.ndarray | None,
    ) -> tuple[Recovery, list[str]]:
        """The best that these rows allow, and what had to be given up for it."""
        n, d = rows.X.shape
        hidden, trouble = options.hidden, []
        outputs = None if rows.y.ndim == 1 else rows.y.shape[1]
        form = replace(options, hidden=1).form(max(rank(rows.X[:, columns]), 1), outputs)
        numbers = n * form.q
        most = most_units(form, numbers)
        plain = options.family in (None, Gaussian.name)
        still = np.atleast_1d(np.ptp(rows.y, axis=0) <= 1e-13 * np.max(np.abs(rows.y), axis=0))
        if np.any(still):
            reason = "y is constant, and so is the model"
            if not np.all(still):
                reason = f"output {int(np.argmax(still))} of y is constant: every output has ridge regression"
            return plain_fit(rows, columns, reason), trouble
        if len(columns) == 0:
            return plain_fit(rows, columns, "no column of X varies: the model is the mean of y"), trouble
        if most < 1 and not plain:
            raise ValueError(
                f"{n} rows cannot determine the {form.freedom} parameters of one unit of {len(columns)} "
                f"inputs behind the {options.family} family: bring at least {4 * form.freedom} rows"
            )
        if most < 1:
            reason = (
                f"{n} rows cannot determine the {form.freedom} parameters of one unit of {len(columns)} "
                f"inputs, so ridge regression stands in: bring at least {4 * form.freedom} rows"
            )
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
        options = replace(options, hidden=hidden)
        found = recover_sample(rows.X[:, columns], rows.y, rows.weight, rows.place, options, groups, offset)
        return with_all_columns(found, columns, d), trouble

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
        check_is_fitted(self)
        return self.recovery_.predict(self._read(X, dtype=np.float64, reset=False), offset)

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
        check_is_fitted(self)
        rows = self._read(X, dtype=np.float64, reset=False)
        return self.recovery_.predict_interval(rows, level, of, offset)
