"""What both scikit-learn estimators share: validation, the rows that count, notes, and what stands in."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from onehidden.certify.certificate import Status
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.replicates import different
from onehidden.certify.units import Cause
from onehidden.checks import About, at_least
from onehidden.data.arrays import check_arrays, is_frame, is_text, must_be_aligned, varying
from onehidden.data.opening import must_be_numeric
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.rounding import DEPENDENT
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden.options import Options, estimator_name, of_estimator
from onehidden.recovery.line import Affine, measures, ridge_line
from onehidden.recovery.prediction import Prediction
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import recovered
from onehidden.recovery.target import names_of, read_target
from onehidden.run import Run

# scikit-learn has no annotations, and a checker takes the defaults' types for those of X and y.
validated: Callable[..., Any] = validate_data


class RecoveryWarning(ConvergenceWarning):
    """An answer is not certified, or something was given up for it: ``notes_`` of the estimator says what.

    It is shown once for each line of the caller, however many fits a search makes there; processes that a
    search starts show none.
    """


_SHOWN: set[tuple[str, int]] = set()  # lines of callers at which a warning was shown


def announce(text: str) -> None:
    """Warn at the line of the caller outside of the libraries, once unless a filter says otherwise.

    Python shows a warning once a line, too, but forgets it whenever a filter changes, as at each fit.
    """
    frame: Any = sys._getframe(1)
    worker = False  # of a search with several processes: its parent warns of the fit that is kept
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module.split(".")[0] not in ("onehidden", "sklearn", "joblib"):
            break
        worker, frame = worker or module.startswith("joblib.externals.loky"), frame.f_back
    place = frame.f_code.co_filename, frame.f_lineno
    action = next(
        (one[0] for one in warnings.filters if one[1] is None and issubclass(RecoveryWarning, one[2])), ""
    )
    if action in ("", "default", "once", "module"):
        if worker or place in _SHOWN:
            return
        _SHOWN.add(place)
    warnings.warn_explicit(text, RecoveryWarning, *place)


class Estimating(BaseEstimator):
    """Parameters that are options of ``recover``."""

    recovery_: Any  # Recovery, or None where something else stands in
    notes_: tuple[str, ...]

    def _rows(
        self,
        X: Any,
        y: Any,
        sample_weight: object,
        numbers: Callable[[np.ndarray], np.ndarray],
        known: Mapping[str, object],
        **how: Any,
    ) -> WeightedSample:
        """The rows of a fit; ``numbers`` makes the target of what was read, ``known`` belongs to the rows."""
        must_be_aligned(X, y)
        if y is None:
            validated(self, X, y, dtype=np.float64)  # which refuses it
        matrix, target = self._read(X, y, dtype=np.float64, ensure_min_samples=2, **how)
        return canonical_rows(matrix, numbers(target), checked_weight(sample_weight, matrix)).of(known)

    def _inputs(self, X: Any) -> np.ndarray:
        """The rows to predict at."""
        check_is_fitted(self)
        return self._read(X, dtype=np.float64, reset=False)

    def _keep(self, found: Recovery, X: Any, y: Any, **more: Any) -> None:
        """Keep a recovery under the names that the inputs and the target have."""
        names = [f"x{j}" for j in range(found.network.n_inputs)]
        names = tuple(map(str, getattr(self, "feature_names_in_", names)))
        named = {**found.options, **names_of(X, y)}
        self.recovery_ = replace(found, feature_names=names, options=named, **more)
        self.network_ = self.recovery_.network

    def _note(self, trouble: list[str]) -> None:
        """Keep what is to be known about a fit, and announce what was given up for it, or a doubt."""
        found, sentences = self.recovery_, list(trouble)
        if found is not None and not found.converged:
            sentences.insert(0, f"the answer is {found.status}: {found.message}")
            said = "" if found.prediction is None else found.prediction.message
            sentences += [said] if said not in ("", found.message) else []
        self.notes_ = tuple(sentences)
        if sentences and (trouble or found is None or not no_finding(found)):
            announce("; ".join(sentences))

    def _read(self, X: Any, y: Any = None, **how: Any) -> Any:
        """Read the inputs, and the target of a fit, as scikit-learn does; refuse them as ``recover`` does."""
        if isinstance(y, str):
            raise ValueError(
                f"y must hold a value for each row, got the text {y!r}: give frame[{y!r}], or call "
                f"oh.recover(frame, {y!r})"
            )
        try:
            return validated(self, X, **how) if y is None else validated(self, X, y, **how)
        except ValueError as error:
            if any(words in str(error) for words in _SAID_BETTER):
                must_be_readable(X, y, how.get("y_numeric", False))
            raise

    def _take(self, given: dict[str, Any]) -> None:
        """Keep the arguments of ``__init__`` as they are."""
        vars(self).update((name, value) for name, value in given.items() if name in self._get_param_names())

    def _options(self) -> Options:
        """The options, checked; the random state becomes a seed."""
        asked = of_estimator(self)
        seed = asked["seed"]
        if not isinstance(seed, (int, np.integer)):
            asked["seed"] = 0 if seed is None else check_random_state(seed).randint(2**31 - 1)
        return Options(**asked)


# Parts of scikit-learn's sentences for which ``recover`` has one that says more.
_SAID_BETTER = (
    "contains NaN", "contains infinity", "convert string", "Unable to convert", "inconsistent numbers",
    "Expected 2D array, got 1D", "y should be a 1d array", "dtype='numeric'",
)  # fmt: skip


def must_be_readable(X: Any, y: Any, y_numeric: bool) -> None:
    """Refuse, as ``recover`` does, text, gaps, infinite values, a single dimension and unequal lengths."""
    names = None
    if is_frame(X):
        names, X = must_be_numeric(X)
    if y is None:
        if np.ndim(X) == 1:
            return  # scikit-learn's sentence tells a row from a column
        check_arrays(X, feature_names=names)
        return
    if y_numeric and is_text(y):
        raise ValueError(
            f"y must hold numbers, got text (for example {np.ravel(np.asarray(y))[0]!r}): labels are for "
            "OneHiddenClassifier"
        )
    target = y if y_numeric else np.arange(len(np.asarray(y, dtype=object)))
    check_arrays(X, target, names)


def no_finding(found: Recovery) -> bool:
    """Whether the rows leave a linear function open: that is an answer, no failure of the search."""
    as_linear = (Cause.SPARE, Cause.KINK)  # a kink with hardly a row beyond it is none
    return (
        found.status is Status.NOT_IDENTIFIABLE
        and bool(found.units)
        and all(one.cause in as_linear for one in found.units)
    )


def checked_weight(sample_weight: object, X: np.ndarray) -> np.ndarray | None:
    """(n,) weights that are not negative, not all zero; None when None."""
    if sample_weight is None:
        return None
    shape = np.asarray(sample_weight).shape
    if shape not in ((), (len(X),)):
        raise ValueError(
            f"sample_weight must have one entry for each of the {len(X)} rows, got shape {shape}"
        )
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weight > 0):  # scikit-learn before 1.8 lets it through
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    return weight


@dataclass(frozen=True)
class WeightedSample:
    """Rows in which a weight of 2 and a row that stands twice are the same thing."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    n_given: int  # rows of the caller's table
    repeated: bool = False  # whether rows stand more than once
    place: np.ndarray | None = None  # numbers of the rows in the caller's table, where they were sorted
    groups: np.ndarray | None = None
    offset: np.ndarray | None = None

    def of(self, known: Mapping[str, object]) -> WeightedSample:
        """These rows with what belongs to the rows of the caller's table, by name."""
        found = {name: np.asarray(values) for name, values in known.items() if values is not None}
        n = self.n_given
        for name, values in found.items():
            if values.shape != (n,):
                raise ValueError(
                    f"{name} must have one entry for each of the {n} rows, got shape {values.shape}"
                )
        own = {name: values if self.place is None else values[self.place] for name, values in found.items()}
        return replace(self, **own)

    @property
    def mean(self) -> Any:
        """Mean of y; of several outputs (q,)."""
        return np.average(self.y, axis=0, weights=self.weight)


