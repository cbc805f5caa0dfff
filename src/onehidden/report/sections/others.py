"""Other answers that the data do not tell from this one, side by side with it."""

from __future__ import annotations

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.report.blocks import Grid, Paragraph, Section
from onehidden.report.numbers import plural, short
from onehidden.report.screen import explained
from onehidden.report.subject import Subject, one_output

_STRONGEST = 3  # inputs named a unit
_UNITS = 4  # units named


def alternatives(subject: Subject) -> Section | None:
    """One row an answer: how far behind it falls, what it explains, how far its predictions are away."""
    found = [one for one in subject.get("alternatives", ()) if one.network is not None]
    if not found:
        return None
    measured = subject.X is not None and subject.y is not None and subject.family is None
    columns = ["answer", "n log(loss) behind", *(["R²", "apart, in sd of y"] if measured else []), "units"]
    rows = [_row("this one", 0.0, subject.net, subject, measured)]
    rows += [_row(one.label, one.behind, one_output(one.network), subject, measured) for one in found]
    text = (
        "The data do not tell these from the answer: a statement about a unit is safe only where they agree. "
        "Fewer than 6 of n log(loss) is a likelihood ratio below e³."
    )
    grid = Grid(tuple(columns), tuple(rows), wordy=frozenset({len(columns) - 1}))
    return Section("alternatives", "Answers that fit as well", (Paragraph(text), grid), detail=True)


def _row(label: str, behind: float, net: OneHiddenNet, subject: Subject, measured: bool) -> tuple[str, ...]:
    cells = [label, short(behind, 2)]
    if measured:
        assert subject.X is not None
        assert subject.y is not None
        predicted, spread = net.predict(subject.X), float(np.std(subject.y)) or 1.0
        left = float(np.mean((subject.y - predicted) ** 2)) / spread**2
        away = float(np.sqrt(np.mean((predicted - subject.net.predict(subject.X)) ** 2))) / spread
        cells += [explained(1 - left), short(away, 2)]
    return (*cells, _units(net, subject))


def _units(net: OneHiddenNet, subject: Subject) -> str:
    """The strongest inputs of its units, in words."""
    by = np.ones(net.n_inputs) if subject.spread is None else subject.spread
    said = []
    for i in range(min(net.n_hidden, _UNITS)):
        order = np.argsort(-np.abs(net.weights[i] * by), kind="stable")[:_STRONGEST]
        effects = [f"{subject.names[j]} {short(net.output[i] * net.weights[i, j] * by[j], 2)}" for j in order]
        said.append(", ".join(effects))
    more = net.n_hidden - len(said)
    said += [f"{more} more {plural(more, 'unit')}"] if more else []
    return f"{net.n_hidden} {net.activation.name}: " + "; ".join(said)
