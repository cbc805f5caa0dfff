"""The pictures of a report, each a function that fills one Matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from onehidden.report.numbers import short
from onehidden.report.style import BLUE, CYCLE, GREEN, INK, MUTED, RED, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def heat_map(figure: Figure, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Signed weights, one row a unit; colour is centred on zero."""
    axes = figure.add_subplot()
    limit = float(np.max(np.abs(values))) or 1.0
    image = axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="none")
    _frame(axes, rows, columns)
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02)
    bar.outline.set_visible(False)


def cosines(figure: Figure, values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> None:
    """|cos| between found and true units: a clean diagonal is a clean recovery."""
    axes = figure.add_subplot()
    image = axes.imshow(values, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="none")
    _frame(axes, rows, columns)
    axes.set_xlabel("true unit")
    axes.set_ylabel("found unit")
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label("|cos|")


def _frame(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    row_step, column_step = max(1, len(rows) // 40), max(1, len(columns) // 60)
    axes.set_yticks(range(0, len(rows), row_step), [plain(r) for r in rows[::row_step]])
    upright = max((len(str(c)) for c in columns), default=0) * len(columns) > 60
    axes.set_xticks(
        range(0, len(columns), column_step),
        [plain(c) for c in columns[::column_step]],
        rotation=90 if upright else 0,
    )
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def trace(
    figure: Figure, stages: Sequence[str], losses: np.ndarray, clock: np.ndarray, steps: np.ndarray
) -> None:
    """Loss over time, a colour a stage, logarithmic; the legend stands beside the picture."""
    axes = figure.add_subplot()
    labels = np.array(stages)
    few = len(losses) <= 150
    for i, stage in enumerate(dict.fromkeys(stages)):
        mine = labels == stage
        colour = MUTED if stage == "other" else CYCLE[i % len(CYCLE)]
        # Gaps are not joined: a stage that is entered twice, or begins anew, shows as two pieces.
        at = np.flatnonzero(mine)
        breaks = np.flatnonzero((np.diff(at) > 1) | (np.diff(steps[at]) <= 0)) + 1
        times, values = (np.insert(one[at].astype(float), breaks, np.nan) for one in (clock, losses))
        alone = stage == "other" or mine.sum() < 3
        axes.plot(
            times, values, linestyle="none" if alone else "-", color=colour, label=plain(stage, 30),
            marker="o" if few or alone else None, ms=2.2,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.grid(True, axis="y")
    axes.set_xlabel("seconds")
    axes.set_ylabel("loss")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0)


def spectrum(figure: Figure, values: np.ndarray) -> None:
    """Eigenvalues of the loss's curvature, largest first; negative ones are shown by size in red."""
    axes = figure.add_subplot()
    index = np.arange(1, len(values) + 1)
    many = len(values) > 200
    floor = float(np.finfo(float).tiny)
    for chosen, colour, label in (
        (values > 0, BLUE, "positive"),
        (values <= 0, RED, "zero or negative, by size"),
    ):
        if chosen.any():
            height = np.maximum(np.abs(values[chosen]), floor)
            size = 1.5 if many else 3.5
            axes.plot(index[chosen], height, "o", ms=size, color=colour, label=label, mew=0, rasterized=many)
    axes.set_yscale("log")
    axes.grid(True, axis="y")
    axes.set_xlabel("direction in parameter space")
    axes.set_ylabel("curvature")
    if np.any(values <= 0):
        axes.legend(loc="lower left")


def signal(figure: Figure, orders: Sequence[int], z: np.ndarray, threshold: float) -> None:
    """|z| of each score moment, on a logarithmic scale, against what noise alone would give."""
    axes = figure.add_subplot()
    size = np.maximum(np.abs(z), 0.1)
    colours = [GREEN if value > threshold else MUTED for value in size]
    axes.hlines(range(len(z)), 0.1, size, colors=colours, lw=2)
    axes.scatter(size, range(len(z)), color=colours, s=26, zorder=3)
    axes.axvline(threshold, color=RED, lw=0.9, ls="--")
    axes.text(threshold, -0.62, f"noise, z = {threshold:g}", color=RED, fontsize=8, ha="center", va="bottom")
    for i, value in enumerate(z):
        axes.annotate(
            short(value, 3), (size[i], i), (7, 0), textcoords="offset points", va="center", color=INK
        )
    axes.set_xscale("log")
    axes.set_xlim(0.1, max(float(size.max()), threshold) * 3)
    axes.set_ylim(len(z) - 0.3, -0.6)
    axes.set_yticks(range(len(z)), [f"order {m}" for m in orders])
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("|z| = size of the moment over its standard error")
