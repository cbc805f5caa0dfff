"""reduce: one pass over a source, in this process or on the workers of a Dask cluster.

Every part is folded by itself and the results are merged along a tree that depends on the number of parts
only, so that where the parts were read changes nothing in the answer.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from onehidden.data.parts import DelayedPart
from onehidden.data.source import BATCH_ROWS, Part, Selection, Source, prefetched
from onehidden.data.table import Batch

if TYPE_CHECKING:
    from distributed import Client

_ARITY = 8  # accumulators merged together: few are alive at once, and the tree is shallow


S = TypeVar("S")


@runtime_checkable
class Accumulator(Protocol):
    """A reduction over samples."""

    def update(self, batch: Batch) -> object: ...

    def merge(self: S, other: S) -> object: ...

    def result(self) -> object: ...


A = TypeVar("A", bound=Accumulator)
Progress = Callable[[int, int], None]  # told (parts done, parts)


def reduce(
    source: Source,
    make: Callable[[], A],
    *,
    client: object = None,
    rows: int = BATCH_ROWS,
    counting: bool = False,
    progress: Progress | None = None,
) -> A:
    """The accumulator of all rows; call ``result()`` on it.

    Parameters
    ----------
    source : where the samples are.
    make : makes an empty accumulator; it travels to the workers.
    client : a Dask client, or None for this process.
    rows : rows a batch at most; changes the result by rounding only.
    counting : leave rows with gaps out even when the source refuses them (they are counted in the batches).
    progress : told ``(parts done, parts)``.
    """
    if client is None:
        return _here(source, make, rows, counting, progress)
    session: Any = client
    return _there(source, make, session, rows, counting, progress)


def _fold(
    selection: Selection, number: int, part: Part, make: Callable[[], A], rows: int, counting: bool
) -> A:
    total = make()
    for batch in prefetched(selection.batches(number, part, rows, counting)):
        if len(batch) or batch.dropped:
            total.update(batch)
    return total


def _merged(group: list[A]) -> A:
    """One accumulator; the first is copied, since a worker may be asked for it again."""
    total = group[0] if len(group) == 1 else copy.deepcopy(group[0])
    for other in group[1:]:
        total.merge(other)
    return total


def _here(source: Source, make: Callable[[], A], rows: int, counting: bool, progress: Progress | None) -> A:
    levels: list[list[A]] = [[]]

    def push(level: int, item: A) -> None:
        if level == len(levels):
            levels.append([])
        levels[level].append(item)
        if len(levels[level]) == _ARITY:
            group, levels[level] = levels[level], []
            push(level + 1, _merged(group))

    for number, part in enumerate(source.parts):
        push(0, _fold(source.selection, number, part, make, rows, counting))
        if progress is not None:
            progress(number + 1, len(source.parts))
    level = 0
    while level < len(levels):
        group, levels[level] = levels[level], []
        rest = any(levels[level + 1 :])
        if group:
            if not rest and len(group) == 1:
                return group[0]
            push(level + 1, _merged(group))
        level += 1
    return make()


def _there(
    source: Source,
    make: Callable[[], A],
    client: Client,
    rows: int,
    counting: bool,
    progress: Progress | None,
) -> A:
    from distributed import KilledWorker, as_completed

    leaves = []
    for number, part in enumerate(source.parts):
        # A partial travels whole; Dask would look for collections inside plain arguments.
        fold = partial(_fold_there, source.selection, number, _bare(part), make, rows, counting)
        block = getattr(part, "partition", None)
        leaves.append(
            client.submit(fold, pure=False) if block is None else client.compute(_delayed(fold)(block))
        )
    total = len(leaves)
    level = [
        client.submit(_merged, leaves[i : i + _ARITY], pure=False) for i in range(0, len(leaves), _ARITY)
    ]
    leaves.clear()  # a merged accumulator may go: only the tops are held from here
    watched = as_completed(level) if progress is not None else None
    top = level
    while len(top) > 1:
        top = [client.submit(_merged, top[i : i + _ARITY], pure=False) for i in range(0, len(top), _ARITY)]
    if watched is not None and progress is not None:
        for done, _ in enumerate(watched, start=1):
            progress(min(done * _ARITY, total), total)
    try:
        return top[0].result()
    except KilledWorker as error:
        line = " ".join(str(error).split())[:160]
        raise ValueError(
            f"the workers of the cluster kept dying on one part of the data ({line}): give them more memory"
        ) from None


def _delayed(function: Callable[..., A]) -> Any:
    from dask.delayed import delayed

    return delayed(function, pure=False)


def _bare(part: Part) -> Part:
    """The part without its Dask partition, which reaches the worker computed."""
    return part.computed(None) if isinstance(part, DelayedPart) else part


def _fold_there(
    selection: Selection,
    number: int,
    part: Part,
    make: Callable[[], A],
    rows: int,
    counting: bool,
    block: object = None,
) -> A:
    read = part.computed(block) if isinstance(part, DelayedPart) and block is not None else part
    return _fold(selection, number, read, make, rows, counting)


@contextmanager
def connected(client: object, source: Source | None = None) -> Iterator[Any]:
    """A Dask client from a client, a cluster or a scheduler address; None stays None.

    A Dask collection may live on the cluster of the session's own client, which is then taken.
    """
    if client is None:
        yield _of_the_session() if source is not None and hasattr(source.parts[0], "partition") else None
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
    try:
        yield opened
    finally:
        opened.close()


def _of_the_session() -> Any:
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None
