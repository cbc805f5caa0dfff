"""The rows that were measured, with date, machine, seed, seconds: verdicts and pages come from them."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onehidden.papers.record import Item, Reproduction, Table
from onehidden.whole import whole_file

FOLDER = Path(__file__).parent / "rows"
SIZES = ("default", "full")


@dataclass(frozen=True)
class Made:
    """How stored rows came to be."""

    date: str
    version: str
    commit: str
    machine: str
    seed: int
    seconds: float

    def sentence(self) -> str:
        return (
            f"{self.date}, version {self.version}, commit {self.commit}, {self.machine}, seed {self.seed}, "
            f"{self.seconds:.0f} s"
        )


@dataclass(frozen=True)
class Stored:
    """One stored run: its table, the verdicts it was stored with, and how it was made."""

    table: Table
    verdicts: dict[str, str]
    made: Made


def made(seed: int, seconds: float) -> Made:
    """The stamp of a run that ends now."""
    from onehidden import __version__

    return Made(
        datetime.date.today().isoformat(), __version__, _commit(), _machine(), seed, round(seconds, 1)
    )


def save(result: Reproduction, size: str, stamp: Made, folder: Path = FOLDER) -> Path:
    """Put the rows of one run in the item's file, beside those of the other size."""
    path = folder / f"{result.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    whole = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    table = result.table
    whole[size] = {
        "made": asdict(stamp),
        "title": table.title,
        "columns": list(table.columns),
        "rows": [list(row) for row in table.rows],
        "notes": list(table.notes),
        "curves": {name: [_rounded(x), _rounded(y)] for name, (x, y) in table.curves.items()},
        "verdicts": result.verdicts,
    }
    text = json.dumps({s: whole[s] for s in SIZES if s in whole}, indent=1, ensure_ascii=False)
    with whole_file(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")
    return path


def load(item: Item, size: str, folder: Path = FOLDER) -> Stored | None:
    """The stored run of that size, or None."""
    path = folder / f"{item.name}.json"
    if not path.exists():
        return None
    whole: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if size not in whole:
        return None
    part = whole[size]
    curves = {name: (x, y) for name, (x, y) in part["curves"].items()}
    table = Table(
        part["title"], tuple(part["columns"]), tuple(map(tuple, part["rows"])), tuple(part["notes"]), curves
    )
    return Stored(table, part["verdicts"], Made(**part["made"]))


def _rounded(values: Any) -> list[float]:
    """Four digits are more than a picture shows."""
    return [float(f"{float(v):.4g}") for v in values]


def _commit() -> str:
    """The commit of the source tree; "unknown" outside one."""
    try:
        command = ["git", "describe", "--always", "--dirty"]
        done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() or os.environ.get("ONEHIDDEN_COMMIT", "unknown")


def _machine() -> str:
    import jax

    device = jax.devices()[0]
    cores = f"{os.cpu_count()} cores, {platform.machine()}"
    return cores if device.platform == "cpu" else f"{device.device_kind}, {cores}"
