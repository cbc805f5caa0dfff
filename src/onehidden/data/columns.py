"""Columns of a table: which are features, of what kind, and their values as numbers."""

from __future__ import annotations

import difflib
import enum
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.data.table import Request, left_out, must_be_few, must_be_none, shorten

if TYPE_CHECKING:
    import pyarrow as pa


Levels = Mapping[str, tuple[str, ...]]
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_COMMAS = "use decimal=',' (--decimal ,) to read decimal commas"


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
    """Refuse columns that are missing, nameless, named twice or given two roles, one sentence each."""
    must_be_plain(names, where)
    problems: list[str] = []
    if twice := repeated(names):
        problems.append(
            f"{where} has more than one column called {shorten(twice)}: rename them so that each name "
            "is used once"
        )
    roles = [(name, f"{role} column") for name, role in request.roles]
    roles += [(name, "column to leave out called") for name in request.drop]
    problems += [_missing(name, names, where, role) for name, role in roles if name not in names]
    problems += (_left_over if request.columns is None else _asked_for)(names, request, where)
    must_be_none(problems)


def _left_over(names: Sequence[str], request: Request, where: str) -> Iterator[str]:
    """What is wrong with the columns that are left as features."""
    left = wanted_columns(names, request)
    if not left:
        called = "target" if len(request.targets) == 1 else "targets"
        held = f"only the {called} {shorten(request.targets)}" if request.targets else "no columns"
        more = " beside what is left out" if request.drop else ""
        yield f"{where} holds {held}{more}: at least one feature column is needed beside the target"
    nameless = [i for i, name in enumerate(names) if name.strip() == "" and name in left]
    if nameless:
        yield (
            f"{where} has no name for column {nameless[0] + 1}, which is how a saved row index looks: "
            "name it, save without the index, or list the feature columns to use"
        )


def _asked_for(names: Sequence[str], request: Request, where: str) -> Iterator[str]:
    """What is wrong with the features that are named."""
    wanted = request.columns or ()
    if not wanted:
        yield "columns must name at least one feature column, got an empty list"
    given = request.one_hot if isinstance(request.one_hot, Mapping) else {}
    known = [*names, *(f"{column}={level}" for column in given for level in given[column][1:])]
    unknown = [name for name in dict.fromkeys(wanted) if name not in set(known)]
    if len(unknown) > 2:  # more than two are another table's
        yield f"{where} has no columns {shorten(unknown)}: choose among {shorten(known, 8)}"
    else:
        yield from (_missing(name, known, where, "column") for name in unknown)
    for name, role in request.roles:
        if name in wanted:
            yield f"{name!r} cannot be both the {role} and a feature: take it out of columns"
    if both := sorted(set(request.drop) & set(wanted)):
        yield f"columns and drop both name {shorten(both)}: take it out of one of them"
    if twice := repeated(wanted):
        yield f"columns names {shorten(twice)} more than once: list each feature once"


def _missing(name: str, names: Sequence[str], where: str, role: str) -> str:
    """The sentence about a missing column, with those it may have meant."""
    folded = {other.strip().casefold(): other for other in reversed(names[:2000])}  # 10 µs a comparison
    near = [folded[k] for k in difflib.get_close_matches(name.strip().casefold(), folded, 3, 0.6)]
    near += [other for other in names if "," in other and name in (w.strip() for w in other.split(","))][:1]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose one of {shorten(names, 8)}"
    return f"{where} has no {role} {name!r}: {hint}"


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
            for pair in as_text(table.column(column)).drop_null().value_counts().to_pylist():
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


