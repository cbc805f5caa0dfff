"""Sections on the answer: summary, checks, alternatives; how it was reached; how to repeat and cite it."""

from __future__ import annotations

import shlex
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np

from onehidden.checks import About
from onehidden.data.table import Request
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.report import figures
from onehidden.report.blocks import (
    Block,
    Checks,
    Code,
    Facts,
    Figure,
    Formula,
    Grid,
    Paragraph,
    Section,
    Verdict,
)
from onehidden.report.formula import left_hand
from onehidden.report.screen import Screen, screen
from onehidden.report.subject import Subject, strongest, thin
from onehidden.report.wording import Mark, by_urgency, capital, explained, more, seconds, short, tally

_READING = tuple(one.name for one in fields(Request) if one.name != "targets")
_PAPERS = """\
W. Gao, A. V. Makkuva, S. Oh, P. Viswanath. Learning One-hidden-layer Neural Networks under General Input \
Distributions. AISTATS 2019.
R. Ge, J. D. Lee, T. Ma. Learning One-hidden-layer Neural Networks with Landscape Design. ICLR 2018.
K. Zhong, Z. Song, P. Jain, P. L. Bartlett, I. S. Dhillon. Recovery Guarantees for One-hidden-layer Neural \
Networks. ICML 2017."""


def summary(subject: Subject) -> Section:
    """Sentence, formula, fit, units; what failed and what to do next."""
    shown = screen(subject)
    facts = list(shown.facts)
    if subject.match is not None:
        facts.append(("worst unit error", short(subject.match.max_error, 2)))
        facts.append(("worst output error", short(subject.match.output_error, 2)))
    if subject.get("seconds") is not None:
        facts.append(("time", seconds(subject.get("seconds"))))
    blocks: list[Block] = [
        Verdict(question, answer.sentence, answer.mood) for question, answer in shown.answers
    ]
    if shown.advice:
        blocks.append(Paragraph(f"Next: {shown.advice}."))
    blocks += [Formula(shown.formula), Facts(tuple(facts))]
    if shown.predictions:
        blocks.append(Paragraph(f"{capital(shown.predictions)}."))
    blocks += [_units(shown), _evidence(shown)]
    if shown.assumed:
        blocks.append(Paragraph(f"Taken as given, since no sample can show it: {shown.assumed}"))
    if subject.n_outputs > 1:
        blocks.append(Paragraph(f"Effects and curves of single units are those on {left_hand(subject)}."))
    return Section("summary", "Summary", tuple(blocks))


def _evidence(shown: Screen) -> Paragraph:
    """The status with its reason, and the checks that failed by name."""
    failed = shown.named(Mark.FAILED)
    counted = f"Failed: {failed}; {shown.passed}." if failed else f"{capital(shown.passed)}."
    return Paragraph(f"{capital(shown.sentence)}. {counted}")


def _units(shown: Screen) -> Grid:
    rows = tuple(
        (f"unit {unit.index + 1}", unit.share or "–", unit.output, unit.named, unit.judged or "–")
        for unit in shown.units
    )
    notes = list(shown.legend)
    if shown.more_units:
        notes.append(f"{shown.more_units} more units under the details.")
    columns = ("unit", f"share of {shown.whole}", "output w", f"{shown.head}, strongest first", "verdict")
    return Grid(columns, rows, " ".join(notes), frozenset({3, 4}), stacks=True)


def checks(subject: Subject) -> Section | None:
    """Every check with its value, its bound and its advice."""
    made = tuple(subject.get("checks", ()))
    if not made:
        return None
    lead = Paragraph(
        f"{capital(tally(made))}. Each line has the value measured, its bound, and what to do. A check that "
        "could not be evaluated has not passed; one noted decides nothing."
    )
    return Section("checks", "Checks", (lead, Checks(tuple(by_urgency(made)))), detail=True)


def alternatives(subject: Subject) -> Section | None:
    """Other answers that the data do not rule out: how far behind, R², distance of predictions."""
    found = [one for one in subject.get("alternatives", ()) if one.network is not None]
    if not found:
        return None
    measured = subject.y is not None and subject.family is None
    columns = [
        "answer",
        "2 log likelihood behind",
        *(["R²", "apart, in sd of y"] if measured else []),
        "units",
    ]
    rows = [_alternative("this one", 0.0, subject.net, subject, measured)]
    rows += [
        _alternative(one.label, one.behind, one.network.one_output(), subject, measured) for one in found
    ]
    text = (
        "The data do not rule these out: a statement about a unit is safe only where they agree. Each has "
        f"the likelihood of a noise model of its own; {short(found[0].needed, 3)} behind would rule it out."
    )
    grid = Grid(tuple(columns), tuple(rows), wordy=frozenset({len(columns) - 1}))
    return Section("alternatives", "Answers that are not ruled out", (Paragraph(text), grid), detail=True)


