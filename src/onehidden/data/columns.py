"""From named columns to numbers: types, gaps and categories, each fault one sentence."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.features import Feature, Kind, as_text, choose, kind_of, learnt_levels, must_be_choosable
from onehidden.data.request import Request
from onehidden.data.table import Table, read_only, shorten
from onehidden.data.varying import varying

if TYPE_CHECKING:
    import pyarrow as pa

_has_comma = re.compile(r"\s*[-+]?\d+,\d+\s*").fullmatch
_COMMAS = "use decimal=',' (--decimal ,) to read decimal commas"
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
    must_be_numeric(chosen.features, request, kinds, where, lambda name: table.column(name))
    X = np.empty((table.num_rows, len(chosen.features)))
    faults: dict[str, str] = {}
    for j, feature in enumerate(chosen.features):
        X[:, j] = values_of(feature, table.column(feature.column), chosen.levels, where)
        _count_gaps(X[:, j], feature.column, table, faults)
    y, w = (
        None if name is None else _column(table, name, faults) for name in (request.target, request.weight)
    )
    kept = None
    if faults and request.nulls == "drop":
        good = np.isfinite(X).all(axis=1)
        for values in (y, w):
            good &= True if values is None else np.isfinite(values)
        if not good.any():
            said = ", ".join(list(faults.values())[:5])
            raise ValueError(f"{where} has no row without missing or infinite values: {said}")
        X, y, w = X[good], y if y is None else y[good], w if w is None else w[good]
        kept = np.flatnonzero(good)
    elif faults:
        said = list(faults.values())
        more = f"; {len(said) - 5} more columns too" if len(said) > 5 else ""
        raise ValueError(f"{where} must hold finite numbers only, but {', '.join(said[:5])}{more}: {GAPS}")
    if w is not None and np.any(w < 0):
        raise ValueError(f"{where} has negative weights in column {request.weight!r}: give numbers from 0 on")
    notes = list(chosen.notes())
    features = [feature.name for feature in chosen.features]
    if kept is not None:
        notes.append(f"{table.num_rows - len(kept)} of {table.num_rows} rows with gaps were left out")
    if request.constant == "drop":
        good = varying(X.min(axis=0), X.max(axis=0))
        flat = [name for name, varies in zip(features, good, strict=True) if not varies]
        if flat:
            notes.append(constant_note(flat))
            X = np.ascontiguousarray(X[:, good])
            features = [name for name, varies in zip(features, good, strict=True) if varies]
        must_have_features(features, where)
    return Table(
        read_only(X), None if y is None else read_only(y), tuple(features), request.target,
        None if w is None else read_only(w), request.weight, chosen.levels, tuple(notes), kept,
        table.num_rows,
    )  # fmt: skip


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
    other = {request.target, request.weight, *request.drop}
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


def must_be_numeric(
    features: Sequence[Feature],
    request: Request,
    kinds: Mapping[str, Kind],
    where: str,
    column_of: Callable[[str], pa.ChunkedArray | None],
) -> None:
    """Text, dates and the rest are refused with what can be done about them; the target before the features.

    ``column_of`` gives the column of a name, to show one of its values, or None where they are not at hand.
    """
    roles = ((request.target, "the target must be a number"), (request.weight, "weights must be numbers"))
    for name, must in roles:
        if name is not None and kinds[name] is not Kind.NUMBER:
            column = column_of(name)
            comma = column is not None and any(map(_has_comma, _texts(column)))
            cure = _COMMAS if comma else "give numbers there, or name another column"
            raise ValueError(
                f"{must}, but {name!r} of {where} is not ({_shown(kinds[name], column)}): {cure}"
            )
    wanted = [feature.column for feature in features if feature.level is None]
    bad = [name for name in wanted if kinds[name] is not Kind.NUMBER]
    if not bad:
        return
    columns = [column_of(name) for name in bad[:5]]
    shown = [f"{name!r} ({_shown(kinds[name], held)})" for name, held in zip(bad, columns, strict=False)]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    cure = _cure(bad, kinds, [[] if held is None else _texts(held) for held in columns])
    raise ValueError(
        f"{where} must have numeric columns, but {', '.join(shown)}{more} "
        f"{'is' if len(bad) == 1 else 'are'} not: {cure}"
    )


def _cure(bad: list[str], kinds: Mapping[str, Kind], texts: list[list[str]]) -> str:
    """What to do about columns that are no numbers, of which the first few hold these texts."""
    first = bad[0]
    typed = " ".join(f"--drop {shlex.quote(name)}" for name in bad[:5])
    out = f"leave {'it' if len(bad) == 1 else 'them'} out with drop={bad[:5]!r} ({typed})"
    if any(_has_comma(text) for held in texts for text in held):
        return f"{_COMMAS}, or {out}"
    if kinds[first] is Kind.DATE:
        return f"turn dates into numbers, such as days since the first, or {out}"
    if kinds[first] is not Kind.TEXT:
        return out
    present = texts[0]
    counted = [text for text in present if _is_number(text)]
    if 2 * len(counted) > len(present):
        odd = next((text for text in present if not _is_number(text)), "…")
        return f"name what stands for a gap with na=[{odd[:20]!r}] (--na {odd[:20]!r}), or {out}"
    return f"make columns of categories with one_hot=True (--one-hot), or {out}"


def _texts(column: pa.ChunkedArray) -> list[str]:
    try:
        return [value for value in as_text(column.slice(0, 1000)).to_pylist() if value is not None]
    except (UnicodeDecodeError, ValueError, NotImplementedError):  # lists and the like are no text
        return []


def _shown(kind: Kind, column: pa.ChunkedArray | None) -> str:
    """The first present value that is no number, else the kind: what to look for in the file."""
    for scalar in () if column is None else column.slice(0, 10_000):
        try:
            value = scalar.as_py()
        except (UnicodeDecodeError, ValueError):
            return "text that is not UTF-8"
        if value is None or _is_number(value):
            continue
        text = str(value).removesuffix(" 00:00:00")  # of a day, which has no hours
        text = text if len(text) <= 30 else text[:27] + "..."
        return f"{'dates, ' if kind is Kind.DATE else ''}for example {text!r}"
    return kind.value


def _is_number(value: object) -> bool:
    try:
        float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError):
        return False
    return True


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
