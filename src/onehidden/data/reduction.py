"""Passes over a source: ``reduce`` with any accumulator, and a survey with a sample of the rows.

Every part is folded by itself, in this process or on the workers of a Dask cluster, and the results are
merged in the order of the parts, so that where the parts were read changes nothing in the answer.

The survey gives means, covariance, ranges and a sample. Merging follows Chan, Golub and LeVeque: sums
of squares are kept about their own means, so that neither the size of the means nor the number of batches
costs digits. The sample is the rows whose numbers hash lowest: which rows those are depends on the seed
alone, not on batches, order or workers.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from onehidden.data.arrays import flat_columns
from onehidden.data.parts import DelayedPart, Part
from onehidden.data.source import BATCH_ROWS, Selection, Source, prefetched
from onehidden.data.table import Batch, left_out

S = TypeVar("S")


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
Rows = tuple[np.ndarray, ...]


def reduce(
    source: Source,
    make: Callable[[], A],
    *,
    client: Any = None,
    rows: int = BATCH_ROWS,
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
    progress : callable, optional
        Called with (parts done, parts).

    Returns
    -------
    Accumulator
        The accumulator of all rows; call ``result()`` on it.
    """
    fold, parts = partial(_fold, source.selection, make, rows), source.parts
    if client is not None:
        return _on_cluster(parts, fold, client, progress)
    total = make()
    for number, part in enumerate(parts):
        total.merge(fold(number, part))
        if progress is not None:
            progress(number + 1, len(parts))
    return total


def _fold(selection: Selection, make: Callable[[], A], rows: int, number: int, part: Part) -> A:
    """The accumulator of one part."""
    total = make()
    for batch in prefetched(selection.batches(number, part, rows)):
        if len(batch):
            total.update(batch)
    return total


def _merged(total: A, other: A) -> A:
    """One accumulator; the first is copied, since a worker may need it again."""
    total = copy.deepcopy(total)
    total.merge(other)
    return total


def _on_cluster(
    parts: tuple[Part, ...], fold: Callable[[int, Part], A], client: Any, progress: Progress | None
) -> A:
    from dask.delayed import delayed
    from distributed import as_completed

    leaves: list[Any] = []
    total: Any = None
    for number, part in enumerate(parts):
        # A partial travels whole; Dask would look for collections inside plain arguments.
        if isinstance(part, DelayedPart):  # its partition reaches the worker computed
            read: Any = delayed(partial(_fold_block, fold, number, part.names), pure=False)
            leaves.append(client.compute(read(part.partition)))
        else:
            leaves.append(client.submit(partial(fold, number, part), pure=False))
        # Merged where it is made, so that few accumulators are alive at once.
        total = leaves[-1] if total is None else client.submit(_merged, total, leaves[-1], pure=False)
    if progress is not None:
        for done, _ in enumerate(as_completed(leaves), start=1):
            progress(done, len(parts))
    return total.result()


def _fold_block(fold: Callable[[int, Part], A], number: int, names: tuple[str, ...], block: object) -> A:
    """The accumulator of a computed partition of a Dask collection."""
    return fold(number, DelayedPart(block, names))