def _alternative(
    label: str, excess: float, net: OneHiddenNet, subject: Subject, measured: bool
) -> tuple[str, ...]:
    cells = [label, short(excess, 2)]
    if measured:
        assert subject.X is not None
        assert subject.y is not None
        predicted, spread = net.predict(subject.X), float(np.std(subject.y)) or 1.0
        missed = float(np.mean((subject.y - predicted) ** 2)) / spread**2
        apart = float(np.sqrt(np.mean((predicted - subject.net.predict(subject.X)) ** 2))) / spread
        cells += [explained(1 - missed), short(apart, 2)]
    return (*cells, _described(net, subject))


def _described(net: OneHiddenNet, subject: Subject, most_units: int = 4, most_inputs: int = 3) -> str:
    """The strongest inputs of the units, in words."""
    by = np.ones(net.n_inputs) if subject.spread is None else subject.spread
    shown = [
        ", ".join(f"{subject.names[j]} {short(w * a[j], 2)}" for j in strongest(a, most_inputs))
        for a, w in zip(net.weights[:most_units] * by, net.output, strict=False)
    ]
    if net.n_hidden > most_units:
        shown.append(more(net.n_hidden - most_units, "unit"))
    return f"{net.n_hidden} {net.activation.name}: " + "; ".join(shown)


def loss_trace(subject: Subject, most_stages: int = 7) -> Section | None:
    """The loss by stage, and a line a stage: where it began, where it ended, how long it took."""
    records = list(subject.get("trace", ()))
    losses, clock, steps = (
        np.array([float(getattr(record, name)) for record in records]) for name in ("loss", "seconds", "step")
    )
    finite = np.flatnonzero(np.isfinite(losses))
    if finite.size == 0:
        return None
    stages = np.array([str(record.stage) for record in records])
    places = {stage: np.flatnonzero(stages == stage) for stage in dict.fromkeys(stages.tolist())}
    # A colour each for the stages with the most records; marks that stand alone share one.
    colours = strongest(np.array([len(mine) for mine in places.values()]), most_stages)
    coloured = np.array(list(places))[colours]
    shown = finite[thin(finite.size, 2000)]
    # An exact fit has loss zero, which a logarithm cannot show: it is drawn at the smallest rounding level.
    draw = partial(
        figures.trace, losses=np.maximum(losses[shown], 1e-34), clock=clock[shown], steps=steps[shown],
        stages=np.where(np.isin(stages[shown], coloured), stages[shown], "other").tolist(),
    )  # fmt: skip
    data = {"stage": stages[shown].tolist(), "loss": losses[shown], "seconds": clock[shown]}
    caption = "Loss, as a share of var(y), over time; a colour a stage."
    rows = tuple(
        (stage, str(len(mine)), short(losses[mine[0]], 3), short(losses[mine[-1]], 3),
         seconds(float(np.ptp(clock[mine]))))
        for stage, mine in places.items()
    )  # fmt: skip
    grid = Grid(("stage", "records", "first loss", "last loss", "from first to last"), rows)
    picture = Figure("trace", caption, draw, data, (7.2, 2.8))
    return Section("trace", "Loss trace", (picture, grid), detail=True)


def curvature(subject: Subject) -> Section | None:
    """The spectrum of the curvature of the loss at the solution."""
    values = np.asarray(subject.get("curvature", ()), dtype=float).ravel()
    values = np.sort(values[np.isfinite(values)])[::-1]
    if values.size == 0:
        return None
    smallest, largest = float(values[-1]), float(values[0])
    ratio = f", ratio {short(largest / smallest, 3)}." if smallest > 0 else ""
    figure = Figure(
        "curvature",
        "Eigenvalues of the curvature of the loss at the solution. Every direction that curves upwards is "
        f"determined by the data. Smallest {short(smallest, 3)}, largest {short(largest, 3)}"
        f"{ratio or ': a flat or falling direction is left.'}",
        partial(figures.spectrum, values=values[thin(len(values), 3000)]),
        {"eigenvalues": values},
        (4.4, 2.7),
    )
    return Section("curvature", "Curvature", (figure,), detail=True)


def moment_signal(subject: Subject, noise: float = 3.0) -> Section | None:
    """|z| of each score moment, against a level that noise alone rarely passes."""
    signal = dict(subject.get("signal", {}))
    orders = sorted(order for order, z in signal.items() if np.isfinite(z))
    if not orders:
        return None
    z = np.array([float(signal[order]) for order in orders])
    clear = [str(order) for order, value in zip(orders, z, strict=True) if abs(value) > noise]
    found = f"Signal above noise at order {', '.join(clear)}." if clear else "No order rises above noise."
    figure = Figure(
        "signal",
        f"How far each score moment E[y Sₘ(x)] stands out of its own noise. {found}",
        partial(figures.signal, orders=orders, z=z, threshold=noise),
        {"order": orders, "z": z},
        (4.4, 1.1 + 0.33 * len(orders)),
    )
    return Section("signal", "Moment signal", (figure,), detail=True)


