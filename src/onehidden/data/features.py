"""Features: which numbers are made of which columns, and the categories of text columns."""

from __future__ import annotations

import difflib
import enum
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onehidden.data.faults import must_be_none
from onehidden.data.request import Request
from onehidden.data.size import must_be_few
from onehidden.data.table import left_out, shorten

if TYPE_CHECKING:
    import pyarrow as pa

# Categories of one column at most: each is an input with weights of its own in every unit. More of them are
# names or codes of single rows.
MOST_LEVELS = 100
_EACH = 2  # missing columns of which each has a line: more of them are another table's
_COMPARED = 2000  # names that a missing one is held against: a comparison takes some ten microseconds


class Kind(enum.Enum):
    """What a column holds."""

    NUMBER = "numbers"
    TEXT = "text"
    DATE = "dates"
    OTHER = "something else"


def kind_of(kind: pa.DataType) -> Kind:
    """The kind of an Arrow type; a dictionary is a text column whatever its codes."""
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return Kind.NUMBER
    if types.is_boolean(kind) or types.is_null(kind):
        return Kind.NUMBER
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Kind.TEXT
    if types.is_dictionary(kind):
        return Kind.TEXT
    return Kind.DATE if types.is_temporal(kind) else Kind.OTHER


@dataclass(frozen=True)
class Feature:
    """An input: the numbers of a column, or with ``level`` 1 where the column holds that text, else 0."""

    name: str
    column: str
    level: str | None = None


@dataclass(frozen=True)
class Chosen:
    """The features, and of every text column among them its categories, the base first."""

    features: tuple[Feature, ...]
    levels: Mapping[str, tuple[str, ...]]

    def notes(self) -> Iterator[str]:
        """What was made of text columns, a sentence each."""
        used = {feature.column for feature in self.features}
        for column, (base, *others) in self.levels.items():
            if not others:
                yield f"column {column!r} is {base!r} in every row and was left out"
            elif column in used:
                yield f"column {column!r} became {shorten(others)} against the base {base!r}"


def choose(
    names: Sequence[str], kinds: Mapping[str, Kind], request: Request, levels: Mapping[str, Sequence[str]]
) -> Chosen:
    """The features that a request asks for; ``levels`` are the categories of columns to encode."""
    known = {column: tuple(map(str, found)) for column, found in levels.items()}
    made = {column: _indicators(column, found) for column, found in known.items()}
    single = {one.name: one for many in made.values() for one in many}
    features: list[Feature] = []
    held = set(names)
    for name in wanted_columns(names, request, tuple(single)):
        if name in made:
            features += made[name]
        else:
            features.append(single[name] if name in single and name not in held else Feature(name, name))
    must_be_few(len(features), "the table")
    twice = [name for name, count in Counter(one.name for one in features).items() if count > 1]
    if twice:
        raise ValueError(f"two features would be called {shorten(twice)}: rename the column")
    for column, found in known.items():
        must_be_plain(found, f"column {column!r}", "a category")
    return Chosen(tuple(features), known)


def wanted_columns(names: Sequence[str], request: Request, made: Sequence[str] = ()) -> list[str]:
    """The columns a request asks for by name, or all that are left; ``made`` may be asked for too."""
    other = {*dict(request.roles), *request.drop}
    if request.columns is None:
        return [name for name in names if name not in other]
    return list(request.columns)


def _indicators(column: str, levels: tuple[str, ...]) -> list[Feature]:
    return [Feature(f"{column}={level}", column, level) for level in levels[1:]]


def must_be_choosable(names: Sequence[str], request: Request, where: str, made: Sequence[str] = ()) -> None:
    """One sentence each for columns that are missing, nameless, named twice or asked for in two roles."""
    must_be_plain(names, where)
    problems: list[str] = []
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        problems.append(
            f"{where} has more than one column called {shorten(repeated)}: rename them so that each name "
            "is used once"
        )
    roles = [(name, f"{role} column") for name, role in request.roles]
    roles += [(name, "column to leave out called") for name in request.drop]
    problems += [_missing(name, names, where, role) for name, role in roles if name not in names]
    if request.columns is None:
        problems += _left_over(names, request, where)
    else:
        problems += _asked_for(names, request, where, made)
    must_be_none(problems)


