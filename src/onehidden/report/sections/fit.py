"""How predictions and the network meet the data: observed against predicted, and what is left over."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.report import curves
from onehidden.report.blocks import Figure, Gallery, Grid, Paragraph, Section
from onehidden.report.numbers import short
from onehidden.report.screen import explained
from onehidden.report.sections.response import MAX_UNITS, binned
from onehidden.report.subject import Subject, label, thin

PANELS = 6  # outputs that are drawn
MAX_CLASSES = 12  # in the table of classes against predictions


def at_a_glance(subject: Subject) -> Section | None:
    """Observed against predicted, a panel an output; of one output its residuals beside it."""
    if subject.X is None or subject.Y is None:
        return None
    keep = thin(len(subject.X))
    predicted = subject.predictions()
    if predicted.shape != subject.Y.shape:
        return None
    said = f" {len(keep)} rows of {subject.n_rows}." if len(keep) < (subject.n_rows or 0) else ""
    said += "" if subject.family is None else " Points are means with 95 % intervals."
    if subject.n_outputs > 1:
        return _of_several(subject, predicted, keep, said)
    y = subject.Y[:, 0]
    observed = _observed(
        subject, predicted[:, 0], 0, keep, f"Observed against predicted; the line is equality.{said}"
    )
    residual = y - predicted[:, 0]
    left = Figure(
        "residuals",
        "Residuals against predicted, with means and their 95 % intervals: a bend is something missed.",
        partial(
            curves.residuals, t=predicted[keep, 0], residual=residual[keep],
            means=binned(predicted[:, 0], residual), label="predicted",
        ),
        {"predicted": predicted[keep, 0], "residual": residual[keep]},
        (3.6, 2.7),
    )  # fmt: skip
    return Section("observed", "Fit", (Gallery((observed, left)),))


def _observed(
    subject: Subject, predicted: np.ndarray, which: int, keep: np.ndarray, said: str, size=(3.6, 2.7)
) -> Figure:
    """Observed against predicted; of a family with means, since single counts and classes show little."""
    assert subject.Y is not None
    y = subject.Y[:, which]
    means = None if subject.family is None else binned(predicted, y)
    return Figure(
        "observed" if which == 0 else f"observed-{which + 1}",
        said,
        partial(curves.observed, predicted=predicted[keep], y=y[keep], means=means),
        {"predicted": predicted[keep], "observed": y[keep]},
        size,
    )


def _of_several(subject: Subject, predicted: np.ndarray, keep: np.ndarray, said: str) -> Section:
    """How each output fits: a table of all, and a panel for the first few."""
    assert subject.Y is not None
    Y = subject.Y
    left, all_ = np.mean((Y - predicted) ** 2, axis=0), np.var(Y, axis=0)
    rows = tuple(
        (name, explained(1 - left[j] / all_[j]) if all_[j] > 0 else "–", short(float(np.sqrt(left[j])), 3),
         short(float(np.sqrt(all_[j])), 3))
        for j, name in enumerate(subject.outputs)
    )  # fmt: skip
    grid = Grid(("output", "R²", "sd of what is left", "sd"), rows, wordy=frozenset({0}))
    classes = list(map(label, subject.get("classes", ())))
    grid = _confusion(classes, Y, predicted) if classes else grid
    panels = tuple(
        _observed(subject, predicted[:, j], j, keep, name, (2.7, 2.0))
        for j, name in enumerate(subject.outputs[:PANELS])
    )
    few = f", the first {PANELS} of {subject.n_outputs} outputs" if subject.n_outputs > PANELS else ""
    text = f"Observed against predicted{few}; the line is equality.{said}"
    return Section("observed", "Fit", (grid, Paragraph(text), Gallery(panels)))


def _confusion(classes: list[str], Y: np.ndarray, predicted: np.ndarray) -> Grid:
    """How many rows of each class have which class as the likeliest."""
    true, likeliest = (
        np.argmax(np.column_stack([1 - held.sum(axis=1), held]), axis=1) for held in (Y, predicted)
    )
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (true, likeliest), 1)
    shown = classes[:MAX_CLASSES]
    rows = tuple(
        (
            name,
            *(str(counts[i, j]) for j in range(len(shown))),
            short(counts[i, i] / max(counts[i].sum(), 1), 3),
        )
        for i, name in enumerate(shown)
    )
    more = len(classes) - len(shown)
    note = f"Rows by their class and the likeliest by the network; {np.trace(counts)} of {len(Y)} agree."
    note += f" {more} more classes are left out." if more else ""
    return Grid(("class", *(f"as {name}" for name in shown), "share right"), rows, note, frozenset({0}))


def residuals_by_unit(subject: Subject) -> Section | None:
    """What is left over against the argument of each unit: a kink in the wrong place shows here."""
    if subject.X is None or subject.y is None:
        return None
    net, keep = subject.net, thin(len(subject.X))
    Z = subject.X @ net.weights.T + net.bias
    parts = net.activation(Z) * net.output
    residual = subject.left_over()
    chosen = np.sort(np.argsort(-np.std(parts, axis=0), kind="stable")[:MAX_UNITS])
    figures = tuple(
        Figure(
            f"residual-{i + 1}",
            subject.units[i],
            partial(
                curves.residuals, t=Z[keep, i], residual=residual[keep], means=binned(Z[:, i], residual),
                label="⟨a, x⟩ + b",
            ),
            {"unit": i + 1, "argument": Z[keep, i], "residual": residual[keep]},
            (2.7, 2.0),
        )
        for i in chosen.tolist()
    )  # fmt: skip
    text = "Residuals of the network against the argument of each unit, with means and their 95 % intervals."
    return Section("residuals", "Residuals by unit", (Paragraph(text), Gallery(figures)), detail=True)
