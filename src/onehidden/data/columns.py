"""Columns of a table: which are features, of what kind, and their values as numbers."""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.table import Request, left_out, must_be_few, shorten
from onehidden.refused import meant

if TYPE_CHECKING:
    import pyarrow as pa


Levels = Mapping[str, tuple[str, ...]]
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


class ColumnKind(enum.Enum):
    """What a column holds."""

    NUMBER = "numbers"
    TEXT = "text"
    DATE = "dates"
    OTHER = "something else"


def kind_of(kind: pa.DataType) -> ColumnKind:
    """The kind of an Arrow type; a dictionary is a text column whatever its codes."""
    from pyarrow import types

    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    text = (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)
    if any(holds(kind) for holds in numeric):
        return ColumnKind.NUMBER
    if any(holds(kind) for holds in text):
        return ColumnKind.TEXT
    return ColumnKind.DATE if types.is_temporal(kind) else ColumnKind.OTHER


@dataclass(frozen=True)
class Feature:
    """An input: the numbers of a column, or with ``level`` 1 where the column holds that text, else 0."""

    name: str
    column: str
    level: str | None = None


def choose(names: Sequence[str], request: Request, levels: Levels) -> tuple[Feature, ...]:
    """The features that a request selects; ``levels`` are the categories of the columns to encode."""
    made = {
        column: [Feature(f"{column}={level}", column, level) for level in found[1:]]
        for column, found in levels.items()
    }
    single = {one.name: one for many in made.values() for one in many if one.name not in set(names)}
    features: list[Feature] = []
    for name in wanted_columns(names, request):
        features += made[name] if name in made else [single.get(name, Feature(name, name))]
    must_be_few(len(features), "the table")
    if twice := repeated([one.name for one in features]):
        raise ValueError(f"two features would be called {shorten(twice)}: rename the column")
    for column, found in levels.items():
        must_be_plain(found, f"column {column!r}", "a category")
    return tuple(features)


def level_notes(features: Sequence[Feature], levels: Levels) -> Iterator[str]:
    """What was made of text columns, a sentence each."""
    used = {feature.column for feature in features}
    for column, (base, *others) in levels.items():
        if not others:
            yield f"column {column!r} is {base!r} in every row and was left out"
        elif column in used:
            yield f"column {column!r} became {shorten(others)} against the base {base!r}"


def wanted_columns(names: Sequence[str], request: Request) -> list[str]:
    """The columns that a request names, or all that have no other role."""
    if request.columns is not None:
        return list(request.columns)
    other = {*dict(request.roles), *request.drop}
    return [name for name in names if name not in other]


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def must_be_choosable(names: Sequence[str], request: Request, where: str) -> None:
    """Refuse columns that are missing, nameless, named twice or given two roles."""
    must_be_plain(names, where)
    if twice := repeated(names):
        raise ValueError(f"{where} has more than one column called {shorten(twice)}: rename them")
    given = request.one_hot if isinstance(request.one_hot, Mapping) else {}
    known = {*names, *(f"{column}={level}" for column in given for level in given[column][1:])}
    asked = [(name, f"{role} column") for name, role in request.roles]
    asked += [(name, "column to leave out called") for name in request.drop]
    for name, what in [*asked, *((name, "column") for name in request.columns or ())]:
        if name not in (known if what == "column" else names):
            all_of_them = f"{'it has' if what == 'column' else 'choose one of'} {shorten(names, 8)}"
            raise ValueError(f"{where} has no {what} {name!r}: {meant(name, names, all_of_them)}")
    wanted = wanted_columns(names, request)
    if not wanted:
        raise ValueError(
            f"{where} has no feature column left beside {shorten([*dict(asked)]) or 'nothing'}: at least one "
            "feature column is needed"
        )
    if nameless := [i for i, name in enumerate(names) if name.strip() == "" and name in wanted]:
        raise ValueError(
            f"{where} has no name for column {nameless[0] + 1}, which is how a saved row index looks: "
            "name it, save without the index, or list the feature columns to use"
        )


def must_be_plain(names: Sequence[str], where: str, what: str = "a column name") -> None:
    """Refuse names that control a terminal, or turn the direction of the text around them."""
    for name in names:
        if _CONTROLS.search(name):
            raise ValueError(f"{where} has {what} with control characters, {shorten([name[:60]])}: rename it")


