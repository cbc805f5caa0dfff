"""How predictions and the network meet the data: observed against predicted, and what is left over."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.report import curves
from onehidden.report.blocks import Figure, Gallery, Paragraph, Section
from onehidden.report.sections.response import MAX_UNITS, binned
from onehidden.report.subject import Subject, thin


def at_a_glance(subject: Subject) -> Section | None:
    """Observed against predicted, and residuals against predicted, side by side."""
    if subject.X is None or subject.y is None:
        return None
    keep = thin(len(subject.X))
    predicted, y = subject.predict(subject.X), subject.y
    residual = y - predicted
    said = f" {len(keep)} rows of {subject.n_rows}." if len(keep) < (subject.n_rows or 0) else ""
    observed = Figure(
        "observed",
        f"Observed against predicted; the line is equality.{said}",
        partial(curves.observed, predicted=predicted[keep], y=y[keep]),
        {"predicted": predicted[keep], "observed": y[keep]},
        (3.6, 2.7),
    )
    left = Figure(
        "residuals",
        "Residuals against predicted, with means and their 95 % intervals: a bend is something missed.",
        partial(
            curves.residuals, t=predicted[keep], residual=residual[keep],
            means=binned(predicted, residual), label="predicted",
        ),
        {"predicted": predicted[keep], "residual": residual[keep]},
        (3.6, 2.7),
    )  # fmt: skip
    return Section("observed", "Fit", (Gallery((observed, left)),))


def residuals_by_unit(subject: Subject) -> Section | None:
    """What is left over against the argument of each unit: a kink in the wrong place shows here."""
    if subject.X is None or subject.y is None:
        return None
    net, keep = subject.net, thin(len(subject.X))
    Z = subject.X @ net.weights.T + net.bias
    parts = net.activation(Z) * net.output
    residual = subject.y - parts.sum(axis=1) - net.intercept
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