def as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A text column as plain strings."""
    import pyarrow as pa

    return column.cast(pa.string())


def values_of(feature: Feature, column: pa.Array | pa.ChunkedArray, levels: Levels, where: str) -> np.ndarray:
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
    known = compute.is_in(text, value_set=pa.array([*levels[feature.column], None], pa.string()))
    if not compute.all(known).as_py():
        first = text.filter(compute.invert(known))[0].as_py()
        raise ValueError(
            f"{where} holds {first[:40]!r} in column {feature.column!r}, whose categories are "
            f"{shorten(levels[feature.column])}: use one of them"
        )
    return compute.equal(text, feature.level).cast(pa.float64()).to_numpy(zero_copy_only=False)


def numbers(column: pa.Array | pa.ChunkedArray, name: str, where: str) -> np.ndarray:
    """A column of numbers as float64, NaN at gaps."""
    import pyarrow as pa

    try:
        column = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        raise ValueError(
            f"{where} must have numeric columns, but {name!r} is of type {column.type} in one of its parts"
        ) from None


def labels(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """A column of text as objects, None at gaps."""
    return np.array(as_text(column).to_pylist(), dtype=object)


def is_gap(values: np.ndarray) -> np.ndarray:
    """Where numbers are missing or infinite, or labels missing."""
    if values.dtype == object:
        return np.array([one is None for one in values], dtype=bool)
    return ~np.isfinite(values)


def constant_note(flat: Sequence[str]) -> str:
    """The note on features that were left out because they do not vary."""
    if len(flat) == 1:
        return f"column {shorten(flat)} is constant and was left out"
    return f"columns {shorten(flat)} are constant and were left out"


def not_numeric(
    features: Sequence[Feature],
    request: Request,
    kinds: Mapping[str, ColumnKind],
    where: str,
    some: Callable[[str], list[Any]],
    labelled: Iterable[str] = (),
) -> Iterator[str]:
    """A sentence each for text, dates and the rest, with what can be done; the targets before the features.

    ``some`` gives values of a column to show. Columns of ``labelled`` may hold text.
    """
    for name, role in request.roles:
        if kinds[name] is not ColumnKind.NUMBER and name not in labelled:
            held = some(name)
            comma = any(map(has_comma, held))
            cure = _COMMAS if comma else "give numbers there, or name another column"
            if role == "target" and not comma and kinds[name] is ColumnKind.TEXT:
                cure += "; labels are at most 50 different texts, no number among them, and not streamed"
            shown = _shown(kinds[name], held)
            yield f"the {role} must be a number, but {name!r} of {where} is not ({shown}): {cure}"
    wanted = [feature.column for feature in features if feature.level is None]
    bad = [name for name in wanted if kinds[name] is not ColumnKind.NUMBER]
    if not bad:
        return
    values = [some(name) for name in bad[:5]]
    shown = [f"{name!r} ({_shown(kinds[name], held)})" for name, held in zip(bad, values, strict=False)]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    yield (
        f"{where} must have numeric columns, but {', '.join(shown)}{more} "
        f"{'is' if len(bad) == 1 else 'are'} not: {_cure(bad, kinds, values)}"
    )


def _cure(bad: list[str], kinds: Mapping[str, ColumnKind], values: list[list[Any]]) -> str:
    """What to do about columns that are no numbers, of which the first few hold these values."""
    out = f"leave {'it' if len(bad) == 1 else 'them'} out with {left_out(bad[:5])}"
    if any(has_comma(value) for held in values for value in held):
        return f"{_COMMAS}, or {out}"
    if kinds[bad[0]] is ColumnKind.DATE:
        return f"turn dates into numbers, such as days since the first, or {out}"
    if kinds[bad[0]] is not ColumnKind.TEXT:
        return out
    words = [value for value in values[0] if not is_number(value)]
    if words and 2 * len(words) < len(values[0]):  # most are numbers
        return f"name what stands for a gap with na=[{words[0][:20]!r}] (--na {words[0][:20]!r}), or {out}"
    return f"make columns of categories with one_hot=True (--one-hot), or {out}"


def _shown(kind: ColumnKind, held: list[Any]) -> str:
    """The first value that is no number, else the kind: what to look for in the file."""
    odd = next((value for value in held if not is_number(value)), None)
    if odd is None:
        return kind.value
    text = str(odd).removesuffix(" 00:00:00")  # of a day, which has no hours
    text = text if len(text) <= 30 else text[:27] + "..."
    return f"{'dates, ' if kind is ColumnKind.DATE else ''}for example {text!r}"


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
