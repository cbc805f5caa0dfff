"""Write docs/papers: one page a paper and an overview, from the stored rows alone.

``python docs/paper_pages.py`` after new rows were stored; the pages and pictures are kept in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure

from onehidden import papers
from onehidden.papers import stored
from onehidden.papers.atlas import atlas
from onehidden.papers.record import VERDICTS, Item

OUT = Path(__file__).parent / "papers"
PAPERS = {
    "gmov": "Gao, Makkuva, Oh, Viswanath: *Learning One-hidden-layer Neural Networks under General Input "
    "Distributions* (2019), [GMOV]",
    "glm": "Ge, Lee, Ma: *Learning One-hidden-layer Neural Networks with Landscape Design* (2018), [GLM]",
    "zsjbd": "Zhong, Song, Jain, Bartlett, Dhillon: *Recovery Guarantees for One-hidden-layer Neural "
    "Networks* (2017), [ZSJBD]",
    "zhang": "Zhang, Yu, Wang, Gu: *Learning One-hidden-layer ReLU Networks via Gradient Descent* (2019)",
}
# What is wrong in print, what is right, and the test that proves it.
CORRECTIONS = (
    ("[GMOV] (2), Lemma B.2", "S_m = ∇^m f/f", "S_m = (−1)^m ∇^m f/f", "`reproduce gmov-stein`"),
    ("[GMOV] (19)", "no sign of κ_4; (‖a‖ − 1)²", "factor sign(κ_4); (‖a‖² − 1)²", "`reproduce gmov-fig3`"),
    ("[GMOV] Section 4.1", "S_4 = sgn(x)^⊗4 is the score of the Laplace law",
     "the law has no fourth score: its density has a kink", "`reproduce gmov-fig3`"),
    ("[GMOV] Section 4.2", "½N(1, I) + ½N(−1, I) serves as an example of Assumption 2",
     "no orthogonal A* has κ_i of one sign: Σ(⟨a_i, 1⟩² − 1) = 0", "`reproduce gmov-theorem-2`"),
    ("[GMOV] Section 2.5", "p = 2 is consistent for S_4 of a mixture",
     "an error of median 1.13 is left as n → ∞", "`reproduce gmov-fig2`"),
    ("[GMOV] Section 2.4", "K(u) ∝ exp{‖u‖²/2}", "exp{−‖u‖²/2}", "`tests/scores/test_local_likelihood.py`"),
    ("[GLM] (2.10), A.5, A.6", "2√6|σ_4| and |σ_4|μ/√6", "√6|σ_4| and |σ_4|μ/(2√6)",
     "`reproduce glm-theorem-2.6`"),
    ("[GLM] (2.9)", "+2(vᵀx)(wᵀx)vᵀw", "−2(vᵀx)(wᵀx)vᵀw, as in (A.6)", "`reproduce glm-theorem-2.6`"),
    ("[GLM] (4.1), [GMOV] (22)", "e(Q) with min",
     "with max: with min a matrix whose rows are all e_1 scores 0", "`reproduce glm-metric`"),
    ("[GLM] Lemma 2.5", "|a − Pa*|_∞ ≤ δ a*_max", "≤ δ|a*|, up to √k larger", "`reproduce glm-lemma-2.5`"),
    ("[ZSJBD] slides", "ρ(σ) = .27σ for squared ReLU", ".27σ²", "`reproduce zsjbd-rho`"),
)  # fmt: skip


def main() -> None:
    OUT.mkdir(exist_ok=True)
    groups = {key: [papers.get(n) for n in papers.names() if n.startswith(f"{key}-")] for key in PAPERS}
    for key, items in groups.items():
        (OUT / f"{key}.md").write_text(_page(key, items), encoding="utf-8")
    (OUT / "index.md").write_text(_overview(groups), encoding="utf-8")
    (OUT / "atlas.md").write_text(_atlas(), encoding="utf-8")
    (OUT / "scores.md").write_text(_scores(), encoding="utf-8")
    print(f"{sum(f.stat().st_size for f in OUT.glob('*.png')) / 1e3:.0f} kB of pictures")


def _overview(groups: dict[str, list[Item]]) -> str:
    lines = ["# The papers, claim by claim", ""]
    verdicts = [v for items in groups.values() for item in items for v in _kept(item).verdicts.values()]
    said = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
    lines += [
        f"{len(verdicts)} claims of {sum(map(len, groups.values()))} figures, tables and theorems, each with "
        f"a rule that was written before its run at full size: {said}.",
        "",
        "A verdict follows from the rule and the stored rows alone; a test holds it to that. *Explained by a "
        "control* means that the numbers come out and the reason is another than the paper's. Rows were "
        "measured at the papers' own sizes; every page says when, where and with which seed. The settings "
        "that a paper leaves open are named with the rows.",
        "",
        "```sh",
        "onehidden reproduce --list        # this table in the terminal",
        "onehidden reproduce glm-fig4      # one of them, at a size for a laptop",
        "onehidden reproduce all --jobs 2  # all of them; exit code 0 when every verdict is the stored one",
        "```",
        "",
        "| claim | where | verdict at full size | default size | run |",
        "|---|---|---|---|---|",
    ]
    for key, items in groups.items():
        for item in items:
            kept, small = _kept(item), stored.load(item, "default")
            for claim in item.claims:
                other = small.verdicts[claim.name] if small else "–"
                lines.append(
                    f"| [{claim.name}]({key}.md#{_anchor(item)}) | {_cell(claim.where)} | "
                    f"**{kept.verdicts[claim.name]}** | {other} | {kept.made.date}, {kept.made.machine}, "
                    f"seed {kept.made.seed}, {kept.made.seconds:.0f} s |"
                )
    lines += ["", "## Corrections", "", "| place | printed | right | proved by |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(_cell(part) for part in line)} |" for line in CORRECTIONS]
    lines += [
        "",
        "## How to cite",
        "",
        "Cite the project (`CITATION.cff`) with the version and the name of the claim, for example: "
        "*onehidden 0.2, claim gmov-fig3-l, explained by a control*.",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *PAPERS,
        "atlas",
        "scores",
        "```",
        "",
    ]
    return "\n".join(lines)


def _page(key: str, items: list[Item]) -> str:
    lines = [f"# [{key.upper()}]" if key != "zhang" else "# Zhang et al. 2019", "", f"{PAPERS[key]}.", ""]
    for item in items:
        kept = _kept(item)
        lines += [f"({_anchor(item)})=", f"## {item.paper}: {item.about}", ""]
        for claim in item.claims:
            lines += [
                f"**{kept.verdicts[claim.name].capitalize()}.** {_plain(claim.where)}: {_plain(claim.says)}",
                "",
                f"*Rule.* {_plain(claim.rule)}",
                "",
            ]
        if item.draw is not None:
            lines += [f"![{_plain(kept.table.title)}]({_picture(item, kept)})", ""]
        lines += [f"{_plain(kept.table.title)}. {kept.made.sentence()}.", ""]
        lines += _rows(kept.table)
        lines += ["", *(f"- {_plain(note)}" for note in kept.table.notes), ""]
        module = item.measure.func.__module__ if hasattr(item.measure, "func") else item.measure.__module__
        code = f"{{impl}}`{module.removeprefix('onehidden.')}`"
        lines += [f"`onehidden reproduce {item.name}`, in full `--full`; code: {code}.", ""]
    return "\n".join(lines)


def _rows(table: stored.Table, most: int = 30) -> list[str]:
    """The table; where it is long, every so many-th row, the whole in the stored file."""
    rows = table.rows
    lines = [f"| {' | '.join(_cell(c) for c in table.columns)} |", "|" + "---|" * len(table.columns)]
    step = -(-len(rows) // most)
    lines += [f"| {' | '.join(_cell(v) for v in row)} |" for row in rows[::step]]
    if step > 1:
        lines += ["", f"(Every {step}th of {len(rows)} rows; all of them under `src/onehidden/papers/rows`.)"]
    return lines


def _picture(item: Item, kept: stored.Stored) -> str:
    assert item.draw is not None
    name = f"{item.name}.png"
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    item.draw(figure, kept.table.records(), kept.table.curves)
    figure.savefig(OUT / name, dpi=100, metadata={"Software": None})
    return name


def _atlas() -> str:
    table = atlas()
    lines = [
        "# Which laws leave κ_m = 0",
        "",
        "E[y S_m(x)] = Σ w_i κ_m a_i^⊗m with κ_m = E[g^(m)(⟨a, x⟩)]: where κ_m = 0, no method of order m "
        "sees the unit, however many samples there are. κ_m depends on the activation and on the law of t = "
        "⟨a, x⟩ alone. Below: unit variance or the components named, no bias, by quadrature; **0** is zero "
        "to 1e-9. A dash: the law has no score of that order, so the moment is not defined.",
        "",
        *_rows(table, most=10_000),
        "",
        *(f"- {_plain(note)}" for note in table.notes),
        "",
        "Made by `python docs/paper_pages.py`; code: {impl}`papers.atlas`.",
        "",
    ]
    return "\n".join(lines)


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
        lines += [f"## {what}", "", f"`python -m benchmarks {name}`: {made}.", *rest, ""]
    return "\n".join(lines)


def _kept(item: Item) -> stored.Stored:
    kept = stored.load(item, "full")
    if kept is None:
        raise SystemExit(f"{item.name} has no rows of full size: run it with --full --store first")
    return kept


def _anchor(item: Item) -> str:
    return item.name.replace(".", "-")


def _plain(text: object) -> str:
    """Text that Markdown must not read: stars of B*, bars of norms."""
    return str(text).replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("$", "\\$")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    if text.startswith("`") or text == "**0**":
        return text
    return _plain(text).replace("|", "\\|")


if __name__ == "__main__":
    main()
