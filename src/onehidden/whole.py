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
    """A path beside ``path``, of the same suffix, to write to; moved into place when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    beside = _beside(path)
    try:
        yield beside
        with beside.open("rb") as file:  # on the disk before it has the name
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        raise _about(error, path) from None


def write_whole(path: Path, content: bytes) -> None:
    """The bytes as a file, whole or not at all."""
    with whole_file(path) as beside:
        beside.write_bytes(content)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside ``folder`` to fill; it takes the place of ``folder`` when all went well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    beside = _beside(folder)
    beside.mkdir()
    try:
        yield beside
        for file in beside.iterdir():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        if folder.exists() and any(folder.iterdir()):
            old = _beside(folder, "old")
            os.rename(folder, old)
            os.rename(beside, folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(beside, folder)  # onto an empty folder too
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise _about(error, folder) from None


def _about(error: BaseException, path: Path) -> BaseException:
    """A failure of the disk with the name of what was to be written, not of what stood beside it."""
    if not isinstance(error, OSError):
        return error
    return OSError(error.errno, error.strerror or str(error), str(path))


def _beside(path: Path, what: str = "writing") -> Path:
    return path.with_name(f".{path.stem}.{_HOST}.{os.getpid()}.{next(_NUMBERS)}.{what}{path.suffix}")


def _sweep(path: Path) -> None:
    """Remove what processes that are no more left beside a path; an old folder goes back to its place."""
    names = re.compile(
        rf"\.{re.escape(path.stem)}\.{_HOST}\.(\d+)\.\d+\.(writing|old){re.escape(path.suffix)}"
    )
    with suppress(OSError):
        for other in path.parent.iterdir():
            found = names.fullmatch(other.name)
            if found is None or _alive(int(found[1])):
                continue
            if found[2] == "old" and not path.exists():
                os.rename(other, path)  # its process ended between the two moves
            elif other.is_dir():
                shutil.rmtree(other, ignore_errors=True)
            else:
                other.unlink(missing_ok=True)


def _alive(process: int) -> bool:
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
