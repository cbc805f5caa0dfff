"""One page for all reproductions: reported beside ours, controls, verdicts, pictures, three landscapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.report import blocks
from onehidden.report.blocks import Block, Figure, Grid, Report, Section, Verdict
from onehidden.report.headline import Mood
from onehidden.report.wording import seconds, short
from onehidden.run import stream
from onehidden_papers.lab.landscape import Surface, angle_surface
from onehidden_papers.objectives import ScoreDesigned, SquaredLoss
from onehidden_papers.objectives.scoring import ProductScore
from onehidden_papers.reproductions.experiment import unit_logistic, without_degree_two
from onehidden_papers.reproductions.record import FAILED, VERDICTS, Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PAPERS = {
    "[GMOV]": "Gao, Makkuva, Oh, Viswanath: Learning one-hidden-layer neural networks under general input "
    "distributions (2019)",
    "[GLM]": "Ge, Lee, Ma: Learning one-hidden-layer neural networks with landscape design (2018)",
    "[ZSJBD]": "Zhong, Song, Jain, Bartlett, Dhillon: Recovery guarantees for one-hidden-layer neural "
    "networks (2017)",
}


@dataclass(frozen=True)
class Entry:
    """One reproduction of the page, with how long it took; ``result`` is None where it broke."""

    name: str
    result: Reproduction | None
    seconds: float
    fault: str = ""


def write_gallery(entries: Sequence[Entry], path: Path, settings: str, surfaces: dict[str, Surface]) -> None:
    """Write the page: overview, one section a reproduction, the landscapes side by side.

    ``settings`` is the sentence that says how it was made.
    """
    sections = _overview(entries, settings), *(_section(entry) for entry in entries), _landscapes(surfaces)
    report = Report("Reproductions: reported, ours, controls", sections)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(blocks.to_html(report), encoding="utf-8")


def _overview(entries: Sequence[Entry], settings: str) -> Section:
    counts = Counter(v for e in entries for v in (e.result.verdicts.values() if e.result else ["broke off"]))
    order = [*VERDICTS, "broke off"]
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if counts[verdict])
    good = not counts["broke off"]
    rows = tuple(
        (
            e.name,
            e.result.item.paper if e.result else "–",
            e.result.table.title if e.result else e.fault,
            e.result.summary() if e.result else "broke off",
            seconds(e.seconds),
        )
        for e in entries
    )
    grid = Grid(("name", "paper", "what", "verdict", "time"), rows, wordy=frozenset({1, 2, 3}))
    legend = (
        "A claim that holds only for a reason other than the paper's is explained by a control, and does not "
        "count as reproduced. " + "; ".join(f"{mark} {title}" for mark, title in PAPERS.items()) + "."
    )
    head = f"{sum(counts.values())} claims of {len(entries)} figures, tables and theorems: {said}."
    return Section("summary", "Summary", (_verdict("All claims", good, head), settings, grid, legend))


def _verdict(question: str, good: bool, headline: str) -> Verdict:
    return Verdict(question, headline, Mood.GOOD if good else Mood.DOUBT)


def _section(entry: Entry) -> Section:
    result = entry.result
    if result is None:
        return Section(entry.name, entry.name, (_verdict(entry.name, False, "Broke off."), entry.fault))
    table, item = result.table, result.item
    rows = tuple(tuple(_cell(value) for value in row) for row in table.rows)
    wordy = frozenset(
        j
        for j in range(1, len(table.columns))
        if any(isinstance(row[j], str) and len(row[j]) > 12 for row in table.rows)
    )
    blocks: list[Block] = []
    for claim, verdict in zip(item.claims, result.verdicts.values(), strict=True):
        blocks.append(_verdict("Claim", verdict != FAILED, f"{verdict.capitalize()}: {claim.where}."))
        blocks += [claim.says, f"Rule: {claim.rule}"]
    blocks.append(Grid(tuple(str(c) for c in table.columns), rows, wordy=wordy))
    blocks += table.notes
    if item.draw is not None:
        draw = partial(_draw_light, draw=result.draw)
        blocks.append(Figure(_plain_id(entry.name), f"{table.title}.", draw, (7.0, 4.5)))
    return Section(_plain_id(entry.name), f"{entry.name}: {table.title}", tuple(blocks))


def _draw_light(figure: Canvas, draw: Callable[[Canvas], None]) -> None:
    """Draw with areas and clouds as small images: as vectors they are most of the page."""
    draw(figure)
    for axes in figure.axes:
        for part in (*axes.collections, *(line for line in axes.lines if np.size(line.get_xdata()) > 2000)):
            part.set_rasterized(True)


def _plain_id(name: str) -> str:
    """Return a name that can stand in ids and links: a dot would be read as a class."""
    return name.replace(".", "-")


def _cell(value: object) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return short(value) if isinstance(value, (float, np.floating)) else str(value)


def landscapes(seed: int = 0, n: int = 10_000, size: int = 41) -> dict[str, Surface]:
    """ℓ2, G and L over the two row angles, d = k = 2, logistic inputs of unit variance, true rows rotated."""
    angle = 0.5
    truth = OneHiddenNet([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]], np.ones(2))
    X = stream(seed, "paper", "landscapes", "inputs").logistic(scale=np.sqrt(3) / np.pi, size=(n, 2))
    y = truth.predict(X)
    lean = without_degree_two(X, y)  # the degree-2 part moves no moment of order 4, only its noise
    objectives = {
        "ℓ2": (SquaredLoss(), (X, y)),
        "G (takes x for Gaussian)": (ScoreDesigned(0.1, 1.0, None), (X, lean)),
        "L (score of the logistic law)": (ScoreDesigned(0.1, 1.0, ProductScore(unit_logistic)), (X, lean)),
    }
    return {name: angle_surface(objective, data, size) for name, (objective, data) in objectives.items()}


def _landscapes(surfaces: dict[str, Surface]) -> Section:
    text = (
        "Values over the angles of the two rows, both of unit length, for d = k = 2: logistic inputs of unit "
        "variance, true rows at angles 0.5 and 0.5 + π/2 (and their exchange). Circles are minima on the "
        "grid, crosses saddles. L has its minima at the truth; G, which takes the inputs for Gaussian, need "
        "not; ℓ2 also sees the orientation of a unit, which G and L do not."
    )
    rows = []
    for name, surface in surfaces.items():
        where = "; ".join(f"({a:.2f}, {b:.2f})" for a, b in surface.minima[:6]) or "none"
        rows.append((name, where, str(len(surface.saddles))))
    figure = Figure(
        "landscapes",
        "The squared loss ℓ2, G and L side by side; the angles that the truth has are 0.50 and 2.07.",
        partial(_draw_light, draw=partial(_draw, surfaces=surfaces)),
        (10.5, 3.4),
    )
    grid = Grid(("objective", "minima (angle 1, angle 2)", "saddles"), tuple(rows), wordy=frozenset({1}))
    return Section("landscapes", "Three landscapes", (text, figure, grid))


def _draw(figure: Canvas, surfaces: dict[str, Surface]) -> None:
    for axes, (name, surface) in zip(figure.subplots(1, len(surfaces)), surfaces.items(), strict=True):
        surface.draw(axes)
        axes.set_title(name)
