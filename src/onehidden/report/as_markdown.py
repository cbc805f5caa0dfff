"""The report as Markdown, figures in files beside it."""

from __future__ import annotations

import re

from onehidden.report.blocks import (
    Block,
    Checks,
    Code,
    Facts,
    Figure,
    Formula,
    Gallery,
    Grid,
    Paragraph,
    Report,
    Verdict,
)
from onehidden.report.marks import Mark, mark
from onehidden.report.numbers import short
from onehidden.report.style import to_svg


def render(report: Report, folder: str) -> tuple[str, dict[str, str]]:
    """The text, and the figures to write: relative path -> SVG."""
    figures: dict[str, str] = {}
    parts = [f"# {escape(report.title)}"]
    for section in report.sections:
        parts.append(f"## {escape(section.title)}")
        parts += [_block(block, folder, figures) for block in section.blocks]
    return "\n\n".join(parts) + "\n", figures


def escape(text: str) -> str:
    """Text that stays text: no markup of Markdown or HTML survives in it."""
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", line)


def _block(block: Block, folder: str, figures: dict[str, str]) -> str:
    if isinstance(block, Verdict):
        return f"**{escape(block.headline)}** {escape(block.detail)}"
    if isinstance(block, Paragraph):
        return escape(block.text)
    if isinstance(block, Facts):
        return "\n".join(f"- {escape(label)}: {escape(value)}" for label, value in block.items)
    if isinstance(block, Checks):
        rows = [
            (
                f"**{mark(c)}**" if mark(c) is Mark.FAILED else str(mark(c)),
                escape(c.name),
                short(c.value if c.asked else None),
                short(c.threshold if c.asked else None),
                escape(c.advice),
            )
            for c in block.checks
        ]
        return _table(("verdict", "check", "value", "bound", "advice"), rows)
    if isinstance(block, Grid):
        rows = [tuple(escape(cell) for cell in row) for row in block.rows]
        grid = _table(tuple(escape(c) for c in block.columns), rows)
        return f"{grid}\n\n{escape(block.note)}" if block.note else grid
    if isinstance(block, Code):
        # Four backticks, in case the code holds three.
        return f"````{block.language}\n{block.text}\n````"
    if isinstance(block, Formula):
        return "  \n".join(escape(line) for line in block.lines)  # two blanks break a line
    if isinstance(block, Gallery):
        return "\n\n".join(_block(figure, folder, figures) for figure in block.figures)
    return _figure(block, folder, figures)


def _figure(figure: Figure, folder: str, figures: dict[str, str]) -> str:
    name = f"{folder}/{figure.name}.svg"
    figures[name] = '<?xml version="1.0" encoding="utf-8"?>\n' + to_svg(figure) + "\n"
    link = name.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return f"![{escape(figure.caption)}]({link})\n\n*{escape(figure.caption)}*"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
