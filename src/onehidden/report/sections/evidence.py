"""How the answer was reached and how firmly it stands: loss trace, curvature, moments, input model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from onehidden.checks import About
from onehidden.report import drawings
from onehidden.report.blocks import Block, Checks, Figure, Grid, Paragraph, Section
from onehidden.report.marks import by_urgency
from onehidden.report.numbers import seconds, short
from onehidden.report.subject import Subject, field_of, thin

NOT_NEEDED = "not needed"  # the input model of a run in which no start asked for one
MAX_STAGES = 7  # with a colour of their own
NOISE_LEVEL = 3.0  # |z| that noise alone rarely passes


def loss_trace(subject: Subject) -> Section | None:
    """The loss by stage, and a line a stage: where it began, where it ended, how long it took."""
    records = list(subject.get("trace", ()))
    stages = [str(field_of(record, "stage", 0)) for record in records]
    losses = np.array([float(field_of(record, "loss", 2)) for record in records])
    clock = np.array([float(field_of(record, "seconds", 3)) for record in records])
    steps = np.array([float(field_of(record, "step", 1)) for record in records])
    finite = np.flatnonzero(np.isfinite(losses))
    if finite.size == 0:
        return None
    shown = finite[thin(finite.size, 2000)]
    # An exact fit has loss zero, which a logarithm cannot show: draw it at the smallest rounding level.
    heights = np.maximum(losses[shown], 1e-34)
    labels = np.array(stages)
    count = {stage: int(np.sum(labels == stage)) for stage in dict.fromkeys(stages)}
    # A colour each for the stages that were long; marks that stand alone share one.
    long = sorted(count, key=lambda stage: -count[stage])[:MAX_STAGES]
    named = [stages[i] if stages[i] in long else "other" for i in shown]
    figure = Figure(
        "trace",
        "Loss, as a share of var(y), over time; a colour a stage.",
        partial(drawings.trace, stages=named, losses=heights, clock=clock[shown], steps=steps[shown]),
        {"stage": [stages[i] for i in shown], "loss": losses[shown], "seconds": clock[shown]},
        (7.2, 2.8),
    )
    rows = []
    for stage in count:
        mine = np.flatnonzero(labels == stage)
        spent = float(clock[mine].max() - clock[mine].min())
        rows.append(
            (stage, str(len(mine)), short(losses[mine[0]], 3), short(losses[mine[-1]], 3), seconds(spent))
        )
    grid = Grid(("stage", "records", "first loss", "last loss", "from first to last"), tuple(rows))
    return Section("trace", "Loss trace", (figure, grid), detail=True)


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
    return Section("curvature", "Curvature", (figure,), detail=True)


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
    return Section("signal", "Moment signal", blocks, detail=True)


def score_validity(subject: Subject) -> Section | None:
    """What the inputs were taken for, where a start asked for it, and whether it holds on the data."""
    model = str(subject.get("input_model", NOT_NEEDED))
    made = list(subject.get("score_checks", ()))
    if model == NOT_NEEDED or not made:
        return None  # a model that was not used has nothing to answer for
    off = sum(not check.passed for check in made)
    verdict = (
        "all hold."
        if not off
        else f"{off} of {len(made)} do not. The answer does not rest on them (the checks judge it), but "
        "starts from moments may mislead."
    )
    lead = Paragraph(
        f"Input model of the score moments: {model}. Its identities E[q Sₘ] = E[∇ᵐ q], in standard errors: "
        f"{verdict}"
    )
    noted = tuple(replace(check, about=About.NOTE) for check in by_urgency(made))
    return Section("validity", "Score validity", (lead, Checks(noted)), detail=True)
