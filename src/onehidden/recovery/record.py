"""Recovery: what recover() returns, frozen, with everything a reader may doubt."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onehidden.certify.certificate import Alternative, Status
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.groups import GroupedFreedom
from onehidden.certify.units import UnitVerdict
from onehidden.checks import Check
from onehidden.data.table import Table
from onehidden.exports import to_onnx, to_python
from onehidden.families import Family
from onehidden.network import OneHiddenNet
from onehidden.recovery.prediction import (
    Prediction,
    derive,
    input_test,
    linear_predictor,
    mean_slopes,
    predict_interval,
    quantile_of,
)
from onehidden.recovery.stored import save_recovery, to_dict
from onehidden.recovery.target import inputs_of, table_of
from onehidden.run import TraceRecord


@dataclass(frozen=True)
class Recovery:
    """A recovered network with its certificate.

    Attributes
    ----------
    network : OneHiddenNet
        The units in canonical form.
    status : Status
        "exact", "consistent", "approximate", "doubtful" or "not identifiable".
    message : str
        One sentence behind the status.
    converged : bool
        Whether the status is "exact" or "consistent".
    loss : float
        Mean squared residual, in the units of y squared; the mean deviance where y has a family.
    noise_variance : float
        Residual sum of squares over n - (free parameters); a family's dispersion phi. With random intercepts
        the variance of a new row of a new group.
    seconds : float
        Wall-clock time of the call.
    checks : list of Check
        The certificate, one record a check.
    standard_errors : ParameterRecord
        Of every parameter, in canonical form; infinite where the data leave it open.
    trace : list of TraceRecord
        Stage, step, loss relative to var(y) and seconds of the run.
    origin : str
        The start that led here.
    n_samples : int
        Rows that were fitted.
    n_choosing : int
        Other rows, which chose the inputs of sparse units; 0 where none were chosen.
    feature_names, options, versions : tuple, dict, dict
        What is needed to read and repeat the result.
    queries : int
        Rows queried from a black box (``recover_oracle``); 0 when samples were given.
    units : tuple of UnitVerdict
        One record per unit: parameters, standard errors, share of var(y), status, reason.
    alternatives : tuple of Alternative
        Other networks that the data do not rule out, each with how far it is behind.
    freedom : int
        Free parameters; the numbers of all targets less these are the degrees of freedom of intervals.
    left_over : float
        Share of var(y) that the data show to be missed; 0 if none.
    r_squared, linear_r_squared : float
        Share of var(y), or of a family's deviance, that the network and the best linear function explain on
        the rows fitted.
    prediction : Prediction or None
        How ``predict`` computes, and how it does on rows left out; None for the network itself.
    input_mean, input_spread : ndarray of shape (d,)
        Means and standard deviations of the inputs, the units of standardised effects. Empty where they were
        not kept.
    family : Family or None
        The distribution of y given the network's output; None for normal noise.
    classes : tuple
        The labels, where y held labels: the network's outputs are log-odds against the first.
    noise_covariance : ndarray of shape (q, q) or None
        Between several outputs.
    covariance : ndarray of shape (p, p) or None
        Of the free parameters in the order weights, output, bias, linear, intercept; None where there are too
        many.
    undetected : float or ndarray of shape (q,)
        Standard deviation, in units of the output of the network, of what an additional unit too weak to be
        detected adds and the units found cannot make up for; NaN where it is not known. Bands of the mean
        cover such a unit where the number of units was left open.
    error_freedom : ParameterRecord or None
        Degrees of freedom of each standard error where rows came in groups; None where they are
        ``residual_freedom``.
    by_group : GroupedFreedom or None
        What gives those of the mean of y and of other quantities, where rows came in groups.
    group_variance : float
        The part of ``noise_variance`` that rows of a group share, by restricted likelihood; NaN without
        random intercepts.
    covariance_type : str
        What the standard errors rest on: classical, robust (HC3) or by group (CR2).
    log_likelihood : float
        At the estimates; NaN where it is not known.
    """

    network: OneHiddenNet
    status: Status
    message: str
    loss: float
    noise_variance: float
    seconds: float
    checks: list[Check]
    standard_errors: ParameterRecord
    trace: list[TraceRecord] = field(repr=False)
    origin: str
    n_samples: int
    feature_names: tuple[str, ...] = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    versions: dict[str, str] = field(repr=False)
    queries: int = 0
    n_choosing: int = 0
    units: tuple[UnitVerdict, ...] = field(repr=False, default=())
    alternatives: tuple[Alternative, ...] = field(repr=False, default=())
    freedom: int = 0
    left_over: float = 0.0
    r_squared: float = float("nan")
    linear_r_squared: float = float("nan")
    prediction: Prediction | None = field(repr=False, default=None)
    input_mean: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    input_spread: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    family: Family | None = None
    classes: tuple[Any, ...] = ()
    noise_covariance: np.ndarray | None = field(repr=False, default=None)
    covariance: np.ndarray | None = field(repr=False, default=None)
    undetected: Any = field(repr=False, default=float("nan"))
    error_freedom: ParameterRecord | None = field(repr=False, default=None)
    by_group: GroupedFreedom | None = field(repr=False, default=None)
    group_variance: float = float("nan")
    covariance_type: str = ""
    log_likelihood: float = float("nan")

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))

    @property
    def converged(self) -> bool:
        return self.status.certified

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What no sample can show, and this verdict takes as given: one plain sentence each."""
        if self.queries:
            return (
                "The box gives the same answer to the same question.",
                "No unit acts only where no query went.",
            )
        if self.status is Status.EXACT:
            return (
                "No other column, and no other row, has a part in y.",
                "No unit acts only where there is no row.",
            )
        chosen = f"Each unit has no inputs but those that {self.n_choosing} other rows chose."
        weak = float(np.max(self.undetected))
        unseen = f"No unit is missing that would change the fit by less than {weak:.2g} (standard deviation)."
        return (
            *([chosen] if self.n_choosing else []),
            *([unseen] if np.isfinite(weak) else []),
            "The inputs are measured without error.",
            "No column that matters is missing.",
            "No row was left out because of its y.",
            "The rows are independent of each other."
            if self.error_freedom is None and np.isnan(self.group_variance)
            else "Rows of different groups are independent of each other.",
        )

    mean_slopes = property(mean_slopes)
    predict_interval = predict_interval
    input_test = input_test
    derive = derive
    save = save_recovery
    to_dict = to_dict

    @property
    def residual_freedom(self) -> int:
        """Numbers of the target less free parameters, at least one."""
        numbers = self.n_samples * (self.network.n_outputs if self.network.output.ndim == 2 else 1)
        return max(numbers - self.freedom, 1)

    def mean_freedom(self, contrasts: np.ndarray) -> np.ndarray:
        """Degrees of freedom of the errors of linear functions (m, p) of the free parameters."""
        if self.by_group is not None:
            return self.by_group.of(contrasts)
        return np.full(len(contrasts), float(self.residual_freedom))

    def predict(self, X: npt.ArrayLike, offset: npt.ArrayLike | None = None) -> np.ndarray:
        """Predict the mean of y.

        On rows left out of the fit the predictions are no worse than those of ridge regression;
        ``network.predict`` is the network itself, or its output where y has a family.

        Parameters
        ----------
        X : array_like of shape (m, d) or data frame
            Rows; the inputs of a frame are found by name.
        offset : array_like of shape (m,), optional
            Added to the network's output.

        Returns
        -------
        ndarray of shape (m,) or (m, q)
            The mean; of labels the probabilities of the classes after the first.
        """
        eta = linear_predictor(self, inputs_of(self, X), offset)
        return eta if self.family is None else self.family.mean(eta)

    @property
    def held_out_r_squared(self) -> float:
        """Share of var(y) that ``predict`` explains on rows left out of the fit; NaN if not known."""
        return float("nan") if self.prediction is None else self.prediction.r_squared

    @property
    def held_out_linear_r_squared(self) -> float:
        """Share of var(y) that ridge regression explains on rows left out of the fit."""
        return float("nan") if self.prediction is None else self.prediction.linear_r_squared

    @property
    def predictions_in_words(self) -> str:
        """How good predictions are on rows left out, beside a linear model, and whether they may be used."""
        from onehidden.report.headline import of_predictions
        from onehidden.report.subject import gather

        return of_predictions(gather(self)).sentence

    @property
    def units_in_words(self) -> str:
        """Which units may be interpreted, and why not the others."""
        from onehidden.report.headline import of_units
        from onehidden.report.subject import gather

        return of_units(gather(self)).sentence

    def to_onnx(self, path: str | Path) -> None:
        """Write what ``predict`` computes as an ONNX graph in float64; ``network.to_onnx`` is the network.

        Parameters
        ----------
        path : str or Path
            The file to write. The package ``onnx`` is needed (``pip install 'onehidden[onnx]'``).
        """
        to_onnx(self.network, path, self.feature_names, self.prediction, self.family)

    def to_python(self) -> str:
        """Write what ``predict`` computes as Python source that needs only the standard library.

        Returns
        -------
        str
            The source of a module with a function ``predict(x)`` of one row.
        """
        return to_python(self.network, self.feature_names, self.prediction, self.family)

    def to_sklearn(self) -> Any:
        """Make a fitted scikit-learn estimator that predicts as ``predict`` does.

        Returns
        -------
        OneHiddenRegressor or OneHiddenClassifier
            The estimator, with the names of the inputs.
        """
        from onehidden.recovery.estimating import fitted_estimator

        return fitted_estimator(self)

    def summary(self) -> str:
        """Write the answer as a table: the verdict, the formula, the fit, and every unit with its errors.

        Returns
        -------
        str
            The table.
        """
        from onehidden.report.text import summary

        return summary(self)

    def __str__(self) -> str:
        from onehidden.report.text import first_screen

        return first_screen(self)

    def _repr_html_(self) -> str:
        """The first screen as a notebook shows it."""
        from onehidden.report.text import fragment

        return fragment(self)

    def to_frame(self) -> Any:
        """Write the parameters as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row a number: unit, what it is, estimate, error, standardised effect.
        """
        from onehidden.report.text import to_frame

        return to_frame(self)

    def interval(self, level: float = 0.95) -> tuple[ParameterRecord, ParameterRecord]:
        """Compute a confidence interval of every parameter, by quantiles of Student's t.

        Intervals are those of the best network with as many units: what a missing unit that is too weak to be
        seen does to them is not covered (``assumptions``).

        Parameters
        ----------
        level : float
            Coverage of each interval.

        Returns
        -------
        lower, upper : ParameterRecord
            The ends of the intervals.
        """
        lower, upper = {}, {}
        for name in (one.name for one in fields(ParameterRecord)):
            error, middle = getattr(self.standard_errors, name), getattr(self.network, name)
            freedom = getattr(self.error_freedom, name, None)
            reach = quantile_of(level, self.residual_freedom if freedom is None else freedom)
            lower[name] = None if error is None else middle - reach * error
            upper[name] = None if error is None else middle + reach * error
        return ParameterRecord(**lower), ParameterRecord(**upper)

    def plot(
        self, X: npt.ArrayLike | Table | None = None, y: npt.ArrayLike | None = None, axes: Any = None
    ) -> Any:
        """Draw the predictions on Matplotlib axes: y against one input, or a curve for each of several.

        Of one input the band is the 95 % interval of the mean. Of several inputs each curve is the mean of
        the predictions over the rows as one input moves through its middle 96 %, and points are the curve
        plus the residuals.

        Parameters
        ----------
        X : array_like of shape (m, d), data frame or Table, optional
            Rows; a frame, whose inputs are found by name, or a table may hold the target.
        y : array_like of shape (m,) or (m, q), optional
            Target at these rows.
        axes : matplotlib.axes.Axes, optional
            Where to draw the curve of one input; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes or ndarray of Axes
            The axes; of several inputs one for each of the strongest.
        """
        from onehidden.report.pictures import plot

        return plot(self, table_of(self, X, outcomes=y is None), y, axes)

    def report(
        self,
        path_html: str | Path,
        X: npt.ArrayLike | Table | None = None,
        y: npt.ArrayLike | None = None,
    ) -> None:
        """Write the report as one HTML page; samples add pictures of the fit.

        Parameters
        ----------
        path_html : str or Path
            The file to write; a missing folder is made.
        X : array_like of shape (m, d), data frame or Table, optional
            Samples that are drawn, of many a subsample; a frame or table may hold the target, offset and
            trials.
        y : array_like of shape (m,) or (m, q), optional
            Target at these samples.
        """
        from onehidden.report import render_html

        if Path(path_html).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"the report is an HTML page: name a .html file, got {path_html}")
        render_html(self, path_html, X=table_of(self, X, outcomes=y is None), y=y)
