"""How the answer was reached and how firmly it stands: loss trace, curvature, moments, input model."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.checks import Check
from onehidden.report import drawings
from onehidden.report.blocks import Block, Checks, Figure, Grid, Paragraph, Section
from onehidden.report.marks import by_urgency
from onehidden.report.numbers import seconds, short
from onehidden.report.subject import Subject, field_of, thin

VALIDITY_ROWS = 20_000  # rows that the identities of the input model are tested on
NO_LAW = ("auto", "gaussian")  # what ``score`` is called where the caller brought no law
NOISE_LEVEL = 3.0  # |z| that noise alone rarely passes


def loss_trace(subject: Subject) -> Section | None:
    """The loss by stage, and a line a stage: where it began, where it ended, how long it took."""
    records = list(subject.get("trace", ()))
    stages = [str(field_of(record, "stage", 0)) for record in records]
    losses = np.array([float(field_of(record, "loss", 2)) for record in records])
    clock = np.array([float(field_of(record, "seconds", 3)) for record in records])
    finite = np.flatnonzero(np.isfinite(losses))
    if finite.size == 0:
        return None
    shown = finite[thin(finite.size, 2000)]
    # An exact fit has loss zero, which a logarithm cannot show: draw it at the smallest rounding level.
    heights = np.maximum(losses[shown], 1e-34)
    figure = Figure(
        "trace",
        "Loss at each recorded step, a colour a stage.",
        partial(drawings.trace, stages=[stages[i] for i in shown], losses=heights),
        {"stage": [stages[i] for i in shown], "loss": losses[shown], "seconds": clock[shown]},
    )
    labels = np.array(stages)
    rows = []
    for stage in dict.fromkeys(stages):
        mine = np.flatnonzero(labels == stage)
        spent = float(clock[mine].max() - clock[mine].min())
        rows.append(
            (stage, str(len(mine)), short(losses[mine[0]], 3), short(losses[mine[-1]], 3), seconds(spent))
        )
    grid = Grid(("stage", "records", "first loss", "last loss", "from first to last"), tuple(rows))
    return Section("trace", "Loss trace", (figure, grid))


def curvature(subject: Subject) -> Section | None:
    values = np.asarray(subject.get("curvature", ()), dtype=float).ravel()
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    values = np.sort(values)[::-1]
    smallest, largest = float(values[-1]), float(values[0])
    text = f"Smallest {short(smallest, 3)}, largest {short(largest, 3)}"
    text += (
        f", ratio {short(largest / smallest, 3)}."
        if smallest > 0
        else ": a flat or falling direction is left."
    )
    shown = thin(len(values), 3000)
    figure = Figure(
        "curvature",
        "Eigenvalues of the curvature of the loss at the solution. Every direction that curves upwards is "
        f"determined by the data. {text}",
        partial(drawings.spectrum, values=values[shown]),
        {"eigenvalues": values},
    )
    return Section("curvature", "Curvature", (figure,))


def moment_signal(subject: Subject) -> Section | None:
    signal = dict(subject.get("signal", {}))
    orders = sorted(order for order, z in signal.items() if np.isfinite(z))
    if not orders:
        return None
    z = np.array([float(signal[order]) for order in orders])
    heard = [str(order) for order, value in zip(orders, z, strict=True) if abs(value) > NOISE_LEVEL]
    said = f"Signal above noise at order {', '.join(heard)}." if heard else "No order rises above noise."
    figure = Figure(
        "signal",
        f"How far each score moment E[y Sₘ(x)] stands out of its own noise. {said}",
        partial(drawings.signal, orders=orders, z=z, threshold=NOISE_LEVEL),
        {"order": orders, "z": z},
        (4.4, 1.1 + 0.33 * len(orders)),
    )
    blocks: tuple[Block, ...] = (figure,)
    return Section("signal", "Moment signal", blocks)


def score_validity(subject: Subject) -> Section | None:
    """What the inputs were taken for, and whether it holds on the data, by Stein's identities."""
    model = str(subject.get("input_model", "not needed"))
    made = list(subject.get("score_checks", ()))
    # An estimated model has checks of its own; without, inputs were taken for Gaussian or not looked at.
    if not made and dict(subject.get("options", {})).get("score", "auto") in NO_LAW:
        made = _gaussian_validity(subject)
    if not made:
        return None  # a law of the caller's own is not in the run: `onehidden.scores.validity` tests it
    off = sum(not check.passed for check in made)
    assumed = {
        "not needed": "No start needed an input model; held against a Gaussian of the same covariance, the"
    }
    said = assumed.get(model, f"Input model of the score moments: {model}. Its")
    verdict = (
        "all hold."
        if not off
        else f"{off} of {len(made)} do not. The answer does not rest on them (the checks above "
        "judge it), but starts from moments may mislead."
    )
    lead = Paragraph(f"{said} identities E[q Sₘ] = E[∇ᵐ q], in standard errors: {verdict}")
    return Section("validity", "Score validity", (lead, Checks(tuple(by_urgency(made)))))


def _gaussian_validity(subject: Subject) -> list[Check]:
    if subject.X is None:
        return []
    from onehidden import laws, scores

    X = subject.X[thin(len(subject.X), VALIDITY_ROWS)]
    if len(X) <= X.shape[1] + 1 or np.linalg.matrix_rank(X - X.mean(axis=0)) < X.shape[1]:
        return []  # too few rows, or columns that depend on each other
    return scores.validity(laws.Gaussian(X.mean(axis=0), np.atleast_2d(np.cov(X.T))), X)
