"""Run folders: model, machine-readable result, report; and the exit code of a run."""

from __future__ import annotations

import json
import tempfile
import threading
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onehidden.atomic import atomic_file, atomic_folder, resolved

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from onehidden.data import Table
    from onehidden.recovery import Recovery

TABLES = (".csv", ".parquet")  # suffixes of tables that are written
# What a run folder may hold.
OURS = ("model.safetensors", "covariance.safetensors", "recovery.json", "report.*", "units.*")


def free_folder(folder: Path, force: bool = False) -> Path:
    """The folder, if it can be a run folder; checked before any work. ``force`` gives up a run there."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: name a folder for the run with --out")
    if Path.cwd().is_relative_to(resolved(folder)):
        raise ValueError(
            f"{folder} is the folder you are in, whose place a run cannot take: name another with --out"
        )
    held = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    strange = [name for name in held if not any(fnmatchcase(name, ours) for ours in OURS)]
    if held and ("recovery.json" not in held or strange):
        raise ValueError(f"{folder} holds other files: name another folder for the run with --out")
    if held and not force:
        raise ValueError(f"{folder} holds a run already: name another with --out, or give it up with --force")
    _must_be_writable(folder)
    return folder


def free_file(file: Path, suffixes: tuple[str, ...] = (), force: bool = True) -> Path:
    """The file, if it can be written; checked before any work. ``force`` gives up one that is there."""
    if suffixes and file.suffix.lower() not in suffixes:
        raise ValueError(f"cannot write {file}: its name must end in {', '.join(suffixes)}")
    if file.is_dir():
        raise ValueError(f"{file} is a folder: give the name of the file to write")
    if file.exists() and not force:
        raise ValueError(f"{file} is there already: name another with --out, or give it up with --force")
    _must_be_writable(file)
    return file


def _must_be_writable(path: Path) -> None:
    """Refuse a place that cannot be written: files are written next to it and moved there."""
    parent = next(folder for folder in resolved(path).parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError:
        raise ValueError(f"cannot write to {path}: name another place with --out") from None


def must_differ(out: Path | None, *inputs: Path) -> None:
    """Refuse to overwrite what is being read."""
    for path in inputs:
        if out is not None and out.exists() and path.exists() and out.samefile(path):
            raise ValueError(f"{out} is the input itself: name another file with --out")


def write(
    recovery: Recovery,
    folder: Path,
    X: npt.ArrayLike | Table | None,
    y: npt.ArrayLike | None = None,
) -> None:
    """model.safetensors, recovery.json, report.html, units.csv: all of them or none."""
    from onehidden.report.text import to_csv

    with atomic_folder(folder) as place:
        recovery.save(place)
        recovery.report(place / "report.html", X=X, y=y)
        (place / "units.csv").write_text(to_csv(recovery), encoding="utf-8")


def write_columns(out: Path, columns: dict[str, np.ndarray]) -> None:
    """Write a table whole or not at all; a gap in CSV is nan, since an empty line would be skipped."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    text = out.suffix.lower() == ".csv"
    table = pa.table({name: pa.array(one, from_pandas=not text) for name, one in columns.items()})
    with atomic_file(out) as place:
        (csv.write_csv if text else parquet.write_table)(table, str(place))


def marked(recovery: Recovery, stopped: threading.Event) -> Recovery:
    """The recovery, whose message says so if it was stopped by hand."""
    if not stopped.is_set():
        return recovery
    return replace(recovery, message=f"stopped by hand, the best answer so far: {recovery.message}")


def shown(recovery: Recovery, stopped: threading.Event, as_json: bool) -> int:
    """Print a recovery; the exit code of its command."""
    from onehidden.report.text import show

    if as_json:
        click.echo(json.dumps(recovery.to_dict(), allow_nan=False))
    else:
        show(recovery)
    return 130 if stopped.is_set() else int(not recovery.converged)
