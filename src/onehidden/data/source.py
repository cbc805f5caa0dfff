"""A streamed source of samples: parts, batches of checked rows, everything known before work starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

import numpy as np

from onehidden.data.columns import GAPS, numbers, together, values_of
from onehidden.data.features import Feature
from onehidden.data.request import BESIDE
from onehidden.data.table import Batch, shorten, targets_in_words

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
BATCH_ROWS = 1 << 15
_PART_SHIFT = 40  # a row's number: its part above, its place in the part below


@runtime_checkable
class Part(Protocol):
    """A piece of the data that one worker reads by itself; it must pickle."""

    def tables(self, columns: list[str], rows: int) -> Iterator[pa.RecordBatch | pa.Table]:
        """Its rows in order, a bounded number at a time, with these columns."""
        ...


@dataclass(frozen=True)
class Selection:
    """What to take from every part, and what to do about gaps ("refuse" or "drop")."""

    features: tuple[Feature, ...]
    targets: tuple[str, ...]
    nulls: str
    where: str
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    weight: str | None = None
    offset: str | None = None
    trials: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the features."""
        return tuple(feature.name for feature in self.features)

    @property
    def columns(self) -> list[str]:
        """The columns to read, each once."""
        used = dict.fromkeys(feature.column for feature in self.features)
        return [*used, *self.targets, *self.beside.values()]

    @property
    def beside(self) -> dict[str, str]:
        """The columns of ``BESIDE`` that there are, by what they are."""
        asked = ((role, getattr(self, role)) for role in BESIDE)
        return {role: name for role, name in asked if name is not None}

    def batches(self, number: int, part: Part, rows: int, counting: bool = False) -> Iterator[Batch]:
        """The batches of one part; with ``counting`` gaps are dropped and counted whatever ``nulls`` says."""
        first = number << _PART_SHIFT
        for table in part.tables(self.columns, rows):
            if table.num_rows == 0:
                continue
            batch = self._batch(table, first)
            first += table.num_rows
            if batch.dropped and self.nulls == "refuse" and not counting:
                raise ValueError(self.refusal(batch.dropped, None, batch.faults))
            yield batch

    def refusal(self, dropped: int, total: int | None, faults: dict[str, int]) -> str:
        """The sentence about rows with gaps."""
        held = [f"{name!r} ({count})" for name, count in faults.items() if count]
        more = f" and {len(held) - 5} more" if len(held) > 5 else ""
        rows = f"{dropped} rows hold" if total is None else f"{dropped} of {total} rows hold"
        return (
            f"{self.where} must hold finite numbers only, but {rows} missing or infinite values in "
            f"{', '.join(held[:5])}{more}: {GAPS}"
        )

    def _batch(self, table: pa.RecordBatch | pa.Table, first: int) -> Batch:
        n, levels = table.num_rows, dict(self.levels)
        others = [*self.targets, *self.beside.values()]
        columns = [feature.column for feature in self.features] + others
        values = np.empty((len(columns), n))
        for j, feature in enumerate(self.features):
            values[j] = values_of(feature, table.column(feature.column), levels, self.where)
        for j, name in enumerate(others, start=len(self.features)):
            values[j] = numbers(table.column(name), name, self.where)
        row = np.arange(first, first + n, dtype=np.int64)
        bad = ~np.isfinite(values)
        dropped, faults = 0, {}
        if bad.any():
            good = ~bad.any(axis=0)
            counts = bad.sum(axis=1)
            faults = {name: int(c) for name, c in zip(columns, counts, strict=True) if c}
            dropped, values, row = n - int(good.sum()), values[:, good], row[good]
        d, q = len(self.features), len(self.targets)
        place = {role: d + q + j for j, role in enumerate(self.beside)}
        if "weight" in place and np.any(values[place["weight"]] == 0):  # such rows do not count at all
            counts = values[place["weight"]] != 0
            values, row = values[:, counts], row[counts]
        beside = {role: values[at] for role, at in place.items()}
        weight = beside.get("weight")
        if weight is not None and np.any(weight < 0):
            raise ValueError(
                f"{self.where} has negative weights in column {self.weight!r}: weights count samples, give "
                "numbers from 0 on"
            )
        y = together(list(values[d : d + q]))
        return Batch(
            np.ascontiguousarray(values[:d].T), y, weight, row, dropped, faults, first,
            beside.get("offset"), beside.get("trials"),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Source:
    """Samples too many to hold: parts that are read again on every pass.

    Attributes
    ----------
    parts : pieces that one worker reads by itself.
    selection : features, target, weight column and the rule for gaps.
    n_rows : rows before any are dropped.
    fingerprint : changes when the data change, as far as names, sizes and dates tell.
    notes : what was done to the columns on the way, a sentence each.
    """

    parts: tuple[Part, ...] = field(repr=False)
    selection: Selection
    n_rows: int
    fingerprint: str = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.selection.names

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The categories of each text column that became indicators, the base first."""
        return dict(self.selection.levels)

    @property
    def target_names(self) -> tuple[str, ...]:
        return self.selection.targets

    @property
    def target_name(self) -> str | None:
        """The name of y; of several targets all of them; None where there is none."""
        return ", ".join(self.target_names) or None

    @property
    def weight_name(self) -> str | None:
        return self.selection.weight

    @property
    def n_inputs(self) -> int:
        return len(self.selection.features)

    def __repr__(self) -> str:
        target = targets_in_words(self.target_names)
        return (
            f"Source({self.n_rows} rows in {len(self.parts)} parts, {self.n_inputs} features "
            f"{shorten(list(self.feature_names), 3)}, {target})"
        )

    def batches(self, rows: int = BATCH_ROWS) -> Iterator[Batch]:
        """All rows in order, at most about ``rows`` at a time, the next ones read while these are used."""
        if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 1:
            raise ValueError(f"rows must be a whole number of rows a batch, got {rows!r}")
        for number, part in enumerate(self.parts):
            yield from prefetched(self.selection.batches(number, part, int(rows)))


def prefetched(items: Iterator[T], depth: int = 2) -> Iterator[T]:
    """The same items, made in a thread of their own up to ``depth`` ahead; its errors arrive here."""
    queue: Queue = Queue(maxsize=depth)
    end, closed = object(), []

    def work() -> None:
        try:
            for item in items:
                queue.put((item, None))
                if closed:
                    return
        except BaseException as error:  # handed over, not swallowed
            queue.put((None, error))
            return
        queue.put((end, None))

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if error is not None:
                raise error
            if item is end:
                return
            yield item
    finally:
        closed.append(True)
        while thread.is_alive():  # a reader that was left waits on a full queue
            if not queue.empty():
                queue.get_nowait()
            thread.join(0.01)
