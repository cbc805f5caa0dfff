"""Columns that hold no numbers: what is said of them, and what can be done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from onehidden.data.features import Feature, Kind, as_text
from onehidden.data.request import Request
from onehidden.data.table import left_out

if TYPE_CHECKING:
    import pyarrow as pa

_has_comma = re.compile(r"\s*[-+]?\d+,\d+\s*").fullmatch
_COMMAS = "use decimal=',' (--decimal ,) to read decimal commas"


def not_numeric(
    features: Sequence[Feature],
    request: Request,
    kinds: Mapping[str, Kind],
    where: str,
    column_of: Callable[[str], pa.ChunkedArray | None],
) -> Iterator[str]:
    """A sentence each for text, dates and the rest, with what can be done; the targets before the features.

    ``column_of`` gives the column of a name, to show one of its values, or None where they are not at hand.
    """
    for name, role in request.roles:
        if kinds[name] is not Kind.NUMBER:
            column = column_of(name)
            comma = column is not None and any(map(_has_comma, _texts(column)))
            cure = _COMMAS if comma else "give numbers there, or name another column"
            if role == "target" and not comma and kinds[name] is Kind.TEXT:
                cure += "; classes are numbered for family='softmax' (--family softmax), or as text for"
                cure += " OneHiddenClassifier in Python"
            shown = _shown(kinds[name], column)
            yield f"the {role} must be a number, but {name!r} of {where} is not ({shown}): {cure}"
    wanted = [feature.column for feature in features if feature.level is None]
    bad = [name for name in wanted if kinds[name] is not Kind.NUMBER]
    if not bad:
        return
    columns = [column_of(name) for name in bad[:5]]
    shown = [f"{name!r} ({_shown(kinds[name], held)})" for name, held in zip(bad, columns, strict=False)]
    more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
    cure = _cure(bad, kinds, [[] if held is None else _texts(held) for held in columns])
    yield (
        f"{where} must have numeric columns, but {', '.join(shown)}{more} "
        f"{'is' if len(bad) == 1 else 'are'} not: {cure}"
    )


def _cure(bad: list[str], kinds: Mapping[str, Kind], texts: list[list[str]]) -> str:
    """What to do about columns that are no numbers, of which the first few hold these texts."""
    first = bad[0]
    out = f"leave {'it' if len(bad) == 1 else 'them'} out with {left_out(bad[:5])}"
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
