"""A recovery as a page for people: two answers first, then the network, its checks and its pictures.

The chapters in words below the first screen are here: checks, alternatives, numbers, how to repeat.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from onehidden.atomic import write_atomically
from onehidden.options import Options
from onehidden.report import pictures
from onehidden.report.blocks import Block, Checks, Code, Grid, Section, to_html
from onehidden.report.screen import screen, title
from onehidden.report.subject import Subject, gather
from onehidden.report.text import inference, numbers
from onehidden.report.wording import by_urgency, more

if TYPE_CHECKING:
    from onehidden.recovery import Recovery

__all__ = ["render_html"]


def render_html(recovery: Recovery, path: str | Path, X: object = None, y: object = None) -> Path:
    """Write one self-contained page, with its figures inside; see ``Recovery.report``."""
    subject, path = gather(recovery, X, y), Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of the file to write")
    made = (pictures.of_inputs, pictures.of_fit, checks, alternatives, parameters, reproduce)
    first = Section("summary", "Summary", screen(subject))
    others = (section for chapter in made if (section := chapter(subject)) is not None)
    write_atomically(path, to_html(title(subject), (first, *others)).encode())
    return path


def checks(subject: Subject) -> Section | None:
    """Every check with its value, its bound and its advice."""
    made = by_urgency(subject.recovery.checks)
    if not made:
        return None
    text = (
        "Each line has the value measured, its bound, and what to do. A check that could not be evaluated "
        "has not passed; one noted decides nothing."
    )
    return Section("checks", "Checks", (text, Checks(tuple(made))), detail=True)


def alternatives(subject: Subject) -> Section | None:
    """Other answers that the data do not rule out, and how far behind they are."""
    found = [one for one in subject.recovery.alternatives if one.network is not None]
    if not found:
        return None
    text = (
        "The data do not rule these out: a statement about a unit is safe only where they agree. Each has "
        "the likelihood of a noise model of its own. Their networks are in Recovery.alternatives."
    )
    rows = tuple((one.label, one.distance) for one in found)
    grid = Grid(("answer", "how likely"), rows, wordy=frozenset({1}))
    return Section("alternatives", "Answers that are not ruled out", (text, grid), detail=True)


def parameters(subject: Subject, most_rows: int = 400) -> Section:
    """Every number with its standard error; of large networks the first ones."""
    found = numbers(subject)
    rows = tuple(
        (row.parameter if row.unit is None else f"unit {row.unit}, {row.parameter}", row.shown)
        for row in found[:most_rows]
    )
    left = f"{more(len(found) - len(rows), 'number')} in units.csv of the run and in Recovery.to_frame()."
    grid = Grid(("parameter", "estimate ± standard error"), rows, left if len(found) > len(rows) else "")
    return Section("parameters", "Parameters", (inference(subject), grid), detail=True)


def reproduce(subject: Subject) -> Section:
    """The command or the call that gives this answer, the seed and the versions."""
    options, queries = subject.recovery.options, subject.recovery.queries
    chosen = {
        one.name: options[one.name]
        for one in fields(Options)
        if one.metadata["flag"] and options.get(one.name, one.default) != one.default
    }
    call = f"oh.recover_oracle(fn, {subject.net.n_inputs}" if queries else "oh.recover(X, y"
    call = ", ".join([call, *(f"{name}={value!r}" for name, value in chosen.items())])
    blocks: list[Block] = [Code(str(options.get("command") or f"r = {call})"))]
    if queries:
        blocks.append(f"The black box was queried at {queries} rows.")
    if (seed := options.get("seed")) is not None:
        blocks.append(f"Seed {seed}: the same seed, data and versions give the same answer.")
    versions = ", ".join(f"{name} {version}" for name, version in subject.recovery.versions.items())
    blocks += [f"It took {subject.recovery.seconds:.1f} s.", f"Versions: {versions}."]
    return Section("reproduce", "How to reproduce", tuple(blocks), detail=True)
