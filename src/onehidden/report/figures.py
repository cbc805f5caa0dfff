"""How pictures look, how they become SVG, and the one kind that reports draw: a curve over rows."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.report.subject import thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onehidden.report import blocks

SIZE = (3.0, 2.2)  # of a picture, in inches
INK, MUTED, BLUE, ORANGE = "#1f2933", "#5f6c7b", "#2c6aa8", "#c8641b"
_RC: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "xtick.color": MUTED, "ytick.color": MUTED,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED, "axes.linewidth": 0.7,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.4,
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    # Text stays text: small files, selectable, in the page's own font.
    "svg.fonttype": "none", "svg.hashsalt": "onehidden",
}  # fmt: skip
# Ink that is seen on white and on black.
_EITHER: dict[Any, Any] = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), "#7d8894"
)


@contextmanager
def house(either: bool = False) -> Iterator[None]:
    """The house style, whatever the caller's Matplotlib settings are; these return afterwards.

    ``either``: ink for light and for dark pages, where no style of the page sets it.
    """
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC | (_EITHER if either else {}))
        yield


def to_svg(figure: blocks.Figure) -> str:
    """The figure as an ``<svg>`` element with ids of its own and no fixed size."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with house():
        canvas = Figure(figsize=SIZE)
        FigureCanvasSVG(canvas)
        # In a fixed frame: solving for the margins of many figures takes most of a page's time.
        figure.curve.draw(canvas.add_axes((0.17, 0.21, 0.78, 0.76)))
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # The reader's own fonts draw the text; glyphs that ours lacks matter only for spacing.
            warnings.filterwarnings("ignore", message="Glyph")
            canvas.savefig(
                buffer, format="svg", dpi=170, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
            )
    return _inline(buffer.getvalue(), figure)


def _inline(text: str, figure: blocks.Figure) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    # Many figures share one page: an id must be used once in it. Only inside tags: names are left alone.
    reference = re.compile(r'(\bid="|url\(#|href="#)')
    text = re.sub(r"<[^>]*>", lambda tag: reference.sub(rf"\1{figure.name}-", tag[0]), text)
    head, rest = text.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    width = round(SIZE[0] * 96)
    head += f' role="img" aria-labelledby="{figure.name}-caption" style="--natural:{width}px"'
    return f"{head}>{re.sub(chr(10) + r' *', chr(10), rest)}".strip()


def plain(name: object, limit: int = 30) -> str:
    """A name for an axis: shortened, without control characters, dollar signs not read as mathematics."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(name))
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")


@dataclass(frozen=True)
class Curve:
    """A curve with its band, over rows, of which some are dots, and where ``binned`` their means."""

    label: str  # of the horizontal axis
    x: np.ndarray
    mean: np.ndarray
    band: tuple[np.ndarray, np.ndarray] | None = None
    rows: np.ndarray | None = None
    y: np.ndarray | None = None
    binned: bool = False

    def draw(self, axes: Axes) -> None:
        """Draw on these axes; a band much wider than the rows leaves the frame."""
        if self.rows is not None and self.y is not None and len(self.y):
            # Few dots are drawn larger and darker, so that they are seen in dark mode. They become one small
            # image: as vectors they are thousands of elements and the page opens slowly.
            keep = thin(len(self.rows))
            few = float(np.clip(10 / np.sqrt(len(keep)), 0.25, 0.75))
            look: dict[str, Any] = {"s": 16 * few, "color": BLUE, "alpha": few, "linewidths": 0}
            axes.scatter(self.rows[keep], self.y[keep], **look, rasterized=True)
            low, high = min(self.y.min(), self.mean.min()), max(self.y.max(), self.mean.max())
            margin = 0.08 * (high - low or 1.0)
            axes.set_ylim(low - margin, high + margin)
        if self.band is not None:
            axes.fill_between(self.x, *self.band, color=ORANGE, alpha=0.25, lw=0)
        axes.plot(self.x, self.mean, color=ORANGE)
        if self.binned and self.rows is not None and self.y is not None:
            place, mean, reach = means(self.rows, self.y)
            axes.errorbar(place, mean, reach, fmt="o", ms=2.4, lw=0.9, color=INK, zorder=3)
        axes.set_xlabel(plain(self.label))


def means(t: np.ndarray, values: np.ndarray, bins: int = 15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places, means of ``values`` and half-widths of their intervals, in bins of equal numbers of rows."""
    groups = np.array_split(np.argsort(t, kind="stable"), min(bins, max(len(t) // 5, 1)))
    found = [
        (t[one].mean(), values[one].mean(), 1.96 * values[one].std(ddof=1) / np.sqrt(len(one)))
        for one in groups
        if len(one) > 1
    ]
    place, mean, reach = np.array(found).reshape(-1, 3).T
    return place, mean, reach
