"""Request: which columns are wanted and how a file is to be read, checked once for every kind of source."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

OneHot = bool | Mapping[str, Sequence[str]]


class Reading(TypedDict, total=False):
    """The keywords of ``data.open`` beside the columns; ``Request`` says what they mean."""

    weight: str | None
    nulls: str
    drop: Sequence[str]
    one_hot: OneHot
    constant: str
    encoding: str | None
    decimal: str
    na: Sequence[str]


@dataclass(frozen=True)
class Dialect:
    """How a text file is written, as far as the caller knows.

    Attributes
    ----------
    encoding : of the characters; None for UTF-8, or cp1252 where the bytes are no UTF-8.
    decimal : the mark before decimals, "." or ",".
    na : texts that stand for a missing value, beside the usual ones.
    """

    encoding: str | None = None
    decimal: str = "."
    na: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.encoding is not None:
            try:
                known = codecs.lookup(self.encoding)
            except (LookupError, TypeError, ValueError):
                known = None
            if known is None or not getattr(known, "_is_text_encoding", True):
                raise ValueError(
                    f"encoding must be one that Python knows, as 'utf-8', 'cp1252' or 'utf-16', got "
                    f"{self.encoding!r}"
                )


@dataclass(frozen=True)
class Request:
    """What to take from a source.

    Attributes
    ----------
    target, weight : their columns, None for none.
    columns : feature columns in this order; all others when None.
    nulls : "refuse" or "drop" rows with missing or infinite values.
    drop : columns that are no features.
    one_hot : whether text columns become one indicator a category; or the categories of each such column,
        the base first, as an earlier opening found them.
    constant : "keep" or "drop" features that do not vary.
    dialect : how a text file is written.
    """

    target: str | None = None
    columns: tuple[str, ...] | None = None
    weight: str | None = None
    nulls: str = "refuse"
    drop: tuple[str, ...] = ()
    one_hot: OneHot = False
    constant: str = "keep"
    dialect: Dialect = Dialect()

    def __post_init__(self) -> None:
        if self.nulls not in ("refuse", "drop"):
            raise ValueError(f"nulls must be 'refuse' or 'drop', got {self.nulls!r}")
        if self.constant not in ("keep", "drop"):
            raise ValueError(f"constant must be 'keep' or 'drop', got {self.constant!r}")
        if not isinstance(self.one_hot, (bool, Mapping)):
            raise ValueError(f"one_hot must be True, False or a dict of categories, got {self.one_hot!r}")
        if self.weight is not None and self.weight == self.target:
            raise ValueError(f"{self.weight!r} cannot be both the target and the weight: name two columns")
        for name, role in ((self.target, "target"), (self.weight, "weight")):
            if name is not None and name in self.drop:
                raise ValueError(f"{name!r} cannot be both the {role} and left out: take it out of drop")


def requested(target: str | None, columns: Sequence[str] | None, reading: Reading) -> Request:
    """The request behind the arguments of ``data.open``."""
    given = dict(reading)
    names = {name: _names(name, given.pop(name, ())) for name in ("drop", "na")}
    dialect = Dialect(given.pop("encoding", None), given.pop("decimal", "."), names["na"])  # pyright: ignore[reportArgumentType]
    weight = given.pop("weight", None)
    return Request(
        target=None if target is None else str(target),
        columns=None if columns is None else _names("columns", columns),
        weight=None if weight is None else str(weight),  # as all names
        drop=names["drop"],
        dialect=dialect,
        **given,  # pyright: ignore[reportArgumentType]
    )


def _names(who: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ValueError(f"{who} must be a list of names, got the text {given!r}: write [{given!r}]")
    try:
        return tuple(str(name) for name in given)  # pyright: ignore[reportGeneralTypeIssues]
    except TypeError:
        raise ValueError(f"{who} must be a list of names, got {given!r}") from None
