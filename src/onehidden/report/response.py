"""Sections on the numbers of the network and on the fit: effects, intervals, responses, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import stdtrit

from onehidden.report import figures
from onehidden.report.blocks import Block, Figure, Gallery, Grid, Paragraph, Section
from onehidden.report.formula import effects, left_hand
from onehidden.report.subject import Subject, first_output, label, strongest, thin
from onehidden.report.wording import OPEN, between, explained, left_open, more, parameter, short


def effects_map(subject: Subject, most: int = 60) -> Section:
    """Every effect as a coloured cell, units by inputs."""
    net, found = subject.net, effects(subject)
    order = sorted(strongest(np.linalg.norm(found.values, axis=0), most))
    cut = len(order) < net.n_inputs
    which = f"the {len(order)} strongest inputs of {net.n_inputs}" if cut else "all inputs"
    names, values = [subject.names[j] for j in order], found.values[:, order]
    caption = f"{found.head.capitalize()}, by unit and input ({which})"
    figure = _heat_map("weights", caption, subject, values, names, {"features": names, "effects": values})
    return Section("units", "Effects by unit and input", (figure,), detail=True)


def _heat_map(
    name: str,
    caption: str,
    subject: Subject,
    values: np.ndarray,
    columns: Sequence[str],
    data: dict[str, Any],
) -> Figure:
    """Numbers of each unit as coloured cells."""
    size = np.clip([1.6 + 0.28 * values.shape[1], 1.3 + 0.24 * len(values)], [3.0, 1.8], [12.0, 11.0])
    draw = partial(figures.heat_map, values=values, rows=subject.units, columns=columns)
    width, height = size.tolist()
    return Figure(name, f"{caption}; red is positive, blue negative.", draw, data, (width, height))


def intervals(subject: Subject, level: float = 0.95, most_rows: int = 1500) -> Section | None:
    """All effects with their intervals in one picture; the first parameters in a table, one per row."""
    if subject.errors is None:
        return None
    net = subject.net
    recovery: Any = subject.recovery
    low, high = map(first_output, recovery.interval(level))
    rows: list[tuple[str, ...]] = []

    def add(label: str, name: str, index: tuple[int, ...]) -> None:
        value, *ends = (float(np.asarray(getattr(one, name))[index]) for one in (net, low, high))
        open_ = bool(index) and left_open(subject.unit(index[0]))
        rows.append((label, short(value), OPEN if open_ or not np.all(np.isfinite(ends)) else between(*ends)))

    add("intercept c", "intercept", ())
    reach = float(stdtrit(subject.get("residual_freedom", np.inf), 0.5 + level / 2))
    for name, value, error in subject.slopes:
        ends = value - reach * error, value + reach * error
        rows.append((name, short(value), between(*ends) if np.all(np.isfinite(ends)) else OPEN))
    for i, unit in enumerate(subject.units):
        add(f"{unit}, output w", "output", (i,))
        if subject.has_bias:
            add(f"{unit}, bias b", "bias", (i,))
        if len(rows) + net.n_inputs <= most_rows:  # a page of a megabyte opens quickly
            for j, name in enumerate(subject.names):
                add(f"{unit}, {name}", "weights", (i, j))
    cut = net.weights.size + net.n_hidden * (1 + subject.has_bias) + 1 > len(rows)
    note = "The weights of the later units are in units.csv of the run and in Recovery.to_frame()."
    lead = Paragraph(
        "Intervals are the estimate and quantiles of Student's t times its standard error: they hold when "
        "the model does and the rows are independent."
    )
    columns = ("parameter", "estimate", f"{100 * level:g} % interval")
    grid = Grid(columns, tuple(rows), note if cut else "")
    return Section("intervals", "Intervals", (lead, _all_effects(subject), grid), detail=True)


def _all_effects(subject: Subject) -> Figure:
    """Every effect with its interval, in order of size."""
    found = effects(subject)
    assert found.errors is not None
    open_ = np.array([left_open(subject.unit(i)) for i in range(subject.net.n_hidden)])
    order = np.argsort(found.values, axis=None, kind="stable")
    values = found.values.ravel()[order]
    reach = 1.96 * np.where(open_[:, None], np.inf, found.errors).ravel()[order]
    clear, lost = int(np.sum(np.abs(values) > reach)), int(np.sum(~np.isfinite(reach)))
    text = f"{found.head.capitalize()}, all {values.size} of them in order of size with 95 % intervals: "
    text += f"{clear} are clear of zero" + (f", {lost} are undetermined (grey)." if lost else ".")
    draw = partial(figures.caterpillar, values=values, reach=reach, label="effect")
    return Figure("effects", text, draw, {"effect": values, "reach": reach}, (7.2, 2.4))


def outputs(subject: Subject, most_outputs: int = 6, most_units: int = 12) -> Section | None:
    """The output weights of several outputs: numbers with errors of the first few, a picture of more."""
    if subject.n_outputs == 1:
        return None
    output = np.asarray(subject.recovery.network.output)
    errors: Any = subject.get("standard_errors")
    known = None if errors is None else np.asarray(errors.output)
    shown, units = min(subject.n_outputs, most_outputs), subject.units[:most_units]

    def cell(i: int, j: int) -> str:
        error = None if known is None else float(known[i, j])
        return parameter(float(output[i, j]), error, subject.unit(i))

    rows = tuple((name, *(cell(i, j) for j in range(shown))) for i, name in enumerate(units))
    left = [(subject.n_outputs - shown, "output"), (subject.net.n_hidden - len(units), "unit")]
    note = " ".join(f"{more(count, what)} in the model file." for count, what in left if count > 0)
    grid = Grid(("w", *subject.outputs[:shown]), rows, note)
    blocks: list[Block] = [grid]
    if note:  # the table does not have it all
        data = {"outputs": list(subject.outputs), "weights": output}
        caption = "Output weights, by unit and output"
        blocks.append(_heat_map("outputs", caption, subject, output, subject.outputs, data))
    return Section("outputs", "Output weights", tuple(blocks), detail=True)


def matched(subject: Subject) -> Section | None:
    """Found units against the true ones, where these are known."""
    truth, m = subject.truth, subject.match
    if truth is None or m is None:
        return None
    taken = [int(i) for i in m.permutation if i >= 0]
    order = taken + [i for i in range(subject.net.n_hidden) if i not in taken]
    columns = np.argsort(m.permutation < 0, kind="stable")  # true units without partner go last
    unit_rows = [
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
        for rows in (subject.net.weights, truth.weights)
    ]
    cosine = np.abs(unit_rows[0][order] @ unit_rows[1][columns].T)
    named = (
        ("worst row of weights", m.max_error), ("worst output weight", m.output_error),
        ("worst bias", m.bias_error), ("intercept", m.intercept_error),
        ("honest e(Q), max form", m.honest_error), ("printed e(Q), min form", m.printed_error),
    )  # fmt: skip
    side = float(np.clip(1.6 + 0.2 * max(cosine.shape), 3.0, 7.5))
    figure = Figure(
        "matched",
        "|cos| of the angle between found units (rows) and true ones (columns), matched by optimal "
        "assignment: a full diagonal on white means that every true unit was found once.",
        partial(
            figures.cosines, values=cosine, rows=[str(i + 1) for i in order],
            columns=[str(int(i) + 1) for i in columns],
        ),
        {"cosine": cosine, "found": [i + 1 for i in order], "true": columns + 1},
        (side + 0.7, side),
    )  # fmt: skip
    note = "Errors are relative, after matching and up to the symmetries of the activation."
    grid = Grid(("error", "value"), tuple((name, short(value, 3)) for name, value in named), note)
    return Section("matched", "Found against true", (grid, figure), detail=True)


def binned(t: np.ndarray, values: np.ndarray, bins: int = 15) -> figures.Means:
    """Means of ``values`` in bins of t of equal numbers of rows: places, means, half-widths of intervals."""
    groups = np.array_split(np.argsort(t, kind="stable"), min(bins, max(len(t) // 5, 1)))
    found = [
        (t[one].mean(), values[one].mean(), 1.96 * values[one].std(ddof=1) / np.sqrt(len(one)))
        for one in groups
        if len(one) > 1
    ]
    place, mean, reach = np.array(found).reshape(-1, 3).T
    return place, mean, reach


def _contributions(subject: Subject, most: int = 6) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(n, k) arguments and contributions of the units, and the units that move y most."""
    net = subject.net
    Z = subject.X @ net.weights.T + net.bias
    parts = net.activation(Z) * net.output
    return Z, parts, sorted(strongest(np.std(parts, axis=0), most))


