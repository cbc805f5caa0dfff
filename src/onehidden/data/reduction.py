"""Passes over a source: ``reduce`` with any accumulator, and a survey with a sample of the rows.

Every part is folded by itself, in this process or on the workers of a Dask cluster, and the results are
merged along a tree that depends on the number of parts only, so that where the parts were read changes
nothing in the answer.

The survey gives means, covariance, ranges, gaps and a sample. Merging follows Chan, Golub and LeVeque: sums
of squares are kept about their own means, so that neither the size of the means nor the number of batches
costs digits. The sample is the rows whose numbers hash lowest: which rows those are depends on the seed
alone, not on batches, order or workers.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from onehidden.data.arrays import varying
from onehidden.data.parts import DelayedPart, Part
from onehidden.data.source import BATCH_ROWS, Selection, Source, prefetched
from onehidden.data.table import Batch, Table, left_out

if TYPE_CHECKING:
    from distributed import Client

Rows = tuple[np.ndarray, ...]  # their numbers, and columns of values that belong to them
S = TypeVar("S")
T = TypeVar("T")


@runtime_checkable
class Accumulator(Protocol):
    """A reduction over samples."""

    def update(self, batch: Batch) -> object:
        """Add the rows of a batch."""
        ...

    def merge(self: S, other: S) -> object:
        """Add what another accumulator holds."""
        ...

    def result(self) -> object:
        """What was accumulated."""
        ...


A = TypeVar("A", bound=Accumulator)
Progress = Callable[[int, int], None]  # (parts done, parts)


def reduce(
    source: Source,
    make: Callable[[], A],
    *,
    client: Any = None,
    rows: int = BATCH_ROWS,
    counting: bool = False,
    progress: Progress | None = None,
) -> A:
    """Accumulate all rows of a source.

    Parameters
    ----------
    source : Source
        Where the samples are.
    make : callable
        Makes an empty accumulator; it travels to the workers.
    client : Client, optional
        A Dask client; this process if not given.
    rows : int
        Rows a batch at most; changes the result by rounding only.
    counting : bool
        Leave rows with gaps out even when the source refuses them; the batches count them.
    progress : callable, optional
        Called with (parts done, parts).

    Returns
    -------
    Accumulator
        The accumulator of all rows; call ``result()`` on it.
    """
    fold = partial(_fold, source.selection, make, rows, counting)
    if client is not None:
        return _on_cluster(source, fold, client, progress)

    def leaf(number: int) -> A:
        found = fold(number, source.parts[number])
        if progress is not None:
            progress(number + 1, len(source.parts))
        return found

    return _tree(leaf, _merged, len(source.parts)) if source.parts else make()


def _fold(
    selection: Selection, make: Callable[[], A], rows: int, counting: bool, number: int, part: Part
) -> A:
    """The accumulator of one part."""
    total = make()
    for batch in prefetched(selection.batches(number, part, rows, counting)):
        if len(batch) or batch.dropped:
            total.update(batch)
    return total


def _merged(group: list[A]) -> A:
    """One accumulator; the first is copied, since a worker may need it again."""
    total = group[0] if len(group) == 1 else copy.deepcopy(group[0])
    for other in group[1:]:
        total.merge(other)
    return total


def _tree(
    leaf: Callable[[int], T], merge: Callable[[list[T]], T], count: int, start: int = 0, arity: int = 8
) -> T:
    """Merge ``count`` leaves along a tree, from the left, with few of them alive at once."""
    if count == 1:
        return leaf(start)
    size = 1  # leaves below a branch
    while size * arity < count:
        size *= arity
    places = range(0, count, size)
    return merge([_tree(leaf, merge, min(size, count - at), start + at, arity) for at in places])


def _on_cluster(
    source: Source, fold: Callable[[int, Part], A], client: Client, progress: Progress | None
) -> A:
    from dask.delayed import delayed
    from distributed import KilledWorker, as_completed

    leaves: list[Any] = []

    def leaf(number: int) -> Any:
        part = source.parts[number]
        # A partial travels whole; Dask would look for collections inside plain arguments.
        if isinstance(part, DelayedPart):  # its partition reaches the worker computed
            read: Any = delayed(partial(_fold_block, fold, number, part.names), pure=False)
            found = client.compute(read(part.partition))
        else:
            found = client.submit(partial(fold, number, part), pure=False)
        if progress is not None:
            leaves.append(found)
        return found

    top = _tree(leaf, lambda group: client.submit(_merged, group, pure=False), len(source.parts))
    if progress is not None:
        for done, _ in enumerate(as_completed(leaves), start=1):
            progress(done, len(source.parts))
    try:
        return top.result()
    except KilledWorker as error:
        line = " ".join(str(error).split())[:160]
        raise ValueError(
            f"the workers of the cluster kept dying on one part of the data ({line}): give them more memory"
        ) from None


def _fold_block(fold: Callable[[int, Part], A], number: int, names: tuple[str, ...], block: object) -> A:
    """The accumulator of a computed partition of a Dask collection."""
    return fold(number, DelayedPart(block, names))


@contextmanager
def connected(client: object, source: Source | None = None) -> Iterator[Any]:
    """A Dask client from a client, a cluster or a scheduler address; None stays None.

    A Dask collection may live on the cluster of the session's own client, which is then taken.
    """
    if client is None:
        own = None
        if source is not None and isinstance(source.parts[0], DelayedPart):
            with suppress(ImportError, ValueError):  # there is none
                from distributed import default_client

                own = default_client()
        yield own
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "a cluster needs Dask: install it with pip install 'onehidden[cluster]', or leave client out"
        ) from None
    if isinstance(client, Client):
        if client.status != "running":
            raise ValueError(f"the Dask client is {client.status}: open a new one, or leave client out")
        yield client
        return
    try:
        opened = Client(client, timeout="5s", set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        line = " ".join(str(error).split())[:120]
        raise ValueError(
            "client must be a Dask client, a cluster or an address, and no Dask scheduler answers at "
            f"{client} ({line}): start one with 'dask scheduler', or leave client out"
        ) from None
    with opened:
        yield opened


@dataclass(frozen=True, eq=False)
class Summary:
    """What the first pass found; with weights, means and covariances are weighted."""

    n: int  # rows kept
    weight: float  # sum of their weights
    mean: np.ndarray  # (d,) of the features
    covariance: np.ndarray  # (d, d)
    low: np.ndarray  # (d,)
    high: np.ndarray  # (d,)
    level: Any  # mean of the target; of several targets an array, as the next three
    variance: Any
    bottom: Any
    top: Any
    dropped: int  # rows left out for gaps
    faults: dict[str, int]  # gaps by column
    # The sampled rows in the order of the data (rare ones come last), and their weights, if any.
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    w: np.ndarray | None = field(repr=False)


class Survey:
    """Accumulator of a ``Summary`` of d features, and of q targets where ``outputs`` is q.

    ``sample`` rows are kept, chosen by ``seed``; where ``rows`` are expected in all, parts keep their share.
    """

    def __init__(
        self, d: int, sample: int = 0, rows: int | None = None, seed: int = 0, outputs: int | None = None
    ) -> None:
        self.sample, self.seed, self.outputs, self.d = sample, seed, outputs, d
        # A margin of eight standard deviations over the share wanted: too few are not drawn in practice.
        share = 1.0 if not rows else (sample + 8 * np.sqrt(sample) + 8) / rows
        self._limit = np.uint64(min(share, 1.0) * float(2**64 - 2**11))
        self.n, self.dropped, self.weight = 0, 0, 0.0
        self.faults: Counter[str] = Counter()
        p = d + (1 if outputs is None else outputs)
        self._mean, self._scatter = np.zeros(p), np.zeros((p, p))
        self._low, self._high = np.full(p, np.inf), np.full(p, -np.inf)
        self._kept: list[Rows] = []

    def update(self, batch: Batch) -> Survey:
        """Add the rows of a batch."""
        if batch.y is None:
            raise ValueError("the source has no target: open it with target=NAME")
        if batch.y.ndim == 2 and self.outputs is None:
            raise ValueError("a streamed source is read for one target at a time: name one, or hold it whole")
        self.dropped += batch.dropped
        self.faults.update(batch.faults)
        if not len(batch):
            return self
        values, weight = np.column_stack([batch.X, batch.y]), weights_of(batch)
        total = float(weight.sum())
        if total > 0:
            mean = weight @ values / total
            centred = values - mean
            rest = weight @ centred / total  # what rounding left in the mean
            scatter = (centred * weight[:, None]).T @ centred - total * np.outer(rest, rest)
            self._combine(total, mean + rest, scatter)
        self._widen(len(batch), values.min(axis=0), values.max(axis=0))
        if self.sample:
            low = hashed(batch.row, self.seed) < self._limit
            self._keep([(batch.row[low], values[low], weight[low])])
        return self

    def merge(self, other: Survey) -> Survey:
        """Add what another survey of the same kind holds."""
        if (self.sample, self.seed, self._limit) != (other.sample, other.seed, other._limit):
            raise ValueError("only surveys of one sample size and seed merge")
        self._combine(other.weight, other._mean, other._scatter)
        self._widen(other.n, other._low, other._high)
        self.dropped += other.dropped
        self.faults.update(other.faults)
        self._keep(other._kept)
        return self

    def result(self) -> Summary:
        """The summary of all rows."""
        if self.n == 0 or not self.weight > 0:
            raise ValueError(f"no usable rows: {self.dropped} were left out for missing values")
        d, y = self.d, self.d if self.outputs is None else slice(self.d, None)
        row, values, weight = self._sampled()
        order = np.argsort(row)
        covariance = self._scatter / self.weight
        level, variance, bottom, top = (
            own[y].copy() if self.outputs else float(own[y])
            for own in (self._mean, np.diag(covariance), self._low, self._high)
        )
        plain = bool(np.all(weight == 1.0))
        return Summary(
            self.n, self.weight, self._mean[:d], covariance[:d, :d], self._low[:d], self._high[:d],
            level, variance, bottom, top,
            self.dropped, dict(self.faults), np.ascontiguousarray(values[order, :d]), values[order][:, y],
            None if plain else weight[order],
        )  # fmt: skip

    def _combine(self, weight: float, mean: np.ndarray, scatter: np.ndarray) -> None:
        if weight == 0:
            return
        total = self.weight + weight
        step = mean - self._mean
        self._scatter = self._scatter + scatter + np.outer(step, step) * (self.weight * weight / total)
        self._mean = self._mean + step * (weight / total)
        self.weight = total

    def _widen(self, n: int, low: np.ndarray, high: np.ndarray) -> None:
        self.n += n
        self._low, self._high = np.minimum(self._low, low), np.maximum(self._high, high)

    def _keep(self, rows: list[Rows]) -> None:
        """Add rows to the sample; it is cut to size once it is twice as large."""
        self._kept += rows
        if sum(len(row) for row, *_ in self._kept) > 2 * self.sample:
            self._kept = [self._sampled()]

    def _sampled(self) -> Rows:
        if not self._kept:
            return np.zeros(0, np.int64), np.zeros((0, len(self._mean))), np.zeros(0)
        rows = _joined(self._kept)
        lowest = np.argsort(hashed(rows[0], self.seed), kind="stable")[: self.sample]
        return tuple(column[lowest] for column in rows)


def must_be_usable(summary: Summary, selection: Selection) -> None:
    """Refuse gaps where they are not to be dropped, and columns that are constant, in the sample at least."""
    if summary.dropped and selection.request.nulls == "refuse":
        rows = f"{summary.dropped} of {summary.n + summary.dropped} rows hold"
        raise ValueError(selection.refusal(rows, summary.faults))
    flat = ~varying(summary.low, summary.high)
    rare = ~varying(summary.X.min(axis=0), summary.X.max(axis=0))
    for j in np.flatnonzero(flat | rare):
        name = selection.names[j]
        where = "" if flat[j] else f" in the {len(summary.X)} rows of the sample"
        cure = (
            "constant='drop'" if flat[j] else f"{left_out([name])} or hold the table whole with stream=False"
        )
        raise ValueError(
            f"column {name!r} is constant ({summary.X[0, j]:g}){where}: leave it out with {cure}, and use "
            "bias=True for constant terms"
        )


def sampled(
    source: Table | Source, rows: int = 20_000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray | None]:
    """Some rows of a source in memory, to draw pictures from.

    Parameters
    ----------
    source : Table or Source
        A source needs a target.
    rows : int
        About how many rows are drawn of a streamed source; more dots than these cover each other.
    seed : int
        Which rows those are depends on it alone.

    Returns
    -------
    tuple of ndarray
        X and y; of a table all of it.
    """
    if isinstance(source, Table):
        return source.X, source.y
    make = partial(Survey, source.n_inputs, min(rows, source.n_rows), source.n_rows, seed, source.n_outputs)
    found = reduce(source, make).result()
    return found.X, found.y


def weights_of(batch: Batch) -> np.ndarray:
    """(n,) the weights of the rows of a batch."""
    return np.ones(len(batch)) if batch.weight is None else batch.weight


def hashed(row: np.ndarray, seed: int) -> np.ndarray:
    """splitmix64 of the row's number and the seed: uniform 64-bit numbers."""
    with np.errstate(over="ignore"):
        step = 0x9E3779B97F4A7C15
        z = row.astype(np.uint64) * np.uint64(step) + np.uint64((step * (2 * seed + 1)) % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return z ^ (z >> np.uint64(31))


def _joined(kept: list[Rows]) -> Rows:
    return tuple(np.concatenate(column) for column in zip(*kept, strict=True))
