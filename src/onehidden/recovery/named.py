"""What ``recover`` is given by name: columns of frames, files and tables, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden import data
from onehidden.data.arrays import is_frame, must_be_aligned
from onehidden.data.opening import inputs_by_name

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery

_ROLES = {"sample_weight": "weight", "offset": "offset", "trials": "trials", "groups": "groups"}


@dataclass(frozen=True)
class Given:
    """The samples of a call, with what belongs to their rows."""

    X: Any
    y: Any
    of_rows: dict[str, Any]  # sample_weight, offset, trials and groups
    names: dict[str, Any] = field(default_factory=dict)  # of the columns, as the record keeps them


def given(X: Any, y: Any, target: Any, of_rows: dict[str, Any], reading: Mapping[str, Any]) -> Given:
    """The samples of a call of ``recover``; columns that are named are read, and are then no features.

    ``of_rows`` has an array or the name of a column for each role, ``reading`` keywords of ``data.open``.
    """
    if target is not None and y is not None:
        raise ValueError("the target is given twice, as y and as target=: leave one of them out")
    y = target if y is None else y
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
        return Given(X, y, of_rows, {} if y is not None else _target(X.target_names))
    if not (named or columns or asked):
        return Given(X, y, of_rows, names_of(X, y))
    for role, values in of_rows.items():
        must_be_aligned(X, values, role)
    source = X if named or y is None else (X, y)
    table = data.open(source, target=y if named else None, **columns, **asked)
    names = (_target(table.target_names) if named else names_of(X, y)) | columns | asked
    names |= {"one_hot": {name: list(found) for name, found in table.levels.items()}} if table.levels else {}
    if isinstance(table, data.Source):
        weight = of_rows["sample_weight"]
        own = {"sample_weight": None if isinstance(weight, str) else weight}
        return Given(table, None, of_rows | own, names)
    kept = {role: _kept(values, table, role) for role, values in of_rows.items()}
    return Given(table, None, kept, names)


def inputs_of(record: Recovery, X: Any) -> np.ndarray:
    """The inputs of a recovery as numbers: those of a frame by name, where it has these names."""
    if isinstance(X, data.Table):
        return X.X
    if not is_frame(X):
        return np.asarray(X, dtype=float)
    names, levels = record.feature_names, record.options.get("one_hot") or {}
    columns = _column_names(X)
    if len(columns) == len(names) and not set(names) & set(columns):
        return np.asarray(X, dtype=float)  # the same inputs under other names
    return inputs_by_name(X, names, levels if isinstance(levels, Mapping) else {})


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


def _kept(values: Any, table: data.Table, role: str) -> Any:
    """What belongs to the rows that were kept; None where the table holds it."""
    if values is None or isinstance(values, str):
        return None
    found = np.asarray(values)
    if table.row is None:
        return found
    if len(found) != table.n_read:
        raise ValueError(f"{role} must have one entry for each of the {table.n_read} rows, got {len(found)}")
    return found[table.row]


def _target(names: tuple[str, ...]) -> dict[str, Any]:
    return {} if not names else {"target": names[0] if len(names) == 1 else list(names)}


def names_of(X: Any, y: Any) -> dict[str, Any]:
    """The name of a Series, of the columns of a frame, or of the target of a table."""
    if y is None:
        return _target(X.target_names) if isinstance(X, data.Table) else {}
    names = _column_names(y) if is_frame(y) else [getattr(y, "name", None)]
    named = tuple(one for one in names if isinstance(one, str) and one)
    return _target(named) if len(named) == len(names) else {}
