"""The verdict against the truth: false certificates, and right answers that are not certified.

``python -m benchmarks verdict [--quick] [--runs N] [--jobs J] [--only PATTERN]``: about 1700 recoveries of
a few seconds each on a core, with 20 s at most; networks asked rightly and wrongly, ties, weak units,
functions that are no network and pure noise, under eight kinds of noise and six laws of counts, labels and
amounts. The rule stands in ``_verdict_score``, the catalogue in ``_verdict_cases``. Rows are kept as they
come, and what is there is not repeated. ``BENCH_SEEDS`` moves all seeds.
``python -m benchmarks.verdict FILE…`` makes the tables of stored rows alone, finished or not;
``python -m benchmarks.verdict case WORDS…`` runs one case again and prints its row.

Shares are followed by their 95 % interval (Clopper and Pearson), coverage by that of answers drawn again.
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
from benchmarks._table import Table, interval, share_of
from benchmarks._verdict_cases import FAMILIES, NOISES, RATIOS, Case, chosen
from benchmarks._verdict_data import Sample, sample
from benchmarks._verdict_score import TIED, Answer, descent_from, gaps, judge, read

SECONDS = 20.0
FALSE_BOUND = 0.015  # of certificates
# Right answers certified, of those that the rows tell from a linear function: of networks from ten samples a
# parameter on, of families from sixty on.
YES_BOUND = {"equal": 0.92, "unequal": 0.85, "heavy": 0.85, "skewed": 0.85, "families": 0.80}
COVERAGE = (0.935, 0.965)  # of certified answers in every row, of parameters and of bands of the mean

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
            seed=case.solver_seed, max_seconds=_pool.seconds(SECONDS), family=data.family or None,
        )  # fmt: skip
    except ValueError as refusal:
        return {"status": "refused", "message": str(refusal), "right": False, "false": "", "seconds": 0.0}
    row = scored(case, data, read(r)) | {"message": r.message}
    if certified(row) and case.is_network and data.noise:
        low, high = r.predict_interval(data.X, of="mean")
        row["band"] = float(np.mean((low <= data.clean) & (data.clean <= high)))
    return row


def scored(case: Case, data: Sample, answer: Answer) -> dict[str, object]:
    """The row of one answer."""
    truth, found = data.truth, answer.network
    best_loss, row = float("nan"), {}
    normal = bool(data.noise) and not data.family
    if case.is_network and data.noise:
        same = found.n_hidden == truth.n_hidden and found.activation.name == truth.activation.name
        if same:
            held = gaps(answer, truth)
            known = np.isfinite(held.error) & (held.error > 0)
            row["intervals"] = int(known.sum())
            row["covered"] = int(held.covered[known].sum())
            row["squares"] = float(np.sum((held.gap[known] / held.error[known]) ** 2))
        if normal:
            best_loss, best = descent_from(truth, data.X, data.y)
            behind = row["behind"] = float(len(data.y) * np.log(answer.loss / best_loss))
            row["best"] = bool(same and behind <= TIED and oh.match(found, best).max_error < 0.05)
    verdict = judge(case, data, answer, best_loss)
    if normal:
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
        totals.row(name, asked, value, "no runs" if value == "–" else "yes" if kept else "**no**")
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
    """False certificates of all certificates, and runs."""
    groups = (*NOISES, "families")
    table = Table("false of certificates", *groups, "all", "runs", "exact", "approximate", "seconds, mean")
    for truth in [*sorted({kind(c) for c, _ in rows}), "**all**"]:
        mine = [(c, row) for c, row in rows if truth in (kind(c), "**all**")]
        sure = [(c, row) for c, row in mine if certified(row)]
        counts = [
            share([(c, row) for c, row in sure if _group(c) == group], lambda c, row: bool(row["false"]))
            for group in groups
        ]
        exact = sum(bool(row["false"]) and row["status"] == "exact" for _, row in mine)
        near = sum(row["status"] == "approximate" for _, row in mine)
        seconds = float(np.mean([row["seconds"] for _, row in mine]))
        every = share(sure, lambda c, row: bool(row["false"]))
        table.row(truth, *counts, every, len(mine), exact, near, f"{seconds:.1f}")
    return table.lines


def _told_from_linear(row: dict) -> bool:
    """Whether the rows exclude a linear function, by a test whose size and power stand in ``sizes``."""
    return "linear function" not in row.get("failed", ())


def _group(case: Case) -> str:
    return "families" if case.is_family else case.noise


def _asked_fairly(case: Case) -> bool:
    return case.is_network and case.ask in ("right", "open") and case.ratio >= 10 and case.k <= 6


def _yes_table(rows: Measured) -> list[str]:
    """Of network truths asked rightly or openly from ten samples a parameter on."""
    table = Table("noise", "runs", "right", "not told from linear", "the others certified", "told of others",
                  "vague", "faint", "at the truth's minimum")  # fmt: skip
    for noise in (*NOISES, *FAMILIES):
        mine = [(c, row) for c, row in rows if c.noise == noise and _asked_fairly(c)]
        right = [(c, row) for c, row in mine if row["right"]]
        told = [row for _, row in right if _told_from_linear(row)]
        if not mine:
            continue
        others = [
            sum(bool(row.get(key)) for _, row in mine) for key in ("alternatives", "vague", "faint", "best")
        ]
        yes = interval(sum(map(certified, told)), len(told))
        table.row(noise, len(mine), len(right), len(right) - len(told), yes, *others)
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


def _covering(rows: Measured, of: Callable[[Case], bool]) -> list[dict]:
    """Certified answers with noise of networks asked rightly or openly, with as many units as the truth."""
    fair = [(c, row) for c, row in rows if c.is_network and c.ask in ("right", "open") and of(c)]
    return [row for _, row in fair if certified(row) and row.get("intervals")]


def _coverage(rows: list[dict]) -> tuple[tuple[float, str], tuple[float, str]]:
    """The share of 95 % intervals, and of 95 % bands of the mean, that hold the truth; in words, too."""
    intervals = share_of([row["covered"] for row in rows], [row["intervals"] for row in rows])
    return intervals, share_of([row["band"] for row in rows], [1.0] * len(rows))


def _coverage_table(rows: Measured) -> list[str]:
    table = Table("noise", "n/p", "certified answers", "intervals", "coverage of 95 %", "of bands",
                  "RMSE / standard error")  # fmt: skip
    for noise in (*NOISES[1:], *FAMILIES):
        for ratio in RATIOS:
            mine = _covering(rows, lambda c, noise=noise, ratio=ratio: c.noise == noise and c.ratio == ratio)
            if mine:
                (_, held), (_, bands) = _coverage(mine)
                count = sum(row["intervals"] for row in mine)
                scaled = float(np.sqrt(sum(row["squares"] for row in mine) / count))
                table.row(noise, ratio, len(mine), count, held, bands, scaled)
    return table.lines


def _totals(rows: Measured) -> list[tuple[str, str, str, bool]]:
    """(what, bound, measured, kept)."""
    sure = [(c, row) for c, row in rows if certified(row)]
    false = sum(bool(row["false"]) for _, row in sure)
    exact = sum(bool(row["false"]) and row["status"] == "exact" for _, row in sure)
    pure = [(c, row) for c, row in rows if c.truth == "noise"]
    fooled = sum(bool(row["false"]) for _, row in pure)
    out = [
        ("false of certificates", "≤ 1.5 %", interval(false, len(sure)), false <= FALSE_BOUND * len(sure)),
        ("of them exact", "0", str(exact), exact == 0),
        ("pure noise certified", "≤ 1.5 %", interval(fooled, len(pure)), fooled <= FALSE_BOUND * len(pure)),
    ]
    for noise, bound in YES_BOUND.items():
        fair = [row for c, row in rows if _group(c) == noise and _asked_fairly(c)]
        right = [row for row in fair if row["right"] and _told_from_linear(row)]
        yes, asked = sum(map(certified, right)), f"≥ {100 * bound:.0f} %"
        name = f"right answers certified, {noise}"
        out.append((name, asked, interval(yes, len(right)), yes >= bound * len(right)))
    groups = [g for g in (*NOISES[1:], *FAMILIES) if g not in ("autocorrelated", "error in x")]
    for noise in groups:
        found = _coverage(_covering(rows, lambda c, noise=noise: c.noise == noise))
        for what, (value, shown) in zip(("parameters", "bands"), found, strict=True):
            kept = COVERAGE[0] <= value <= COVERAGE[1]
            out.append((f"coverage of {what}, {noise}", "93.5–96.5 %", shown, kept))
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
