"""What a reproduction returns: reported beside ours, controls, a verdict, a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VERDICTS = ("reproduced", "reproduced after correction", "not reproduced", "explained by a control")


@dataclass(frozen=True)
class Reproduction:
    """One figure or table rerun.

    Attributes
    ----------
    name, title, paper : what it is and where it stands.
    columns, rows : the table: reported, ours as printed, ours corrected, controls.
    verdict : one of ``VERDICTS``; a claim that only a control explains is not "reproduced".
    notes : sentences a reader needs (settings the paper left open, what differs).
    draw : draws the picture into a Matplotlib ``Figure``.
    """

    name: str
    title: str
    paper: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    verdict: str
    notes: tuple[str, ...] = ()
    draw: Callable[[Figure], None] | None = None

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {VERDICTS}, got {self.verdict!r}")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row must have one entry a column")

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.paper,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self.rows],
            "verdict": self.verdict,
            "notes": list(self.notes),
        }
