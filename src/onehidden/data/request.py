"""Request: which columns are wanted and how a file is to be read, checked once for every kind of source."""

from __future__ import annotations

import codecs
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

OneHot = bool | Mapping[str, Sequence[str]]
Name = str | int  # of a column, or its place where columns have no names
Target = Name | Sequence[Name] | None
BESIDE = ("weight", "offset", "trials")  # columns of one number a row that are neither feature nor target


class Reading(TypedDict, total=False):
    """The keywords of ``data.open`` beside the columns; ``Request`` says what they mean."""

    weight: str | None
    offset: str | None
    trials: str | None
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
    targets : columns to explain, none, one or several.
    weight, offset, trials : their columns, None for none.
    columns : feature columns in this order; all others when None.
    nulls : "refuse" or "drop" rows with missing or infinite values.
    drop : columns that are no features.
    one_hot : whether text columns become one indicator a category; or the categories of each such column,
        the base first, as an earlier opening found them.
    constant : "keep" or "drop" features that do not vary.
    dialect : how a text file is written.
    """

    targets: tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    weight: str | None = None
    offset: str | None = None
    trials: str | None = None
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
        held: dict[str, str] = {}
        for name, role in self.roles:
            if held.get(name) == role:
                raise ValueError(f"target names {name!r} more than once: list each column once")
            if name in held:
                raise ValueError(f"{name!r} cannot be both the {held[name]} and the {role}: name two columns")
            if name in self.drop:
                raise ValueError(f"{name!r} cannot be both the {role} and left out: take it out of drop")
            held[name] = role

    @property
    def beside(self) -> dict[str, str]:
        """The columns of ``BESIDE`` that were asked for, by what they are."""
        asked = ((role, getattr(self, role)) for role in BESIDE)
        return {role: name for role, name in asked if name is not None}

    @property
    def roles(self) -> list[tuple[str, str]]:
        """(column, what it is) of all that are no features."""
        others = [(name, role) for role, name in self.beside.items()]
        return [(name, "target") for name in self.targets] + others


def named_targets(target: Target) -> tuple[Name, ...]:
    """One target, several or none as a tuple."""
    if target is None:
        return ()
    if not isinstance(target, Iterable) or isinstance(target, str):
        target = (target,)
    found = tuple(_name(one) for one in target)
    if not found:
        raise ValueError("target must name at least one column, got an empty list")
    return found


def _name(given: object) -> Name:
    """A place among the columns as a number, every other name as text."""
    if isinstance(given, numbers.Integral) and not isinstance(given, bool):
        return int(given)
    return str(given)


def requested(targets: Sequence[Name], columns: Sequence[str] | None, reading: Reading) -> Request:
    """The request behind the arguments of ``data.open``."""
    given: dict[str, Any] = dict(reading)
    names = {name: _names(name, given.pop(name, ())) for name in ("drop", "na")}
    dialect = Dialect(given.pop("encoding", None), given.pop("decimal", "."), names["na"])
    beside = {role: given.pop(role, None) for role in BESIDE}
    return Request(
        targets=tuple(map(str, targets)),
        columns=None if columns is None else _names("columns", columns),
        drop=names["drop"],
        dialect=dialect,
        **{role: None if name is None else str(name) for role, name in beside.items()},  # as all names
        **given,
    )


def _names(who: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ValueError(f"{who} must be a list of names, got the text {given!r}: write [{given!r}]")
    try:
        return tuple(str(name) for name in given)  # pyright: ignore[reportGeneralTypeIssues]
    except TypeError:
        raise ValueError(f"{who} must be a list of names, got {given!r}") from None