def canonical_rows(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, most_copies: int = 10
) -> WeightedSample:
    """Rows of weight zero left out, repeated rows of a weighted sample joined.

    The answer does not depend on how the same weighted sample was written down: whole-number weights come
    back as repeated rows (they count samples) if the table grows at most ``most_copies`` times, all others as
    weights.
    """
    if weight is None:
        return WeightedSample(X, y, None, len(X), different(np.column_stack([X, y]).T) < len(y))
    d = X.shape[1]
    counted = np.flatnonzero(weight > 0)
    table, number = np.unique(np.column_stack([X, y])[counted], axis=0, return_inverse=True)
    number = number.ravel()
    copies, weight = np.bincount(number), np.bincount(number, weight[counted])
    repeated, times = False, np.ones(len(table), int)
    if np.all(weight == np.round(weight)) and weight.sum() <= most_copies * max(len(table), 1000):
        repeated, times, weight = weight.sum() > len(table), weight.astype(int), None
    rows = np.repeat(np.arange(len(table)), times)
    table, copy = table[rows], np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    # Copies stand where they stood in the caller's table; what weights add, beside the last of them.
    by_row, first = counted[np.argsort(number, kind="stable")], np.cumsum(copies) - copies
    place = by_row[first[rows] + np.minimum(copy, copies[rows] - 1)]
    inputs, target = np.ascontiguousarray(table[:, :d]), np.ascontiguousarray(table[:, d:])
    target = target[:, 0] if y.ndim == 1 else target
    return WeightedSample(inputs, target, weight, len(X), bool(repeated), place)


