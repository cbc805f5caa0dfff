"""Threads of matrix products: as many as gain from it and find a core, the caller's settings untouched."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Parameters below which matrix products run on one thread. Threads of a small product wait for one another
# longer than they work, and where a core has other work they spin: eigenvalues of 930 parameters took .05 s
# with one thread and 3.5 s with two beside another job. Alone on two cores: 900 parameters (d = k = 30,
# n = 8000) 5.5 s with one thread and 5.9 s with two, 2600 (d = k = 50, n = 16 384) 22.3 and 18.2 s.
SMALL = 1500
# Seconds in which the cores are watched before a larger problem. Beside one other job on two cores a
# factorisation of 2600 parameters took .12 s with one thread and 1.8 s with two, the recovery 24 and 64 s.
_WATCHED = 0.1


@contextmanager
def fit_for(parameters: int) -> Iterator[None]:
    """A scope in which the products of a problem of this size use as many threads as they gain from."""
    small = parameters < SMALL or granted() == 1
    with at_most(1 if small else free_cores()):
        yield


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """A scope in which matrix products use so many threads; what the caller had comes back after it."""
    from threadpoolctl import ThreadpoolController

    with ExitStack() as scope:
        for pool in ThreadpoolController().lib_controllers:
            if pool.user_api == "blas" and pool.num_threads > count:
                scope.callback(pool.set_num_threads, pool.num_threads)
                pool.set_num_threads(count)
        yield


def granted() -> int:
    """Threads that a matrix product may use here: the caller's settings, and those of the scopes above."""
    from threadpoolctl import threadpool_info

    return max(
        (int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1
    )


def free_cores(seconds: float = _WATCHED) -> int:
    """Cores open to this process that nobody else uses, at least one; all where the system does not tell.

    Processes that watch at the same moment do not see each other.
    """
    cores = _cores()
    before, own = _busy(cores), time.process_time()
    if before is None or len(cores) == 1:
        return len(cores)
    begin = time.perf_counter()
    time.sleep(seconds)
    after, own = _busy(cores), time.process_time() - own
    assert after is not None
    others = (after - before - own) / (time.perf_counter() - begin)
    return max(1, min(len(cores), round(len(cores) - others)))


def _cores() -> set[int]:
    """Numbers of the cores open to this process."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _busy(cores: set[int]) -> float | None:
    """Seconds that these cores have worked since the system began; None where it does not tell."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    ticks = 0
    for line in lines:
        name, *fields = line.split()
        if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cores:
            user, nice, system, _, _, *interrupts = (int(value) for value in fields[:8])
            ticks += user + nice + system + sum(interrupts)
    return ticks / os.sysconf("SC_CLK_TCK")
