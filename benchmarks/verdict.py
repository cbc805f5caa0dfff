"""The verdict against the truth: false certificates, and right answers that are not certified.

``python -m benchmarks verdict [--quick] [--runs N] [--jobs J] [--only PATTERN]``: about 1900 recoveries with
60 s each on a core; networks asked rightly and wrongly, ties, weak units, functions that are no network and
pure noise, under seven kinds of noise. The rule stands in ``_verdict_score``, the catalogue in
``_verdict_cases``. Rows are kept as they come, and what is there is not repeated.
``python -m benchmarks.verdict FILE…`` makes the tables of stored rows alone, finished or not;
``python -m benchmarks.verdict case WORDS…`` runs one case again and prints its row.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

import onehidden as oh
from benchmarks import _lanes, _pool
from benchmarks._table import Table
from benchmarks._verdict_cases import NOISES, RATIOS, Case, chosen
from benchmarks._verdict_data import Sample, sample
from benchmarks._verdict_score import TIED, Answer, descent_from, gaps, judge, read

SECONDS = 60.0
FALSE_BOUND, NOISE_BOUND = 0.01, 0.01  # shares of all runs and of pure noise
YES_BOUND = {"equal": 0.90, "unequal": 0.85}  # right answers certified from ten samples a parameter on
COVERAGE = (0.935, 0.965)  # of certified answers from ten samples a parameter on
COVERAGE_FEW = 0.92  # at five

Measured = list[tuple[Case, dict]]


def main(quick: bool) -> list[str]:
    runs = os.environ.get("BENCH_RUNS")
    pattern = os.environ.get("BENCH_ONLY", "*")
    cases = [c for c in chosen(None, False) if fnmatchcase(" ".join(map(str, c.cell())), pattern)]
    if pattern == "*":
        cases = chosen(int(runs) if runs else None, quick)
    elif runs or quick:
        cases = cases[: int(runs or 40)]
    rows = _lanes.run(trial, [c.cell() for c in cases], lambda cell: Case(*cell).shape)
    return report(list(zip(cases, rows, strict=True)))


def trial(*cell: str | int | float) -> dict[str, object]:
    """One recovery and what the truth says of it, as plain values."""
    case = Case(*cell)
    data = sample(case)
    try:
        r = oh.recover(
            data.X, data.y, case.hidden, activation=case.asked, bias=True, intercept=True,
            seed=case.solver_seed, max_seconds=_pool.seconds(SECONDS),
        )  # fmt: skip
    except ValueError as refusal:
        return {"status": "refused", "message": str(refusal), "right": False, "false": "", "seconds": 0.0}
    return scored(case, data, read(r)) | {"message": r.message}


def scored(case: Case, data: Sample, answer: Answer) -> dict[str, object]:
    """The row of one answer."""
    truth, found = data.truth, answer.network
    best_loss, row = float("nan"), {}
    if case.is_network and data.noise:
        best_loss, best = descent_from(truth, data.X, data.y)
        behind = float(len(data.y) * np.log(answer.loss / best_loss))
        same = found.n_hidden == best.n_hidden and found.activation.name == best.activation.name
        row["behind"] = behind
        row["best"] = bool(same and behind <= TIED and oh.match(found, best).max_error < 0.05)
        if same:
            held = gaps(answer, truth)
            known = np.isfinite(held.error) & (held.error > 0)
            row["intervals"] = int(known.sum())
            row["covered"] = int(held.covered[known].sum())
            row["squares"] = float(np.sum((held.gap[known] / held.error[known]) ** 2))
    verdict = judge(case, data, answer, best_loss)
    if data.noise:
        # How much of the function the network misses, in noise variances summed over the rows: about the
        # number of parameters for a right one; no test sees much less than twice that.
        gap = np.mean((found.predict(data.X) - data.clean) ** 2)
        row["missed"] = float(len(data.y) * gap / data.noise**2)
    return row | {
        "status": answer.status,
        "n_hidden": found.n_hidden,
        "right": bool(verdict.right),
        "false": verdict.false,
        "vague": bool(verdict.vague),
        "faint": bool(verdict.faint),
        "alternatives": len(answer.alternatives),
        "undetermined": sum(unit != "determined" for unit in answer.units),
        "failed": list(answer.failed),
        "seconds": float(answer.seconds),
    }


def report(measured: Measured) -> list[str]:
    """All tables, and the totals against their bounds."""
    sound = [(c, row) for c, row in measured if "broke" not in row]
    lines = [*_false_table(sound), "", *_yes_table(sound), "", *_reasons(sound), "", *_coverage_table(sound)]
    totals = Table("bound", "asked", "measured", "kept")
    for name, asked, value, kept in _totals(sound):
        totals.row(name, asked, value, "no runs" if value == "0/0" else "yes" if kept else "**no**")
    for c, row in measured:
        if fault := row.get("broke") or row["false"]:
            missed = f", misses {row['missed']:.0f} for {c.parameters}" if row.get("missed") else ""
            totals.say(f"- {fault}{missed}: `python -m benchmarks.verdict case {_words(c)}`")
    return [*lines, "", *totals.lines]


def certified(row: dict) -> bool:
    return row["status"] in ("exact", "consistent")


def share(rows: Measured, of: Callable[[Case, dict], bool]) -> str:
    return f"{sum(of(c, row) for c, row in rows)}/{len(rows)}" if rows else ""


def kind(case: Case) -> str:
    """The row of the tables a case belongs to."""
    return "tie" if case.is_tie else f"{case.truth}, asked {case.ask}" if case.is_network else case.truth


def _false_table(rows: Measured) -> list[str]:
    table = Table("false certificates", *NOISES, "all", "exact", "approximate", "seconds, mean")
    for truth in [*sorted({kind(c) for c, _ in rows}), "**all**"]:
        mine = [(c, row) for c, row in rows if truth in (kind(c), "**all**")]
        counts = [
            share([(c, row) for c, row in mine if c.noise == noise], lambda c, row: bool(row["false"]))
            for noise in NOISES
        ]
        exact = sum(bool(row["false"]) and row["status"] == "exact" for _, row in mine)
        near = sum(row["status"] == "approximate" for _, row in mine)
        seconds = float(np.mean([row["seconds"] for _, row in mine]))
        table.row(
            truth, *counts, share(mine, lambda c, row: bool(row["false"])), exact, near, f"{seconds:.1f}"
        )
    return table.lines


def _asked_fairly(case: Case) -> bool:
    return case.is_network and case.ask in ("right", "open") and case.ratio >= 10 and case.k <= 6


def _yes_table(rows: Measured) -> list[str]:
    """Of network truths asked rightly or openly from ten samples a parameter on."""
    table = Table("noise", "runs", "right", "right and certified", "share", "told of others", "vague",
                  "faint", "at the truth's minimum")  # fmt: skip
    for noise in NOISES:
        mine = [(c, row) for c, row in rows if c.noise == noise and _asked_fairly(c)]
        right = [(c, row) for c, row in mine if row["right"]]
        if not mine:
            continue
        yes = sum(certified(row) for _, row in right)
        table.row(
            noise, len(mine), len(right), yes, f"{100 * yes / max(len(right), 1):.0f} %",
            sum(bool(row.get("alternatives")) for _, row in mine), *(
                sum(bool(row.get(key)) for _, row in mine) for key in ("vague", "faint", "best")
            ),
        )  # fmt: skip
    return table.lines


def _reasons(rows: Measured) -> list[str]:
    """Why right answers are not certified: checks that failed, and those that failed alone."""
    table = Table("check failed by a right answer", "noise", "runs", "alone")
    count, alone = Counter(), Counter()
    for c, row in rows:
        if _asked_fairly(c) and row["right"] and not certified(row):
            failed = row.get("failed") or [f"none ({row['status']})"]
            count.update((name, c.noise) for name in failed)
            alone.update((name, c.noise) for name in failed if len(failed) == 1)
    for (name, noise), times in count.most_common():
        table.row(name, noise, times, alone[name, noise])
    return table.lines


def _coverage(rows: Measured, noise: str, ratio: Callable[[int], bool]) -> tuple[int, int, float, int]:
    """Intervals, those that hold the truth, sum of squared errors in standard errors, answers: certified."""
    mine = [
        row for c, row in rows
        if c.noise == noise and ratio(c.ratio) and c.is_network and c.ask in ("right", "open")
        and certified(row) and "intervals" in row
    ]  # fmt: skip
    return (
        sum(row["intervals"] for row in mine),
        sum(row["covered"] for row in mine),
        sum(row["squares"] for row in mine),
        len(mine),
    )


def _coverage_table(rows: Measured) -> list[str]:
    table = Table(
        "noise", "n/p", "certified answers", "intervals", "coverage of 95 %", "RMSE / standard error"
    )
    for noise in NOISES[1:]:
        for ratio in RATIOS:
            intervals, covered, squares, answers = _coverage(rows, noise, lambda r, own=ratio: r == own)
            if intervals:
                shown = f"{100 * covered / intervals:.1f} %"
                table.row(noise, ratio, answers, intervals, shown, float(np.sqrt(squares / intervals)))
    return table.lines


def _totals(rows: Measured) -> list[tuple[str, str, str, bool]]:
    """(what, bound, measured, kept)."""
    false = [(c, row) for c, row in rows if row["false"]]
    exact = sum(row["status"] == "exact" for _, row in false)
    pure = [(c, row) for c, row in rows if c.truth == "noise"]
    fooled = sum(bool(row["false"]) for _, row in pure)
    out = [
        ("false certificates", "≤ 1 %", f"{len(false)}/{len(rows)}", len(false) <= FALSE_BOUND * len(rows)),
        ("of them exact", "0", str(exact), exact == 0),
        ("pure noise certified", "≤ 1 %", f"{fooled}/{len(pure)}", fooled <= NOISE_BOUND * len(pure)),
    ]
    for noise, bound in YES_BOUND.items():
        right = [row for c, row in rows if c.noise == noise and _asked_fairly(c) and row["right"]]
        yes = sum(certified(row) for row in right)
        asked = f"≥ {100 * bound:.0f} %"
        out.append(
            (f"right answers certified, {noise}", asked, f"{yes}/{len(right)}", yes >= bound * len(right))
        )
    for noise in YES_BOUND:
        for few in (False, True):
            intervals, covered, _, _ = _coverage(rows, noise, lambda r, few=few: r == 5 if few else r >= 10)
            if not intervals:
                continue
            value = covered / intervals
            kept = value >= COVERAGE_FEW if few else COVERAGE[0] <= value <= COVERAGE[1]
            asked = "≥ 92 %" if few else "93.5–96.5 %"
            where = "5" if few else "10 and more"
            out.append((f"coverage, {noise}, n/p {where}", asked, f"{100 * value:.1f} %", kept))
    # Certified answers to rows that depend on their order: nobody has said so.
    ordered = [row for c, row in rows if c.noise == "autocorrelated"]
    silent = sum(certified(row) for row in ordered)
    out.append(("certified with autocorrelated noise", "0", f"{silent}/{len(ordered)}", silent == 0))
    return out


def _words(case: Case) -> str:
    return " ".join(repr(word) if " " in str(word) else str(word) for word in case.cell())


def _again(words: list[str]) -> None:
    kinds = {"d": int, "k": int, "level": float, "n": int, "seed": int}
    cell = [kinds.get(name, str)(word) for name, word in zip(Case.__dataclass_fields__, words, strict=True)]
    for key, value in trial(*cell).items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    if sys.argv[1] == "case":
        _again(sys.argv[2:])
    else:
        report([(Case(*cell), row) for path in sys.argv[1:] for cell, row, _ in _lanes.stored(Path(path))])
