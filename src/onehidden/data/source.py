"""A streamed source of samples: parts, batches of checked rows, everything known before work starts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onehidden.data.arrays import varying
from onehidden.data.columns import (
    GAPS,
    ColumnKind,
    Feature,
    Levels,
    choose,
    coded,
    constant_note,
    has_comma,
    is_number,
    learnt_levels,
    level_notes,
    must_be_choosable,
    not_numeric,
    numbers,
    values_of,
    wanted_columns,
)
from onehidden.data.faults import Unusable, must_be_none
from onehidden.data.parts import Contents, Part
from onehidden.data.table import Batch, Request, shorten, targets_in_words

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

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def others(self) -> list[str]:
        """The columns that are no features: targets, then weight, offset, trials and groups."""
        return [name for name, _ in self.request.roles]

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        return [*dict.fromkeys(feature.column for feature in self.features), *self.others]

    def inputs(self, table: pa.RecordBatch | pa.Table) -> np.ndarray:
        """(n, d) numbers of the features, NaN at gaps."""
        X = np.empty((table.num_rows, len(self.features)))
        for j, one in enumerate(self.features):
            X[:, j] = values_of(one, table.column(one.column), self.levels, self.where)
        return X

    def held(self, table: pa.RecordBatch | pa.Table, names: Iterable[str]) -> dict[str, np.ndarray]:
        """(n,) numbers of other columns, NaN at gaps."""
        return {name: numbers(table.column(name), name, self.where) for name in names}

    def together(self, held: Mapping[str, np.ndarray]) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """The target (n,), of several (n, q), and the weight, offset and trials there are."""
        targets = [held[name] for name in self.request.targets]
        y = np.column_stack(targets) if len(targets) > 1 else next(iter(targets), None)
        return y, {role: held[name] for role, name in self.request.extras.items()}

    def batches(self, number: int, part: Part, rows: int, counting: bool = False) -> Iterator[Batch]:
        """The batches of one part; with ``counting`` gaps are dropped and counted whatever ``nulls`` is."""
        first = number << 40  # a row's number: its part above, its place in the part below
        for table in part.tables(self.columns, rows):
            if table.num_rows == 0:
                continue
            batch = self._batch(table, first)
            first += table.num_rows
            if batch.dropped and self.request.nulls == "refuse" and not counting:
                raise ValueError(self.refusal(batch.dropped, None, batch.faults))
            yield batch

    def refusal(self, dropped: int, total: int | None, faults: Mapping[str, int]) -> str:
        """The sentence about rows with gaps."""
        held = [f"{name!r} ({count})" for name, count in faults.items() if count]
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        rows = f"{dropped} rows hold" if total is None else f"{dropped} of {total} rows hold"
        return (
            f"{self.where} must hold finite numbers only, but {rows} missing or infinite values in "
            f"{', '.join(held[:5])}{more}: {GAPS}"
        )

    def negative_weights(self, held: Mapping[str, np.ndarray]) -> Iterator[str]:
        """The sentence about weights below zero."""
        name = self.request.weight
        if name is not None and name in held and np.any(held[name] < 0):
            yield f"{self.where} has negative weights in column {name!r}: give numbers from 0 on"

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

    def _batch(self, table: pa.RecordBatch | pa.Table, first: int) -> Batch:
        X, held = self.inputs(table), self.held(table, self.others)
        row = np.arange(first, first + len(X), dtype=np.int64)
        gaps = np.column_stack([~np.isfinite(one) for one in (X, *held.values())])
        good = ~gaps.any(axis=1)
        dropped = len(X) - int(good.sum())
        columns = [*(one.column for one in self.features), *held]
        faults = {columns[j]: int(gaps[:, j].sum()) for j in np.flatnonzero(gaps.any(axis=0))}
        for problem in self.negative_weights(held):
            raise ValueError(problem)
        if self.request.weight is not None:
            good &= held[self.request.weight] != 0  # such rows do not count at all
        if not good.all():
            X, row, held = X[good], row[good], {name: values[good] for name, values in held.items()}
        y, extras = self.together(held)
        weight, offset, trials = (extras.get(role) for role in ("weight", "offset", "trials"))
        return Batch(X, y, weight, row, dropped, faults, first, offset, trials)


Labels = dict[str, tuple[np.ndarray, np.ndarray]]  # of a column the place of each row's label, and all labels


def labels_of(found: Contents, request: Request, most: int = 50) -> Labels:
    """The columns that hold labels: the groups of rows, and one target of few texts, no number among them."""
    import pyarrow as pa

    wanted = [request.groups] if request.groups is not None else []
    wanted += request.targets if len(request.targets) == 1 else ()
    kinds, labels = found.kinds, {}
    for name in wanted:
        kind = kinds.get(name)
        if found.schema.names.count(name) != 1 or kind in (ColumnKind.NUMBER, ColumnKind.OTHER):
            continue
        try:
            tables = [table for part in found.parts for table in part.tables([name], found.rows)]
            codes, texts = coded(pa.Table.from_batches(tables).column(0))
        except (Unusable, pa.ArrowException):  # not to be read as text: refused with the other columns
            continue
        few = kind is ColumnKind.TEXT and 0 < len(texts) <= most
        if name == request.groups or (few and not any(is_number(one) or has_comma(one) for one in texts)):
            labels[name] = codes, texts
    return labels


def select(
    found: Contents, request: Request, labels: Iterable[str] = ()
) -> tuple[Selection, tuple[str, ...], list[str]]:
    """The selection that a request makes among the columns of a source, notes, and what is wrong with it.

    Columns of ``labels`` need not hold numbers.
    """
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

    def some(name: str) -> pa.Array | None:
        """Some values of a column, to show in a message; None where the file cannot be read so."""
        try:
            table = next(found.parts[0].tables([name], 10_000), None)
        except Unusable:
            return None
        return None if table is None else table.column(0)

    problems = list(not_numeric(features, request, kinds, where, some, labels))
    notes = (*found.notes, *level_notes(features, levels))
    return Selection(features, request, levels, where), notes, problems


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
    selection, notes, problems = select(found, request)
    must_be_none(problems)
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
