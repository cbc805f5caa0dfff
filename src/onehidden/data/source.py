"""A streamed source of samples: parts, batches of checked rows, everything known before work starts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onehidden.data.arrays import varying
from onehidden.data.columns import (
    ColumnKind,
    Feature,
    Levels,
    choose,
    constant_note,
    has_comma,
    is_gap,
    is_number,
    labels,
    learnt_levels,
    level_notes,
    must_be_choosable,
    not_numeric,
    numbers,
    values_of,
    wanted_columns,
)
from onehidden.data.parts import PART_ROWS, Contents, Part
from onehidden.data.table import Batch, Request, Unusable, must_be_none, shorten, targets_in_words

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
BATCH_ROWS = 1 << 15


@dataclass(frozen=True)
class Selection:
    """What to take from every part: features, the columns with another role, the rule for gaps."""

    features: tuple[Feature, ...]
    request: Request
    levels: Levels
    where: str
    labelled: frozenset[str] = frozenset()  # columns that hold labels; those of a table only

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once: those of the features, then targets, weight, offset and so on."""
        held = [*(feature.column for feature in self.features), *(name for name, _ in self.request.roles)]
        return list(dict.fromkeys(held))

    def values(self, table: pa.RecordBatch | pa.Table) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """(n, d) numbers of the features, and (n,) numbers or labels of the other columns; NaN at gaps."""
        X = np.empty((table.num_rows, len(self.features)))
        for j, one in enumerate(self.features):
            X[:, j] = values_of(one, table.column(one.column), self.levels, self.where)
        others = {name: table.column(name) for name, _ in self.request.roles}
        return X, {
            name: labels(column) if name in self.labelled else numbers(column, name, self.where)
            for name, column in others.items()
        }

    def gaps(self, X: np.ndarray, held: Mapping[str, np.ndarray]) -> tuple[np.ndarray, dict[str, int]]:
        """Whether each row has a gap, and how many there are by column; negative weights are refused."""
        gaps = np.column_stack([~np.isfinite(X), *map(is_gap, held.values())])
        columns = [*(one.column for one in self.features), *held]
        weight = self.request.weight
        if weight is not None and np.any(held[weight] < 0):
            raise ValueError(
                f"{self.where} has negative weights in column {weight!r}: give numbers from 0 on"
            )
        counts = gaps.sum(axis=0)
        return np.asarray(gaps.any(axis=1)), {columns[j]: int(counts[j]) for j in np.flatnonzero(counts)}

    def together(self, held: Mapping[str, np.ndarray]) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """The target (n,), of several (n, q), and the weight, offset, trials and groups there are."""
        targets = [held[name] for name in self.request.targets]
        y = np.column_stack(targets) if len(targets) > 1 else next(iter(targets), None)
        return y, {role: held[name] for role, name in self.request.extras.items()}

    def batches(self, number: int, part: Part, rows: int, counting: bool = False) -> Iterator[Batch]:
        """The batches of one part; with ``counting`` gaps are dropped and counted whatever ``nulls`` is."""
        first = number << 40  # a row's number: its part above, its place in the part below
        for table in part.tables(self.columns, rows):
            if table.num_rows == 0:
                continue
            X, held = self.values(table)
            gap, faults = self.gaps(X, held)
            dropped = int(gap.sum())
            if dropped and self.request.nulls == "refuse" and not counting:
                raise ValueError(self.refusal(f"{dropped} rows hold", faults))
            row = np.arange(first, first + len(X), dtype=np.int64)
            good = ~gap
            if self.request.weight is not None:
                good &= held[self.request.weight] != 0  # such rows do not count at all
            if not good.all():
                X, row, held = X[good], row[good], {name: values[good] for name, values in held.items()}
            y, extras = self.together(held)
            weight, offset, trials = (extras.get(role) for role in ("weight", "offset", "trials"))
            yield Batch(X, y, weight, row, dropped, faults, first, offset, trials)
            first += table.num_rows

    def refusal(self, rows: str, faults: Mapping[str, int]) -> str:
        """The sentence about ``rows`` with gaps, as "3 of 50 rows hold", and their number by column."""
        held = [f"{name!r} ({count})" for name, count in faults.items() if count]
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        return (
            f"{self.where} must hold finite numbers only, but {rows} missing or infinite values in "
            f"{', '.join(held[:5])}{more}: fill the gaps, or leave those rows out with nulls='drop' "
            "(--nulls drop)"
        )

    def must_have_rows(self, rows: int) -> None:
        """Refuse as many targets as rows."""
        targets = len(self.request.targets)
        if targets > 1 and targets >= rows:
            raise ValueError(
                f"{self.where} has {rows} rows for {targets} targets: bring more rows, or name fewer targets"
            )

    def without(self, flat: Sequence[str]) -> Selection:
        """The same selection without features that do not vary; some must be left."""
        left = tuple(one for one in self.features if one.name not in flat)
        if not left:
            raise ValueError(f"{self.where} has no feature that varies: give a table with at least one")
        return replace(self, features=left)