def of_units(subject: Subject) -> Section | None:
    """Curves w g(t) over t = <a, x> + b for the units that move y most, with a band and partial residuals."""
    if subject.X is None:
        return None
    net, keep = subject.net, thin(len(subject.X))
    Z, parts, chosen = _contributions(subject)
    # Of a family y has another scale than the units.
    residual = None if subject.Y is None or subject.family is not None else subject.residuals()
    made, banded = [], False
    for i in chosen:
        t = Z[:, i]
        grid = np.linspace(t.min(), t.max(), 120)
        g, error, open_ = net.activation(grid), subject.error("output", i), left_open(subject.unit(i))
        known = error is not None and np.isfinite(error) and not open_
        banded = banded or known
        partial_residual = None if residual is None else parts[:, i] + residual
        draw = partial(
            figures.ridge, t=t[keep], curve=(grid, g * net.output[i]),
            band=1.96 * (error or 0.0) * np.abs(g) if known else None,
            parts=None if partial_residual is None else partial_residual[keep],
            means=None if partial_residual is None else binned(t, partial_residual),
        )  # fmt: skip
        caption = f"{subject.units[i]}, w = {short(net.output[i], 3)}" + (" (undetermined)" if open_ else "")
        data = {"unit": i + 1, "argument": grid, "contribution": g * net.output[i]}
        made.append(Figure(f"ridge-{i + 1}", caption, draw, data))
    few = len(chosen) < net.n_hidden
    which = f"the {len(chosen)} units of {net.n_hidden} that move y most" if few else "each unit"
    text = f"What {which} adds to {left_hand(subject)}, w g(⟨a, x⟩ + b), over the values of its "
    text += "argument in the data" + ("; the band is the 95 % interval of w" if banded else "")
    text += "." if residual is None else "; points are means of the partial residuals with 95 % intervals."
    return Section("ridge", "Response of the units", (Paragraph(text), Gallery(tuple(made))))


