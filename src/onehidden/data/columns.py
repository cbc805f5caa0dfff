"""From named columns to numbers: types, gaps and categories, each fault one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.faults import must_be_none
from onehidden.data.features import Feature, Kind, as_text, choose, kind_of, learnt_levels, must_be_choosable
from onehidden.data.request import Request
from onehidden.data.table import Table, left_out, read_only, shorten
from onehidden.data.unfit import not_numeric
from onehidden.data.varying import varying

if TYPE_CHECKING:
    import pyarrow as pa

GAPS = "fill the gaps, or leave those rows out with nulls='drop' (--nulls drop)"


def build(table: pa.Table, request: Request, where: str) -> Table:
    """Select, convert and verify the columns of an Arrow table, called ``where`` in messages."""
    names = list(table.column_names)
    kinds = {field.name: kind_of(field.type) for field in table.schema}
    given = request.one_hot if isinstance(request.one_hot, Mapping) else {}
    must_be_choosable(names, request, where, [f"{c}={level}" for c in given for level in given[c][1:]])
    if table.num_rows == 0:
        raise ValueError(f"{where} has column names but no rows: give a table with data in it")
    text = text_columns(names, kinds, request) if request.one_hot is True else []
    levels = learnt_levels([table], text, where) if request.one_hot is True else given
    chosen = choose(names, kinds, request, levels)
    problems = list(not_numeric(chosen.features, request, kinds, where, lambda name: table.column(name)))
    known = [one for one in chosen.features if one.level is not None or kinds[one.column] is Kind.NUMBER]
    X = np.empty((table.num_rows, len(known)))
    faults: dict[str, str] = {}
    for j, feature in enumerate(known):
        X[:, j] = values_of(feature, table.column(feature.column), chosen.levels, where)
        _count_gaps(X[:, j], feature.column, table, faults)
    held = {name: _column(table, name, faults) for name, _ in request.roles if kinds[name] is Kind.NUMBER}
    good = np.isfinite(X).all(axis=1)
    for values in held.values():
        good &= np.isfinite(values)
    said = list(faults.values())
    if faults and not good.any():
        problems.append(
            f"{where} has no row without missing or infinite values: {', '.join(said[:5])}; leave out a "
            f"column that is mostly empty with {left_out([_emptiest(X, known)])}"
        )
    elif faults and request.nulls == "refuse":
        more = f"; {len(said) - 5} more columns too" if len(said) > 5 else ""
        problems.append(f"{where} must hold finite numbers only, but {', '.join(said[:5])}{more}: {GAPS}")
    if request.weight in held and np.any(held[request.weight] < 0):
        problems.append(f"{where} has negative weights in column {request.weight!r}: give numbers from 0 on")
    must_be_none(problems)
    notes = list(chosen.notes())
    kept = None
    if faults:
        X, held, kept = X[good], {name: values[good] for name, values in held.items()}, np.flatnonzero(good)
        notes.append(f"{table.num_rows - len(kept)} of {table.num_rows} rows with gaps were left out")
    features = [feature.name for feature in chosen.features]
    if request.constant == "drop":
        varies = varying(X.min(axis=0), X.max(axis=0))
        flat = [name for name, one in zip(features, varies, strict=True) if not one]
        if flat:
            notes.append(constant_note(flat))
            X = np.ascontiguousarray(X[:, varies])
            features = [name for name, one in zip(features, varies, strict=True) if one]
        must_have_features(features, where)
    y = together([held[name] for name in request.targets])
    must_be_targets(y, request.targets, where)
    beside: dict[str, Any] = {}
    for role, name in request.beside.items():
        beside |= {role: read_only(held[name]), f"{role}_name": name}
    return Table(
        read_only(X), None if y is None else read_only(y), tuple(features), request.targets,
        levels=chosen.levels, notes=tuple(notes), row=kept, n_read=table.num_rows, **beside,
    )  # fmt: skip


def _emptiest(X: np.ndarray, features: Sequence[Feature]) -> str:
    """The feature with most gaps, whose leaving out may help."""
    return features[int(np.argmax((~np.isfinite(X)).sum(axis=0)))].column


def together(targets: Sequence[np.ndarray]) -> np.ndarray | None:
    """One target (n,), several (n, q), or None."""
    if not targets:
        return None
    return targets[0] if len(targets) == 1 else np.column_stack(targets)


def must_be_targets(y: np.ndarray | None, names: Sequence[str], where: str) -> None:
    """Several targets need more rows than they are, and each must vary: one that does not says nothing."""
    if y is None or y.ndim == 1:
        return
    n, q = y.shape
    if q >= n:
        raise ValueError(f"{where} has {n} rows for {q} targets: bring more rows, or name fewer targets")
    must_be_none(list(flat_targets(y.min(axis=0), y.max(axis=0), names)))


def flat_targets(low: np.ndarray, high: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    """A sentence for each of several targets that does not vary."""
    for j in np.flatnonzero(~varying(low, high)).tolist():
        yield f"target {names[j]!r} is constant ({low[j]:g}): nothing explains it, take it out of the targets"


def constant_note(flat: Sequence[str]) -> str:
    """What is said of features that were left out because they do not vary."""
    if len(flat) == 1:
        return f"column {shorten(flat)} is constant and was left out"
    return f"columns {shorten(flat)} are constant and were left out"


def must_have_features(features: Sequence[object], where: str) -> None:
    """At least one feature must be left."""
    if not features:
        raise ValueError(f"{where} has no feature that varies: give a table with at least one")


def text_columns(names: Sequence[str], kinds: Mapping[str, Kind], request: Request) -> list[str]:
    """The text columns among the features asked for."""
    other = {*dict(request.roles), *request.drop}
    asked = [name for name in names if name not in other] if request.columns is None else request.columns
    return [name for name in asked if kinds.get(name) is Kind.TEXT]


def values_of(
    feature: Feature,
    column: pa.Array | pa.ChunkedArray,
    levels: Mapping[str, Sequence[str]],
    where: str,
) -> np.ndarray:
    """The numbers of a feature; NaN where the column has a gap."""
    if feature.level is None:
        return numbers(column, feature.name, where)
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its functions are made when it is imported: no checker sees them
    try:
        text = as_text(column)
    except pa.ArrowException:
        raise ValueError(f"{where} must have text in column {feature.column!r}, got {column.type}") from None
    known = compute.is_in(text, value_set=pa.array(levels[feature.column], pa.string()))
    strange = compute.and_kleene(compute.is_valid(text), compute.invert(known))
    if compute.any(strange).as_py():
        first = text.filter(strange)[0].as_py()
        raise ValueError(
            f"{where} holds {first[:40]!r} in column {feature.column!r}, whose categories are "
            f"{shorten(list(levels[feature.column]))}: use one of them"
        )
    flag = compute.equal(text, feature.level).cast(pa.float64())
    return flag.to_numpy(zero_copy_only=False)


def numbers(column: pa.Array | pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    """A column of numbers as float64, NaN at gaps."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    try:
        column = column.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise ValueError(
            f"{where} must have numeric columns, but {name!r} is of type {kind} in one of its parts"
        ) from None
    return column.to_numpy(zero_copy_only=False)


def _column(table: pa.Table, name: str, faults: dict[str, str]) -> np.ndarray:
    values = numbers(table.column(name), name, "the table")
    _count_gaps(values, name, table, faults)
    return values


def _count_gaps(values: np.ndarray, name: str, table: pa.Table, faults: dict[str, str]) -> None:
    """What is missing or infinite in a column, added to ``faults`` once a column."""
    bad = ~np.isfinite(values)
    if name in faults or not bad.any():
        return
    if table.column(name).null_count == len(values):
        faults[name] = f"column {name!r} is empty"
        return
    infinite = int(np.isinf(values).sum())
    missing = int(bad.sum()) - infinite
    parts = [f"{count} {what}" for count, what in ((missing, "missing"), (infinite, "infinite")) if count]
    plural = "value" if missing + infinite == 1 else "values"
    first = int(np.argmax(bad)) + 1
    faults[name] = f"column {name!r} has {' and '.join(parts)} {plural} (first at row {first})"
