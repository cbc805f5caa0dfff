"""Claims with their rules, items that measure, and what follows; the rows that were measured, stored.

``claims.toml`` states the items: their claims, the sizes of a run, and the table that it fills. Stored rows
carry date, machine, seed and seconds: verdicts and pages come from them.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.atomic import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPRODUCED, FAILED = "reproduced", "not reproduced"
EXPLAINED, OPEN = "explained by a control", "cannot be judged"
VERDICTS = (REPRODUCED, FAILED, EXPLAINED, OPEN)

Row = Mapping[str, Any]
Rows = Sequence[Sequence[Any]]  # as they are measured, in the order of the columns
Line = Sequence[float] | np.ndarray
Curves = Mapping[str, tuple[Line, Line]]
Draw = Callable[["Figure", Sequence[Row], Curves], None]
Judge = Callable[[Sequence[Row]], str]  # pure: rows -> one of VERDICTS


@dataclass(frozen=True)
class Claim:
    """One statement of a paper with the rule that judges it, written before any run."""

    name: str  # unique over all papers
    where: str  # the place in the paper, with the steps of its proof that stand or fall with it
    says: str  # the statement, in numbers where it has any
    rule: str  # which rows count as what, in words
    judge: Judge


@dataclass(frozen=True)
class Table:
    """What a run measured, without a verdict: reported values beside ours, controls below."""

    title: str  # settings in one line
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()  # settings that the paper leaves open, and what differs
    curves: Curves = field(default_factory=dict)  # name -> (x, y), for the picture

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row must have one entry a column")
        # NumPy scalars become Python's own: rows are stored as JSON and must come back equal.
        plain = tuple(tuple(v.item() if isinstance(v, np.generic) else v for v in row) for row in self.rows)
        object.__setattr__(self, "rows", plain)

    def records(self) -> list[dict[str, Any]]:
        """Rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Item:
    """A figure, table or theorem that can be run: its claims, judged on the rows of ``measure`` alone."""

    name: str
    paper: str
    about: str
    claims: tuple[Claim, ...]
    measure: Callable[[bool, int], Table]  # of (full, seed)
    draw: Draw | None = None  # from what is stored

    def __call__(self, full: bool = False, seed: int = 0) -> Reproduction:
        return self.judged(self.measure(full, seed))

    def judged(self, table: Table) -> Reproduction:
        """Return the table with the verdict of every claim by its name."""
        rows = table.records()
        return Reproduction(self, table, {claim.name: claim.judge(rows) for claim in self.claims})


@cache
def stated() -> dict[str, Any]:
    """Return the items of the papers by name, as ``claims.toml`` states them."""
    return tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


def printed(name: str) -> dict[Any, tuple[Any, ...]]:
    """Return the numbers that the paper prints for an item, by line; a key of digits is a number."""
    lines = stated()[name]["printed"]
    return {int(key) if key.isdigit() else key: tuple(line) for key, line in lines.items()}


def sizes_of(name: str, full: bool = True) -> SimpleNamespace:
    """Return the name of an item and the sizes of a run: those of the paper, or fewer for a laptop."""
    known = stated()[name]
    return SimpleNamespace(name=name, **known.get("full", {}) | ({} if full else known.get("default", {})))


@dataclass(frozen=True)
class Reproduction:
    """An item with the rows of one run and the verdicts that follow from both."""

    item: Item
    table: Table
    verdicts: dict[str, str]
    made: Made | None = None  # of stored rows

    @property
    def name(self) -> str:
        return self.item.name

    def summary(self) -> str:
        """All verdicts in a few words: the one word where all agree."""
        counts = Counter(self.verdicts.values())
        if len(counts) == 1:
            return next(iter(counts))
        return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])

    def draw(self, figure: Figure) -> None:
        """Draw the picture, where the item has one."""
        if self.item.draw is not None:
            self.item.draw(figure, self.table.records(), self.table.curves)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.table.title,
            "paper": self.item.paper,
            "rows": self.table.records(),
            "verdicts": self.verdicts,
            "notes": list(self.table.notes),
        }


def one_of(reproduced: bool, otherwise: str = FAILED) -> str:
    """Reproduced, or the other verdict."""
    return REPRODUCED if reproduced else otherwise


def of(rows: Sequence[Row], column: str, value: object) -> list[Row]:
    """Rows with that value in a column."""
    return [row for row in rows if row[column] == value]


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


def made(seed: int, seconds: float) -> Made:
    """Return the stamp of a run that ends now."""
    import jax

    from onehidden import __version__

    try:
        command = ["git", "describe", "--always", "--dirty"]
        done = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True, timeout=20)
        commit = done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        commit = ""
    cores, device = f"{os.cpu_count()} cores, {platform.machine()}", jax.devices()[0]
    machine = cores if device.platform == "cpu" else f"{device.device_kind}, {cores}"
    # Outside a source tree the environment may name the commit.
    commit = commit or os.environ.get("ONEHIDDEN_COMMIT", "unknown")
    return Made(datetime.date.today().isoformat(), __version__, commit, machine, seed, round(seconds, 1))


def save(result: Reproduction, size: str, stamp: Made, folder: Path = FOLDER) -> None:
    """Put the rows of one run in the item's file, beside those of the other size."""
    path = folder / f"{result.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    whole = _read(path)
    curves = {name: [_rounded(x), _rounded(y)] for name, (x, y) in result.table.curves.items()}
    whole[size] = {"made": asdict(stamp), **vars(result.table), "curves": curves, "verdicts": result.verdicts}
    text = json.dumps({s: whole[s] for s in SIZES if s in whole}, indent=1, ensure_ascii=False)
    with atomic_file(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def load(item: Item, size: str, folder: Path = FOLDER) -> Reproduction | None:
    """Return the stored run of that size, or None."""
    part = _read(folder / f"{item.name}.json").get(size)
    if part is None:
        return None
    curves = {name: (x, y) for name, (x, y) in part["curves"].items()}
    rows, columns, notes = (tuple(part[key]) for key in ("rows", "columns", "notes"))
    table = Table(part["title"], columns, rows, notes, curves)
    return Reproduction(item, table, part["verdicts"], Made(**part["made"]))


def _read(path: Path) -> dict[str, Any]:
    """All sizes in a file; none where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _rounded(values: Iterable[Any]) -> list[float]:
    """Four digits are more than a picture shows."""
    return [float(f"{float(v):.4g}") for v in values]
