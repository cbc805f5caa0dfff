"""Checkpoints: results of finished stages on disk, so that a killed run goes on where it was.

Every stage that takes time is a function of the samples and of its key; its result is written under the hash
of the key, whole or not at all, and read back instead of being computed again. The rest is computed anew,
which costs little and gives the same numbers: the answer is that of a run that was never killed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import time
import zipfile
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from onehidden.memo import FORGETFUL, Memo

FORMAT_VERSION = 2
_PAUSE = 2.0  # seconds between states written on the way through a stage


class Checkpoint(Memo):
    """A folder of stage results that belong to one set of samples and options."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._written = folder, 0.0

    def recall(self, *key: Any) -> dict[str, np.ndarray] | None:
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it and start again") from None

    def keep(self, values: dict[str, Any], *key: Any, passing: bool = False) -> None:
        if passing and time.monotonic() - self._written < _PAUSE:
            return
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{name: np.asarray(value) for name, value in values.items()})
        write_whole(self._path(key), buffer.getvalue())
        self._written = time.monotonic()

    def _path(self, key: tuple[Any, ...]) -> Path:
        return self.folder / f"{key[0]}-{digest(key)[:24]}.npz"


def open_checkpoint(folder: Any, samples: Any, options: dict[str, Any]) -> Memo:
    """The checkpoint of these samples and options; made when new, refused when it belongs to others.

    Parameters
    ----------
    folder : where to keep it, or None for no checkpoint.
    samples : the data, or their fingerprint.
    options : everything the answer depends on beside the data; a time budget is no part of it.
    """
    if folder is None:
        return FORGETFUL
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError(f"checkpoint must be the path of a folder, got {type(folder).__name__}")
    path, samples = Path(folder), digest(samples)
    options = {name: value for name, value in options.items() if name != "max_seconds"}
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint {path} is a file: name a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        card = path / "checkpoint.json"
        mine = {"format_version": FORMAT_VERSION, "samples": samples, "options": _plain(options)}
        if not card.exists():
            if any(path.glob("*.npz")):
                raise ValueError(f"{path} holds npz files but no checkpoint.json: name an empty folder")
            write_whole(card, json.dumps(mine, indent=1).encode())
            return Checkpoint(path)
        kept = json.loads(card.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"cannot use the checkpoint {path}: {error}") from None
    if kept.get("format_version") != FORMAT_VERSION:
        raise ValueError(f"{path} was written by another version: delete it or name another folder")
    if kept.get("samples") != samples:
        raise ValueError(f"the checkpoint {path} belongs to other data: delete it or name another folder")
    then = kept.get("options", {})
    changed = sorted(name for name in mine["options"] if then.get(name) != mine["options"][name])
    if changed:
        raise ValueError(
            f"the checkpoint {path} was made with another {' and '.join(changed)}: use the same, delete it "
            "or name another folder"
        )
    return Checkpoint(path)


def write_whole(path: Path, content: bytes) -> None:
    """The file whole or not at all: written beside, then moved into place."""
    handle, beside = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def digest(value: Any) -> str:
    """A hash of text, numbers, arrays, records and containers of them."""
    state = hashlib.sha256()
    _feed(state, value)
    return state.hexdigest()


def _feed(state: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        state.update(f"array{value.dtype}{value.shape}".encode())
        state.update(np.ascontiguousarray(value).data)
    elif isinstance(value, (str, int, float, bool, bytes, np.generic)) or value is None:
        state.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, (tuple, list)):
        state.update(f"list{len(value)}:".encode())
        for item in value:
            _feed(state, item)
    elif isinstance(value, dict):
        state.update(f"dict{len(value)}:".encode())
        for name in sorted(value, key=str):
            _feed(state, (str(name), value[name]))
    elif hasattr(value, "__dict__") and not isinstance(value, (FunctionType, type)):
        state.update(type(value).__qualname__.encode())
        kept = {k: v for k, v in vars(value).items() if not k.startswith("__") and "compiled" not in k}
        _feed(state, kept)  # compiled functions appear with use
    elif hasattr(value, "__array__"):
        _feed(state, np.asarray(value))
    else:
        state.update(getattr(value, "__qualname__", type(value).__qualname__).encode())
        value = getattr(value, "__wrapped__", value)
        code = getattr(value, "__code__", None)
        if code is not None:  # functions of the same name differ by what they do and what they hold
            state.update(code.co_code)
            held = [cell.cell_contents for cell in value.__closure__ or ()]
            _feed(state, [repr(code.co_consts), repr(code.co_names), held, list(value.__defaults__ or ())])


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    simple = (str, int, float, bool, type(None))
    return {name: v if isinstance(v, simple) else digest(v) for name, v in options.items()}
