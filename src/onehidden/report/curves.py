"""Pictures of the network at the data: response curves, dependence, residuals, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onehidden.report.style import BLUE, INK, MUTED, ORANGE, RULE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Means = tuple[np.ndarray, np.ndarray, np.ndarray]  # places, means, half-widths of intervals


def _small(figure: Figure) -> Axes:
    """Axes in a fixed frame: to solve for margins of many figures takes most of a page's time."""
    figure.set_layout_engine("none")
    return figure.add_axes((0.17, 0.21, 0.81, 0.76))


def _points(axes: Axes, means: Means | None) -> None:
    if means is not None:
        place, mean, reach = means
        axes.errorbar(place, mean, reach, fmt="o", ms=2.4, lw=0.9, color=INK, zorder=3)


def _dots(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    # Dots become one small image: as vectors they are thousands of elements and the page opens slowly.
    # Few dots are drawn larger and darker: at 120 rows, dark mode hid those that suit 1500.
    few = float(np.clip(10 / np.sqrt(max(len(x), 1)), 0.25, 0.75))
    axes.scatter(x, y, s=16 * few, color=BLUE, alpha=few, linewidths=0, rasterized=True)


def ridge(
    figure: Figure,
    t: np.ndarray,
    curve: tuple[np.ndarray, np.ndarray],
    band: np.ndarray | None,
    parts: np.ndarray | None,
    means: Means | None,
) -> None:
    """One unit's contribution w g(t) over its argument, with a band and partial residuals behind it."""
    axes = _small(figure)
    if parts is not None:
        _dots(axes, t, parts)
        low, high = np.quantile(parts, [0.005, 0.995])
        margin = 0.08 * (max(high, curve[1].max()) - min(low, curve[1].min()) or 1.0)
        axes.set_ylim(min(low, curve[1].min()) - margin, max(high, curve[1].max()) + margin)
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


def observed(figure: Figure, predicted: np.ndarray, y: np.ndarray, means: Means | None = None) -> None:
    """Observed against predicted, with the line of equality, and means along it."""
    axes = figure.add_subplot() if figure.get_figwidth() > 3 else _small(figure)
    low, high = min(predicted.min(), y.min()), max(predicted.max(), y.max())
    axes.plot([low, high], [low, high], color=MUTED, lw=0.9, zorder=0)
    _dots(axes, predicted, y)
    _points(axes, means)
    axes.set_xlabel("predicted")
    if figure.get_figwidth() > 3:
        axes.set_ylabel("observed")


def residuals(figure: Figure, t: np.ndarray, residual: np.ndarray, means: Means, label: str) -> None:
    """What is left over against something, with its mean along the way."""
    wide = figure.get_figwidth() > 3
    axes = figure.add_subplot() if wide else _small(figure)
    _dots(axes, t, residual)
    axes.axhline(0, color=RULE, lw=0.9, zorder=0)
    _points(axes, means)
    axes.set_xlabel(label)
    if wide:
        axes.set_ylabel("observed − predicted")


def caterpillar(figure: Figure, values: np.ndarray, reach: np.ndarray, label: str) -> None:
    """Numbers in order of size, each with its interval; those without one in grey."""
    axes = figure.add_subplot()
    place = np.arange(1, len(values) + 1)
    known = np.isfinite(reach)
    many = len(values) > 200
    width = 0.6 if many else 1.4
    clear = known & (np.abs(values) > reach)
    for chosen, colour in ((clear, BLUE), (known & ~clear, MUTED)):
        axes.vlines(
            place[chosen], (values - reach)[chosen], (values + reach)[chosen], color=colour, lw=width,
            alpha=0.5 if many else 1.0, rasterized=many,
        )  # fmt: skip
    size = 1.5 if many else 3
    axes.plot(place[known], values[known], "o", ms=size, color=BLUE, mew=0, rasterized=many)
    axes.plot(place[~known], values[~known], "o", ms=size, color=RULE, mew=0, rasterized=many)
    axes.axhline(0, color=RULE, lw=0.9, zorder=0)
    axes.set_xlabel("in order of size")
    axes.set_ylabel(label)
