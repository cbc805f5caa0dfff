"""Files and folders whole or not at all: written beside, then moved into place, with the user's own mode.

What a killed process left beside (its name holds the number of the process) is swept away by the next one.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

_NUMBERS = count()
_HOST = re.sub(r"\W", "-", platform.node())  # folders may be shared between machines


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path beside ``path``, of the same suffix, to write to; moved into place when all went well.

    A link stays one: what it points to is written.
    """
    place = real(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place, path.suffix)
    beside = _beside(place, path.suffix)
    try:
        yield beside
        _to_disk(beside)  # before it has the name
        os.replace(beside, place)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        raise _about(error, path) from None


def write_whole(path: Path, content: bytes) -> None:
    """The bytes as a file, whole or not at all."""
    with whole_file(path) as beside:
        beside.write_bytes(content)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside ``folder`` to fill; it takes the place of ``folder`` when all went well.

    A link stays one: the folder that it points to is replaced.
    """
    place = real(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place, folder.suffix)
    beside = _beside(place, folder.suffix)
    beside.mkdir()
    try:
        yield beside
        for file in beside.rglob("*"):
            if file.is_file():
                _to_disk(file)
        if place.exists() and any(place.iterdir()):
            _exchange(beside, place, _beside(place, folder.suffix, "old"))
        else:
            os.rename(beside, place)  # onto an empty folder too
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise _about(error, folder) from None


def real(path: Path) -> Path:
    """The place that a path means, links followed; what moves into place must move there."""
    return Path(os.path.realpath(path))


def _to_disk(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _exchange(new: Path, place: Path, old: Path) -> None:
    """Put a folder where another is, which goes; where the new one cannot move, the other comes back."""
    try:
        os.rename(place, old)
        os.rename(new, place)
    except BaseException:
        with suppress(OSError):  # nothing to bring back, or the new one is there after all
            os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _about(error: BaseException, path: Path) -> BaseException:
    """A failure of the disk with the name of what was to be written, not of what stood beside it."""
    if not isinstance(error, OSError):
        return error
    return OSError(error.errno, error.strerror or str(error), str(path))


def _beside(path: Path, suffix: str, what: str = "writing") -> Path:
    """A name of this process beside a path; the suffix is the one asked for, which a link may have alone."""
    return path.with_name(f".{path.stem}.{_HOST}.{os.getpid()}.{next(_NUMBERS)}.{what}{suffix}")


def _sweep(path: Path, suffix: str) -> None:
    """Remove what processes that are no more left beside a path; an old folder goes back to its place."""
    names = re.compile(rf"\.{re.escape(path.stem)}\.{_HOST}\.(\d+)\.\d+\.(writing|old){re.escape(suffix)}")
    with suppress(OSError):
        for other in path.parent.iterdir():
            found = names.fullmatch(other.name)
            if found is None or alive(int(found[1])):
                continue
            if found[2] == "old" and not path.exists():
                os.rename(other, path)  # its process ended between the two moves
            elif other.is_dir():
                shutil.rmtree(other, ignore_errors=True)
            else:
                other.unlink(missing_ok=True)


def alive(process: int) -> bool:
    """Whether a process of this machine may still run; signal 0 asks that on POSIX alone."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