def fitted_estimator(record: Recovery) -> Any:
    """A regressor, or of labels a classifier, that predicts as a recovery does."""
    from onehidden.recovery.estimators import OneHiddenClassifier, OneHiddenRegressor

    kind = OneHiddenClassifier if record.classes else OneHiddenRegressor
    names = kind._get_param_names()
    asked = {estimator_name(one): record.options.get(one.name) for one in fields(Options)}
    model: Any = kind(**{name: value for name, value in asked.items() if name in names and value is not None})
    model.recovery_, model.network_ = record, record.network
    model.n_features_in_ = record.network.n_inputs
    if list(record.feature_names) != [f"x{j}" for j in range(record.network.n_inputs)]:
        model.feature_names_in_ = np.array(record.feature_names, dtype=object)
    if record.classes:
        model.classes_, model.plain_ = np.array(record.classes), None
    return model


def varying_columns(X: np.ndarray) -> np.ndarray:
    """Indices of the columns that are not constant up to rounding."""
    return np.flatnonzero(varying(X.min(axis=0), X.max(axis=0)))


def rank(X: np.ndarray) -> int:
    """Directions in which varying columns vary: columns less the linear relations among them."""
    if X.shape[1] == 0:
        return 0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    value = np.linalg.eigvalsh(Z.T @ Z / len(X))
    return int(np.sum(value >= DEPENDENT * value[-1]))


def unit_of(
    rows: WeightedSample, columns: np.ndarray, options: Options, outputs: int | None
) -> Parametrisation:
    """The free parameters of one unit of these columns."""
    return replace(options, hidden=1).form(max(rank(rows.X[:, columns]), 1), outputs)


@in_double
def recovered_on(rows: WeightedSample, columns: np.ndarray, options: Options) -> Recovery:
    """The recovery from some columns, stated on all."""
    X, y, d = rows.X[:, columns], rows.y, rows.X.shape[1]
    target = read_target(X, y, rows.weight, options.family, options.link, rows.offset, None, rows.groups)
    target = replace(target, samples=replace(target.samples, place=rows.place))
    found = recovered(target, options, Run(options.seed, options.max_seconds, options.progress))
    return with_all_columns(found, columns, d)


