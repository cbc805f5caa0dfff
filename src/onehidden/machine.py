"""The machine: threads of matrix products, the device that JAX computes on, and the cost of work.

``rate`` is measured once per process and decides what still fits into a time budget. Decisions of a run
without a budget use ``worth``, which is the same on every machine of a kind, so that its answer is, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.precision import double

NOMINAL = 2e10  # operations per second of one core in a descent: machines met did 1.5e10 to 4e10
_ACCELERATED = 100.0  # times as many on an accelerator, for batches that fill it


@contextmanager
def threads_for(parameters: int, small: int = 1500) -> Iterator[None]:
    """A scope in which the products of a problem of this size use as many threads as they gain from.

    Below ``small`` parameters that is one: threads of a small product wait for one another longer than they
    work, and spin where a core has other work. Alone on two cores, 900 parameters took 5.5 s with one thread
    and 5.9 s with two, 2600 took 22.3 and 18.2 s.
    """
    with at_most(1 if parameters < small or granted() == 1 else free_cores()):
        yield


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """A scope in which matrix products use at most so many threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(min(count, granted()), "blas"):
        yield


def granted() -> int:
    """Threads that a matrix product may use here, by the caller's settings and the scopes above."""
    from threadpoolctl import threadpool_info

    return max((int(one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas"), default=1)


def free_cores(seconds: float = 0.1) -> int:
    """Cores open to this process that nobody else uses, at least one; all where the system does not tell.

    The cores are watched for so many seconds. Beside another job on two cores a factorisation of 2600
    parameters took 0.12 s with one thread and 1.8 s with two. Processes that watch at the same moment do not
    see each other.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    before, own, began = _busy(cores), time.process_time(), time.perf_counter()
    if before is None or len(cores) == 1:
        return len(cores)
    time.sleep(seconds)
    others = (_busy(cores) or before) - before - (time.process_time() - own)
    free = len(cores) - others / (time.perf_counter() - began)
    return max(1, min(len(cores), round(free)))


def _busy(cores: set[int]) -> float | None:
    """Seconds that these cores have worked since the system began; None where it does not tell."""
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return None
    ticks = 0
    for name, *fields in (line.split() for line in lines if line[:3] == "cpu" and line[3].isdigit()):
        if int(name[3:]) in cores:
            user, nice, system, _, _, *interrupts = (int(value) for value in fields[:8])
            ticks += user + nice + system + sum(interrupts)
    return ticks / os.sysconf("SC_CLK_TCK")


def on_accelerator() -> bool:
    """Whether JAX has another device than the CPU."""
    return jax.default_backend() != "cpu"


def memory(unknown: int = 8 << 30) -> int:
    """Bytes that JAX may use of its device, ``unknown`` where the device does not tell."""
    return (jax.devices()[0].memory_stats() or {}).get("bytes_limit", unknown)


def sent(rows: np.ndarray, threads: int = 4, pieces: int = 16, large: int = 1 << 22) -> jax.Array:
    """Rows in double precision on the device; more than ``large`` bytes go in pieces.

    One thread stages pageable memory at 6 GB/s; four, several pieces each, at 27.
    """
    if rows.nbytes < large:
        return jnp.asarray(rows)
    with ThreadPoolExecutor(threads) as pool:
        return jnp.concatenate(list(pool.map(_piece, np.array_split(rows, pieces))))


def _piece(rows: np.ndarray) -> jax.Array:
    with double():  # a scope belongs to one thread
        return jax.device_put(rows)


@cache
def rate(size: int = 512, repeats: int = 3, reached: float = 0.4) -> float:
    """Return the operations per second of one core in a descent, a share of those in a square product.

    In processor time of this thread and rounded to a power of four times ``NOMINAL``, so that load does not
    decide which work is begun.
    """
    a = np.ones((size, size))
    with at_most(1):
        seconds = []
        for _ in range(repeats + 1):  # the first one warms up
            began = time.thread_time()
            _ = a @ a
            seconds.append(time.thread_time() - began)
    steps = np.log(reached * 2.0 * size**3 / max(min(seconds[1:]), 1e-9) / NOMINAL) / np.log(4.0)
    return float(NOMINAL * 4.0 ** np.round(steps))


def worth(seconds: float) -> float:
    """Return the operations that a nominal core, or accelerator, does in these seconds."""
    return NOMINAL * seconds * (_ACCELERATED if on_accelerator() else 1.0)
