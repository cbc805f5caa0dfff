"""The machine: double precision and stored programs of JAX, threads, the device, and the cost of work.

Inside the library's entry points (``in_double``) JAX computes in float64. From the first of them on it keeps
compiled programs on disk, so that a second process does not compile what the first one did.

``rate`` is measured once per process and decides what still fits into a time budget. Decisions of a run
without a budget use ``worth``, which is the same on every machine of a kind, so that its answer is, too.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import compilation_cache, lru_cache

P = ParamSpec("P")
R = TypeVar("R")
NOMINAL = 2e10  # operations per second of one core in a descent: machines met did 1.5e10 to 4e10
_ACCELERATED = 100.0  # times as many on an accelerator, for batches that fill it
VARIABLE = "ONEHIDDEN_CACHE"  # environment variable: another folder, or "off"

# ``jax.jit`` for searches in single precision. By default XLA writes kernels of its own for their matrix
# products on a GPU and times them against each other: 3.5 s for every width of an overparameterised network
# and 12 s for a population on an H200; with the vendor's kernels 0.5 and 0.8 s, at the same speed.
jitted = functools.partial(jax.jit, compiler_options={"xla_gpu_enable_triton_gemm": False})


class _ProgramCache(lru_cache.LRUCache):
    """JAX's folder of programs, each written aside and renamed, so that no process reads half of one."""

    def put(self, key: str, value: bytes) -> None:
        path = Path(self.path) / f"{key}-cache"
        beside = path.with_name(f"writing-{os.getpid()}-{path.name}")
        with contextlib.suppress(OSError):  # a full disk costs the next process its compilation
            beside.write_bytes(value)
            os.replace(beside, path)


@functools.cache
def keep_programs() -> None:
    """Let JAX keep on disk what this process compiles; a cache that the user configured is left alone."""
    folder = cache_folder()
    if folder is None or jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.02)  # reading one takes milliseconds
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")  # they put the folder into every key
    compilation_cache.reset_cache()  # JAX reads the folder's name once
    compilation_cache._cache = _ProgramCache(str(folder), max_size=-1)
    compilation_cache._cache_initialized = True


def cache_folder(most: int = 3000) -> Path | None:
    """The folder of compiled programs; None where the user said "off" or it cannot be written.

    There is one folder for each version of JAX and each kind of processor: programs hold its instructions.
    Of a folder with more than ``most`` programs the newest three quarters of these stay.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() in ("off", "0", "no", "none"):
        return None
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onehidden"
    made = hashlib.sha256(f"{jax.__version__} {platform.machine()} {_processor()}".encode()).hexdigest()[:12]
    folder = (Path(asked) if asked else base) / f"compiled-{made}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = os.listdir(folder)
    except OSError:
        return None
    if len(names) > most:
        with contextlib.suppress(OSError):  # another process does the same
            age = {name: os.stat(folder / name).st_mtime_ns for name in names}
            for name in sorted(names, key=age.__getitem__)[: len(names) - most * 3 // 4]:
                os.unlink(folder / name)
    return folder if os.access(folder, os.W_OK) else None


def _processor() -> str:
    """The instructions of the processor, in words; its name where the system does not tell them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return " ".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))


def double(on: bool = True) -> AbstractContextManager[None]:
    """A scope in which JAX computes in float64."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    return importlib.import_module("jax.experimental").enable_x64(on)  # before jax 0.8


def single() -> AbstractContextManager[None]:
    """A scope in which JAX computes in float32, for searches whose result is refined afterwards."""
    return double(False)


def in_double(fn: Callable[P, R]) -> Callable[P, R]:
    """Run an entry point in the float64 scope and keep what it compiles for the next run."""

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        keep_programs()
        with double():
            return fn(*args, **kwargs)

    return wrapped


def threads_for(parameters: int, small: int = 1500) -> AbstractContextManager[object]:
    """A scope in which the products of a problem of this size use as many threads as they gain from.

    Below ``small`` parameters that is one: threads of a small product wait for one another longer than they
    work, and spin where a core has other work. Alone on two cores, 900 parameters took 5.5 s with one thread
    and 5.9 s with two, 2600 took 22.3 and 18.2 s.
    """
    return at_most(1 if parameters < small or granted() == 1 else free_cores())


def at_most(count: int) -> AbstractContextManager[object]:
    """A scope in which matrix products use at most so many threads."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(min(count, granted()), "blas")


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
    before, own, began = _idle(cores), time.process_time(), time.perf_counter()
    if before is None or len(cores) == 1:
        return len(cores)
    time.sleep(seconds)
    mine = time.process_time() - own
    free = ((_idle(cores) or before) - before + mine) / (time.perf_counter() - began)
    return max(1, min(len(cores), round(free)))


def _idle(cores: set[int]) -> float | None:
    """Seconds that these cores have waited since the system began; None where it does not tell."""
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    except OSError:
        return None
    waited = [int(line[4]) + int(line[5]) for line in lines if line[0] in {f"cpu{core}" for core in cores}]
    return sum(waited) / os.sysconf("SC_CLK_TCK")


def on_accelerator() -> bool:
    """Whether JAX has another device than the CPU."""
    return jax.default_backend() != "cpu"


def accelerator_memory(unknown: int = 8 << 30) -> int:
    """Bytes that JAX may use of an accelerator, ``unknown`` where it does not tell; 0 where there is none."""
    if not on_accelerator():
        return 0
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