def logistic_regression(rows: WeightedSample) -> Any:
    """Ridge logistic regression on standardised columns; of one class that has rows its share."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(rows.y)) < 2:
        return DummyClassifier().fit(rows.X, rows.y)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    return model.fit(rows.X, rows.y, logisticregression__sample_weight=rows.weight)


def plain_fit(rows: WeightedSample, columns: np.ndarray, reason: str) -> Recovery:
    """The mean of y, or ridge regression where y and some column vary, beside a unit that adds nothing."""
    d, shape = rows.X.shape[1], rows.y.shape[1:]
    line, nothing, explained = (
        Affine(np.zeros((d, *shape)), rows.mean),
        Affine(np.zeros((d, *shape)), 0.0),
        0.0,
    )
    variance = np.average((rows.y - rows.mean) ** 2, axis=0, weights=rows.weight)
    whole = np.where(variance > 0, variance, np.nan)
    if len(columns) and len(rows.y) > 2 and np.any(variance > 0):
        short, outside = ridge_line(rows.X[:, columns], rows.y, rows.weight)
        line = short.on(columns, d)
        explained = float(np.nanmean(1 - np.average(outside**2, axis=0, weights=rows.weight) / whole))
    net = OneHiddenNet(np.eye(d)[:1], np.zeros((1, *shape)), None, line.level, "linear", line.slope)
    missed = np.average((rows.y - line(rows.X)) ** 2, axis=0, weights=rows.weight)
    loss = float(np.mean(missed))
    check = at_least("samples per parameter", len(rows.y) / (d + 2), 4.0, reason, About.DATA)
    check = replace(check, passed=False)  # whatever the reason, no hidden unit was searched for
    return Recovery(
        network=net, status=Status.NOT_IDENTIFIABLE, message=reason, loss=loss, noise_variance=loss,
        seconds=0.0, checks=[check], standard_errors=ParameterRecord.unknown(net), trace=[],
        curvature=np.zeros(0), signal={}, origin="plain fit", n_samples=len(rows.y),
        feature_names=tuple(f"x{j}" for j in range(d)), options={}, versions={},
        r_squared=float(np.mean(1 - missed / whole)),
        prediction=Prediction(0.0, line, nothing, (), 0.0, 0.0, explained, explained, reason),
        **measures(rows.X, rows.y, rows.weight),
    )  # fmt: skip


def with_all_columns(found: Recovery, columns: np.ndarray, d: int) -> Recovery:
    """The recovery on some of d columns, stated on all: the others have weight zero and no known error."""
    if len(columns) == d:
        return found

    def spread_out(values: np.ndarray, rest: float) -> np.ndarray:
        """Values by column, (m, ...), on all columns."""
        wide = np.full((d, *values.shape[1:]), rest)
        wide[columns] = values
        return wide

    net, errors = found.network, found.standard_errors
    weights, unknown = spread_out(net.weights.T, 0.0).T, spread_out(errors.weights.T, np.inf).T
    linear = None if errors.linear is None else spread_out(errors.linear, np.inf)
    units = tuple(
        replace(unit, weights=weights[unit.index], errors=(unknown[unit.index], *unit.errors[1:]))
        for unit in found.units
    )
    network = OneHiddenNet(
        weights, net.output, net.bias, net.intercept, net.activation, spread_out(net.linear, 0.0)
    )
    return replace(
        found, network=network, standard_errors=replace(errors, weights=unknown, linear=linear), units=units,
        input_mean=spread_out(found.input_mean, 0.0), input_spread=spread_out(found.input_spread, 0.0),
        covariance=None,
        prediction=None if found.prediction is None else found.prediction.on(columns, d),
    )  # fmt: skip
