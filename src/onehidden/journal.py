"""The journal: results of finished steps on disk, so that a killed run goes on where it was.

Steps have names ("width/3/random/2/descent"). What a step computes follows from its name once the samples,
the options and the version are the same; those are pinned in ``checkpoint.json`` when the folder is opened,
so a name is all that a result needs. Results are written whole or not at all. The rest is computed anew,
which costs little and gives the same numbers: the answer is that of a run that was never killed.
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

from onehidden.whole import write_whole

FORMAT_VERSION = 5
_SUFFIX, _DIGEST = ".step", 32  # a result is the digest of an npz archive, then the archive
_PAUSE = 2.0  # seconds between states written on the way through a step

Values = dict[str, np.ndarray]


class Journal:
    """Named arrays by step. This one forgets; ``Folder`` does not."""

    remembers = False

    def recall(self, step: str) -> Values | None:
        """What was kept of a step, None when nothing."""
        return None

    def keep(self, step: str, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        """Remember a step; ``passing`` marks a state on the way, skipped if one was written a moment ago."""


FORGETFUL = Journal()


class Folder(Journal):
    """A folder of step results that belong to one set of samples and options."""

    remembers = True

    def __init__(self, folder: Path, lock: Lock | None = None) -> None:
        self.folder, self._written = folder, 0.0
        self._asked: set[str] = set()
        self._lock = lock  # held as long as the journal lives

    def recall(self, step: str) -> Values | None:
        # Two steps of one name would read each other's results: that is a mistake of the program.
        assert step not in self._asked, f"two steps are called {step}"
        self._asked.add(step)
        path = self._path(step)
        if not path.is_file():
            return None
        content = path.read_bytes()
        digest, held = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(held).digest() != digest:
            raise ValueError(f"{path} is damaged: delete it and start again")
        with np.load(io.BytesIO(held), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    def keep(self, step: str, values: Mapping[str, npt.ArrayLike], passing: bool = False) -> None:
        if passing and time.monotonic() - self._written < _PAUSE:
            return
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{name: np.asarray(value) for name, value in values.items()})
        path = self._path(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        held = buffer.getvalue()
        write_whole(path, hashlib.sha256(held).digest() + held)
        self._written = time.monotonic()

    def _path(self, step: str) -> Path:
        words = [re.sub(r"[^A-Za-z0-9_.-]", "-", word) for word in step.split("/")]
        return self.folder.joinpath(*words[:-1], f"{words[-1]}{_SUFFIX}")


def open_journal(folder: object, samples: str, options: Mapping[str, object], version: str) -> Journal:
    """The journal of these samples and options; made when new, refused when it belongs to others.

    Parameters
    ----------
    folder : where to keep it, or None for no journal.
    samples : fingerprint of the data.
    options : everything the answer depends on beside the data, in plain values; a time budget is none.
    version : of the program.
    """
    if folder is None:
        return FORGETFUL
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"checkpoint must be the path of a folder, got {type(folder).__name__}")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint {path} is a file: name a folder")
    mine = {
        "format_version": FORMAT_VERSION,
        "version": version,
        "samples": samples,
        "options": {name: value for name, value in options.items() if name != "max_seconds"},
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = locked(path / "lock", f"checkpoint {path}")
        card = path / "checkpoint.json"
        if not card.exists():
            if any(path.glob(f"**/*{_SUFFIX}")):
                raise ValueError(f"{path} holds results but no checkpoint.json: name an empty folder")
            write_whole(card, json.dumps(mine, indent=1).encode())
            return Folder(path, lock)
        kept = json.loads(card.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ValueError(f"cannot use the checkpoint {path}: {why}") from None
    kept = kept if isinstance(kept, dict) else {}
    if (kept.get("format_version"), kept.get("version")) != (FORMAT_VERSION, version):
        raise ValueError(f"{path} was written by another version: delete it or name another folder")
    if kept.get("samples") != samples:
        raise ValueError(f"the checkpoint {path} belongs to other data: delete it or name another folder")
    then = kept.get("options")
    then = then if isinstance(then, dict) else {}
    changed = sorted(name for name in mine["options"] if then.get(name) != mine["options"][name])
    if changed:
        raise ValueError(
            f"the checkpoint {path} was made with another {' and '.join(changed)}: use the same, delete it "
            "or name another folder"
        )
    return Folder(path, lock)


class Lock:
    """The right of one process to a folder or file; given back when no longer held, or at its end."""

    def __init__(self, handle: int) -> None:
        self.release = weakref.finalize(self, os.close, handle)


_LOCKS: weakref.WeakValueDictionary[str, Lock] = weakref.WeakValueDictionary()


def locked(file: Path, what: str) -> Lock | None:
    """The lock that a file stands for; another process that has it is one sentence. None without locks.

    POSIX record locks belong to a process and are lost with the first handle it closes, so that the journals
    of one process share one.
    """
    try:
        import fcntl
    except ImportError:
        return None
    name = str(file.resolve())
    held = _LOCKS.get(name)
    if held is not None:
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
