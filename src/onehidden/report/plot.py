"""What a recovery predicts, drawn on Matplotlib axes: y against one input, or a curve for each of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.report import figures
from onehidden.report.response import curve_of, dependence_of, strongest_inputs
from onehidden.report.subject import Subject, gather, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onehidden.report.subject import Recovered


def plot(
    recovery: Recovered, X: object = None, y: object = None, axes: Axes | None = None, most: int = 6
) -> Axes | np.ndarray:
    """Draw the predictions of a recovery; see ``Recovery.plot``."""
    subject = gather(recovery, X, y)
    if subject.net.n_inputs == 1:
        return _one_input(subject, axes)
    if axes is not None:
        raise ValueError("axes are taken for one input: of several inputs each has axes of its own")
    if subject.X is None:
        raise ValueError("give the rows X: the curve of one of several inputs is a mean over rows")
    return _several_inputs(subject, most)


def _one_input(subject: Subject, axes: Axes | None) -> Axes:
    import matplotlib.pyplot as plt

    with figures.house(either=True):
        place: Any = plt.subplots(layout="constrained")[1] if axes is None else axes
        found = curve_of(subject)
        figures.curve(place, found.x, found.mean, found.band, *_rows(subject))
        place.set(xlabel=figures.plain(subject.names[0], 60), ylabel=figures.plain(subject.outputs[0], 60))
    return place


def _rows(subject: Subject) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The rows to draw: the input and y."""
    if subject.X is None or subject.Y is None:
        return None, None
    keep = thin(len(subject.X))
    return subject.X[keep, 0], subject.Y[keep, 0]


def _several_inputs(subject: Subject, most: int) -> np.ndarray:
    """A curve for each of the strongest inputs; points are the curve plus the residuals of the rows."""
    assert subject.X is not None
    chosen = strongest_inputs(subject, most)
    across = min(3, max(len(chosen), 1))
    down = -(-max(len(chosen), 1) // across)
    keep = thin(len(subject.X))
    residual = None if subject.Y is None or subject.family is not None else subject.residuals()[keep]
    import matplotlib.pyplot as plt

    with figures.house(either=True):
        figure, grid = plt.subplots(
            down, across, figsize=(3.2 * across, 2.6 * down), layout="constrained", squeeze=False
        )
        for place, j in zip(grid.flat, chosen, strict=False):
            x, values = dependence_of(subject, j)
            mean, rows = values.mean(axis=1), subject.X[keep, j]
            within = (rows >= x[0]) & (rows <= x[-1])
            points = None if residual is None else (np.interp(rows, x, mean) + residual)[within]
            figures.curve(place, x, mean, None, rows[within], points)
            place.set(xlabel=figures.plain(subject.names[j], 30))
        for place in grid.flat[len(chosen) :]:
            place.set_axis_off()
        figure.supylabel(figures.plain(subject.outputs[0], 60), fontsize=9)
    return grid.ravel()[: len(chosen)]
