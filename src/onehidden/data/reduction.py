"""reduce: one pass over a source, in this process or on the workers of a Dask cluster.

Every part is folded by itself and the results are merged along a tree that depends on the number of parts
only, so that where the parts were read changes nothing in the answer.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from onehidden.data.parts import DelayedPart, Part
from onehidden.data.source import BATCH_ROWS, Selection, Source, prefetched
from onehidden.data.table import Batch

if TYPE_CHECKING:
    from distributed import Client

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
    if not (isinstance(client, str) or hasattr(client, "scheduler_address")):
        raise ValueError(
            f"client must be a Dask client, a cluster or a scheduler address, got {type(client).__name__}"
        )
    try:
        opened = Client(client, timeout="5s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        line = " ".join(str(error).split())[:120]
        raise ValueError(
            f"no Dask scheduler answers at {client} ({line}): start one with 'dask scheduler', or leave "
            "client out"
        ) from None
    with opened:
        yield opened
