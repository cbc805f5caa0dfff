"""Recovery: what recover() returns, frozen, with everything a reader may doubt."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onehidden.certify.compare import Alternative
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.status import Status
from onehidden.certify.units import UnitVerdict
from onehidden.checks import Check
from onehidden.data.table import Table
from onehidden.families import Family
from onehidden.network import OneHiddenNet
from onehidden.recovery.bands import (
    InputTest,
    MarginalEffects,
    added,
    bands,
    input_test,
    marginal_effects,
    mean_of,
)
from onehidden.recovery.prediction import Prediction
from onehidden.run import TraceRecord

FORMAT_VERSION = 3  # from 3 on with a digest of all that is said


@dataclass(frozen=True)
class Recovery:
    """A recovered network with its certificate.

    Attributes
    ----------
    network : the units in canonical form.
    status : "exact", "consistent", "approximate", "doubtful" or "not identifiable".
    message : one sentence behind the status.
    converged : whether the status is "exact" or "consistent".
    loss : mean squared residual, in the units of y squared; the mean deviance where y has a family.
    noise_variance : residual sum of squares over n - (free parameters); a family's dispersion phi.
    seconds : wall-clock time of the call.
    checks : the certificate, one record a question.
    standard_errors : of every parameter, in canonical form; infinite where the data cannot tell.
    trace : (stage, step, loss relative to var y, seconds) as it went.
    curvature : spectrum of the Gauss–Newton matrix along the free directions, unit diagonal.
    signal : z-value of each score moment that was measured, by order; of several components the largest.
    input_model : what the input law was taken for, and why; "not needed" where no start asked.
    score_checks : Stein's identity for that input model, where it was estimated.
    origin : the start that led here.
    feature_names, options, versions : what is needed to read and repeat the result.
    queries : rows asked of a black box (``recover_oracle``); 0 when the samples were given.
    units : one record a unit: parameters, standard errors, share of var(y), status, reason.
    alternatives : other answers that the data do not tell from this one, with how far they fall behind.
    freedom : free parameters; the numbers of all targets less these are the degrees of freedom of intervals.
    left_over : share of var(y) that the data show to be missed; 0 if none.
    r_squared, linear_r_squared : share of var(y), or of a family's deviance, explained on the rows that were
        fitted, and by the best linear function on the same rows.
    prediction : what predictions are made with, and how they do on rows left out; the network where None.
    input_mean, input_spread, target_spread : means and standard deviations of the inputs, (d,), and of y:
        what a standardised effect is measured in. Empty where they were not kept.
    family : what y is, given the network's output; None for normal noise.
    classes : the labels, where y held labels: the network's outputs are log-odds against the first.
    noise_covariance : (q, q) between several outputs; None for one.
    covariance : of the free parameters in the order weights, output, bias, linear, intercept; None where
        there are too many. What bands around predictions are made from.
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
    curvature: np.ndarray = field(repr=False)
    signal: dict[int, float]
    origin: str
    n_samples: int
    feature_names: tuple[str, ...] = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    versions: dict[str, str] = field(repr=False)
    input_model: str = "not needed"
    score_checks: list[Check] = field(repr=False, default_factory=list)
    queries: int = 0
    units: tuple[UnitVerdict, ...] = field(repr=False, default=())
    alternatives: tuple[Alternative, ...] = field(repr=False, default=())
    freedom: int = 0
    left_over: float = 0.0
    r_squared: float = float("nan")
    linear_r_squared: float = float("nan")
    prediction: Prediction | None = field(repr=False, default=None)
    input_mean: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    input_spread: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    target_spread: Any = field(repr=False, default=float("nan"))
    family: Family | None = None
    classes: tuple[Any, ...] = ()
    noise_covariance: np.ndarray | None = field(repr=False, default=None)
    covariance: np.ndarray | None = field(repr=False, default=None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))

    @property
    def converged(self) -> bool:
        return self.status.certified

    @property
    def residual_freedom(self) -> int:
        """Numbers of the target less free parameters, at least one."""
        numbers = self.n_samples * (self.network.n_outputs if self.network.output.ndim == 2 else 1)
        return max(numbers - self.freedom, 1)

    def predict(self, X: npt.ArrayLike, offset: npt.ArrayLike | None = None) -> np.ndarray:
        """The mean of y at the rows of X: by the network, or by what ``prediction`` says did no worse.

        On rows that were left out of the fit these are no worse than ridge regression's; ``network.predict``
        is the network itself, its output where y has a family. Of labels these are the probabilities of the
        classes after the first. ``offset`` (n,) is added to the network's output.
        """
        X = np.asarray(X, dtype=float)
        if self.family is not None:
            return mean_of(self, X, offset)
        if offset is not None:
            return self.predict(X) + added(self, X, offset)
        if self.prediction is None or X.ndim != 2 or X.shape[1] != self.network.n_inputs:
            return self.network.predict(X)
        return self.prediction.predict(self.network, X)

    @property
    def held_out_r_squared(self) -> float:
        """Share of var(y) that ``predict`` explains on rows left out of the fit; NaN if not known."""
        return float("nan") if self.prediction is None else self.prediction.r_squared

    @property
    def held_out_linear_r_squared(self) -> float:
        """Share of var(y) that ridge regression explains on rows left out of the fit."""
        return float("nan") if self.prediction is None else self.prediction.linear_r_squared

    def predict_interval(
        self,
        X: npt.ArrayLike,
        level: float = 0.95,
        of: str = "mean",
        offset: npt.ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of bands that hold the mean of y, or a new observation, at each row of X.

        Parameters
        ----------
        X : (m, d) rows. offset : (m,) added to the network's output.
        level : of each band alone.
        of : "mean", or "observation": the noise comes on top.
        """
        return bands(self, X, level, of, offset)

    def input_test(self) -> InputTest:
        """Wald tests, one an input, that it matters to no unit: statistic, degrees of freedom, p-value."""
        return input_test(self)

    def marginal_effects(self, X: npt.ArrayLike, offset: npt.ArrayLike | None = None) -> MarginalEffects:
        """Average change of the mean of y with each input over the rows of X, with standard errors."""
        return marginal_effects(self, X, offset)

    def summary(self) -> str:
        """The answer as a table: the verdict, the formula, the fit, and every unit with its errors."""
        from onehidden.report.as_text import summary

        return summary(self)

    def __str__(self) -> str:
        from onehidden.report.as_text import first_lines

        return first_lines(self)

    def _repr_html_(self) -> str:
        """The first screen as a notebook shows it."""
        from onehidden.report.as_notebook import fragment

        return fragment(self)

    def to_frame(self) -> Any:
        """A pandas data frame, one row a number: unit, what it is, estimate, error, standardised effect."""
        from onehidden.report.frame import to_frame

        return to_frame(self)

    def interval(self, level: float = 0.95) -> tuple[ParameterRecord, ParameterRecord]:
        """Lower and upper ends of the confidence interval of every parameter, by quantiles of Student's t."""
        from scipy.special import stdtrit

        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        reach = float(stdtrit(self.residual_freedom, 0.5 + level / 2))
        net, error = self.network, self.standard_errors
        ends = []
        for sign in (-1, 1):
            ends.append(
                ParameterRecord(
                    net.weights + sign * reach * error.weights,
                    net.output + sign * reach * error.output,
                    net.bias + sign * reach * error.bias,
                    net.intercept + sign * reach * error.intercept,
                    None if error.linear is None else net.linear + sign * reach * error.linear,
                )
            )
        return ends[0], ends[1]

    def save(self, directory: str | Path) -> None:
        """Write ``model.safetensors``, ``recovery.json`` and what bands are made from into a folder."""
        from onehidden.recovery.stored import save_recovery

        save_recovery(self, directory)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model, as plain JSON values; numbers that are not finite become text."""
        from onehidden.recovery.stored import to_dict

        return to_dict(self)

    def report(
        self,
        path_html: str | Path,
        X: npt.ArrayLike | Table | None = None,
        y: npt.ArrayLike | None = None,
        truth: OneHiddenNet | None = None,
    ) -> None:
        """Write the report as one HTML page; samples add ridge functions, a true network a comparison."""
        from onehidden.report import render_html

        if Path(path_html).suffix not in (".html", ".htm"):
            raise ValueError(f"the report is an HTML page: name a .html file, got {path_html}")
        render_html(self, path_html, X=X, y=y, truth=truth)
