"""The answer first: the first screen as a page shows it, and what was checked."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onehidden.report import drawings
from onehidden.report.blocks import Block, Checks, Facts, Figure, Formula, Grid, Paragraph, Section, Verdict
from onehidden.report.formula import left_hand
from onehidden.report.marks import by_urgency, number, tally
from onehidden.report.numbers import seconds, short
from onehidden.report.screen import Screen, screen
from onehidden.report.subject import Subject

MAX_OUTPUTS, MAX_OUTPUT_UNITS = 6, 12  # columns and rows of the table of output weights


def summary(subject: Subject) -> Section:
    """Sentence, formula, fit, units; what failed and what to do next."""
    shown = screen(subject)
    facts = list(shown.facts)
    if subject.match is not None:
        facts.append(("worst unit error", short(subject.match.max_error, 2)))
        facts.append(("worst output error", short(subject.match.output_error, 2)))
    if subject.get("seconds") is not None:
        facts.append(("time", seconds(subject.get("seconds"))))
    blocks: list[Block] = [_verdict(shown), Formula(shown.formula), Facts(tuple(facts))]
    if shown.predictions:
        blocks.append(Paragraph(f"{_capital(shown.predictions)}."))
    blocks.append(_units(shown))
    if subject.n_outputs > 1:
        blocks.append(Paragraph(f"Effects and curves of single units are those on {left_hand(subject, 0)}."))
    return Section("summary", "Summary", tuple(blocks))


def _verdict(shown: Screen) -> Verdict:
    """The sentence that a reader may quote; then the next step, and the count of checks."""
    failed = [check.name for check in shown.failed if check.asked]
    detail = f"Failed: {', '.join(failed)}; {shown.passed}." if failed else f"{_capital(shown.passed)}."
    if shown.advice:
        detail += f" Next: {shown.advice}."
    return Verdict(shown.good, f"{_capital(shown.sentence)}.", detail)


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _units(shown: Screen) -> Grid:
    rows = []
    for unit in shown.units:
        named = ", ".join(f"{name} {value}" for name, value in unit.inputs)
        named += f", and {unit.more} more" if unit.more else ""
        rows.append((f"unit {unit.index + 1}", unit.share or "–", unit.output, named, unit.judged or "–"))
    notes = list(shown.legend)
    if shown.more_units:
        notes.append(f"{shown.more_units} more units under the details.")
    columns = ("unit", f"share of {shown.whole}", "output w", f"{shown.head}, strongest first", "verdict")
    return Grid(columns, tuple(rows), " ".join(notes), frozenset({3, 4}), stacks=True)


def outputs(subject: Subject) -> Section | None:
    """The output weights of every unit: numbers with errors of the first few, a picture beyond that."""
    if subject.n_outputs == 1:
        return None
    output = np.asarray(subject.recovery.network.output)
    errors: Any = subject.get("standard_errors")
    known = None if errors is None else np.asarray(errors.output)
    shown = min(subject.n_outputs, MAX_OUTPUTS)
    rows = tuple(
        (name, *(number(float(output[i, j]), None if known is None else float(known[i, j]), subject.unit(i))
                 for j in range(shown)))
        for i, name in enumerate(subject.units[:MAX_OUTPUT_UNITS])
    )  # fmt: skip
    more = [
        f"{total - most} more {what} in the model file."
        for total, most, what in (
            (subject.n_outputs, MAX_OUTPUTS, "outputs"), (len(subject.units), MAX_OUTPUT_UNITS, "units"),
        ) if total > most
    ]  # fmt: skip
    grid = Grid(("w", *subject.outputs[:shown]), rows, " ".join(more))
    title = "Output weights"
    size = (
        float(np.clip(1.6 + 0.28 * subject.n_outputs, 3.0, 12.0)),
        float(np.clip(1.3 + 0.24 * len(output), 1.8, 11.0)),
    )
    if not more:  # the table has it all
        return Section("outputs", title, (grid,), detail=True)
    picture = Figure(
        "outputs", "Output weights, by unit and output; red is positive, blue negative.",
        partial(drawings.heat_map, values=output, rows=subject.units, columns=subject.outputs),
        {"outputs": list(subject.outputs), "weights": output}, size,
    )  # fmt: skip
    return Section("outputs", title, (grid, picture), detail=True)


def checks(subject: Subject) -> Section | None:
    made = tuple(subject.get("checks", ()))
    if not made:
        return None
    lead = Paragraph(
        f"{_capital(tally(made))}. Each line is a question asked of the answer: what was measured, the bound "
        "and what to do. A question that could not be asked has not passed; one noted decides nothing."
    )
    return Section("checks", "Checks", (lead, Checks(tuple(by_urgency(made)))), detail=True)