def score_validity(subject: Subject) -> Section | None:
    """The input model of the score moments, where a start used one, and whether it holds on the data."""
    model, made = str(subject.get("input_model", "not needed")), list(subject.get("score_checks", ()))
    if model == "not needed" or not made:
        return None
    off = sum(not check.passed for check in made)
    verdict = (
        f"{off} of {len(made)} do not. The answer does not rest on them (the checks judge it), but starts "
        "from moments may mislead."
    )
    lead = Paragraph(
        f"Input model of the score moments: {model}. Its identities E[q Sₘ] = E[∇ᵐ q], in standard errors: "
        f"{verdict if off else 'all hold.'}"
    )
    noted = tuple(replace(check, about=About.NOTE) for check in by_urgency(made))
    return Section("validity", "Score validity", (lead, Checks(noted)), detail=True)


def reproduce(subject: Subject) -> Section:
    """The command and the call that give this answer, the seed and the versions."""
    options, queries = subject.options, int(subject.get("queries", 0))
    blocks: list[Block] = []
    if command := _command(options):
        blocks += [Paragraph("On the command line:"), Code(command, "sh")]
    call = _call(options)
    if queries:
        chosen = _chosen(options) | ({} if options.get("reach") is None else {"reach": options["reach"]})
        call = f"r = oh.recover_oracle({', '.join(['fn', str(subject.net.n_inputs), *_keywords(chosen)])})"
    blocks += [Paragraph("In Python:"), Code(f"import onehidden as oh\n\n{call}", "python")]
    if queries:
        blocks.append(Paragraph(f"The black box was queried at {queries} rows."))
    if (seed := options.get("seed")) is not None:
        blocks.append(Paragraph(f"Seed {seed}: the same seed, data and versions give the same answer."))
    if versions := dict(subject.get("versions", {})):
        rows = tuple((str(name), str(version)) for name, version in versions.items())
        blocks.append(Grid(("package", "version"), rows, wordy=frozenset({1})))
    return Section("reproduce", "How to reproduce", tuple(blocks), detail=True)


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a recovery that differ from their defaults."""
    return {
        one.name: options[one.name]
        for one in fields(Options)
        if one.metadata["flag"] and options.get(one.name, one.default) != one.default
    }


def _keywords(values: dict[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in values.items()]


def _call(options: dict[str, Any]) -> str:
    arguments = _keywords(_chosen(options))
    if options.get("source") is None:
        return f"r = oh.recover({', '.join(['X', 'y', *arguments])})"
    opened = [
        repr(str(options["source"])),
        f"target={options.get('target')!r}",
        *_keywords({name: options[name] for name in _READING if name in options}),
    ]
    columns = [f"{name}=table.{name}" for name in ("offset", "trials", "groups") if options.get(name)]
    call = ", ".join(["table", *arguments, *columns])
    return f"table = oh.data.open({', '.join(opened)})\nr = oh.recover({call})"


def _command(options: dict[str, Any]) -> str | None:
    """The command line that was typed, or one that does the same from a file."""
    if "command" in options:
        return str(options["command"])
    source, target = options.get("source"), options.get("target")
    if source is None or target is None:
        return None
    words = ["onehidden", "recover", str(source), *_typed("target", target)]
    for name in _READING:
        words += _typed(name, options[name]) if name in options else []
    for name, value in _chosen(options).items():
        flag = name.replace("_", "-")
        words += (
            [f"--{flag}" if value else f"--no-{flag}"]
            if isinstance(value, bool)
            else [f"--{flag}", str(value)]
        )
    return shlex.join(words)


def _typed(name: str, value: Any) -> list[str]:
    """An option of reading as it is typed; the command leaves constant columns out by itself."""
    flag = f"--{name.replace('_', '-')}"
    if name == "constant":
        return []
    if name == "columns" or (name == "target" and isinstance(value, list)):
        quoted = ('"' + n.replace('"', '""') + '"' if "," in n or '"' in n else n for n in map(str, value))
        return [flag, ",".join(quoted)]
    if isinstance(value, (dict, bool)):
        return [flag]
    return [word for one in (value if isinstance(value, list) else [value]) for word in (flag, str(one))]


def cite(subject: Subject) -> Section:
    """The software with its version, and the papers behind its methods."""
    from onehidden import __version__

    version = dict(subject.get("versions", {})).get("onehidden", __version__)
    entry = f"onehidden, version {version}: recovery of the hidden layer behind data. Software.\n"
    lead = Paragraph("Name the software with its version, and the papers that its methods come from.")
    return Section("cite", "How to cite", (lead, Code(entry + _PAPERS, "text")), detail=True)
