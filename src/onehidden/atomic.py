"""Files and folders written whole or not at all: written aside, then renamed, with the user's own mode.

What a killed process left aside is removed by the next write. A lock keeps a file or folder for one process.
"""

from __future__ import annotations

import errno
import os
import shutil
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A path to write to, of the same suffix, renamed to ``path`` when all went well.

    Where ``path`` is a link, the file that it points to is replaced.
    """
    place = resolved(path)
    beside = place.with_name(f".{place.stem}.writing{path.suffix}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with _named(path):
        try:
            yield beside
            _to_disk(beside)  # before it has the name
            os.replace(beside, place)
        finally:
            beside.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write the bytes as a file, whole or not at all."""
    with atomic_file(path) as beside:
        beside.write_bytes(content)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A new folder to fill, which takes the place of ``folder`` when all went well.

    Where ``folder`` is a link, the folder that it points to is replaced.
    """
    place = resolved(folder)
    beside, old = (place.with_name(f".{place.name}.{what}") for what in ("writing", "old"))
    if old.exists() and not place.exists():  # a process ended between two renames
        os.rename(old, place)
    for left in (beside, old):
        shutil.rmtree(left, ignore_errors=True)
    with _named(folder):
        try:
            beside.mkdir(parents=True)
            yield beside
            for file in beside.rglob("*"):
                if file.is_file():
                    _to_disk(file)
            if place.exists():
                os.rename(place, old)
            os.rename(beside, place)
        finally:
            with suppress(OSError):  # nothing to bring back, or the new one is there
                os.rename(old, place)
            for left in (beside, old):
                shutil.rmtree(left, ignore_errors=True)


def resolved(path: Path) -> Path:
    """The path that a link points to: a rename must happen there."""
    return Path(os.path.realpath(path))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of the system are named by what was to be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


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
        os.close(handle)
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            return None  # a file system without locks
        raise ValueError(f"the {what} is in use by another run: wait for it, or name another") from None
    lock = _LOCKS[name] = Lock(handle)
    return lock