def select(found: Contents, request: Request, stream: bool) -> tuple[Selection, tuple[str, ...]]:
    """The selection that a request makes among the columns of a source, and notes."""
    names, where, kinds = found.schema.names, found.where, found.kinds
    must_be_choosable(names, request, where)
    if found.rows == 0:
        raise ValueError(f"{where} has column names but no rows: give a table with data in it")
    levels: Levels = {}
    if isinstance(request.one_hot, Mapping):
        levels = {column: tuple(map(str, held)) for column, held in request.one_hot.items()}
    elif request.one_hot:
        text = [name for name in wanted_columns(names, request) if kinds.get(name) is ColumnKind.TEXT]
        tables = (table for part in found.parts for table in part.tables(text, BATCH_ROWS))
        levels = learnt_levels(tables, text, where)
    features = choose(names, request, levels)

    def some(name: str) -> list[Any]:
        """Values of a column, to show in a message; none where the file cannot be read so."""
        try:
            return next(found.parts[0].tables([name], PART_ROWS)).column(0).drop_null().to_pylist()
        except (Unusable, StopIteration, UnicodeDecodeError):
            return []

    labelled = frozenset() if stream else _labelled(found, request)
    must_be_none(not_numeric(features, request, kinds, where, some, labelled))
    notes = (*found.notes, *level_notes(features, levels))
    return Selection(features, request, levels, where, labelled), notes


def _labelled(found: Contents, request: Request, most: int = 50) -> frozenset[str]:
    """The columns that hold labels: the groups of rows, and one target of few texts, no number among them."""
    kinds, labelled = found.kinds, set()
    if request.groups is not None and kinds[request.groups] in (ColumnKind.TEXT, ColumnKind.DATE):
        labelled.add(request.groups)
    if len(request.targets) == 1 and kinds[request.targets[0]] is ColumnKind.TEXT:
        texts = set(labels(found.read([request.targets[0]]).column(0))) - {None}
        if 0 < len(texts) <= most and not any(is_number(one) or has_comma(one) for one in texts):
            labelled.add(request.targets[0])
    return frozenset(labelled)


@dataclass(frozen=True, eq=False)
class Source:
    """Samples too many to hold: parts that are read again on every pass.

    Attributes
    ----------
    parts : tuple of Part
        Pieces that one worker reads by itself.
    selection : Selection
        Features, columns with another role and the rule for gaps.
    n_rows : int
        Rows before any are dropped.
    fingerprint : str
        Changes when the data change, as far as names, sizes and dates show.
    notes : tuple of str
        What was done to the columns, a sentence each.
    """

    parts: tuple[Part, ...] = field(repr=False)
    selection: Selection
    n_rows: int
    fingerprint: str = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.selection.names

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The categories of each text column that became indicators, the base first."""
        return dict(self.selection.levels)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self.selection.request.targets

    @property
    def target_name(self) -> str | None:
        """The name of y; of several targets all of them; None where there is none."""
        return ", ".join(self.target_names) or None

    @property
    def n_inputs(self) -> int:
        """Number of features."""
        return len(self.selection.features)

    @property
    def n_outputs(self) -> int | None:
        """Number of targets where there are several."""
        return len(self.target_names) if len(self.target_names) > 1 else None

    def __repr__(self) -> str:
        target = targets_in_words(self.target_names)
        return (
            f"Source({self.n_rows} rows in {len(self.parts)} parts, {self.n_inputs} features "
            f"{shorten(self.feature_names, 3)}, {target})"
        )

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """Iterate over all rows in order, the next batch read while one is used.

        Parameters
        ----------
        rows : int
            Rows of a batch at most, about.

        Yields
        ------
        Batch
            Finite rows.
        """
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
            raise ValueError(f"rows must be a whole number of rows per batch, got {rows!r}")
        for number, part in enumerate(self.parts):
            yield from prefetched(self.selection.batches(number, part, int(rows)))


def open_source(found: Contents, request: Request) -> Source:
    """The source of whatever holds the samples."""
    selection, notes = select(found, request, stream=True)
    selection.must_have_rows(found.rows)
    if request.constant == "drop" and (flat := _constant_features(found.parts, selection)):
        selection, notes = selection.without(flat), (*notes, constant_note(flat))
    mark = hashlib.sha256(f"{found.fingerprint()}|{selection}".encode()).hexdigest()
    return Source(tuple(found.parts), selection, found.rows, mark, notes)


def _constant_features(parts: Sequence[Part], selection: Selection) -> list[str]:
    """Features that never vary: those that do not in the first rows are followed until they do."""
    left = replace(selection, request=Request(nulls="drop"))
    low, high = np.full(len(left.features), np.inf), np.full(len(left.features), -np.inf)
    for number, part in enumerate(parts):
        for batch in left.batches(number, part, BATCH_ROWS):
            low = np.minimum(low, batch.X.min(axis=0, initial=np.inf))
            high = np.maximum(high, batch.X.max(axis=0, initial=-np.inf))
        flat = ~varying(low, high)
        if not flat.any():
            return []
        features = tuple(one for one, still in zip(left.features, flat, strict=True) if still)
        left, low, high = replace(left, features=features), low[flat], high[flat]
    return list(left.names)


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made in a thread while one is used."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, items, end)
        while (item := ahead.result()) is not end:
            ahead = pool.submit(next, items, end)
            yield item
