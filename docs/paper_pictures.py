"""Draws two pictures of docs/papers from the stored benchmarks; ``paper_pages`` calls it.

Panels lie below each other: side by side their text would be too small to read on a phone.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.figure
from matplotlib.axes import Axes

from onehidden.report.figures import MUTED, house

CYCLE = ("#2c6aa8", "#c8641b", "#3a7d4f", "#7a56a3", "#2a8a8a", "#b0362d", "#8a6d1d", "#c2578f")
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
MARKERS: dict[str, str] = dict(
    zip(("ℓ2, random starts", "f'", "G", "L, known score", "L, LLSFE", "tensor start", "recover"), "v^sDPXo",
        strict=True)
)  # fmt: skip
FOUND = 0.1  # honest error up to which a unit counts as found
FLOOR = 1e-4  # where errors of rounding are drawn
LIMIT = "as many samples as unknowns, k d"


def rows(name: str) -> list[dict[str, str]]:
    """The table of a stored benchmark, a dictionary a row."""
    lines = (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines()
    names, _, *rest = ([c.strip() for c in line.strip("|").split("|")] for line in lines if line[:1] == "|")
    return [dict(zip(names, row, strict=True)) for row in rest]


def samples_needed(out: Path) -> None:
    """n against d, one panel a setting and one line a method; an arrow where the largest n was not enough."""
    stored = rows("samples_needed")
    panels = list(dict.fromkeys((row["inputs"], "d" if row["k"] == row["d"] else row["k"]) for row in stored))
    with house():
        figure = matplotlib.figure.Figure(figsize=(5.0, 2.7 * len(panels) + 1.2), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for place, (inputs, units) in zip(axes, panels, strict=True):
            mine = [
                r for r in stored if r["inputs"] == inputs and units in (r["k"], "d" * (r["k"] == r["d"]))
            ]
            _panel(place, mine)
            place.set(title=f"{inputs} inputs, k = {units}", ylabel="samples needed")
        dimensions = sorted({int(row["d"]) for row in stored})
        axes[-1].set_xticks(dimensions, [str(d) for d in dimensions])
        axes[-1].set_xlabel("inputs d")
        handles = {line.get_label(): line for place in axes for line in place.get_lines()}
        named = [*MARKERS, LIMIT]
        figure.legend([handles[n] for n in named], named, loc="outside lower center", ncols=2)
        figure.savefig(out, facecolor="white", metadata={"Date": None})


def _panel(axes: Axes, mine: list[dict[str, str]]) -> None:
    dimensions = sorted({int(row["d"]) for row in mine})
    for index, (method, marker) in enumerate(MARKERS.items()):
        found = {int(r["d"]): r["samples needed"] for r in mine if r["method"] == method}
        reached = [d for d in dimensions if found.get(d, "").isdigit()]
        style = {"color": CYCLE[index], "marker": marker, "markersize": 5}
        axes.plot(reached, [int(found[d]) for d in reached], label=method, **style)
        for d in dimensions:
            if found.get(d, "").startswith("more than"):
                n = int(found[d].split()[-1])
                shifted = d * 1.06 ** (index - 3)  # arrows at one place would hide each other
                axes.plot([shifted], [n], linestyle="none", fillstyle="none", **style)
                axes.annotate(
                    "", (shifted, 1.7 * n), (shifted, 1.08 * n),
                    arrowprops={"arrowstyle": "->", "color": CYCLE[index], "linewidth": 1.1},
                )  # fmt: skip
    limit = {int(row["d"]): int(row["unknowns"]) for row in mine}
    axes.plot(dimensions, [limit[d] for d in dimensions], "--", color=MUTED, label=LIMIT)
    axes.set(xscale="log", yscale="log")
    axes.set_ylim(top=4 * max(int(row["tried up to"]) for row in mine))  # room for the arrows
    axes.minorticks_off()


def estimated_scores(out: Path) -> None:
    """Errors of G, L with known and estimated scores and recover, one line of points a (law, d, n)."""
    stored = rows("estimated")
    stored.sort(key=lambda row: (row["law"], int(row["d"]), int(row["n"])), reverse=True)
    columns = {"G": "G", "L, exact score": "L, known score", "L, LLSFE": "L, LLSFE"}
    columns["recover, worst row"] = "recover"
    with house():
        figure = matplotlib.figure.Figure(figsize=(5.4, 4.4), layout="constrained")
        axes = figure.subplots()
        places = range(len(stored))
        for column, method in columns.items():
            colour = CYCLE[list(MARKERS).index(method)]
            values = [max(float(row[column]), FLOOR) for row in stored]
            axes.plot(values, places, MARKERS[method], color=colour, label=method, markersize=5.5)
        axes.axvline(FOUND, color=MUTED, linestyle="--")
        axes.text(FOUND * 1.05, len(stored) - 0.4, "found ←", color=MUTED, ha="right", fontsize=8)
        axes.set_yticks(list(places), [f"{row['law']}, d = {row['d']}, n = {row['n']}" for row in stored])
        axes.set(xscale="log", xlabel="error; below 0.0001 drawn there")
        axes.grid(axis="y")
        figure.legend(loc="outside upper center", ncols=4)
        figure.savefig(out, facecolor="white", metadata={"Date": None})
