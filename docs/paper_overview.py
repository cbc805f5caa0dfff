"""The overview of docs/papers: every claim with its verdict, what was known before, what lies beyond."""

from __future__ import annotations

import re

import paper_pictures

from onehidden_papers.reproductions import record
from onehidden_papers.reproductions.record import VERDICTS, Item

BELOW = dict(zip("0123456789m", "₀₁₂₃₄₅₆₇₈₉ₘ", strict=True))
INTRODUCTION = """
A verdict follows from the rule and the stored rows alone; a test holds it to that. *Explained by a control*
means that the numbers come out and the reason is another than the paper's. Rows were measured at the
papers' own sizes; every page says when, where and with which seed. The settings that a paper leaves open
are named with the rows.

**What was known when a rule was written.** The rules were put down before any run at full size, and those
runs have another seed; no rule was changed after them. They were not written blind: runs at small sizes
(seed 0) had been seen, of version 0.1 for every figure, and bounds such as honest error ≤ 0.05 or 0.1,
rates and numbers of steps were set with them in view. Two things were done after a first run at full size:
in [GLM] Fig. 4 the rate of raw labels was lowered, since rows went to infinity, and in [GMOV] Fig. 3 rows
with a larger penalty were added, since those at the printed rate diverged; no rule reads them.
"""
SIZES = """
**Two sizes, two verdicts.** `onehidden reproduce` runs sizes for a laptop and holds each verdict against
the one stored for that size, with `--full` against the one of the papers' own. They differ for {count}
claims: {named}. Fewer trials, steps or samples leave a wider standard error or a run that is not at its
end; what counts is the full size.

```sh
onehidden reproduce --list        # this table
onehidden reproduce glm-fig4      # one, at a size for a laptop
onehidden reproduce all --jobs 2  # all; exit code 0: verdicts as stored
```
"""
BEYOND = """
## Beyond the papers: how many samples?

![Samples each method needs against the number of inputs](samples-needed.svg)

The same problem for every method: ReLU units with orthonormal rows, outputs 1, no noise. A point is the
smallest n of a grid (factor √2) at which three of five samples give every unit to honest error 0.1; an open
mark with an arrow says that the largest n tried was not enough. The dashed line has one sample for each
unknown: without noise nothing can do with fewer. With normal inputs L with the known score is G; a dash in
the table was not run. The rows, with commit, machine and seconds, are in
`benchmarks/results/samples_needed.md`; the command is `python -m benchmarks samples_needed`.

With three units plain ℓ2 from random starts is nearly as good as anything; its trouble begins with many
units. With k = 3 G needs 11 to 45 samples an unknown, L with the right score of the logistic law 6 to 11,
and with an estimated one something between; with k = d more, since the lowest value on the sample need not
lie at the truth. `recover` stays within a factor 1.4 to 3 of the limit.

{needed}

How far L comes when the score has to be estimated from the same samples, law by law, is on the page of
[estimated scores](scores.md).
"""
CITE = """
## How to cite

Cite the project (`CITATION.cff`) with the version and the name of the claim, for example: *onehidden 0.2,
claim gmov-fig3-l, explained by a control*.
"""
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


def overview(groups: dict[str, list[Item]], pages: list[str]) -> str:
    """The whole page, from the items of each paper and the names of their pages."""
    items = [item for group in groups.values() for item in group]
    verdicts = [v for item in items for v in kept_rows(item).verdicts.values()]
    said = ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)
    differing = [f"`{name}`" for item in items for name in _other_at_default(item)]
    lines = [
        "# The papers, claim by claim",
        "",
        f"{len(verdicts)} claims of {len(items)} figures, tables and theorems, each with a rule that was "
        f"written before its run at full size: {said}.",
        INTRODUCTION,
        SIZES.format(count=len(differing), named=", ".join(differing) or "none").lstrip(),
    ]
    table = ["| claim | where | verdict at full size | default size | run |", "|---|---|---|---|---|"]
    for key, group in groups.items():
        for item in group:
            kept, small = kept_rows(item), record.load(item, "default")
            made = kept.made
            for claim in item.claims:
                found, other = kept.verdicts[claim.name], small.verdicts[claim.name] if small else "–"
                table.append(
                    f"| [{claim.name}]({key}.md#{anchor(item)}) | {cell(claim.where)} | "
                    f"**{found}** | {'same' if other == found else other} | "
                    f"{made.machine.split(', ')[0].removeprefix('NVIDIA ')}, {made.seconds:.0f} s |"
                )
    lines += [*boxed(table), BEYOND.format(needed="\n".join(boxed(_needed())))]
    table = ["| place | printed | right | proved by |", "|---|---|---|---|"]
    table += [f"| {' | '.join(cell(part) for part in line)} |" for line in CORRECTIONS]
    lines += ["## Corrections", "", *boxed(table)]
    return "\n".join([*lines, CITE, "```{toctree}", ":hidden:", "", *pages, "scores", "```", ""])


def _other_at_default(item: Item) -> list[str]:
    """Claims whose verdict at the default size is another than at the full one."""
    small = record.load(item, "default")
    return [name for name, v in kept_rows(item).verdicts.items() if small and small.verdicts[name] != v]


def _needed() -> list[str]:
    """The picture as a table: one line a setting and method, one column a number of inputs."""
    found = paper_pictures.rows("samples_needed")
    dimensions = sorted({int(row["d"]) for row in found})
    cells: dict[tuple[str, str], dict[int, str]] = {}
    for row in found:
        setting = f"{row['inputs']}, k = {'d' if row['k'] == row['d'] else row['k']}"
        told = row["samples needed"].replace("more than", ">")
        cells.setdefault((setting, row["method"]), {})[int(row["d"])] = told
    lines = [
        f"| inputs, k | method | {' | '.join(f'd = {d}' for d in dimensions)} |",
        "|" + "---|" * (2 + len(dimensions)),
    ]
    for (setting, method), told in cells.items():
        lines.append(f"| {setting} | {method} | {' | '.join(told.get(d, '–') for d in dimensions)} |")
    return lines


def kept_rows(item: Item) -> record.Reproduction:
    """The rows of full size."""
    kept = record.load(item, "full")
    if kept is None or kept.made is None:
        raise SystemExit(f"{item.name} has no rows of full size: run it with --full --store first")
    return kept


def anchor(item: Item) -> str:
    """Where the item stands on the page of its paper."""
    return item.name.replace(".", "-")


def boxed(lines: list[str]) -> list[str]:
    """A Markdown table in small type: most of these have many columns."""
    return ["```{table}", ":class: compact", "", *lines, "```"]


def lowered(text: object) -> str:
    """One digit or m after an underscore set below the line."""
    return re.sub(r"(?<=[^\W\d_])_([0-9](?!\d)|m(?!\w))", lambda found: BELOW[found[1]], str(text))


def plain(text: object) -> str:
    """Text that Markdown must not read: stars of B*, bars of norms."""
    return lowered(text).replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("$", "\\$")


def cell(value: object, digits: int = 4) -> str:
    """A value as it stands in a Markdown table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.{digits}g}" if isinstance(value, float) else str(value)
    if text.startswith("`") or text == "**0**":
        return text
    return plain(text).replace("|", "\\|")
