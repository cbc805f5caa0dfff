"""What ``recover`` is given: columns of frames, files and tables by name, and what y is.

A target is read once, with its family, offset, trials and labels.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from onehidden import data
from onehidden.data.arrays import as_arrow, as_real, is_frame, is_text, must_be_aligned, refuse_gaps
from onehidden.data.opening import inputs_by_name
from onehidden.families import Bernoulli, Family, Gaussian, Softmax
from onehidden.families import get as get_family
from onehidden.families.shares import classes_of
from onehidden.fit.samples import Samples
from onehidden.run import fingerprint

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery

_ROLES = {"sample_weight": "weight", "offset": "offset", "trials": "trials", "groups": "groups"}


# X and y of a call, what belongs to the rows, and names of columns as the record keeps them.
Given = tuple[Any, Any, dict[str, Any], dict[str, Any]]


def given(X: Any, y: Any, target: Any, of_rows: dict[str, Any], reading: Mapping[str, Any]) -> Given:
    """The samples of a call of ``recover``; columns that are named are read, and are then no features.

    ``of_rows`` has an array or the name of a column for each role, ``reading`` keywords of ``data.open``.
    """
    if target is not None and y is not None:
        raise ValueError("the target is given twice, as y and as target=: leave one of them out")
    y = target if y is None else y
    if isinstance(X, str) and is_frame(y):
        raise ValueError(
            f"the table comes first, then the name of its target, as recover(frame, 'y'), got {X!r}"
        )
    if isinstance(y, str) and "~" in y:
        raise ValueError(f"formulas are not read, got {y!r}: name the target, as recover(frame, 'y')")
    named = _is_names(y, X)
    columns = {_ROLES[role]: name for role, name in of_rows.items() if isinstance(name, str)}
    asked = {name: value for name, value in reading.items() if value not in ("refuse", False, (), [])}
    path = isinstance(X, str | os.PathLike)
    if path and not named:
        raise ValueError(f"name the target of a file: recover({os.fspath(X)!r}, 'y')")
    if isinstance(X, data.Source):
        if asked:
            raise ValueError(f"a source is open already: give {', '.join(asked)} to data.open")
        return X, y, of_rows, {} if y is not None else names_of(X, y)
    if not (named or columns or asked):
        return X, y, of_rows, names_of(X, y)
    for role, values in of_rows.items():
        must_be_aligned(X, values, role)
    source = X if named or y is None else (X, y)
    table = data.open(source, target=y if named else None, **columns, **asked)
    names = columns | asked | names_of(table, None if named else y)
    apart = {role: None if isinstance(one, str) else one for role, one in of_rows.items()}
    if isinstance(table, data.Source):
        return table, None, apart, names
    if table.row is not None:
        apart = {role: per_row(role, one, table.n_read, table.row) for role, one in apart.items()}
    return table, None, apart, names


def inputs_of(record: Recovery, X: Any) -> np.ndarray:
    """The inputs of a recovery as numbers: those of a frame by name, where it has these names."""
    if isinstance(X, data.Table):
        return X.X
    X = as_arrow(X, ())[0] if isinstance(X, Mapping) else X
    if not _by_name(record, X):
        return np.asarray(X, dtype=float)
    levels = record.options.get("one_hot") or {}
    return inputs_by_name(X, record.feature_names, levels if isinstance(levels, Mapping) else {})[1]


def _by_name(record: Recovery, X: Any) -> bool:
    """Whether inputs are found by name: not in a frame that has as many under other names."""
    columns = _column_names(X)
    same = len(columns) == len(record.feature_names) and not set(record.feature_names) & set(columns)
    return is_frame(X) and not same


def reading_of(record: Recovery, outcomes: Sequence[str] | None = None) -> dict[str, Any]:
    """How a table is read for a recovery: its features by name, treated as then; keywords of ``data.open``.

    ``outcomes`` are its target columns, those of the recovery where empty; None where they are not needed.
    """
    saved = ["one_hot", "nulls", "encoding", "decimal", "na", "offset"]
    saved += [] if outcomes is None else ["trials"]  # trials count outcomes
    found = {name: record.options[name] for name in saved if record.options.get(name)}
    found["columns"] = list(record.feature_names)
    if outcomes is not None:
        found["target"] = list(outcomes) or record.options.get("target", "y")
    return found


def table_of(record: Recovery, X: Any, outcomes: bool) -> Any:
    """A frame that has the columns of a recovery, read as then, with ``outcomes`` its targets; else X."""
    X = as_arrow(X, ())[0] if isinstance(X, Mapping) else X
    if not _by_name(record, X):
        return X
    named = record.options.get("target", "y")
    held = {named} if isinstance(named, str) else set(named)
    outcomes &= held <= set(_column_names(X))
    return data.open(X, **reading_of(record, () if outcomes else None))


def _is_names(y: Any, X: Any) -> bool:
    """Whether y names columns of X instead of holding numbers or labels."""
    if isinstance(y, str) or (isinstance(y, int) and not isinstance(y, bool)):
        return True
    if not isinstance(y, list | tuple) or not y or not all(isinstance(one, str) for one in y):
        return False
    return isinstance(X, str | os.PathLike) or set(y) <= set(_column_names(X))


def _column_names(X: Any) -> list[str]:
    if isinstance(X, data.Table):
        return [*X.feature_names, *X.target_names]
    if isinstance(X, Mapping):
        return list(map(str, X))
    columns = getattr(X, "column_names", None)
    columns = getattr(X, "columns", None) if columns is None else columns
    return [] if columns is None else list(map(str, columns))


def per_row(name: str, values: object, n: int | None, kept: np.ndarray | None) -> Any:
    """What belongs to the rows that are kept, all if None; there must be one entry for each of n rows."""
    if values is None:
        return None
    found = np.asarray(values)
    if found.shape != (n,):
        raise ValueError(f"{name} must have one entry for each of the {n} rows, got shape {found.shape}")
    return found if kept is None else found[kept]


def _target_name(names: tuple[str, ...]) -> dict[str, Any]:
    return {} if not names else {"target": names[0] if len(names) == 1 else list(names)}


def names_of(X: Any, y: Any) -> dict[str, Any]:
    """Names of a Series, of a frame's columns, or of a table's targets, and the levels of its columns."""
    opened = X if isinstance(X, data.Table | data.Source) else None
    levels = {} if opened is None else {name: list(found) for name, found in opened.levels.items()}
    known = {"one_hot": levels} if levels else {}
    if y is None:
        return known | _target_name(() if opened is None else opened.target_names)
    names = _column_names(y) if is_frame(y) else [getattr(y, "name", None)]
    named = tuple(one for one in names if isinstance(one, str) and one)
    return known | (_target_name(named) if len(named) == len(names) else {})


@dataclass(frozen=True)
class Target:
    """The rows of a recovery and what their target is."""

    samples: Samples  # inputs, numbers of the target, weights (trials among them)
    family: Family | None = None  # None for normal noise
    offset: Float[np.ndarray, " n"] | None = field(default=None, repr=False)
    trials: Float[np.ndarray, " n"] | None = field(default=None, repr=False)
    classes: tuple[object, ...] = ()  # labels in order; the first is the base of the others

    def in_own_order(self, most: int = 50_000_000) -> Target:
        """The rows in an order that follows from their values alone, so that the caller's decides nothing.

        Neither do the units of measurement nor a rotation of the inputs. Halves, folds and random signs go by
        the numbers of rows. ``place`` keeps the caller's order for the test of dependent neighbours. This
        copies the rows; more than ``most`` numbers stay as they are.
        """
        samples = self.samples
        if samples.X.size > most:
            return self
        order = samples.in_canonical_order(samples.coordinates(True))
        place = order if samples.place is None else samples.place[order]
        found = self.take(order)
        return replace(found, samples=replace(found.samples, place=place))

    def take(self, index: Int[np.ndarray, " m"]) -> Target:
        """These rows."""
        offset, trials = (None if one is None else one[index] for one in (self.offset, self.trials))
        return replace(self, samples=self.samples.take(index), offset=offset, trials=trials)

    def with_random_intercepts(self) -> Target:
        """The target with an intercept for each group, whose variance is to be estimated."""
        samples = self.samples
        if samples.groups is None or self.family is not None or samples.y.ndim > 1:
            raise ValueError(
                "random_intercept is one for each group, of one output with normal noise: give groups, or "
                "leave it out, errors by group hold for every y"
            )
        return replace(self, samples=replace(samples, ratio=0.0))

    @property
    def fingerprint(self) -> str:
        """Digest of the data."""
        own = self.samples.fingerprint
        return own if self.offset is None else fingerprint(own, self.offset)


def read_target(
    X: object,
    y: object,
    sample_weight: object = None,
    family: str | Family | None = None,
    link: str | None = None,
    offset: object = None,
    trials: object = None,
    groups: object = None,
    constant: bool = False,
) -> Target:
    """The target of a family; text without a family is taken for labels.

    ``y`` has (n,) numbers, (n, q) of several outputs, or labels; of a binomial the number of successes.
    ``constant`` says whether columns may be constant.
    """
    if isinstance(X, data.Table):
        if y is None and X.y is None:
            raise ValueError("the table has no target: open it with target=NAME, or give y")
        held = (X.y, X.weight, X.offset, X.trials, X.groups)
        asked = (y, sample_weight, offset, trials, groups)
        y, sample_weight, offset, trials, groups = (
            own if one is None else one for one, own in zip(asked, held, strict=True)
        )
        X, names = X.X, X.feature_names
    else:
        names = tuple(_column_names(X))
    labelled = family == Softmax.name or isinstance(family, Softmax)
    labelled |= (family is None or family == Bernoulli.name) and is_text(y)
    chosen = Softmax() if labelled else get_family("gaussian" if family is None else family, link)
    if is_text(y) and not labelled:
        raise ValueError(f"the {chosen.name} family is for numbers, but y holds text: labels need no family")
    if trials is not None and not chosen.counted:
        raise ValueError(f"trials are for the binomial family, not for {chosen.name}")
    classes: tuple[object, ...] = ()
    if labelled:
        if link not in (None, *Softmax.links, *(("logit",) if family == Bernoulli.name else ())):
            raise ValueError(f"classes have the link {Softmax.links[0]}, not {link!r}")
        labels, coded = classes_of(y)
        two, classes = len(labels) == 2, tuple(labels.tolist())
        if family == Bernoulli.name and not two:
            raise ValueError(f"the bernoulli family has two labels, and y has {len(labels)}: use softmax")
        chosen = Bernoulli("logit") if two else Softmax("softmax", len(labels))
        y = coded[:, 0] if two else coded
    elif trials is not None and y is not None:
        y = _shares(y, trials)
    samples = checked_samples(X, y, sample_weight, names, constant)
    kept = np.ones(samples.n, bool) if sample_weight is None else np.asarray(sample_weight, float) > 0
    shift = per_row("offset", _numbers("offset", offset), len(kept), kept)
    counts = per_row("trials", _numbers("trials", trials), len(kept), kept)
    if groups is not None:
        samples = replace(samples, groups=_codes(per_row("groups", groups, len(kept), kept)))
    if isinstance(chosen, Gaussian):
        if shift is not None:  # with normal noise it is a known part of y
            samples = replace(samples, y=samples.y - shift.reshape(-1, *[1] * (samples.y.ndim - 1)))
        return Target(samples, offset=shift)
    if not labelled:
        chosen.check_values(samples.y, counts)
    if counts is not None:
        samples = replace(samples, weight=counts if samples.weight is None else samples.weight * counts)
    return Target(replace(samples, noisy=True), chosen, shift, counts, classes)


def _numbers(name: str, values: object) -> Float[np.ndarray, " n"] | None:
    if values is None:
        return None
    found = np.asarray(as_real(values, name), float).reshape(-1)
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must hold finite numbers only")
    return found


def _codes(labels: np.ndarray) -> Int[np.ndarray, " n"]:
    """The groups of the rows, numbered from 0 on."""
    refuse_gaps(labels, "groups")
    codes = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)[1]
    must_be_compared(int(codes.max()) + 1, len(codes))
    return codes


def must_be_compared(count: int, rows: int, units: int | None = None) -> None:
    """Refuse one group, groups of one row each, and fewer groups than units."""
    if count in (1, rows):
        what = "names one group only" if count == 1 else "gives every row a group of its own"
        raise ValueError(f"groups {what}, which leaves nothing to compare: leave it out")
    if units is not None and count < units:
        raise ValueError(
            f"{count} groups give no standard errors of {units} units: ask for fewer, bring more groups, or "
            "leave groups out"
        )


def _shares(y: object, counts: object) -> Float[np.ndarray, " n"]:
    """Successes over trials."""
    won = np.asarray(as_real(y, "y"), float).reshape(-1)
    trials = per_row("trials", _numbers("trials", counts), len(won), None)
    wrong = (won < 0) | (won > trials) | (won != np.rint(won)) | (trials < 1) | (trials % 1 != 0)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise ValueError(
            f"y must be a whole number of successes among its trials: row {row} has {won[row]:g} of "
            f"{trials[row]:g}"
        )
    return won / trials


def checked_samples(
    X: object, y: object, sample_weight: object, names: tuple[str, ...] = (), constant: bool = False
) -> Samples:
    """Samples from arrays; ``ValueError`` with one sentence for anything else."""
    if y is None:
        raise ValueError("recover needs the target: recover(X, y, …), or of a frame recover(frame, 'column')")
    if sample_weight is not None:
        must_be_aligned(X, sample_weight, "sample_weight")
    matrix, target = data.check_arrays(X, y, names or None, constant)
    assert target is not None
    names = names or tuple(f"x{j}" for j in range(matrix.shape[1]))
    if sample_weight is None:
        return Samples(matrix, target, None, names)
    weight = per_row("sample_weight", as_real(sample_weight, "sample_weight"), len(target), None)
    if not np.all(np.isfinite(weight)) or np.any(weight < 0) or not np.any(weight > 0):
        raise ValueError("sample_weight must be finite and not negative, with some weight above zero")
    kept = weight > 0
    matrix, target = data.check_arrays(matrix[kept], target[kept], names, constant)
    assert target is not None
    return Samples(matrix, target, weight[kept] / weight[kept].mean(), names)
