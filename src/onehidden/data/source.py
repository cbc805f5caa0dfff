"""A source of samples: parts, batches of checked rows, everything known before work starts."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onehidden.data.arrays import flat_columns, varying
from onehidden.data.columns import (
    ColumnKind,
    Feature,
    Levels,
    choose,
    has_comma,
    is_gap,
    is_number,
    labels,
    learnt_levels,
    level_notes,
    must_be_choosable,
    must_be_numbers,
    numbers,
    values_of,
    wanted_columns,
)
from onehidden.data.parts import PART_ROWS, Contents, Part
from onehidden.data.table import Batch, Request, Table, Unusable, left_out, shorten, targets_in_words

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
    labelled: frozenset[str] = frozenset()  # columns that hold labels

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once: those of the features, then targets, weight, offset and so on."""
        held = [*(feature.column for feature in self.features), *(name for name, _ in self.request.roles)]
        return list(dict.fromkeys(held))

    def batches(self, number: int, part: Part, rows: int) -> Iterator[Batch]:
        """The batches of one part; a row's number has its part above and its place in the part below."""
        first = number << 40
        for table in part.tables(self.columns, rows):
            if table.num_rows:
                yield self._batch(table, first)
                first += table.num_rows

    def _batch(self, table: pa.RecordBatch, first: int) -> Batch:
        """The rows of some columns, those with gaps or without weight left out; gaps may be refused."""
        X, request = np.empty((table.num_rows, len(self.features))), self.request
        for j, one in enumerate(self.features):
            X[:, j] = values_of(one, table.column(one.column), self.levels, self.where)
        held = {
            name: labels(table.column(name))
            if name in self.labelled
            else numbers(table.column(name), name, self.where)
            for name, _ in request.roles
        }
        gaps = np.column_stack([~np.isfinite(X), *map(is_gap, held.values())])
        columns, counts = [*(one.column for one in self.features), *held], gaps.sum(axis=0)
        faults = {columns[j]: int(counts[j]) for j in np.flatnonzero(counts)}
        good = ~gaps.any(axis=1)
        if faults and request.nulls == "refuse":
            place = (first & (1 << 40) - 1) + int(np.argmin(good)) + 1
            rows = f"{np.sum(~good)} of {len(X)} rows (the first is row {place})"
            raise ValueError(self._refusal(rows, faults, len(X)))
        if request.weight is not None:
            if np.any(held[request.weight] < 0):
                raise ValueError(
                    f"{self.where} has negative weights in {request.weight!r}: give some from 0 on"
                )
            good &= held[request.weight] != 0  # such rows do not count at all
        row = np.arange(first, first + len(X), dtype=np.int64)
        if not good.all():
            X, row, held = X[good], row[good], {name: values[good] for name, values in held.items()}
        targets = [held[name] for name in request.targets]
        y = np.column_stack(targets) if len(targets) > 1 else next(iter(targets), None)
        extras = {role: held[name] for role, name in request.extras.items()}
        return Batch(X, y, row, first, table.num_rows, faults, **extras)

    def _refusal(self, rows: str, faults: Mapping[str, int], n: int) -> str:
        """The sentence about gaps; a column of nothing else is to be left out, since no row would be left."""
        empty = [name for name, count in faults.items() if count == n]
        held = ", ".join(f"{name!r} ({count})" for name, count in list(faults.items())[:5])
        cure = left_out(empty[:5]) if empty else "nulls='drop' (--nulls drop)"
        return (
            f"{self.where} must hold finite numbers only, but {rows} hold missing or infinite values in "
            f"{held}{'' if len(faults) <= 5 else ' …'}: fill the gaps, or leave them out with {cure}"
        )


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

    labelled = _labelled(found, request, stream)
    roles = {name: role for name, role in request.roles if name not in labelled}
    plain = [feature.column for feature in features if feature.level is None]
    must_be_numbers(plain, roles, kinds, where, some)
    notes = (*found.notes, *level_notes(features, levels))
    return Selection(features, request, levels, where, labelled), notes