@dataclass(frozen=True)
class Curve:
    """Predictions over the one input, with a 95 % band of the mean where there is one."""

    x: np.ndarray
    mean: np.ndarray
    band: tuple[np.ndarray, np.ndarray] | None


def curve_of(subject: Subject, which: int = 0, points: int = 240) -> Curve:
    """The predictions of an output over the one input: the range of the rows, else two sd about its mean."""
    if subject.X is not None:
        low, high = float(subject.X.min()), float(subject.X.max())
    else:
        kept = np.asarray(subject.get("input_mean", ()), dtype=float)
        middle = float(kept[0]) if kept.shape == (1,) else 0.0
        spread = 1.0 if subject.spread is None else float(subject.spread[0])
        low, high = middle - 2 * spread, middle + 2 * spread
    x = np.linspace(low, high, points)
    # Exposures differ from row to row: the curve is that of the mean one.
    offset = {} if subject.offset is None else {"offset": np.full(points, subject.offset.mean())}
    mean = np.asarray(subject.recovery.predict(x[:, None], **offset)).reshape(points, -1)[:, which]
    interval, coupled = getattr(subject.recovery, "predict_interval", None), bool(subject.get("classes", ()))
    if interval is None or coupled:
        return Curve(x, mean, None)
    lower, upper = (np.asarray(end).reshape(points, -1)[:, which] for end in interval(x[:, None], **offset))
    known = np.all(np.isfinite(lower)) and np.all(np.isfinite(upper))
    return Curve(x, mean, (lower, upper) if known else None)


