"""The pictures of a report: how they look, how they become SVG, and a function for each kind."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.report.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from onehidden.report import blocks

Means = tuple[np.ndarray, np.ndarray, np.ndarray]  # places, means, half-widths of intervals

INK, MUTED, RULE = "#1f2933", "#5f6c7b", "#d9dee5"
BLUE, ORANGE, GREEN, RED, PURPLE, TEAL = "#2c6aa8", "#c8641b", "#3a7d4f", "#b0362d", "#7a56a3", "#2a8a8a"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, TEAL, RED, "#8a6d1d", "#c2578f")

_RC: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "legend.fontsize": 8,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "xtick.color": MUTED, "ytick.color": MUTED,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": MUTED, "axes.linewidth": 0.7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": False, "axes.unicode_minus": True,
    "grid.color": RULE, "grid.linewidth": 0.6, "legend.frameon": False, "lines.linewidth": 1.4,
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    # Text stays text: small files, selectable, in the page's own font. Names are never parsed as mathematics.
    "svg.fonttype": "none", "svg.hashsalt": "onehidden", "text.parse_math": True, "text.usetex": False,
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
        canvas = Figure(figsize=figure.size, layout="constrained")
        FigureCanvasSVG(canvas)
        figure.draw(canvas)
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
    width = round(figure.size[0] * 96)
    head += f' role="img" aria-labelledby="{figure.name}-caption" style="--natural:{width}px"'
    return f"{head}>{re.sub(chr(10) + r' *', chr(10), rest)}".strip()


def plain(name: object, limit: int = 18) -> str:
    """A name for an axis: shortened, without control characters, dollar signs not read as mathematics."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(name))
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")


