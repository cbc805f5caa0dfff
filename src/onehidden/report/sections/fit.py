"""How the network meets the data: each unit's ridge function, observed against predicted."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.report import drawings
from onehidden.report.blocks import Figure, Gallery, Paragraph, Section
from onehidden.report.numbers import short
from onehidden.report.subject import Subject, thin

MAX_UNITS = 12


def ridge_functions(subject: Subject) -> Section | None:
    """w g(t) over t = <a, x> + b for the units that move y most, with partial residuals."""
    if subject.X is None:
        return None
    net, X = subject.net, subject.X
    keep = thin(len(X))
    Z = X @ net.weights.T + net.bias
    parts = net.activation(Z) * net.output
    spread = np.std(parts, axis=0)
    chosen = np.sort(np.argsort(-spread, kind="stable")[:MAX_UNITS])
    residual = None if subject.y is None else (subject.y - parts.sum(axis=1) - net.intercept)[keep]
    figures = []
    for i in chosen.tolist():
        t = Z[keep, i]
        grid = np.linspace(t.min(), t.max(), 120)
        curve = (grid, net.activation(grid) * net.output[i])
        behind = None if residual is None else parts[keep, i] + residual
        figures.append(
            Figure(
                f"ridge-{i + 1}",
                f"{subject.units[i]}, w = {short(net.output[i], 3)}",
                partial(drawings.ridge, t=t, curve=curve, parts=behind),
                {"unit": i + 1, "argument": curve[0], "contribution": curve[1]},
                (2.7, 2.0),
            )
        )
    which = (
        f"the {len(chosen)} units of {net.n_hidden} that move y most"
        if len(chosen) < net.n_hidden
        else "each unit"
    )
    text = f"The contribution w g(⟨a, x⟩ + b) of {which}, over the values its argument takes in the data"
    text += "." if residual is None else "; dots are partial residuals (what the other units leave over)."
    return Section("ridge", "Ridge functions", (Paragraph(text), Gallery(tuple(figures))))


def observed_against_predicted(subject: Subject) -> Section | None:
    if subject.X is None or subject.y is None:
        return None
    keep = thin(len(subject.X))
    predicted, y = subject.net.predict(subject.X[keep]), subject.y[keep]
    caption = "Observed against predicted; the line is equality."
    if len(keep) < (subject.n_rows or 0):
        caption += f" {len(keep)} rows of {subject.n_rows}, evenly spaced."
    figure = Figure(
        "observed",
        caption,
        partial(drawings.observed, predicted=predicted, y=y),
        {"predicted": predicted, "observed": y},
        (4.2, 3.4),
    )
    return Section("observed", "Observed against predicted", (figure,))
