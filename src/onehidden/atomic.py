"""Files and folders written whole or not at all: written aside, then renamed, with the user's own mode.

A file on the way has the number of its process in its name; the next write removes what a killed one left.
A lock keeps a file or folder for one process.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

_NUMBERS = count()
_HOST = re.sub(r"\W", "-", platform.node())  # folders may be shared between machines


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write to, of the same suffix, renamed to ``path`` when all went well.

    Where ``path`` is a link, the file that it points to is replaced.
    """
    with _aside(path) as (place, beside):
        yield beside
        _to_disk(beside)  # before it has the name
        os.replace(beside, place)


def write_atomically(path: Path, content: bytes) -> None:
    """Write the bytes as a file, whole or not at all."""
    with atomic_file(path) as beside:
        beside.write_bytes(content)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of ``folder`` when all went well.

    Where ``folder`` is a link, the folder that it points to is replaced.
    """
    with _aside(folder) as (place, beside):
        beside.mkdir()
        yield beside
        for file in beside.rglob("*"):
            if file.is_file():
                _to_disk(file)
        if place.exists() and any(place.iterdir()):
            _exchange(beside, place, _on_the_way(place, folder.suffix, "old"))
        else:
            os.rename(beside, place)  # onto an empty folder, too


def resolved(path: Path) -> Path:
    """The path that a link points to: a rename must happen there."""
    return Path(os.path.realpath(path))


def alive(process: int) -> bool:
    """Whether a process of this machine may still run; only POSIX has signal 0, which asks that."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def _aside(path: Path) -> Iterator[tuple[Path, Path]]:
    """The place that a path means, and a name on the way to it, which a failure removes."""
    place = resolved(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place, path.suffix)
    beside = _on_the_way(place, path.suffix, "writing")
    try:
        yield place, beside
    except BaseException as error:
        _remove(beside)
        if isinstance(error, OSError):  # named by what was to be written
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None
        raise


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _exchange(new: Path, place: Path, old: Path) -> None:
    """Put a folder in the place of another, which is removed; if that fails, the other comes back."""
    try:
        os.rename(place, old)
        os.rename(new, place)
    except BaseException:
        with suppress(OSError):  # nothing to bring back, or the new one is there after all
            os.rename(old, place)
        raise
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _on_the_way(path: Path, suffix: str, what: str) -> Path:
    """A name of this process; a link may have another suffix than the file that it points to."""
    return path.with_name(f".{path.stem}.{_HOST}.{os.getpid()}.{next(_NUMBERS)}.{what}{suffix}")


def _sweep(path: Path, suffix: str) -> None:
    """Remove what ended processes left; a folder whose process ended between two renames comes back."""
    names = re.compile(rf"\.{re.escape(path.stem)}\.{_HOST}\.(\d+)\.\d+\.(writing|old){re.escape(suffix)}")
    with suppress(OSError):
        for other in path.parent.iterdir():
            found = names.fullmatch(other.name)
            if found is None or alive(int(found[1])):
                continue
            if found[2] == "old" and not path.exists():
                os.rename(other, path)
            else:
                _remove(other)


class Lock:
    """The right of one process to a folder or file; released when no longer held, or at its end."""

    def __init__(self, handle: int) -> None:
        self.release = weakref.finalize(self, os.close, handle)


_LOCKS: weakref.WeakValueDictionary[str, Lock] = weakref.WeakValueDictionary()


def locked(file: Path, what: str) -> Lock | None:
    """Lock a file for this process, or raise where another process has it; None without locks.

    POSIX record locks belong to a process and are lost with the first handle that it closes: all journals of
    one process share one.
    """
    try:
        import fcntl
    except ImportError:
        return None
    name = str(file.resolve())
    if (held := _LOCKS.get(name)) is not None:
        return held
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.read(handle, 32).decode("ascii", "replace").strip()
        os.close(handle)
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            return None  # a file system without locks
        by = f" (process {owner})" if owner.isdigit() else ""
        raise ValueError(f"the {what} is in use by another run{by}: wait for it, or name another") from None
    os.truncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    lock = _LOCKS[name] = Lock(handle)
    return lock
