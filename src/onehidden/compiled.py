"""Compiled programs kept on disk, so that the second run of a user does not compile what the first one did.

JAX has such a cache, off unless configured. Inside the library's entry points it is on, in the user's cache
folder; a cache that the user configured is left alone, and so are all settings outside.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import platform
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
from jax._src.compilation_cache import decompress_executable
from jax.experimental.compilation_cache import compilation_cache

from onehidden.whole import alive

VARIABLE = "ONEHIDDEN_CACHE"  # another folder, or "off"
# A program that took less to compile is not worth a file: reading one back takes some milliseconds.
_LEAST_SECONDS = 0.02
# Programs kept, the newest: a process links each of them when it begins, 3000 in a tenth of a second.
_MOST = 3000
_OWN = "compiling-"  # a folder of one process, its number after it

# ``jax.jit`` for searches in single precision. Left alone, XLA writes kernels of its own for their matrix
# products on a GPU and tries them against each other: 3.5 s for every width of a student and 12 s for a
# population on an H200; with the vendor's .5 and .8 s, and steps as fast or faster (.12 s against .14 a
# thousand of width 1600, .080 against .086 for 15 of 480 networks).
jitted = functools.partial(jax.jit, compiler_options={"xla_gpu_enable_triton_gemm": False})


class _Scope:
    """Counts who is inside, over all threads: the first turns the cache on, the last restores what was."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.before: dict[str, object] | None = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.before = _begin()
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0 and self.before is not None:
                _restore(self.before)
                if (desk := _desk()) is not None:
                    desk.publish()


_SCOPE = _Scope()


@contextmanager
def remembered() -> Iterator[None]:
    """A scope in which what JAX compiles is kept on disk and looked for there."""
    _SCOPE.enter()
    try:
        yield
    finally:
        _SCOPE.leave()


def _begin() -> dict[str, object] | None:
    """Turn the cache on; what stood there before, or None where it stays as it is."""
    if jax.config.jax_compilation_cache_dir is not None:  # pyright: ignore[reportAttributeAccessIssue]
        return None
    desk = _desk()
    if desk is None:
        return None
    desk.collect()
    wanted = {
        "jax_compilation_cache_dir": str(desk.folder),
        "jax_persistent_cache_min_compile_time_secs": _LEAST_SECONDS,
        "jax_persistent_cache_min_entry_size_bytes": -1,
        "jax_persistent_cache_enable_xla_caches": "none",  # those put the folder's name into every key
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    _restore(wanted)
    return before


def _restore(settings: dict[str, object]) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # the folder is read once; this makes it read again


@functools.cache
def cache_folder() -> Path | None:
    """Where compiled programs are kept; None where the user said "off" or nothing can be written.

    One folder for each version of JAX and each kind of processor: programs hold its instructions.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() in ("off", "0", "no", "none"):
        return None
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onehidden"
    made = hashlib.sha256(f"{jax.__version__} {platform.machine()} {_processor()}".encode()).hexdigest()[:12]
    folder = (Path(asked) if asked else base) / f"compiled-{made}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


class _Desk:
    """A folder of this process alone, with links to all kept programs: JAX writes a program in place.

    A process killed while it writes, or another one that reads meanwhile, would else meet half a program.
    What is whole is put on the common shelf by ``publish``, in one step each.
    """

    def __init__(self, shelf: Path) -> None:
        self.shelf = shelf
        for left in shelf.parent.glob(f"{_OWN}*"):  # of processes that were killed
            number = left.name.split("-")[1]
            if number.isdecimal() and not alive(int(number)):
                shutil.rmtree(left, ignore_errors=True)
        self.process = os.getpid()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{_OWN}{self.process}-", dir=shelf.parent))
        atexit.register(self.tidy)
        self.known: set[str] = set()
        self.seen = self.told = -1  # when the shelf was last looked at, and this folder put on it
        self.weed()
        self.collect()

    def weed(self) -> None:
        """Take the oldest programs off a full shelf: those of other versions, and of sizes met once."""
        with contextlib.suppress(OSError):
            names = [entry.name for entry in os.scandir(self.shelf)]
            if len(names) <= _MOST:
                return
            age = {name: os.stat(self.shelf / name).st_mtime_ns for name in names}
            for name in sorted(names, key=age.__getitem__)[: len(names) - _MOST * 3 // 4]:
                with contextlib.suppress(OSError):
                    os.unlink(self.shelf / name)

    def collect(self) -> None:
        """Link what the shelf holds and this folder does not: what others compiled in the meantime."""
        with contextlib.suppress(OSError):
            changed = os.stat(self.shelf).st_mtime_ns
            if changed == self.seen:
                return
            self.seen = changed
            new = {entry.name for entry in os.scandir(self.shelf)} - self.known
            self.known |= new
            for name in new:
                with contextlib.suppress(OSError):
                    os.link(self.shelf / name, self.folder / name)

    def tidy(self) -> None:
        """Remove the folder, if it is this process's: one forked off inherits the call."""
        if os.getpid() == self.process:
            shutil.rmtree(self.folder, ignore_errors=True)

    def publish(self) -> None:
        """Put what was compiled since on the shelf."""
        with contextlib.suppress(OSError):
            changed = os.stat(self.folder).st_mtime_ns
            if changed == self.told:
                return
            self.told = changed
            new = {entry.name for entry in os.scandir(self.folder)} - self.known
            self.known |= new
            for name in new:
                if not _is_whole(self.folder / name):  # a process forked off here was killed as it wrote
                    os.unlink(self.folder / name)
                    continue
                with contextlib.suppress(FileExistsError):
                    os.link(self.folder / name, self.shelf / name)


def _is_whole(path: Path) -> bool:
    """Whether a kept program reads back to its end."""
    if not path.name.endswith("-cache"):
        return True
    try:
        decompress_executable(path.read_bytes())
    except Exception:  # whichever library JAX compresses with
        return False
    return True


def _desk() -> _Desk | None:
    """The folder of this process; one forked off has its own."""
    return _desk_of(os.getpid())


@functools.lru_cache(1)
def _desk_of(process: int) -> _Desk | None:
    shelf = cache_folder()
    if shelf is None:
        return None
    try:
        return _Desk(shelf)
    except OSError:  # a full disk, a file system without links
        return None


def _processor() -> str:
    """What the processor can do, in words; its name where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return " ".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))
