"""How y responds: to each unit over the range of the data, and to each input with the others as they are."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.report import curves
from onehidden.report.blocks import Figure, Gallery, Paragraph, Section
from onehidden.report.effects import effects
from onehidden.report.formula import left_hand
from onehidden.report.marks import left_open
from onehidden.report.numbers import short
from onehidden.report.subject import Subject, thin

MAX_UNITS = 6  # curves that are drawn
MAX_INPUTS = 8
BINS = 15  # in which partial residuals are averaged
_ROWS = 400  # that a partial dependence is averaged over
_GRID = 40  # points of its curve


def of_units(subject: Subject) -> Section | None:
    """w g(t) over t = <a, x> + b for the units that move y most, with a band and partial residuals."""
    if subject.X is None:
        return None
    net, X = subject.net, subject.X
    Z = X @ net.weights.T + net.bias
    parts = net.activation(Z) * net.output
    chosen = np.sort(np.argsort(-np.std(parts, axis=0), kind="stable")[:MAX_UNITS])
    # Of a family y lies on another scale than the units.
    residual = None if subject.y is None or subject.family is not None else subject.left_over()
    figures, banded = [], False
    for i in chosen.tolist():
        t = Z[:, i]
        grid = np.linspace(t.min(), t.max(), 120)
        curve = net.activation(grid) * net.output[i]
        error = subject.error("output", i)
        known = error is not None and np.isfinite(error) and not left_open(subject.unit(i))
        band = 1.96 * (error or 0.0) * np.abs(net.activation(grid)) if known else None
        banded = banded or known
        behind = None if residual is None else parts[:, i] + residual
        keep = thin(len(X))
        means = None if behind is None else binned(t, behind)
        figures.append(
            Figure(
                f"ridge-{i + 1}",
                f"{subject.units[i]}, w = {short(net.output[i], 3)}"
                + (" (undetermined)" if left_open(subject.unit(i)) else ""),
                partial(
                    curves.ridge, t=t[keep], curve=(grid, curve), band=band,
                    parts=None if behind is None else behind[keep], means=means,
                ),
                {"unit": i + 1, "argument": grid, "contribution": curve},
                (2.7, 2.0),
            )
        )  # fmt: skip
    few = len(chosen) < net.n_hidden
    which = f"the {len(chosen)} units of {net.n_hidden} that move y most" if few else "each unit"
    text = f"What {which} adds to {left_hand(subject, 0)}, w g(⟨a, x⟩ + b), over the values of its "
    text += "argument in the data" + ("; the band is the 95 % interval of w" if banded else "")
    text += "." if residual is None else "; points are means of the partial residuals with 95 % intervals."
    return Section("ridge", "Response of the units", (Paragraph(text), Gallery(tuple(figures))))


def binned(t: np.ndarray, values: np.ndarray, bins: int = BINS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of ``values`` in bins of t of equal numbers of rows: places, means, half-widths of intervals."""
    order = np.argsort(t, kind="stable")
    groups = [one for one in np.array_split(order, min(bins, max(len(t) // 5, 1))) if len(one) > 1]
    place = np.array([t[one].mean() for one in groups])
    mean = np.array([values[one].mean() for one in groups])
    error = np.array([values[one].std(ddof=1) / np.sqrt(len(one)) for one in groups])
    return place, mean, 1.96 * error


def of_inputs(subject: Subject) -> Section | None:
    """Predictions averaged over the rows while one input runs through its range."""
    if subject.X is None:
        return None
    X = subject.X[thin(len(subject.X), _ROWS)]
    strength = np.abs(effects(subject).values).sum(axis=0)
    chosen = np.argsort(-strength, kind="stable")[:MAX_INPUTS]
    chosen = chosen[strength[chosen] > 0]
    figures = []
    for j in chosen.tolist():
        low, high = np.quantile(subject.X[:, j], [0.02, 0.98])
        grid = np.linspace(low, high, _GRID)
        rows = np.repeat(X[None], _GRID, axis=0)
        rows[:, :, j] = grid[:, None]
        values = subject.net.predict(rows.reshape(-1, X.shape[1])).reshape(_GRID, len(X))
        figures.append(
            Figure(
                f"input-{j + 1}",
                subject.names[j],
                partial(
                    curves.dependence, x=grid, mean=values.mean(axis=1),
                    spread=np.quantile(values, [0.1, 0.9], axis=1),
                    marks=np.quantile(subject.X[:, j], np.arange(1, 10) / 10),
                ),
                {"input": subject.names[j], "value": grid, "mean": values.mean(axis=1)},
                (2.7, 2.0),
            )
        )  # fmt: skip
    if not figures:
        return None
    few = len(figures) < subject.net.n_inputs
    which = f"the {len(figures)} strongest inputs of {subject.net.n_inputs}" if few else "each input"
    text = (
        f"The network's mean over the rows as {which} runs through its middle 96 %, all else as it is in the "
        "rows; the band holds the middle 80 % of the rows, ticks are deciles. Where inputs go together, such "
        "rows may not exist."
    )
    blocks = (Paragraph(text), Gallery(tuple(figures)))
    return Section("dependence", "Partial dependence", blocks, detail=True)
