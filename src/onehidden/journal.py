"""The journal: results of finished steps on disk, so that a killed run goes on where it was.

Steps have names ("width/3/random/2/descent"). The samples, the options and the version are pinned in
``checkpoint.json`` when the folder is opened; together with them a name determines what the step computes.
Results are written whole or not at all. All else is computed again, with the same numbers: the answer is that
of a run that was never killed.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from onehidden.atomic import write_atomically

FORMAT_VERSION = 5

Values = dict[str, np.ndarray]


class Journal:
    """Named arrays by step. This one keeps nothing; ``Folder`` keeps them on disk."""

    remembers = False

    def recall(self, step: str) -> Values | None:
        """The result of a step, None where none is kept."""
        return None

    def keep(self, step: str, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        """Keep the result of a step, or with ``passing`` a state on the way, one in two seconds at most."""


FORGETFUL = Journal()


class Folder(Journal):
    """A folder of step results that belong to one set of samples and options."""

    remembers = True

    def __init__(self, folder: Path, lock: Lock | None = None, pause: float = 2.0) -> None:
        self.folder, self.pause, self._written = folder, pause, 0.0
        self._recalled: set[str] = set()
        self._lock = lock  # held as long as the journal lives

    def recall(self, step: str) -> Values | None:
        # Two steps of one name would read each other's results.
        assert step not in self._recalled, f"two steps are called {step}"
        self._recalled.add(step)
        path = self._path(step)
        if not path.is_file():
            return None
        content = path.read_bytes()
        digest, archive = content[:32], content[32:]
        if hashlib.sha256(archive).digest() != digest:
            raise ValueError(f"{path} is damaged: delete it and start again")
        with np.load(io.BytesIO(archive), allow_pickle=False) as values:
            return dict(values)

    def keep(self, step: str, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        if passing and time.monotonic() - self._written < self.pause:
            return
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{name: np.asarray(value) for name, value in values.items()})
        archive = buffer.getvalue()
        write_atomically(self._path(step), hashlib.sha256(archive).digest() + archive)
        self._written = time.monotonic()

    def _path(self, step: str) -> Path:
        return self.folder / (re.sub(r"[^A-Za-z0-9_./-]", "-", step) + ".step")


def open_journal(folder: object, samples: str, options: Mapping[str, object], version: str) -> Journal:
    """The journal of these samples and options: a new one, or one that was kept for the same.

    ``samples`` is the fingerprint of the data, ``options`` everything else that the answer depends on, as
    plain values; a time budget is left out. Without a folder there is no journal.
    """
    if folder is None:
        return FORGETFUL
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"checkpoint must be the path of a folder, got {type(folder).__name__}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint {path} is a file: name a folder")
    kept = {name: value for name, value in options.items() if name != "max_seconds"}
    card = {"format_version": FORMAT_VERSION, "version": version, "samples": samples, "options": kept}
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = locked(path / "lock", f"checkpoint {path}")
        file = path / "checkpoint.json"
        if not file.exists():
            if any(path.glob("**/*.step")):
                raise ValueError(f"{path} holds results but no checkpoint.json: name an empty folder")
            write_atomically(file, json.dumps(card, indent=1).encode())
            return Folder(path, lock)
        kept = json.loads(file.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ValueError(f"cannot use the checkpoint {path}: {why}") from None
    _must_match(path, kept if isinstance(kept, dict) else {}, card)
    return Folder(path, lock)


def _must_match(path: Path, kept: Mapping[str, object], card: Mapping[str, object]) -> None:
    """Refuse a folder that belongs to another version, other data or other options."""
    if any(kept.get(name) != card[name] for name in ("format_version", "version")):
        raise ValueError(f"{path} was written by another version: delete it or name another folder")
    if kept.get("samples") != card["samples"]:
        raise ValueError(f"the checkpoint {path} belongs to other data: delete it or name another folder")
    before, now = (one if isinstance(one, dict) else {} for one in (kept.get("options"), card["options"]))
    changed = sorted(name for name in now if before.get(name) != now[name])
    if changed:
        raise ValueError(
            f"the checkpoint {path} was made with another {' and '.join(changed)}: use the same, delete it "
            "or name another folder"
        )


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


def fingerprint(*values: np.ndarray | str | int | float | None) -> str:
    """A hash of arrays, text and numbers."""
    state = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            state.update(f"array{value.dtype}{value.shape}".encode())
            state.update(np.ascontiguousarray(value).data)
        else:
            state.update(f"{type(value).__name__}:{value!r};".encode())
    return state.hexdigest()