def _labelled(found: Contents, request: Request, stream: bool, most: int = 50) -> frozenset[str]:
    """The columns that hold labels: the groups of rows, and one target of few texts, no number among them.

    The target of a stream holds none.
    """
    kinds, labelled = found.kinds, set()
    if request.groups is not None and kinds[request.groups] in (ColumnKind.TEXT, ColumnKind.DATE):
        labelled.add(request.groups)
    if not stream and len(request.targets) == 1 and kinds[request.targets[0]] is ColumnKind.TEXT:
        read = (table for part in found.parts for table in part.tables([request.targets[0]], PART_ROWS))
        texts = {text for table in read for text in labels(table.column(0))} - {None}
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
    stamp : callable
        Text that changes when the data change, as far as names, sizes and dates show.
    notes : tuple of str
        What was done to the columns, a sentence each.
    """

    parts: tuple[Part, ...] = field(repr=False)
    selection: Selection
    n_rows: int
    stamp: Callable[[], str] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Changes when the data or the selection change."""
        return hashlib.sha256(f"{self.stamp()}|{self.selection}".encode()).hexdigest()

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

    def varying_only(self) -> Source:
        """The source without features that never vary, which are looked for until all do."""
        rows = replace(self.selection, request=replace(self.selection.request, nulls="drop"))
        low, high = np.full(self.n_inputs, np.inf), np.full(self.n_inputs, -np.inf)
        for number, part in enumerate(self.parts):
            for batch in rows.batches(number, part, BATCH_ROWS):
                low = np.minimum(low, batch.X.min(axis=0, initial=np.inf))
                high = np.maximum(high, batch.X.max(axis=0, initial=-np.inf))
            if np.all(vary := varying(low, high)):
                return self
        if (high < low).any():  # no row is without gaps
            return self
        kept = tuple(one for one, varies in zip(rows.features, vary, strict=True) if varies)
        flat = [name for name, varies in zip(rows.names, vary, strict=True) if not varies]
        if not kept:
            raise ValueError(f"{rows.where} has no feature that varies: give a table with at least one")
        are = "column {} is" if len(flat) == 1 else "columns {} are"
        note = f"{are.format(shorten(flat))} constant and left out"
        return replace(self, selection=replace(self.selection, features=kept), notes=(*self.notes, note))

    def whole(self) -> Table:
        """All rows in memory; a target that does not vary is refused where there are several."""
        selection, request, held, places, at = self.selection, self.selection.request, [], [], 0
        for number, part in enumerate(self.parts):
            for batch in selection.batches(number, part, PART_ROWS):
                held.append(batch)
                places.append(at + batch.row - batch.first)
                at += batch.read
        row, gaps = np.concatenate(places), sum((Counter(one.gaps) for one in held), Counter[str]())
        if not len(row):
            mostly = f" with {left_out([max(gaps, key=lambda name: gaps[name])])}" if gaps else ""
            raise ValueError(
                f"{selection.where} has no row without missing or infinite values; leave out a column that "
                f"is mostly empty{mostly}"
            )
        names = ["X", *["y"] * bool(request.targets), *request.extras]
        arrays: dict[str, Any] = {n: np.concatenate([getattr(one, n) for one in held]) for n in names}
        y, notes = arrays.setdefault("y", None), self.notes
        if y is not None and y.ndim == 2 and (flat := flat_columns(y)).size:
            raise ValueError(
                f"target {request.targets[flat[0]]!r} is constant ({y[0, flat[0]]:g}): nothing explains it, "
                "take it out"
            )
        for array in arrays.values():
            if array is not None:
                array.setflags(write=False)
        if len(row) < at:
            notes += (f"{at - len(row)} of {at} rows with gaps or without weight were left out",)
        return Table(
            feature_names=selection.names, target_names=request.targets, levels=selection.levels, notes=notes,
            row=row if len(row) < at else None, n_read=at, **arrays,
        )  # fmt: skip


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """The same items, the next one made in a thread while one is used."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(next, items, end)
        while (item := ahead.result()) is not end:
            ahead = pool.submit(next, items, end)
            yield item
