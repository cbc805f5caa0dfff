"""How figures look, and how they become SVG that can stand inside a page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onehidden.report.blocks import Figure

INK, MUTED, RULE = "#1f2933", "#5f6c7b", "#d9dee5"
BLUE, ORANGE, GREEN, RED, PURPLE, TEAL = "#2c6aa8", "#c8641b", "#3a7d4f", "#b0362d", "#7a56a3", "#2a8a8a"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, TEAL, RED, "#8a6d1d", "#c2578f")

_RC: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    # Text stays text: small files, selectable, in the page's own font. Names are never parsed as mathematics.
    "svg.fonttype": "none",
    "svg.hashsalt": "onehidden",
    "text.parse_math": True,
    "text.usetex": False,
    "axes.unicode_minus": True,
}


@contextmanager
def house() -> Iterator[None]:
    """The house style, whatever the caller's Matplotlib settings are; these return afterwards."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def to_svg(figure: Figure) -> str:
    """The figure as an ``<svg>`` element with ids of its own and no fixed size."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with house():
        canvas = Canvas(figsize=figure.size, layout="constrained")
        FigureCanvasSVG(canvas)
        figure.draw(canvas)
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # The reader's own fonts draw the text; what our font lacks matters only for spacing.
            warnings.filterwarnings("ignore", message="Glyph")
            canvas.savefig(
                buffer, format="svg", dpi=170, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
            )
    return _inline(buffer.getvalue(), figure)


def _inline(text: str, figure: Figure) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    # Many figures share one page: an id must be used once in it. Only inside tags: names are left alone.
    reference = re.compile(r'(\bid="|url\(#|href="#)')
    text = re.sub(r"<[^>]*>", lambda tag: reference.sub(rf"\1{figure.name}-", tag[0]), text)
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    width = round(figure.size[0] * 96)
    head += f' role="img" aria-labelledby="{figure.name}-caption" style="--natural:{width}px"'
    return f"{head}>{re.sub(chr(10) + r' *', chr(10), rest)}".strip()


def plain(name: object, limit: int = 18) -> str:
    """A feature name for an axis: shortened, control characters out, dollar signs not mathematics."""
    text = "".join(mark if mark.isprintable() else " " for mark in str(name))
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")
