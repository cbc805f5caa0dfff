"""The units: a table and a heat map, their match with the truth, their intervals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onehidden.report import drawings
from onehidden.report.blocks import Block, Figure, Grid, Paragraph, Section
from onehidden.report.marks import OPEN, left_open, number, standing
from onehidden.report.numbers import between, percent, short
from onehidden.report.subject import Recovered, Subject

WIDE = 8  # features that fit as columns
STRONGEST = 4  # features named a unit when they do not
MAX_FEATURES = 60  # columns of the heat map
MAX_INTERVALS = 20
LEVEL = 0.95


def table(subject: Subject) -> Section:
    net = subject.net
    blocks: list[Block] = [_grid(subject)]
    strength = np.linalg.norm(net.weights, axis=0)
    order = np.sort(np.argsort(-strength, kind="stable")[:MAX_FEATURES])
    shown = "all weights"
    if len(order) < net.n_inputs:
        shown = f"the {len(order)} features with the largest weights of {net.n_inputs}"
    width = float(np.clip(1.6 + 0.28 * len(order), 3.6, 12.0))
    height = float(np.clip(1.3 + 0.24 * net.n_hidden, 1.8, 11.0))
    names = [subject.names[j] for j in order]
    blocks.append(
        Figure(
            "weights",
            f"Weights by unit and feature ({shown}); red is positive, blue negative.",
            partial(drawings.heat_map, values=net.weights[:, order], rows=subject.units, columns=names),
            {"features": names, "weights": net.weights[:, order]},
            (width, height),
        )
    )
    return Section("units", "Units", tuple(blocks))


def _grid(subject: Subject) -> Grid:
    net = subject.net
    wide = net.n_inputs <= WIDE
    columns = ["unit", "output w", *(["bias b"] if subject.has_bias else [])]
    columns += list(subject.names) if wide else ["largest weights"]
    judged = bool(subject.get("units", ()))
    wordy = {len(columns) - 1} if not wide else set()
    if judged:
        wordy.add(len(columns))
        columns.append("verdict")
    rows = []
    for i, name in enumerate(subject.units):
        unit = subject.unit(i)
        row = [name, number(net.output[i], subject.error("output", i), unit)]
        if subject.has_bias:
            row.append(number(net.bias[i], subject.error("bias", i), unit))
        if wide:
            row += [number(a, subject.error("weights", (i, j)), unit) for j, a in enumerate(net.weights[i])]
        else:
            top = np.argsort(-np.abs(net.weights[i]), kind="stable")[:STRONGEST].tolist()
            row.append(", ".join(f"{subject.names[j]} {_weight(subject, i, j)}" for j in top))
        if judged:
            row.append("–" if unit is None else standing(unit))
        rows.append(tuple(row))
    notes = []
    if subject.errors is not None:
        notes.append("± is one standard error.")
    if not wide:
        notes.append(
            f"The {STRONGEST} largest of {net.n_inputs} weights a unit; the rest is in the model file."
        )
    if net.activation.homogeneity is not None:
        notes.append("For this activation only length of row and output together are determined.")
    return Grid(tuple(columns), tuple(rows), " ".join(notes), frozenset(wordy))


def _weight(subject: Subject, i: int, j: int) -> str:
    """A weight in few digits, or the word for one that the data leave open."""
    error = subject.error("weights", (i, j))
    return OPEN if error is not None and not np.isfinite(error) else short(subject.net.weights[i, j], 3)


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
    return Section("matched", "Found against true", (Grid(("error", "value"), rows, note), figure))


def _unit_rows(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)


def intervals(subject: Subject) -> Section | None:
    """Confidence intervals of outputs, biases and the intercept."""
    if subject.errors is None:
        return None
    net = subject.net
    low, high = bounds(subject.recovery, LEVEL)
    columns = ["parameter", "estimate", f"{percent(LEVEL)} interval"]
    largest = np.argsort(-np.abs(net.output), kind="stable")[:MAX_INTERVALS]
    shown = np.sort(largest)
    rows = []
    for i in shown.tolist():
        named = {"output w": "output"} | ({"bias b": "bias"} if subject.has_bias else {})
        for label, field in named.items():
            ends = float(getattr(low, field)[i]), float(getattr(high, field)[i])
            loose = left_open(subject.unit(i)) or not np.isfinite(ends).all()
            value = short(getattr(net, field)[i])
            rows.append((f"{subject.units[i]}, {label}", value, OPEN if loose else between(*ends)))
    rows.append(("intercept c", short(net.intercept), between(float(low.intercept), float(high.intercept))))
    which = f" (the {len(shown)} largest outputs of {net.n_hidden})" if len(shown) < net.n_hidden else ""
    open_ = np.array([left_open(subject.unit(i)) for i in shown.tolist()], dtype=bool)
    lost = "; undetermined ones have none" if open_.any() else ""
    ends = [np.where(open_, np.nan, np.asarray(end.output)[shown]) for end in (low, high)]
    figure = Figure(
        "outputs",
        f"Output weights with their {percent(LEVEL)} intervals{which}{lost}.",
        partial(
            drawings.whiskers,
            labels=[subject.units[i] for i in shown],
            centre=net.output[shown],
            low=ends[0],
            high=ends[1],
        ),
        {"unit": shown + 1, "output": net.output[shown], "low": ends[0], "high": ends[1]},
        (4.4, float(np.clip(0.9 + 0.22 * len(shown), 1.4, 7.5))),
    )
    lead = Paragraph(
        "Intervals come from the standard errors, whose kind the check of equal spread names: they are right "
        "when the model is and the rows are independent."
    )
    return Section("intervals", "Intervals", (lead, figure, Grid(tuple(columns), tuple(rows))))


def bounds(recovery: Recovered, level: float) -> tuple[Any, Any]:
    """Lower and upper ends, as the recovery states them."""
    stated: Any = recovery
    interval = stated.interval(level)
    if hasattr(interval, "lower"):
        return interval.lower, interval.upper
    low, high = interval
    return low, high