def of_curve(subject: Subject, panels: int = 6) -> Section | None:
    """Y against the one input, with the curve of the predictions and its band."""
    if subject.net.n_inputs != 1:
        return None
    made = []
    for j, name in enumerate(subject.outputs[:panels]):
        found = curve_of(subject, j)
        x = y = None
        if subject.X is not None and subject.Y is not None:
            keep = thin(len(subject.X))
            x, y = subject.X[keep, 0], subject.Y[keep, j]
        draw = partial(
            figures.fitted, x=found.x, mean=found.mean, band=found.band, rows=x, y=y,
            names=(subject.names[0], name),
        )  # fmt: skip
        band = "" if found.band is None else "; the band is the 95 % interval of the mean"
        caption = f"{name} against {subject.names[0]}: the curve is what is predicted{band}."
        data = {"x": found.x, "mean": found.mean}
        made.append(Figure("curve" if j == 0 else f"curve-{j + 1}", caption, draw, data, (4.6, 3.0)))
    return Section("curve", "The curve", tuple(made))


def strongest_inputs(subject: Subject, most: int) -> list[int]:
    """The inputs that move the network most, those without an effect left out."""
    strength = np.abs(effects(subject).values).sum(axis=0)
    if subject.net.has_linear:
        strength = strength + np.abs(subject.net.linear) * (1.0 if subject.spread is None else subject.spread)
    return [j for j in strongest(strength, most) if strength[j] > 0]


