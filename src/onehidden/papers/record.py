"""What is claimed and what was found: claims with their rules, items that measure, what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPRODUCED, FAILED = "reproduced", "not reproduced"
EXPLAINED, OPEN = "explained by a control", "cannot be judged"
VERDICTS = (REPRODUCED, FAILED, EXPLAINED, OPEN)

Row = Mapping[str, Any]
Line = Sequence[float] | np.ndarray
Curves = Mapping[str, tuple[Line, Line]]
Draw = Callable[["Figure", Sequence[Row], Curves], None]


@dataclass(frozen=True)
class Claim:
    """One statement of a paper with the rule that judges it, written before any run.

    Attributes
    ----------
    name : of the claim, unique over all papers.
    where : the place in the paper, with the steps of its proof that stand or fall with it.
    says : the statement, in numbers where it has any.
    rule : which rows count as what, in words.
    judge : rows -> one of ``VERDICTS``; a pure function, so that a stored verdict can be checked.
    """

    name: str
    where: str
    says: str
    rule: str
    judge: Callable[[Sequence[Row]], str]

    def verdict(self, rows: Sequence[Row]) -> str:
        """What the rule makes of the rows."""
        found = self.judge(rows)
        if found not in VERDICTS:
            raise ValueError(f"the rule of {self.name} gave {found!r}: it must be one of {VERDICTS}")
        return found


@dataclass(frozen=True)
class Table:
    """What a run measured, without a verdict.

    Attributes
    ----------
    title : settings in one line.
    columns, rows : reported beside ours, controls below.
    notes : sentences a reader needs (settings the paper left open, what differs).
    curves : name -> (x, y), for the picture.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    curves: Curves = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row must have one entry a column")
        object.__setattr__(self, "rows", tuple(tuple(map(_plain, row)) for row in self.rows))

    def records(self) -> list[dict[str, Any]]:
        """Rows by the names of their columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Item:
    """A figure, table or theorem that can be run: its claims stand beside what measures them.

    Attributes
    ----------
    name, paper, about : what it is and where it stands.
    claims : judged on the rows of ``measure`` alone.
    measure : (full, seed) -> Table.
    draw : (figure, rows, curves) draws the picture from what is stored; None where there is none.
    """

    name: str
    paper: str
    about: str
    claims: tuple[Claim, ...]
    measure: Callable[[bool, int], Table]
    draw: Draw | None = None

    def __call__(self, full: bool = False, seed: int = 0) -> Reproduction:
        return Reproduction(self, self.measure(full, seed))


@dataclass(frozen=True)
class Reproduction:
    """An item with the rows of one run; the verdicts follow from both."""

    item: Item
    table: Table

    @property
    def name(self) -> str:
        return self.item.name

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdict of every claim by its name."""
        rows = self.table.records()
        return {claim.name: claim.verdict(rows) for claim in self.item.claims}

    def summary(self) -> str:
        """All verdicts in a few words."""
        return summary(self.verdicts.values())

    def draw(self, figure: Figure) -> None:
        """The picture, where the item has one."""
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


def summary(verdicts: Any) -> str:
    """Several verdicts in a few words: the one word where all agree."""
    counts = Counter(verdicts)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def one_of(reproduced: bool, otherwise: str = FAILED) -> str:
    """The plainest rule: reproduced, or else."""
    return REPRODUCED if reproduced else otherwise


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's own: rows are stored as JSON and must come back equal."""
    return value.item() if isinstance(value, np.generic) else value
