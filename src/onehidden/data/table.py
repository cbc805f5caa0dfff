"""Records: what is wanted of a source (Request), what it becomes (Batch, Table), and its faults."""

from __future__ import annotations

import numbers
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

OneHot = bool | Mapping[str, Sequence[str]]
Name = str | int  # of a column, or its place where columns have no names
Targets = tuple[Name, ...]
EXTRAS = ("weight", "offset", "trials", "groups")  # roles of columns that are neither feature nor target


class Unusable(ValueError):
    """A file cannot be used as it is; the text says why and what to do."""


@dataclass(frozen=True)
class Request:
    """What to take from a source: the keywords of ``data.open``, which describes them."""

    targets: tuple[str, ...] = ()
    columns: Sequence[str] | None = None
    weight: str | None = None
    offset: str | None = None
    trials: str | None = None
    groups: str | None = None
    nulls: str = "refuse"
    drop: Sequence[str] = ()
    one_hot: OneHot = False
    constant: str = "keep"
    encoding: str | None = None
    decimal: str = "."
    na: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("columns", "drop", "na"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _names(name, getattr(self, name)))
        for role, name in self.extras.items():
            object.__setattr__(self, role, str(name))
        choices = {"nulls": ("refuse", "drop"), "constant": ("keep", "drop"), "decimal": (".", ",")}
        for name, words in choices.items():
            if getattr(self, name) not in words:
                said = " or ".join(map(repr, words))
                raise ValueError(f"{name} must be {said}, got {getattr(self, name)!r}")
        if not isinstance(self.one_hot, (bool, Mapping)):
            raise ValueError(f"one_hot must be True, False or a dict of categories, got {self.one_hot!r}")
        try:
            "".encode(self.encoding or "utf-8")  # of a codec that is not one of text, as zlib, a LookupError
        except (LookupError, TypeError, ValueError):
            raise ValueError(
                f"encoding must be one that Python knows, as 'utf-8' or 'cp1252', got {self.encoding!r}"
            ) from None
        found: dict[str, str] = {}
        asked = [*((name, "feature") for name in self.columns or ()), *self.roles]
        for name, role in (*asked, *((name, "column to leave out") for name in dict.fromkeys(self.drop))):
            if name in found:
                raise ValueError(
                    f"{name!r} cannot be both the {found[name]} and the {role}: name each column once"
                )
            found[name] = role

    @property
    def extras(self) -> dict[str, str]:
        """The columns of ``EXTRAS`` that are wanted, by role."""
        wanted = {role: getattr(self, role) for role in EXTRAS}
        return {role: name for role, name in wanted.items() if name is not None}

    @property
    def roles(self) -> list[tuple[str, str]]:
        """(column, role) of all columns that are no features."""
        return [*((n, "target") for n in self.targets), *((n, role) for role, n in self.extras.items())]


def named_targets(target: object) -> Targets:
    """One target, several or none as a tuple of names and places."""
    if target is None:
        return ()
    if not isinstance(target, Iterable) or isinstance(target, str):
        target = (target,)
    found = tuple(
        int(one) if isinstance(one, numbers.Integral) and not isinstance(one, bool) else str(one)
        for one in target
    )
    if not found:
        raise ValueError("target must name at least one column, got an empty list")
    return found


def _names(who: str, given: object) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"{who} must be a list of names, got {given!r}: write [{given!r}]")
    return tuple(map(str, given))


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a source, finite float64.

    Attributes
    ----------
    X, y : ndarray
        (n, d); (n,), of several targets (n, q), or None.
    row : ndarray
        (n,) numbers of the rows, the same whatever the batches; they begin at ``first``.
    first, read : int
        Number of the first row that was read, and how many were: those with gaps or without weight are left
        out.
    gaps : dict of str to int
        Missing or infinite values by column.
    weight, offset, trials, groups : ndarray or None
        (n,) each; groups may be labels.
    """

    X: np.ndarray
    y: np.ndarray | None
    row: np.ndarray
    first: int
    read: int
    gaps: dict[str, int] = field(default_factory=dict)
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    trials: np.ndarray | None = None
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Table:
    """Samples ready for use: finite, numeric, C-ordered float64, read-only.

    Attributes
    ----------
    X : ndarray
        (n, d) features.
    y : ndarray or None
        (n,) target, or (n, q) of several; labels where its column holds text.
    feature_names, target_names : tuple of str
        Names of the columns of X and y.
    levels : mapping
        Categories of each text column that became indicators, the base first.
    notes : tuple of str
        What was done to the columns, a sentence each.
    row, n_read : ndarray or None, int or None
        (n,) places of the rows among the ``n_read`` that were read; None where all were kept.
    weight, offset, trials, groups : ndarray or None
        (n,) weights above 0; what is added to the linear predictor; trials of each row; groups of rows.
    """

    X: np.ndarray
    y: np.ndarray | None
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    row: np.ndarray | None = field(default=None, repr=False)
    n_read: int | None = None
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    trials: np.ndarray | None = None
    groups: np.ndarray | None = field(default=None, repr=False)

    @property
    def target_name(self) -> str | None:
        """The name of y; of several targets all of them; None where there is none."""
        return ", ".join(self.target_names) or None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_inputs(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    def __repr__(self) -> str:
        return f"Table({self.n_rows} rows, {self.n_inputs} features, {targets_in_words(self.target_names)})"

    def batches(self) -> Iterator[Batch]:
        """All rows in one batch, where a streamed source gives several."""
        row = np.arange(self.n_rows) if self.row is None else self.row
        extras = {role: getattr(self, role) for role in EXTRAS}
        yield Batch(self.X, self.y, row, 0, self.n_read or self.n_rows, **extras)


def targets_in_words(names: Sequence[str]) -> str:
    """Targets as in: no target, target 'y', targets 'a', 'b'."""
    if not names:
        return "no target"
    return f"target{'s' if len(names) > 1 else ''} {shorten(names)}"


def shorten(names: Sequence[object], limit: int = 5) -> str:
    """At most ``limit`` quoted names, none of them long, and how many more there are."""
    cut = [name if len(name) <= 60 else name[:57] + "..." for name in map(str, names[:limit])]
    shown = ", ".join(repr(name) for name in cut)
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def left_out(names: Sequence[str]) -> str:
    """How columns are left out, in Python and on the command line."""
    typed = " ".join(f"--drop {shlex.quote(name)}" for name in names)
    return f"drop={list(names)!r} ({typed})"


def must_be_few(columns: int, where: str, most: int = 20_000) -> None:
    """Refuse more columns than a recovery can hold: its matrix of columns x columns takes 3 GB then."""
    if columns > most:
        raise Unusable(
            f"{where} has {columns} columns, more than the {most} that can be used: list those to "
            "use, or save them to a file of their own"
        )