@contextmanager
def connected(client: object, source: Source | None = None) -> Iterator[Any]:
    """A Dask client from a client, a cluster or a scheduler address; None stays None.

    A Dask collection may live on the cluster of the session's own client, which is then taken.
    """
    if client is None:
        if source is not None and isinstance(source.parts[0], DelayedPart):
            with suppress(ImportError, ValueError):  # there is none
                from distributed import default_client

                client = default_client()
        yield client
        return
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "a cluster needs Dask: install it with pip install 'onehidden[cluster]', or leave client out"
        ) from None
    if isinstance(client, Client):
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
    level: Any  # mean of the target; of several targets an array, as the next two
    variance: Any
    largest: Any  # absolute value of the target
    # The sampled rows in the order of the data, their weights, if any, below the keys of their groups.
    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    w: np.ndarray | None = field(repr=False)
    keys: np.ndarray = field(repr=False)  # of all groups in the order of their first rows; none without
    groups: np.ndarray = field(repr=False)


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
        self.n, self.weight = 0, 0.0
        p = d + (1 if outputs is None else outputs)
        self._mean, self._scatter = np.zeros(p), np.zeros((p, p))
        self._low, self._high = np.full(p, np.inf), np.full(p, -np.inf)
        self._keys = np.zeros(0, np.uint64)  # of all groups
        # Of the sample: numbers of the rows, their values with the weight in the last column, keys of groups.
        self._sample: Rows = np.zeros(0, np.int64), np.zeros((0, p + 1)), self._keys

    def update(self, batch: Batch) -> Survey:
        """Add the rows of a batch, which has a target."""
        assert batch.y is not None
        values, weight = np.column_stack([batch.X, batch.y]), batch.weight
        weight = np.ones(len(batch)) if weight is None else weight
        total = float(weight.sum())
        mean = weight @ values / total
        centred = values - mean
        rest = weight @ centred / total  # what rounding left in the mean
        one = copy.copy(self)
        one.n, one.weight, one._mean = len(batch), total, mean + rest
        one._scatter = (centred * weight[:, None]).T @ centred - total * np.outer(rest, rest)
        one._low, one._high = values.min(axis=0), values.max(axis=0)
        keys = np.zeros(len(batch), np.uint64) if batch.groups is None else group_keys(batch.groups)
        one._keys = _distinct(keys[: 0 if batch.groups is None else None])
        low = hashed(batch.row, self.seed) < self._limit
        one._sample = batch.row[low], np.column_stack([values[low], weight[low]]), keys[low]
        return self.merge(one)

    def merge(self, other: Survey) -> Survey:
        """Add what another survey of the same kind holds; a sample twice too large is cut to size."""
        if other.n == 0:
            return self
        total, step = self.weight + other.weight, other._mean - self._mean
        between = np.outer(step, step) * (self.weight * other.weight / total)
        self._scatter = self._scatter + other._scatter + between
        self._mean = self._mean + step * (other.weight / total)
        self.n, self.weight = self.n + other.n, total
        self._low, self._high = np.minimum(self._low, other._low), np.maximum(self._high, other._high)
        self._keys = _distinct(np.concatenate([self._keys, other._keys]))
        both = zip(self._sample, other._sample, strict=True)
        self._sample = tuple(np.concatenate(two) for two in both)
        if len(self._sample[0]) > 2 * self.sample:
            self._sample = self._lowest()
        return self

    def result(self) -> Summary:
        """The summary of all rows."""
        if self.n == 0:
            raise ValueError("no row is without missing or infinite values: leave out columns with many")
        d, y = self.d, self.d if self.outputs is None else slice(self.d, None)
        _, kept, groups = self._lowest()
        covariance = self._scatter / self.weight
        size = np.maximum(np.abs(self._low), np.abs(self._high))
        return Summary(
            self.n, self.weight, self._mean[:d], covariance[:d, :d], self._low[:d], self._high[:d],
            self._mean[y], np.diag(covariance)[y], size[y],
            np.ascontiguousarray(kept[:, :d]), kept[:, :-1][:, y],
            None if np.all(kept[:, -1] == 1.0) else kept[:, -1], self._keys, groups,
        )  # fmt: skip

    def _lowest(self) -> Rows:
        """The rows of the sample whose numbers hash lowest, in the order of the data."""
        lowest = np.argsort(hashed(self._sample[0], self.seed), kind="stable")[: self.sample]
        order = lowest[np.argsort(self._sample[0][lowest])]
        return tuple(part[order] for part in self._sample)


def must_be_varied(summary: Summary, names: tuple[str, ...]) -> None:
    """Refuse columns that are constant, in the sample at least."""
    for j in flat_columns(summary.X):
        raise ValueError(
            f"column {names[j]!r} is constant ({summary.X[0, j]:g}) in the sample of {len(summary.X)} rows: "
            f"{left_out([names[j]])} leaves it out, or hold the table whole with stream=False"
        )


def group_keys(labels: np.ndarray) -> np.ndarray:
    """A 64-bit number of each label, the same in every batch; two labels share one by chance 2^-64."""
    if labels.dtype.kind == "f":
        return (labels + 0.0).view(np.uint64)
    found, place = np.unique(labels.astype(str), return_inverse=True)
    each = [hashlib.blake2b(one.encode(), digest_size=8).digest() for one in found.tolist()]
    return np.frombuffer(b"".join(each), np.uint64)[place]


def _distinct(keys: np.ndarray) -> np.ndarray:
    """Each key once, in the order of the first."""
    return keys[np.sort(np.unique(keys, return_index=True)[1])]


def hashed(row: np.ndarray, seed: int) -> np.ndarray:
    """splitmix64 of the row's number and the seed: uniform 64-bit numbers."""
    with np.errstate(over="ignore"):
        step = 0x9E3779B97F4A7C15
        z = row.astype(np.uint64) * np.uint64(step) + np.uint64((step * (2 * seed + 1)) % 2**64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
        return z ^ (z >> np.uint64(31))
