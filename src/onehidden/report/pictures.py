"""The pictures of a recovery, as chapters of the page and on axes of the caller's own.

Each is a ``Curve``: predictions over one input, the effect of an input, the fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onehidden.report import figures
from onehidden.report.blocks import Figure, Gallery, Section
from onehidden.report.figures import Curve
from onehidden.report.subject import Subject, gather, strongest, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from onehidden.recovery import Recovery


def plot(
    recovery: Recovery, X: object = None, y: object = None, axes: Axes | None = None, most: int = 6
) -> Axes | np.ndarray:
    """Draw the predictions of a recovery; see ``Recovery.plot``."""
    import matplotlib.pyplot as plt

    subject = gather(recovery, X, y)
    if subject.X is None:
        raise ValueError("give the rows X: curves are drawn over their range")
    one = subject.net.n_inputs == 1
    if axes is not None and not one:
        raise ValueError("axes are taken for one input: of several inputs each has axes of its own")
    drawn = [over_input(subject)] if one else [effect_of(subject, j) for j in strongest_inputs(subject, most)]
    across = min(3, max(len(drawn), 1))
    down = max(-(-len(drawn) // across), 1)
    with figures.house(either=True):
        if axes is None:
            size = None if one else (3.2 * across, 2.6 * down)
            grid = plt.subplots(down, across, figsize=size, layout="constrained", squeeze=False)[1].ravel()
        else:
            grid = np.array([axes])
        for place, curve in zip(grid, drawn, strict=False):
            curve.draw(place)
            place.set_ylabel(figures.plain(_predicted(subject), 60))
        for place in grid[len(drawn) :]:
            place.set_axis_off()
    return grid[0] if one else grid[: len(drawn)]


def _predicted(subject: Subject) -> str:
    """What predictions are of the first output: its mean, or a probability."""
    return f"P[{subject.outputs[0]}]" if subject.recovery.classes else subject.outputs[0]


def over_input(subject: Subject, which: int = 0, points: int = 240) -> Curve:
    """The predictions of an output over the one input, with a 95 % band of the mean where there is one."""
    assert subject.X is not None
    rows, y = subject.X[:, 0], None if subject.Y is None else subject.Y[:, which]
    x = np.linspace(rows.min(), rows.max(), points)
    offset = None if subject.offset is None else np.full(points, subject.offset.mean())
    found, band = subject.recovery, None
    mean = subject.mean(x[:, None])[:, which]
    if found.covariance is not None and not found.classes:
        ends = found.predict_interval(x[:, None], offset=offset)
        lower, upper = (end.reshape(points, -1)[:, which] for end in ends)
        band = (lower, upper) if np.all(np.isfinite(upper - lower)) else None
    return Curve(subject.names[0], x, mean, band, rows, y)


def effect_of(subject: Subject, j: int, rows: int = 400, points: int = 40) -> Curve:
    """The mean of the predictions over rows, of the first output, while input j runs through its middle 96 %.

    The dots are the curve plus the residuals of the rows.
    """
    assert subject.X is not None
    X, place = subject.X[thin(len(subject.X), rows)], subject.X[:, j]
    low, high = np.quantile(place, [0.02, 0.98])
    grid = np.linspace(low, high, points)
    moved = np.repeat(X[None], points, axis=0)
    moved[:, :, j] = grid[:, None]
    mean = subject.mean(moved.reshape(-1, X.shape[1]))[:, 0].reshape(points, len(X)).mean(axis=1)
    within = (place >= grid[0]) & (place <= grid[-1])
    y = None
    if subject.Y is not None:
        residuals = subject.Y[:, 0] - subject.predictions()[:, 0]
        y = (np.interp(place, grid, mean) + residuals)[within]
    return Curve(subject.names[j], grid, mean, None, place[within], y)


def strongest_inputs(subject: Subject, most: int) -> list[int]:
    """The inputs that move the predictions most, those without an effect left out."""
    net, guard = subject.net, subject.recovery.prediction
    slopes = np.abs(net.output) @ np.abs(net.weights) + np.abs(net.linear)
    if guard is not None:
        line = np.abs(guard.line.slope).reshape(net.n_inputs, -1)[:, 0]
        slopes = guard.share * slopes + (1 - guard.share) * line
    strength = slopes * subject.spread
    return [j for j in strongest(strength, most) if strength[j] > 0]


def fit_of(subject: Subject, which: int, predicted: np.ndarray) -> Curve:
    """Observed against predicted values of an output, with the line of equality; of a family with means."""
    assert subject.Y is not None
    rows, y = predicted[:, which], subject.Y[:, which]
    ends = np.array([min(rows.min(), y.min()), max(rows.max(), y.max())])
    return Curve("predicted", ends, ends, None, rows, y, binned=subject.recovery.family is not None)


def of_inputs(subject: Subject, most: int = 8) -> Section | None:
    """Y against the one input with the curve of the predictions, or the effects of the strongest inputs."""
    if subject.X is None:
        return None
    if subject.net.n_inputs == 1:
        names = subject.outputs[:most]
        curves = [over_input(subject, j) for j in range(len(names))]
        made = [Figure(f"curve-{j + 1}", names[j], one) for j, one in enumerate(curves)]
        band = "" if curves[0].band is None else "; the band is the 95 % interval of the mean"
        text = f"The curve is what is predicted of {', '.join(names)} over {subject.names[0]}{band}."
        return Section("curve", "The curve", (text, Gallery(tuple(made))))
    made = [
        Figure(f"input-{j + 1}", subject.names[j], effect_of(subject, j))
        for j in strongest_inputs(subject, most)
    ]
    if not made:
        return None
    few = len(made) < subject.net.n_inputs
    which = f"the {len(made)} strongest inputs of {subject.net.n_inputs}" if few else "each input"
    text = (
        f"The mean over the rows of what is predicted of {_predicted(subject)}, as {which} runs through its "
        "middle 96 %, all else as it is in the rows; points are the curve plus the residuals of the rows. "
        "Where inputs go together, such rows may not exist."
    )
    return Section("effects", "Effects of the inputs", (text, Gallery(tuple(made))))


def of_fit(subject: Subject, panels: int = 6) -> Section | None:
    """Observed against predicted, a panel an output."""
    if subject.X is None or subject.Y is None:
        return None
    predicted = subject.predictions()
    if predicted.shape != subject.Y.shape:
        return None
    shown = tuple(
        Figure(f"observed-{j + 1}", name, fit_of(subject, j, predicted))
        for j, name in enumerate(subject.outputs[:panels])
    )
    few = f", the first {panels} of {len(subject.outputs)} outputs" if len(subject.outputs) > panels else ""
    text = f"Observed against predicted{few}; the line is equality."
    keep = len(thin(len(subject.X)))
    text += f" {keep} rows of {subject.n_rows}." if keep < (subject.n_rows or 0) else ""
    text += "" if subject.recovery.family is None else " Points are means with 95 % intervals."
    return Section("observed", "Fit", (text, Gallery(shown)))
