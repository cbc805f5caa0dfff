"""Compiled programs kept on disk, so that a second process does not compile what the first one did.

JAX has such a cache, off by default. It is on inside the library's entry points, in the user's cache folder;
a cache that the user configured is left alone, and so are all settings outside.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from jax._src import compilation_cache, lru_cache

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


_LOCK = threading.Lock()
_INSIDE: list[dict[str, object] | None] = []  # an entry for each caller, over all threads: the first restores


@contextmanager
def remembered() -> Iterator[None]:
    """Keep on disk what JAX compiles in this scope, and look for it there."""
    with _LOCK:
        _INSIDE.append(None if _INSIDE else _turn_on())
    try:
        yield
    finally:
        with _LOCK:
            if (before := _INSIDE.pop()) is not None:
                _configure(before)


def _turn_on() -> dict[str, object] | None:
    """Turn the cache on; the settings before, or None where they stay as they are."""
    folder = cache_folder()
    if folder is None or jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return None
    wanted = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.02,  # reading a program back takes some milliseconds
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_enable_xla_caches": "none",  # those put the folder's name into every key
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    _configure(wanted)
    compilation_cache._cache = _ProgramCache(str(folder), max_size=-1)
    compilation_cache._cache_initialized = True
    return before


def _configure(settings: dict[str, object]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # JAX reads the folder's name once


@functools.cache
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
