"""The units as a picture: their standardised effects, and their match with the truth."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.report import drawings
from onehidden.report.blocks import Figure, Grid, Section
from onehidden.report.effects import effects
from onehidden.report.numbers import short
from onehidden.report.subject import Subject

MAX_FEATURES = 60  # columns of the heat map


def effects_map(subject: Subject) -> Section:
    """Every effect as a coloured cell, units by inputs."""
    net, found = subject.net, effects(subject)
    strength = np.linalg.norm(found.values, axis=0)
    order = np.sort(np.argsort(-strength, kind="stable")[:MAX_FEATURES])
    shown = "all inputs"
    if len(order) < net.n_inputs:
        shown = f"the {len(order)} strongest inputs of {net.n_inputs}"
    width = float(np.clip(1.6 + 0.28 * len(order), 3.6, 12.0))
    height = float(np.clip(1.3 + 0.24 * net.n_hidden, 1.8, 11.0))
    names = [subject.names[j] for j in order]
    figure = Figure(
        "weights",
        f"{found.head.capitalize()}, by unit and input ({shown}); red is positive, blue negative.",
        partial(drawings.heat_map, values=found.values[:, order], rows=subject.units, columns=names),
        {"features": names, "effects": found.values[:, order]},
        (width, height),
    )
    return Section("units", "Effects by unit and input", (figure,), detail=True)


def matched(subject: Subject) -> Section | None:
    """Found units against the true ones, where these are known."""
    truth, m = subject.truth, subject.match
    if truth is None or m is None:
        return None
    taken = [int(i) for i in m.permutation if i >= 0]
    order = taken + [i for i in range(subject.net.n_hidden) if i not in taken]
    columns = np.argsort(m.permutation < 0, kind="stable")  # true units without partner go last
    cosine = np.abs(_unit_rows(subject.net.weights)[order] @ _unit_rows(truth.weights)[columns].T)
    side = float(np.clip(1.6 + 0.2 * max(cosine.shape), 3.0, 7.5))
    rows = (
        ("worst row of weights", short(m.max_error, 3)),
        ("worst output weight", short(m.output_error, 3)),
        ("worst bias", short(m.bias_error, 3)),
        ("intercept", short(m.intercept_error, 3)),
        ("honest e(Q), max form", short(m.honest_error, 3)),
        ("printed e(Q), min form", short(m.printed_error, 3)),
    )
    figure = Figure(
        "matched",
        "|cos| of the angle between found units (rows) and true ones (columns), matched by optimal "
        "assignment: a full diagonal on white means that every true unit was found once.",
        partial(
            drawings.cosines,
            values=cosine,
            rows=[str(i + 1) for i in order],
            columns=[str(int(i) + 1) for i in columns],
        ),
        {"cosine": cosine, "found": [i + 1 for i in order], "true": columns + 1},
        (side + 0.7, side),
    )
    note = "Errors are relative, after matching and up to the symmetries of the activation."
    return Section(
        "matched", "Found against true", (Grid(("error", "value"), rows, note), figure), detail=True
    )


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