def learnt_levels(
    tables: Iterable[pa.RecordBatch], columns: Sequence[str], where: str, most: int = 100
) -> dict[str, tuple[str, ...]]:
    """The categories of text columns: the most frequent first, which is the base, then by name.

    Each category is an input with weights of its own in every unit; more than ``most`` are names or codes of
    single rows.
    """
    counts: dict[str, Counter[str]] = {column: Counter() for column in columns}
    for table in tables if columns else ():
        for column, counter in counts.items():
            for pair in table.column(column).cast("string").drop_null().value_counts().to_pylist():
                counter[pair["values"]] += pair["counts"]
            if len(counter) > most:
                raise ValueError(
                    f"{where} has more than {most} different texts in column {column!r}: leave it out "
                    f"with {left_out([column])}, or join its categories into fewer"
                )
    found = {}
    for column, counter in counts.items():
        if not counter:
            raise ValueError(f"{where} has only missing values in column {column!r}: leave it out")
        base, *_ = sorted(counter, key=lambda level: (-counter[level], level))
        found[column] = (base, *sorted(counter.keys() - {base}))
    return found


def values_of(feature: Feature, column: pa.Array | pa.ChunkedArray, levels: Levels, where: str) -> np.ndarray:
    """The numbers of a feature; NaN where the column has a gap."""
    if feature.level is None:
        return numbers(column, feature.name, where)
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its functions are made when it is imported: no checker sees them
    try:
        text = column.cast("string")
    except pa.ArrowException:
        raise ValueError(f"{where} must have text in column {feature.column!r}, got {column.type}") from None
    known = compute.is_in(text, value_set=pa.array([*levels[feature.column], None], pa.string()))
    if not compute.all(known).as_py():
        first = text.filter(compute.invert(known))[0].as_py()
        raise ValueError(
            f"{where} holds {first[:40]!r} in column {feature.column!r}, whose categories are "
            f"{shorten(levels[feature.column])}: use one of them"
        )
    return compute.equal(text, feature.level).cast("double").to_numpy(zero_copy_only=False)


def numbers(column: pa.Array | pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    """A column of numbers as float64, NaN at gaps."""
    import pyarrow as pa

    try:
        column = column.cast("int8") if pa.types.is_boolean(column.type) else column
        return column.cast("double", safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise ValueError(
            f"{where} must have numeric columns, but {name!r} is of type {column.type}: make columns of "
            "categories with one_hot=True, or OneHotEncoder of scikit-learn"
        ) from None


def labels(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """A column of text as objects, None at gaps."""
    return np.array(column.cast("string").to_pylist(), dtype=object)


def is_gap(values: np.ndarray) -> np.ndarray:
    """Where numbers are missing or infinite, or labels missing."""
    if values.dtype == object:
        return np.array([one is None for one in values], dtype=bool)
    return ~np.isfinite(values)


def must_be_numbers(
    columns: Iterable[str],
    roles: Mapping[str, str],
    kinds: Mapping[str, ColumnKind],
    where: str,
    some: Callable[[str], list[Any]],
) -> None:
    """Refuse text, dates and the rest, with what can be done; columns that have a role come first.

    ``some`` gives values of a column: one of them is shown.
    """
    bad = [name for name in (*roles, *columns) if kinds[name] is not ColumnKind.NUMBER]
    if not bad:
        return
    kind, held, role = kinds[bad[0]], some(bad[0]), roles.get(bad[0])
    odd = str(next((value for value in held if not is_number(value)), kind.value))[:30]
    if any(has_comma(value) for name in bad[:5] for value in some(name)):
        cure = "use decimal=',' (--decimal ,) to read decimal commas"
    elif role is not None:
        cure = "give numbers there, or name another column"
        if role == "target" and kind is ColumnKind.TEXT:
            cure += "; labels are at most 50 different texts, no number among them, and not streamed"
    elif kind is ColumnKind.DATE:
        cure = "turn dates into numbers, such as days since the first"
    elif 2 * sum(map(is_number, held)) > len(held):
        cure = f"name what stands for a gap with na=[{odd!r}] (--na {odd!r})"
    else:
        cure = "make columns of categories with one_hot=True (--one-hot)"
    if role is None:
        cure += f", or leave out what is not needed with {left_out(bad[:5])}"
    shown = f"the {role} {bad[0]!r}" if role else f"{'column' if len(bad) == 1 else 'columns'} {shorten(bad)}"
    raise ValueError(f"{where} must hold numbers in {shown}, got {kind.value}, as {odd!r}: {cure}")


def has_comma(value: Any) -> bool:
    """Whether the value is a number with a decimal comma."""
    return isinstance(value, str) and re.fullmatch(r"\s*[-+]?\d+,\d+\s*", value) is not None


def is_number(value: Any) -> bool:
    """Whether a value is a number or reads as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
