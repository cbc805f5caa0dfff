"""The section tree: what a report says, before anyone decides how it looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onehidden.checks import Check

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True)
class Verdict:
    """The answer in one line, first on the page."""

    good: bool
    headline: str
    detail: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Facts:
    """Labelled values, each short enough to stand in large type."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Checks:
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    wordy: frozenset[int] = frozenset()  # columns of words, set to the left; the others hold numbers
    stacks: bool = False  # whether a narrow page may set the cells of a row below one another


@dataclass(frozen=True)
class Figure:
    """A picture: ``draw`` fills a Matplotlib figure; ``data`` holds the numbers in it."""

    name: str
    caption: str
    draw: Callable[[Canvas], None]
    data: dict[str, Any]
    size: tuple[float, float] = (4.4, 2.7)  # inches


@dataclass(frozen=True)
class Gallery:
    """Small figures of one kind side by side."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Formula:
    """The network written out, a line a unit."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    text: str
    language: str


Block = Verdict | Paragraph | Facts | Checks | Grid | Figure | Gallery | Formula | Code


@dataclass(frozen=True)
class Section:
    """A chapter; one of ``detail`` is folded away until it is asked for."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


@dataclass(frozen=True)
class Report:
    title: str
    sections: tuple[Section, ...]
    network: dict[str, Any] = field(default_factory=dict)
    samples: bool = False  # whether it was made with the rows at hand