def dependence_of(
    subject: Subject, j: int, rows: int = 400, points: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """Values of an input in its middle 96 %, and the network there with all else as in each of the rows."""
    assert subject.X is not None
    X = subject.X[thin(len(subject.X), rows)]
    low, high = np.quantile(subject.X[:, j], [0.02, 0.98])
    grid = np.linspace(low, high, points)
    moved = np.repeat(X[None], points, axis=0)
    moved[:, :, j] = grid[:, None]
    return grid, subject.net.predict(moved.reshape(-1, X.shape[1])).reshape(points, len(X))


def of_inputs(subject: Subject, most: int = 8) -> Section | None:
    """Predictions averaged over the rows while one input runs through its range."""
    if subject.X is None or subject.net.n_inputs == 1:
        return None
    made = []
    for j in strongest_inputs(subject, most):
        grid, values = dependence_of(subject, j)
        mean = values.mean(axis=1)
        draw = partial(
            figures.dependence, x=grid, mean=mean, spread=np.quantile(values, [0.1, 0.9], axis=1),
            marks=np.quantile(subject.X[:, j], np.arange(1, 10) / 10),
        )  # fmt: skip
        data = {"input": subject.names[j], "value": grid, "mean": mean}
        made.append(Figure(f"input-{j + 1}", subject.names[j], draw, data))
    if not made:
        return None
    few = len(made) < subject.net.n_inputs
    which = f"the {len(made)} strongest inputs of {subject.net.n_inputs}" if few else "each input"
    text = (
        f"The network's mean over the rows as {which} runs through its middle 96 %, all else as it is in the "
        "rows; the band holds the middle 80 % of the rows, ticks are deciles. Where inputs go together, such "
        "rows may not exist."
    )
    blocks = (Paragraph(text), Gallery(tuple(made)))
    return Section("dependence", "Partial dependence", blocks, detail=True)


def at_a_glance(subject: Subject, panels: int = 6) -> Section | None:
    """Observed against predicted, a panel an output; of one output its residuals, too."""
    if subject.X is None or subject.Y is None:
        return None
    keep, predicted, Y = thin(len(subject.X)), subject.predictions(), subject.Y
    if predicted.shape != Y.shape:
        return None
    note = f" {len(keep)} rows of {subject.n_rows}." if len(keep) < (subject.n_rows or 0) else ""
    note += "" if subject.family is None else " Points are means with 95 % intervals."

    def observed(which: int, caption: str, size: tuple[float, float] = (2.7, 2.0)) -> Figure:
        y, fitted = Y[:, which], predicted[:, which]
        means = None if subject.family is None else binned(fitted, y)  # single counts show little
        draw = partial(figures.observed, predicted=fitted[keep], y=y[keep], means=means)
        name = "observed" if which == 0 else f"observed-{which + 1}"
        return Figure(name, caption, draw, {"predicted": fitted[keep], "observed": y[keep]}, size)

    if subject.n_outputs > 1:
        shown = [observed(j, name) for j, name in enumerate(subject.outputs[:panels])]
        few = f", the first {panels} of {subject.n_outputs} outputs" if subject.n_outputs > panels else ""
        text = f"Observed against predicted{few}; the line is equality.{note}"
        classes = list(map(label, subject.get("classes", ())))
        grid = _confusion(classes, Y, predicted) if classes else _by_output(subject.outputs, Y, predicted)
        return Section("observed", "Fit", (grid, Paragraph(text), Gallery(tuple(shown))))
    fitted, residual = predicted[:, 0], Y[:, 0] - predicted[:, 0]
    left = _residuals(
        "residuals",
        "Residuals against predicted, with means and their 95 % intervals: a bend is something missed.",
        keep, {"predicted": fitted}, residual, "predicted", (3.6, 2.7),
    )  # fmt: skip
    first = observed(0, f"Observed against predicted; the line is equality.{note}", (3.6, 2.7))
    return Section("observed", "Fit", (Gallery((first, left)),))


def _by_output(names: tuple[str, ...], Y: np.ndarray, predicted: np.ndarray) -> Grid:
    """The fit of each output."""
    missed, total = np.mean((Y - predicted) ** 2, axis=0), np.var(Y, axis=0)
    rows = tuple(
        (name, explained(1 - m / t) if t > 0 else "–", short(np.sqrt(m), 3), short(np.sqrt(t), 3))
        for name, m, t in zip(names, missed, total, strict=True)
    )
    return Grid(("output", "R²", "sd of what is left", "sd"), rows, wordy=frozenset({0}))


def _confusion(classes: list[str], Y: np.ndarray, predicted: np.ndarray, most: int = 12) -> Grid:
    """The number of rows of each class by their likeliest class."""
    true, likeliest = (
        np.argmax(np.column_stack([1 - held.sum(axis=1), held]), axis=1) for held in (Y, predicted)
    )
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (true, likeliest), 1)
    shown = classes[:most]
    rows = tuple(
        (name, *map(str, row[: len(shown)]), short(row[i] / max(row.sum(), 1), 3))
        for i, (name, row) in enumerate(zip(shown, counts, strict=False))
    )
    note = f"Rows by their class and the likeliest by the network; {np.trace(counts)} of {len(Y)} agree."
    if left := len(classes) - len(shown):
        note += f" {left} more classes are left out."
    return Grid(("class", *(f"as {name}" for name in shown), "share right"), rows, note, frozenset({0}))


def residuals_by_unit(subject: Subject) -> Section | None:
    """Residuals against the argument of each unit: a kink in the wrong place shows here."""
    if subject.X is None or subject.Y is None:
        return None
    keep, residual = thin(len(subject.X)), subject.residuals()
    Z, _, chosen = _contributions(subject)
    made = []
    for i in chosen:
        one = _residuals(
            f"residual-{i + 1}", subject.units[i], keep, {"argument": Z[:, i]}, residual, "⟨a, x⟩ + b"
        )
        made.append(replace(one, data={"unit": i + 1, **one.data}))
    text = "Residuals of the network against the argument of each unit, with means and their 95 % intervals."
    return Section("residuals", "Residuals by unit", (Paragraph(text), Gallery(tuple(made))), detail=True)


def _residuals(
    name: str, caption: str, keep: np.ndarray, over: dict[str, np.ndarray], residual: np.ndarray, label: str,
    size: tuple[float, float] = (2.7, 2.0),
) -> Figure:  # fmt: skip
    """Residuals over one quantity, of which some rows are drawn."""
    ((what, t),) = over.items()
    draw = partial(
        figures.residuals, t=t[keep], residual=residual[keep], means=binned(t, residual), label=label
    )
    return Figure(name, caption, draw, {what: t[keep], "residual": residual[keep]}, size)