def heat_map(figure: Figure, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Signed numbers, one row per unit; colour is centred on zero."""
    limit = float(np.max(np.abs(values))) or 1.0
    _image(figure, values, rows, columns, cmap="RdBu_r", vmin=-limit, vmax=limit)


def cosines(figure: Figure, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """|cos| between found and true units."""
    axes = _image(figure, values, rows, columns, "|cos|", cmap="Blues", vmin=0, vmax=1)
    axes.set_xlabel("true unit")
    axes.set_ylabel("found unit")


def _image(
    figure: Figure, values: np.ndarray, rows: Sequence[str], columns: Sequence[str], label="", **colours
) -> Axes:
    axes = figure.add_subplot()
    image = axes.imshow(values, aspect="auto", interpolation="none", **colours)
    high, wide = figure.bbox.height * 72 / figure.dpi, 0.75 * figure.bbox.width * 72 / figure.dpi
    row_step = _step(len(rows), high / 10)
    axes.set_yticks(range(0, len(rows), row_step), [plain(r) for r in rows[::row_step]])
    flat = 6 + 5 * max((len(plain(c)) for c in columns), default=0)  # points that a name takes
    upright = flat * len(columns) > wide and not all(str(c).isdigit() for c in columns)
    column_step = _step(len(columns), wide / (10 if upright else flat))
    places, names = range(0, len(columns), column_step), [plain(c) for c in columns[::column_step]]
    axes.set_xticks(places, names, rotation=90 if upright else 0)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(label)
    return axes


def _step(count: int, room: float) -> int:
    """Every how many of ``count`` labels are shown where there is room for ``room``."""
    least = count / max(room, 1.0)
    return next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, count) if step >= least)


def trace(
    figure: Figure, stages: Sequence[str], losses: np.ndarray, clock: np.ndarray, steps: np.ndarray
) -> None:
    """Loss over time, a colour a stage, logarithmic; the legend stands next to the picture."""
    axes, labels, few = figure.add_subplot(), np.array(stages), len(losses) <= 150
    for i, stage in enumerate(dict.fromkeys(stages)):
        # Gaps are not joined: a stage that is entered twice, or begins anew, shows as two pieces.
        at = np.flatnonzero(labels == stage)
        breaks = np.flatnonzero((np.diff(at) > 1) | (np.diff(steps[at]) <= 0)) + 1
        times, values = (np.insert(one[at].astype(float), breaks, np.nan) for one in (clock, losses))
        alone = stage == "other" or len(at) < 3
        axes.plot(
            times, values, linestyle="none" if alone else "-", label=plain(stage, 30), ms=2.2,
            color=MUTED if stage == "other" else CYCLE[i % len(CYCLE)], marker="o" if few or alone else None,
        )  # fmt: skip
    axes.grid(True, axis="y")
    axes.set(yscale="log", xlabel="seconds", ylabel="loss")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0)


def spectrum(figure: Figure, values: np.ndarray) -> None:
    """Eigenvalues of the loss's curvature, largest first; negative ones are shown by size in red."""
    axes, below, many = figure.add_subplot(), values <= 0, len(values) > 200
    index, height = np.arange(1, len(values) + 1), np.maximum(np.abs(values), np.finfo(float).tiny)
    how: dict[str, Any] = {"ms": 1.5 if many else 3.5, "mew": 0, "rasterized": many}
    for chosen, colour, label in ((~below, BLUE, "positive"), (below, RED, "zero or negative, by size")):
        if chosen.any():
            axes.plot(index[chosen], height[chosen], "o", color=colour, label=label, **how)
    axes.grid(True, axis="y")
    axes.set(yscale="log", xlabel="direction in parameter space", ylabel="curvature")
    if below.any():
        axes.legend(loc="lower left")


def signal(figure: Figure, orders: Sequence[int], z: np.ndarray, threshold: float) -> None:
    """|z| of each score moment, on a logarithmic scale, against the level of noise."""
    axes, size = figure.add_subplot(), np.maximum(np.abs(z), 0.1)
    colours = [GREEN if value > threshold else MUTED for value in size]
    axes.hlines(range(len(z)), 0.1, size, colors=colours, lw=2)
    axes.scatter(size, range(len(z)), color=colours, s=26, zorder=3)
    axes.axvline(threshold, color=RED, lw=0.9, ls="--")
    axes.text(threshold, -0.62, f"noise, z = {threshold:g}", color=RED, fontsize=8, ha="center", va="bottom")
    for i, value in enumerate(z):
        axes.annotate(
            short(value, 3), (size[i], i), (7, 0), textcoords="offset points", va="center", color=INK
        )
    axes.set(xscale="log", xlim=(0.1, max(float(size.max()), threshold) * 3), ylim=(len(z) - 0.3, -0.6))
    axes.set_yticks(range(len(z)), [f"order {m}" for m in orders])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("|z| = size of the moment over its standard error")


def ridge(
    figure: Figure,
    t: np.ndarray,
    curve: tuple[np.ndarray, np.ndarray],
    band: np.ndarray | None,
    parts: np.ndarray | None,
    means: Means | None,
) -> None:
    """The contribution w g(t) of a unit over its argument, with a band, over partial residuals."""
    axes = _small(figure)
    if parts is not None:
        _dots(axes, t, parts)
        ends = np.quantile(parts, [0.005, 0.995])
        low, high = min(ends[0], curve[1].min()), max(ends[1], curve[1].max())
        margin = 0.08 * (high - low or 1.0)
        axes.set_ylim(low - margin, high + margin)
    if band is not None:
        axes.fill_between(curve[0], curve[1] - band, curve[1] + band, color=ORANGE, alpha=0.25, lw=0)
    axes.plot(*curve, color=ORANGE)
    _points(axes, means)
    axes.axhline(0, color=RULE, lw=0.7, zorder=0)
    axes.set_xlabel("⟨a, x⟩ + b")


def dependence(
    figure: Figure, x: np.ndarray, mean: np.ndarray, spread: np.ndarray, marks: np.ndarray
) -> None:
    """The mean prediction as one input moves; ticks at the deciles of the input."""
    axes = _small(figure)
    axes.fill_between(x, spread[0], spread[1], color=BLUE, alpha=0.15, lw=0)
    axes.plot(x, mean, color=BLUE)
    bottom, top = axes.get_ylim()
    axes.vlines(marks, bottom, bottom + 0.04 * (top - bottom), color=MUTED, lw=0.7)
    axes.set_ylim(bottom, top)


def curve(
    axes: Axes,
    x: np.ndarray,
    mean: np.ndarray,
    band: tuple[np.ndarray, np.ndarray] | None,
    rows: np.ndarray | None,
    y: np.ndarray | None,
) -> None:
    """A curve with its band over the rows; a band much wider than the rows leaves the frame."""
    if rows is not None and y is not None and len(y):
        _dots(axes, rows, y)
        low, high = min(float(np.min(y)), float(mean.min())), max(float(np.max(y)), float(mean.max()))
        margin = 0.08 * (high - low or 1.0)
        axes.set_ylim(low - margin, high + margin)
    if band is not None:
        axes.fill_between(x, *band, color=ORANGE, alpha=0.25, lw=0)
    axes.plot(x, mean, color=ORANGE)


def fitted(
    figure: Figure, x: np.ndarray, mean: np.ndarray, band: tuple[np.ndarray, np.ndarray] | None,
    rows: np.ndarray | None, y: np.ndarray | None, names: tuple[str, str],
) -> None:  # fmt: skip
    """Observations over the one input, with the curve and its band."""
    axes = figure.add_subplot()
    curve(axes, x, mean, band, rows, y)
    axes.set(xlabel=plain(names[0], 60), ylabel=plain(names[1], 40))


def observed(figure: Figure, predicted: np.ndarray, y: np.ndarray, means: Means | None = None) -> None:
    """Observed against predicted, with the line of equality, and means along it."""
    axes = _wide_or_small(figure, "predicted", "observed")
    ends = [min(predicted.min(), y.min()), max(predicted.max(), y.max())]
    axes.plot(ends, ends, color=MUTED, lw=0.9, zorder=0)
    _dots(axes, predicted, y)
    _points(axes, means)


def residuals(figure: Figure, t: np.ndarray, residual: np.ndarray, means: Means, label: str) -> None:
    """Residuals over something, with means along the way."""
    axes = _wide_or_small(figure, label, "observed − predicted")
    _dots(axes, t, residual)
    axes.axhline(0, color=RULE, lw=0.9, zorder=0)
    _points(axes, means)


def caterpillar(figure: Figure, values: np.ndarray, reach: np.ndarray, label: str) -> None:
    """Numbers in order of size, each with its interval; those without one in grey."""
    from matplotlib.ticker import MaxNLocator

    axes, place, known = figure.add_subplot(), np.arange(1, len(values) + 1), np.isfinite(reach)
    many = len(values) > 200
    clear = known & (np.abs(values) > reach)
    for chosen, colour in ((clear, BLUE), (known & ~clear, MUTED)):
        axes.vlines(
            place[chosen], (values - reach)[chosen], (values + reach)[chosen], color=colour,
            lw=0.6 if many else 1.4, alpha=0.5 if many else 1.0, rasterized=many,
        )  # fmt: skip
    for chosen, colour in ((known, BLUE), (~known, MUTED)):
        size = 1.5 if many else 3
        axes.plot(place[chosen], values[chosen], "o", ms=size, color=colour, mew=0, rasterized=many)
    axes.axhline(0, color=RULE, lw=0.9, zorder=0)
    axes.set(xlabel="in order of size", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _small(figure: Figure) -> Axes:
    """Axes in a fixed frame: solving for the margins of many figures takes most of a page's time."""
    figure.set_layout_engine("none")
    return figure.add_axes((0.17, 0.21, 0.81, 0.76))


def _wide_or_small(figure: Figure, xlabel: str, ylabel: str) -> Axes:
    """Axes with a label for y where there is room for it."""
    wide = figure.get_figwidth() > 3
    axes = figure.add_subplot() if wide else _small(figure)
    axes.set(xlabel=xlabel, ylabel=ylabel if wide else "")
    return axes


def _points(axes: Axes, means: Means | None) -> None:
    if means is not None:
        place, mean, reach = means
        axes.errorbar(place, mean, reach, fmt="o", ms=2.4, lw=0.9, color=INK, zorder=3)


def _dots(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    # Dots become one small image: as vectors they are thousands of elements and the page opens slowly.
    # Few dots are drawn larger and darker, so that they are seen in dark mode.
    few = float(np.clip(10 / np.sqrt(max(len(x), 1)), 0.25, 0.75))
    axes.scatter(x, y, s=16 * few, color=BLUE, alpha=few, linewidths=0, rasterized=True)
