"""From named columns to a Table: selection, types and missing values, each fault one sentence."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from onehidden.data.table import Table, read_only, shorten

if TYPE_CHECKING:
    import pyarrow as pa


def build(
    table: pa.Table,
    target: str | None,
    columns: Sequence[str] | None,
    where: str,
    weight: str | None = None,
    nulls: str = "refuse",
) -> Table:
    """Select, convert and verify the columns of an Arrow table.

    Parameters
    ----------
    table : the columns as read.
    target : name of the target column, or None.
    columns : names of the feature columns; every column but the target when None.
    where : how the source is called in messages.
    weight : name of the column of weights, or None.
    nulls : "refuse" rows with missing or infinite values, or "drop" them.
    """
    names = list(table.column_names)
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{where} has more than one column called {shorten(repeated)}: rename them so that each name "
            "is used once"
        )
    if target is not None:
        must_exist(target, names, where, "target column")
    if weight is not None:
        must_exist(weight, names, where, "weight column")
        if weight == target:
            raise ValueError(f"{weight!r} cannot be both the target and the weight: name two columns")
    features = choose_features([name for name in names if name != weight], target, columns, where)
    if table.num_rows == 0:
        raise ValueError(f"{where} has column names but no rows: give a table with data in it")
    wanted = [*features, *(name for name in (target, weight) if name is not None)]
    _must_be_numeric(table, wanted, where)
    X = np.empty((table.num_rows, len(features)))
    faults: list[str] = []
    for j, name in enumerate(features):
        X[:, j] = _values(table, name, faults)
    y = None if target is None else _values(table, target, faults)
    w = None if weight is None else _values(table, weight, faults)
    if faults and nulls == "drop":
        good = np.isfinite(X).all(axis=1)
        for values in (y, w):
            good &= True if values is None else np.isfinite(values)
        if not good.any():
            raise ValueError(
                f"{where} has no row without missing or infinite values: {', '.join(faults[:5])}"
            )
        X, y, w = X[good], y if y is None else y[good], w if w is None else w[good]
    elif faults:
        more = f"; {len(faults) - 5} more columns too" if len(faults) > 5 else ""
        raise ValueError(
            f"{where} must hold finite numbers only, but {', '.join(faults[:5])}{more}: drop those rows or "
            "fill the gaps first"
        )
    if w is not None and np.any(w < 0):
        raise ValueError(f"{where} has negative weights in column {weight!r}: give numbers from 0 on")
    return Table(
        read_only(X),
        None if y is None else read_only(y),
        tuple(features),
        target,
        None if w is None else read_only(w),
        weight,
    )


def choose_features(
    names: list[str], target: str | None, columns: Sequence[str] | None, where: str
) -> list[str]:
    """The feature columns: those listed, or all but the target."""
    if columns is None:
        features = [name for name in names if name != target]
        if not features:
            held = "no columns" if target is None else f"only the target {target!r}"
            raise ValueError(f"{where} holds {held}: at least one feature column is needed beside the target")
        nameless = [i for i, name in enumerate(names) if name.strip() == ""]
        if nameless:
            raise ValueError(
                f"{where} has no name for column {nameless[0] + 1}, which is how a saved row index looks: "
                "name it, save without the index, or list the feature columns to use"
            )
        return features
    if isinstance(columns, str):
        raise ValueError(f"columns must be a list of names, got the text {columns!r}: write [{columns!r}]")
    features = [str(name) for name in columns]
    if not features:
        raise ValueError("columns must name at least one feature column, got an empty list")
    for name in features:
        must_exist(name, names, where, "column")
    if target in features:
        raise ValueError(f"{target!r} cannot be both the target and a feature: take it out of columns")
    twice = [name for name, count in Counter(features).items() if count > 1]
    if twice:
        raise ValueError(f"columns names {shorten(twice)} more than once: list each feature once")
    return features


def must_exist(name: str, names: list[str], where: str, role: str) -> None:
    """A missing column is refused with those it may have meant."""
    if name in names:
        return
    folded = {other.strip().casefold(): other for other in reversed(names)}
    near = [folded[k] for k in difflib.get_close_matches(name.strip().casefold(), folded, 3, 0.6)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose one of {shorten(names, 8)}"
    raise ValueError(f"{where} has no {role} {name!r}: {hint}")


def _must_be_numeric(table: pa.Table, wanted: list[str], where: str) -> None:
    import pyarrow as pa

    bad = []
    for name in wanted:
        kind = table.schema.field(name).type
        numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not (numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            bad.append(f"{name!r} ({_example(table, name)})")
    if bad:
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise ValueError(
            f"{where} must have numeric columns, but {', '.join(bad[:5])}{more} "
            f"{'is' if len(bad) == 1 else 'are'} not: encode as numbers, or list the feature columns to use"
        )


def _example(table: pa.Table, name: str) -> str:
    """The first present value that is no number, else the type: what to look for in the file."""
    column = table.column(name)
    for scalar in column.slice(0, 10_000):
        try:
            value = scalar.as_py()
        except UnicodeDecodeError:
            return "text that is not UTF-8"
        if value is None or _is_number(value):
            continue
        text = str(value)
        return f"for example {text if len(text) <= 30 else text[:27] + '...'!r}"
    return f"of type {column.type}"


def _is_number(value: object) -> bool:
    try:
        float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return False
    return True


def _values(table: pa.Table, name: str, faults: list[str]) -> np.ndarray:
    """The column as float64; what is missing or infinite in it is added to ``faults``."""
    import pyarrow as pa

    column = table.column(name)
    if pa.types.is_null(column.type):
        faults.append(f"column {name!r} is empty")
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    values = column.cast(pa.float64(), safe=False).to_numpy()
    bad = ~np.isfinite(values)
    if bad.any():
        infinite = int(np.isinf(values).sum())
        missing = int(bad.sum()) - infinite
        parts = [f"{count} {what}" for count, what in ((missing, "missing"), (infinite, "infinite")) if count]
        first = int(np.argmax(bad)) + 1
        plural = "value" if missing + infinite == 1 else "values"
        faults.append(f"column {name!r} has {' and '.join(parts)} {plural} (first at row {first})")
    return values
