"""Confidence intervals of every number, whatever their number: all in one picture, the first in a table."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onehidden.report import curves
from onehidden.report.blocks import Figure, Grid, Paragraph, Section
from onehidden.report.effects import effects
from onehidden.report.marks import OPEN, left_open
from onehidden.report.numbers import between, percent, short
from onehidden.report.subject import Recovered, Subject, first_output

LEVEL = 0.95
MAX_ROWS = 1500  # of the table: a page of a megabyte opens quickly; the file beside it holds all


def intervals(subject: Subject) -> Section | None:
    """A line a number: output, bias and weights of each unit, then the intercept."""
    if subject.errors is None:
        return None
    net = subject.net
    low, high = bounds(subject.recovery, LEVEL)
    rows: list[tuple[str, ...]] = []

    def add(label: str, value: float, ends: tuple[Any, Any], loose: bool) -> None:
        pair = float(ends[0]), float(ends[1])
        open_ = loose or not np.isfinite(pair).all()
        rows.append((label, short(value), OPEN if open_ else between(*pair)))

    add("intercept c", net.intercept, (low.intercept, high.intercept), False)
    for i, unit in enumerate(subject.units):
        loose = left_open(subject.unit(i))
        add(f"{unit}, output w", net.output[i], (low.output[i], high.output[i]), loose)
        if subject.has_bias:
            add(f"{unit}, bias b", net.bias[i], (low.bias[i], high.bias[i]), loose)
        if len(rows) + net.n_inputs > MAX_ROWS:
            continue
        for j, name in enumerate(subject.names):
            add(f"{unit}, {name}", net.weights[i, j], (low.weights[i, j], high.weights[i, j]), loose)
    cut = net.weights.size + net.n_hidden * (1 + subject.has_bias) + 1 > len(rows)
    note = (
        "The weights of the later units are in units.csv of the run and in Recovery.to_frame()."
        if cut
        else ""
    )
    columns = ("parameter", "estimate", f"{percent(LEVEL)} interval")
    lead = Paragraph(
        "Intervals are the estimate and quantiles of Student's t times its standard error: they hold when "
        "the model does and the rows are independent."
    )
    grid = Grid(columns, tuple(rows), note)
    return Section("intervals", "Intervals", (lead, _picture(subject), grid), detail=True)


def _picture(subject: Subject) -> Figure:
    """Every effect with its interval, in order of size."""
    found = effects(subject)
    assert found.errors is not None
    open_ = np.array([left_open(subject.unit(i)) for i in range(subject.net.n_hidden)])
    errors = np.where(open_[:, None], np.inf, found.errors).ravel()
    values = found.values.ravel()
    order = np.argsort(values, kind="stable")
    values, reach = values[order], 1.96 * errors[order]
    clear = int(np.sum(np.abs(values) > reach))
    lost = int(np.sum(~np.isfinite(reach)))
    text = f"{found.head.capitalize()}, all {values.size} of them in order of size with 95 % intervals: "
    text += f"{clear} are clear of zero" + (f", {lost} are undetermined (grey)." if lost else ".")
    return Figure(
        "effects",
        text,
        partial(curves.caterpillar, values=values, reach=reach, label="effect"),
        {"effect": values, "reach": reach},
        (7.2, 2.4),
    )


def bounds(recovery: Recovered, level: float) -> tuple[Any, Any]:
    """Lower and upper ends, as the recovery states them."""
    stated: Any = recovery
    interval = stated.interval(level)
    low, high = (interval.lower, interval.upper) if hasattr(interval, "lower") else interval
    return first_output(low), first_output(high)
