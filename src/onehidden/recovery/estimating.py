"""What both scikit-learn estimators share: reading rows, the best that they allow, notes and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from onehidden.certify.certificate import Status
from onehidden.certify.units import Cause
from onehidden.data import arrays
from onehidden.data.opening import inputs_by_name
from onehidden.machine import in_double
from onehidden.options import STRUCTURES, Options, estimator_name
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import most_units, recovered
from onehidden.recovery.solve import plain_fit
from onehidden.recovery.target import Target, names_of, per_row, read_target
from onehidden.refused import Refused
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

    recovery_: Recovery
    notes_: tuple[str, ...]

    def _fit(self, X: Any, y: Any, sample_weight: object, **of_rows: object) -> Self:
        """Read the rows and keep the best that they allow; ``of_rows`` has groups and offset if any."""
        options, labelled = self._options(), is_classifier(self)
        how = {} if labelled else {"y_numeric": True, "multi_output": True}
        arrays.must_be_aligned(X, y)
        if y is None:
            validated(self, X, y, dtype=np.float64)  # which refuses it
        matrix, target = self._read(X, y, dtype=np.float64, ensure_min_samples=2, **how)
        if labelled:
            check_classification_targets(target)
            options = replace(options, family="softmax")
        kept, weight = counted_rows(sample_weight, matrix)
        own = {name: per_row(name, values, len(matrix), kept) for name, values in of_rows.items()}
        known = {"sample_weight": weight, "family": options.family, "link": options.link} | own
        read = read_target(matrix[kept], target[kept], **known, constant=True)
        found, trouble = best_of(replace(read, samples=replace(read.samples, place=kept)), options)
        names = getattr(self, "feature_names_in_", found.feature_names)
        named = {**found.options, **names_of(X, y)}
        self.recovery_ = replace(found, feature_names=tuple(map(str, names)), options=named)
        self.network_ = found.network
        self._note(trouble)
        return self

    def _inputs(self, X: Any) -> np.ndarray:
        """The rows to predict at."""
        check_is_fitted(self)
        return self._read(X, dtype=np.float64, reset=False)

    def _note(self, trouble: list[str]) -> None:
        """Keep what is to be known about a fit, and announce what was given up for it, or a doubt."""
        found, sentences = self.recovery_, list(trouble)
        if not found.converged:
            sentences.insert(0, f"the answer is {found.status}: {found.message}")
            said = "" if found.prediction is None else found.prediction.message
            sentences += [said] if said not in ("", found.message) else []
        self.notes_ = tuple(sentences)
        # That the rows leave a linear function open is an answer; a kink with hardly a row beyond it is none.
        linear = all(one.cause in (Cause.SPARE, Cause.KINK) for one in found.units)
        if trouble or not (found.converged or (linear and found.status is Status.NOT_IDENTIFIABLE)):
            announce("; ".join(sentences))

    def _read(self, X: Any, y: Any = None, **how: Any) -> Any:
        """Read the inputs, and the target of a fit, as scikit-learn does; refuse them as ``recover`` does."""
        if isinstance(y, str):
            raise ValueError(
                f"y must hold a value for each row, got the text {y!r}: give frame[{y!r}], or call "
                f"oh.recover(frame, {y!r})"
            )
        numeric = how.get("y_numeric", False)
        if numeric and arrays.is_text(y):
            raise ValueError(
                f"y must hold numbers, got text (for example {np.ravel(np.asarray(y))[0]!r}): labels are for "
                "OneHiddenClassifier"
            )
        try:
            return validated(self, X, **how) if y is None else validated(self, X, y, **how)
        except ValueError:
            must_be_readable(X, y, numeric)
            raise

    def _take(self, given: dict[str, Any]) -> None:
        """Keep the arguments of ``__init__`` as they are."""
        vars(self).update((name, value) for name, value in given.items() if name in self._get_param_names())

    def _options(self) -> Options:
        """The options, checked; the random state becomes a seed."""
        own = {one.name: estimator_name(one) for one in fields(Options)}
        asked = {name: vars(self)[theirs] for name, theirs in own.items() if theirs in vars(self)}
        seed = asked["seed"]
        if not isinstance(seed, (int, np.integer)):
            asked["seed"] = 0 if seed is None else check_random_state(seed).randint(2**31 - 1)
        return Options(**asked)


def must_be_readable(X: Any, y: Any, y_numeric: bool) -> None:
    """Refuse, as ``recover`` does, text, gaps, infinite values, a single dimension and unequal lengths.

    What scikit-learn's sentence tells as well stays its own: a row for a column, few rows, complex numbers.
    """
    names = None
    if arrays.is_frame(X):
        names, X = inputs_by_name(X)
    n, *tail = np.shape(X)
    if n < 2 or 0 in tail or np.iscomplexobj(X) or (y is None and not tail):
        return
    if not y_numeric and y is not None:
        arrays.refuse_gaps(y, "y")
        y = np.arange(len(np.asarray(y, dtype=object)))
    arrays.check_arrays(X, y, names, constant=True)


def counted_rows(
    sample_weight: object, X: Float[np.ndarray, "n d"], most_copies: int = 10
) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"] | None]:
    """The numbers of the rows that count, and their weights if any.

    Whole-number weights count samples: their rows are repeated, as long as the table grows at most
    ``most_copies`` times. Rows of weight zero are left out.
    """
    n = len(X)
    if sample_weight is None:
        return np.arange(n), None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weight > 0):  # scikit-learn before 1.8 lets it through
        raise ValueError("sample_weight is zero for every row: give some row a positive weight")
    if np.all(weight == np.round(weight)) and weight.sum() <= most_copies * max(n, 1000):
        return np.repeat(np.arange(n), weight.astype(int)), None
    kept = np.flatnonzero(weight > 0)
    return kept, weight[kept]


@in_double
def best_of(target: Target, options: Options) -> tuple[Recovery, list[str]]:
    """The best that these rows allow, and what had to be given up for it, a sentence each.

    Units that the rows cannot pay for are left out; below one unit a penalised linear model stands in.
    """
    samples, hidden, trouble = target.samples, options.hidden, list[str]()
    run = Run(options.seed, options.max_seconds, options.progress)
    (n, d), several = samples.X.shape, samples.y.ndim == 2
    flat, still = arrays.flat_columns(samples.X), arrays.flat_columns(samples.y.reshape(n, -1))
    if len(flat) == d:
        return plain_fit(target, options, "no column of X varies"), trouble
    if several and len(still):
        return plain_fit(target, options, f"output {still[0]} of y is constant"), trouble
    if options.structure is not None:  # it fixes what a unit costs: too few rows are refused
        return recovered(target, options, run), trouble
    rank = samples.coordinates(options.bias).rank
    unit = replace(options, hidden=1).form(rank, samples.y.shape[1] if several else None)
    numbers = n * unit.q
    most = most_units(unit, numbers)
    if most < 1:
        reason = (
            f"{n} rows cannot determine the {unit.freedom} parameters of one unit of {rank} inputs: bring at "
            f"least {4 * unit.freedom} rows"
        )
        return plain_fit(target, options, reason), trouble
    if len(flat):
        trouble.append(f"constant columns have weight zero: {', '.join(map(str, flat[:8]))}")
    if hidden is not None and hidden > most:
        trouble.append(f"{n} rows pay for {most} of the {hidden} units asked for")
        hidden = most
    if hidden is None and numbers <= (20 if target.classes else 4) * unit.freedom:
        hidden = 1  # what choosing the width would come to, at a higher price
    if options.start == "auto" and numbers < 4 * unit.freedom:
        options = replace(options, start="random")  # so few rows certify nothing: no schedule is needed
    if options.score == "auto" and n < 300:
        options = replace(options, score="gaussian")  # few rows estimate no other input model
    options = replace(options, hidden=hidden)
    try:
        return recovered(target, options, run), trouble
    except Refused as reason:
        return plain_fit(target, options, str(reason)), trouble


def fitted_estimator(record: Recovery) -> Any:
    """A regressor, or of labels a classifier, that predicts as a recovery does."""
    from onehidden.recovery.estimators import OneHiddenClassifier, OneHiddenRegressor

    kind = OneHiddenClassifier if record.classes else OneHiddenRegressor
    names = kind._get_param_names()
    asked = {estimator_name(one): record.options.get(one.name) for one in fields(Options)}
    if asked["structure"] not in STRUCTURES:  # the record has its text alone
        asked["structure"] = None
    model: Any = kind(**{name: value for name, value in asked.items() if name in names and value is not None})
    model.recovery_, model.network_ = record, record.network
    model.n_features_in_ = record.network.n_inputs
    if list(record.feature_names) != [f"x{j}" for j in range(record.network.n_inputs)]:
        model.feature_names_in_ = np.array(record.feature_names, dtype=object)
    if record.classes:
        model.classes_ = np.array(record.classes)
    return model