def _left_over(names: Sequence[str], request: Request, where: str) -> Iterator[str]:
    """What is wrong with the columns that are left as features."""
    left = wanted_columns(names, request)
    if not left:
        told = "target" if len(request.targets) == 1 else "targets"
        held = f"only the {told} {shorten(request.targets)}" if request.targets else "no columns"
        more = " beside what is left out" if request.drop else ""
        yield f"{where} holds {held}{more}: at least one feature column is needed beside the target"
    nameless = [i for i, name in enumerate(names) if name.strip() == "" and name in left]
    if nameless:
        yield (
            f"{where} has no name for column {nameless[0] + 1}, which is how a saved row index looks: "
            "name it, save without the index, or list the feature columns to use"
        )


def _asked_for(names: Sequence[str], request: Request, where: str, made: Sequence[str]) -> Iterator[str]:
    """What is wrong with the features asked for by name."""
    assert request.columns is not None
    if not request.columns:
        yield "columns must name at least one feature column, got an empty list"
    known = [*names, *made]
    unknown = sorted(set(request.columns) - set(known), key=request.columns.index)
    if len(unknown) > _EACH:
        yield f"{where} has no columns {shorten(unknown)}: choose among {shorten(known, 8)}"
    else:
        yield from (_missing(name, known, where, "column") for name in unknown)
    for name, role in request.roles:
        if name in request.columns:
            yield f"{name!r} cannot be both the {role} and a feature: take it out of columns"
    both = sorted(set(request.drop) & set(request.columns))
    if both:
        yield f"columns and drop both name {shorten(both)}: take it out of one of them"
    twice = [name for name, count in Counter(request.columns).items() if count > 1]
    if twice:
        yield f"columns names {shorten(twice)} more than once: list each feature once"


def _missing(name: str, names: Sequence[str], where: str, role: str) -> str:
    """The sentence about a missing column, with those it may have meant."""
    folded = {other.strip().casefold(): other for other in reversed(names[:_COMPARED])}
    near = [folded[k] for k in difflib.get_close_matches(name.strip().casefold(), folded, 3, 0.6)]
    near += [other for other in names if "," in other and name in (w.strip() for w in other.split(","))][:1]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"choose one of {shorten(names, 8)}"
    return f"{where} has no {role} {name!r}: {hint}"


def must_be_plain(names: Sequence[str], where: str, what: str = "a column name") -> None:
    """Names that steer a terminal, or turn the direction of the text around them, are refused."""
    for name in names:
        if not name.isprintable() and any(_steers(mark) for mark in name):
            raise ValueError(f"{where} has {what} with control characters, {shorten([name[:60]])}: rename it")


def _steers(mark: str) -> bool:
    if mark in "\t\r\n" or mark.isprintable():
        return False
    return unicodedata.category(mark) in ("Cc", "Cs") or unicodedata.bidirectional(mark) in (
        "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
    )  # fmt: skip


def learnt_levels(
    tables: Iterable[pa.RecordBatch | pa.Table], columns: Sequence[str], where: str
) -> dict[str, tuple[str, ...]]:
    """The categories of text columns: the most frequent first, which is the base, then by name."""
    counts: dict[str, Counter[str]] = {column: Counter() for column in columns}
    for table in tables if columns else ():
        for column, counter in counts.items():
            for pair in as_text(table.column(column)).value_counts().to_pylist():
                if pair["values"] is not None:
                    counter[pair["values"]] += pair["counts"]
            if len(counter) > MOST_LEVELS:
                raise ValueError(
                    f"{where} has more than {MOST_LEVELS} different texts in column {column!r}: leave it out "
                    f"with {left_out([column])}, or join its categories into fewer"
                )
    empty = [column for column, counter in counts.items() if not counter]
    if empty:
        raise ValueError(f"{where} has only missing values in column {empty[0]!r}: leave it out")
    found = {}
    for column, counter in counts.items():
        base = min(counter, key=lambda level: (-counter[level], level))
        found[column] = (base, *sorted(level for level in counter if level != base))
    return found


def as_text(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A text column as plain strings."""
    import pyarrow as pa

    return column if pa.types.is_string(column.type) else column.cast(pa.string())
