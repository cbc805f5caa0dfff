"""Write docs/papers: one page a paper and an overview, from the stored rows alone.

``python docs/paper_pages.py`` after new rows were stored; the pages and pictures are kept in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import matplotlib

matplotlib.use("Agg")
import paper_pictures
from matplotlib.figure import Figure
from paper_overview import anchor, boxed, cell, kept_rows, lowered, overview, plain

from onehidden_papers import reproductions as papers
from onehidden_papers.reproductions import record
from onehidden_papers.reproductions.record import Item

OUT = Path(__file__).parent / "papers"
PAPERS = {
    "gmov": "Gao, Makkuva, Oh, Viswanath: *Learning One-hidden-layer Neural Networks under General Input "
    "Distributions* (2019), [GMOV]",
    "glm": "Ge, Lee, Ma: *Learning One-hidden-layer Neural Networks with Landscape Design* (2018), [GLM]",
    "zsjbd": "Zhong, Song, Jain, Bartlett, Dhillon: *Recovery Guarantees for One-hidden-layer Neural "
    "Networks* (2017), [ZSJBD]",
}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    groups = {key: [papers.get(n) for n in papers.names() if n.startswith(f"{key}-")] for key in PAPERS}
    for key, items in groups.items():
        (OUT / f"{key}.md").write_text(_page(key, items), encoding="utf-8")
    (OUT / "index.md").write_text(overview(groups, list(PAPERS)), encoding="utf-8")
    paper_pictures.samples_needed(OUT / "samples-needed.svg")
    paper_pictures.estimated_scores(OUT / "estimated-scores.svg")
    (OUT / "scores.md").write_text(_scores(), encoding="utf-8")
    pictures = [f for f in OUT.iterdir() if f.suffix in (".png", ".svg")]
    print(f"{sum(f.stat().st_size for f in pictures) / 1e3:.0f} kB of pictures")


def _page(key: str, items: list[Item]) -> str:
    lines = [f"# [{key.upper()}]", "", f"{PAPERS[key]}.", ""]
    for item in items:
        kept = kept_rows(item)
        lines += [f"({anchor(item)})=", f"## {item.paper}: {item.about.rstrip('.')}", ""]
        for claim in item.claims:
            lines += [
                f"**{kept.verdicts[claim.name].capitalize()}.** {plain(claim.where)}: {plain(claim.says)}",
                "",
                f"*Rule.* {plain(claim.rule)}",
                "",
            ]
        if item.draw is not None:
            lines += [f"![{plain(kept.table.title)}]({_picture(item, kept)})", ""]
        lines += [f"{plain(kept.table.title)}. {kept.made.sentence()}.", ""]
        lines += _rows(kept.table)
        lines += ["", *(f"- {plain(note)}" for note in kept.table.notes), ""]
        code = f"{{impl}}`reproductions.{record.stated()[item.name]['code'].partition(':')[0]}`"
        lines += [f"`onehidden reproduce {item.name}`, in full `--full`; code: {code}.", ""]
    return "\n".join(lines)


def _rows(table: record.Table) -> list[str]:
    digits = 3 if len(table.columns) > 9 else 4  # what fits beside each other
    lines = [f"| {' | '.join(cell(c) for c in table.columns)} |", "|" + "---|" * len(table.columns)]
    return boxed([*lines, *(f"| {' | '.join(cell(v, digits) for v in row)} |" for row in table.rows)])


def _picture(item: Item, kept: record.Reproduction) -> str:
    name = f"{item.name}.png"
    figure = Figure(figsize=(5.8, 4.0), layout="constrained")  # letters stay legible at the width of a phone
    kept.draw(figure)
    figure.savefig(OUT / name, dpi=122, metadata={"Software": None})
    return name


def _scores() -> str:
    """The stored tables on LLSFE with an automatic bandwidth and on recovery through estimated scores."""
    lines = ["# Estimated scores", ""]
    results = Path(__file__).parents[1] / "benchmarks" / "results"
    for name, what in (
        ("local_likelihood", "LLSFE with an automatic bandwidth in the cells of [GMOV] Fig. 1 and 2"),
        ("estimated", "Recovery through estimated scores, beside known scores and `recover`"),
    ):
        head, *rest = (results / f"{name}.md").read_text(encoding="utf-8").splitlines()
        made = head.partition("(")[2].rstrip(")")
        lines += [f"## {what}", "", f"`python -m benchmarks {name}`: {made}.", ""]
        if name == "estimated":
            lines += ["![Errors with known and with estimated scores](estimated-scores.svg)", ""]
        table = [lowered(line) for line in rest if line.startswith("|")]
        lines += [*boxed(table), "", *(f"- {lowered(line)}" for line in rest if line and line[0] != "|"), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
