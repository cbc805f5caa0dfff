"""Independent cells of a reproduction over several processes, when the caller allows them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

R = TypeVar("R")
_JOBS: ContextVar[int] = ContextVar("jobs", default=1)


@contextmanager
def workers(jobs: int) -> Iterator[None]:
    """Let ``map_cells`` use that many processes inside the block."""
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    token = _JOBS.set(jobs)
    try:
        yield
    finally:
        _JOBS.reset(token)


def map_cells(function: Callable[..., R], cells: Iterable[tuple[object, ...]]) -> list[R]:
    """[function(*cell) for each cell], in order; same answers whatever the number of processes."""
    cells = list(cells)
    jobs = min(_JOBS.get(), len(cells))
    if jobs <= 1:
        return [function(*cell) for cell in cells]
    import multiprocessing

    # Spawned, not forked: JAX holds threads. One thread each: the processes are the parallelism, and a
    # thread count is read when a library is loaded, so it must stand in the environment before.
    with _one_thread_each(), multiprocessing.get_context("spawn").Pool(jobs) as pool:
        return pool.starmap(function, cells, chunksize=1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    names = ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
