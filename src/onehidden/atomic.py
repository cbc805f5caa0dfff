"""Files and folders written whole or not at all: written aside, then renamed, with the user's own mode.

What a killed process left aside is removed by the next write.
"""

from __future__ import annotations

import os
import shutil
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
