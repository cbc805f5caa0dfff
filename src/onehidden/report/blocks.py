"""The document tree: what a report says, and how it becomes HTML, Markdown and JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.checks import Check
from onehidden.report.figures import to_svg
from onehidden.report.headline import Mood
from onehidden.report.wording import Mark, mark, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

REPORT_VERSION = 2  # of the JSON: since 2 a verdict has a question and a mood, not good and detail


@dataclass(frozen=True)
class Verdict:
    """The answer to a question in one line, first on the page."""

    question: str
    headline: str
    mood: Mood

    @property
    def sign(self) -> str:
        """The mood without a colour."""
        return {Mood.GOOD: "✓", Mood.CARE: "~", Mood.DOUBT: "!"}[self.mood]


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Facts:
    """Labelled values, each short enough for large type."""

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
    wordy: frozenset[int] = frozenset()  # columns of words, aligned to the left; the others hold numbers
    stacks: bool = False  # whether a narrow page sets the cells of a row below one another


@dataclass(frozen=True)
class Figure:
    """A picture: ``draw`` fills a Matplotlib figure; ``data`` holds the numbers in it."""

    name: str
    caption: str
    draw: Callable[[Canvas], None]
    data: dict[str, Any]
    size: tuple[float, float] = (2.7, 2.0)  # inches


@dataclass(frozen=True)
class Gallery:
    """Small figures of one kind side by side."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Formula:
    """The network written out, one line per unit."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    text: str
    language: str


Block = Verdict | Paragraph | Facts | Checks | Grid | Figure | Gallery | Formula | Code


@dataclass(frozen=True)
class Section:
    """A chapter; the page folds away one of ``detail``."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


@dataclass(frozen=True)
class Report:
    title: str
    sections: tuple[Section, ...]
    network: dict[str, Any] = field(default_factory=dict)
    samples: bool = False  # whether the rows were at hand


def to_html(report: Report) -> str:
    """One page: template, style and pictures inside, nothing fetched."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("onehidden.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The only markup that is not escaped is what Matplotlib drew; it escapes the names in it.
    environment.filters["picture"] = lambda figure: Markup(to_svg(figure))
    environment.filters |= {"short": short, "mark": mark}
    environment.tests["of_kind"] = lambda block, kind: type(block).__name__ == kind
    return environment.get_template("page.html.jinja").render(report=report)


def to_markdown(report: Report, folder: str) -> tuple[str, dict[str, str]]:
    """The text, and the figures to write: relative path -> SVG."""
    figures: dict[str, str] = {}
    parts = [f"# {_escaped(report.title)}"]
    for section in report.sections:
        parts.append(f"## {_escaped(section.title)}")
        parts += [_in_markdown(block, folder, figures) for block in section.blocks]
    return "\n\n".join(parts) + "\n", figures


def to_json(report: Report) -> str:
    """Strict JSON, with the numbers of every figure in place of its picture."""
    tree = {
        "format": "onehidden-report",
        "format_version": REPORT_VERSION,
        "title": report.title,
        "network": report.network,
        "sections": [
            {"name": s.name, "title": s.title, "blocks": [_in_json(block) for block in s.blocks]}
            for s in report.sections
        ],
    }
    return json.dumps(_plain(tree), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _in_markdown(block: Block, folder: str, figures: dict[str, str]) -> str:
    match block:
        case Verdict():
            return f"**{block.question}** ({block.sign}) {_escaped(block.headline)}"
        case Paragraph():
            return _escaped(block.text)
        case Facts():
            return "\n".join(f"- {_escaped(label)}: {_escaped(value)}" for label, value in block.items)
        case Checks():
            rows = []
            for c in block.checks:
                outcome = f"**{mark(c)}**" if mark(c) is Mark.FAILED else str(mark(c))
                numbers = [short(one if c.evaluated else None) for one in (c.value, c.threshold)]
                rows.append((outcome, _escaped(c.name), *numbers, _escaped(c.advice)))
            return _table(("verdict", "check", "value", "bound", "advice"), rows)
        case Grid():
            rows = [tuple(map(_escaped, row)) for row in block.rows]
            grid = _table(tuple(map(_escaped, block.columns)), rows)
            return f"{grid}\n\n{_escaped(block.note)}" if block.note else grid
        case Code():  # four backticks, in case the code holds three
            return f"````{block.language}\n{block.text}\n````"
        case Formula():  # two blanks break a line
            return "  \n".join(map(_escaped, block.lines))
        case Gallery():
            return "\n\n".join(_in_markdown(figure, folder, figures) for figure in block.figures)
        case Figure():
            name, caption = f"{folder}/{block.name}.svg", _escaped(block.caption)
            figures[name] = '<?xml version="1.0" encoding="utf-8"?>\n' + to_svg(block) + "\n"
            link = name.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
            return f"![{caption}]({link})\n\n*{caption}*"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _escaped(text: str) -> str:
    """Text on one line in which no markup of Markdown or HTML survives."""
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", line)


def _in_json(block: Block) -> dict[str, Any]:
    if isinstance(block, Gallery):
        return {"kind": "gallery", "figures": [_in_json(figure) for figure in block.figures]}
    layout = ("wordy", "stacks", "draw", "size")
    fields = {f.name: getattr(block, f.name) for f in dataclasses.fields(block) if f.name not in layout}
    return {"kind": type(block).__name__.lower(), **fields}


def _plain(value: object) -> Any:
    """A value of the types that JSON has; NaN and infinities become text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
