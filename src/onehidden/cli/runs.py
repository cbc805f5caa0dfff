"""Run folders: model, machine-readable result, report; and how a run is shown on the terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy.typing as npt

    from onehidden.network import OneHiddenNet
    from onehidden.recovery import Recovery


def free_folder(folder: Path) -> Path:
    """The folder, if it can be a run folder; said before any work is done."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the run with --out")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "recovery.json").exists():
        raise ValueError(f"{folder} holds other files: name another folder for the run with --out")
    _must_be_writable(folder)
    return folder


def free_file(file: Path, suffixes: tuple[str, ...] = ()) -> Path:
    """The file, if it can be written; said before any work is done."""
    if suffixes and file.suffix.lower() not in suffixes:
        raise ValueError(f"cannot write {file}: its name must end in {', '.join(suffixes)}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder: give the name of the file to write")
    _must_be_writable(file)
    return file


def _must_be_writable(path: Path) -> None:
    parent = path
    while not parent.exists():
        parent = parent.parent
    stuck = parent != path and not parent.is_dir()
    system = str(path.resolve()).startswith(("/proc/", "/sys/", "/dev/"))
    if stuck or system or not os.access(parent, os.W_OK):
        raise ValueError(f"cannot write to {path}: name another place with --out")


def must_differ(out: Path | None, *inputs: Path) -> None:
    """Refuse to overwrite what is being read."""
    for path in inputs:
        if out is not None and out.exists() and path.exists() and out.samefile(path):
            raise ValueError(f"{out} is the input itself: name another file with --out")


def write(
    recovery: Recovery,
    folder: Path,
    X: npt.ArrayLike | None,
    y: npt.ArrayLike | None,
    truth: OneHiddenNet | None = None,
) -> None:
    """model.safetensors, recovery.json, report.html."""
    recovery.save(folder)
    recovery.report(folder / "report.html", X=X, y=y, truth=truth)


def show(recovery: Recovery) -> None:
    """Units, checks and status on stdout."""
    from rich.console import Console

    from onehidden.cli import tables

    tables.show(recovery, Console())
