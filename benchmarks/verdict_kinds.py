"""The verdict on kinds of data that break a model's assumptions, and on the honest ones beside them.

``python -m benchmarks verdict_kinds [--runs SEEDS] [--only KIND]``: small teachers, about one second a run.
``BENCH_SEEDS`` moves all seeds by so many: other teachers, samples and noise than those of a stored table.
The rule was set before any run was looked at:

- *Right*: every parameter is within six of its standard errors, and no error is absurd (``_verdict_score``).
- A certificate is *false* if the answer is not right, nor told of as undetermined. Of data that no network
  made, every certificate is false. Where another link, scale or activation is the true one, and the
  certificate names it as one that the rows do not tell from the assumed one, its parameters are those of
  another model: it is false if the mean of y is further than six of its standard errors from the truth at
  more than 1 % of rows.
- Kinds under "what no sample shows" are counted apart: the certificate names them as assumptions.

"Refused by" counts the checks that decide something, and units that are undetermined without one.
Shares are followed by their 95 % interval (Clopper and Pearson), coverage by that of runs drawn again.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table, interval, share_of
from benchmarks._verdict_adversary import ADVERSARY
from benchmarks._verdict_kinds import KINDS, NONE, RIGHT, UNSEEN, WRONG, Data
from benchmarks._verdict_score import gaps, read
from onehidden.checks import About
from onehidden.run import derived_seed, stream

SECONDS = 20.0
SIX_ERRORS = 1 - 2e-9  # the level of six standard errors
EVERY = KINDS | ADVERSARY


def main(quick: bool) -> list[str]:
    seeds, first = (
        int(os.environ.get("BENCH_RUNS", "4" if quick else "34")),
        int(os.environ.get("BENCH_SEEDS", "0")),
    )
    cells = [(name, first + seed) for seed in range(seeds) for name in EVERY]
    return report(_pool.run(run, cells, remark=lambda cell, row: row["false"]))


def run(name: str, seed: int) -> dict[str, Any]:
    """One recovery and what the truth says of it."""
    data = EVERY[name].make(stream(seed, "verdict kinds", name))
    solver = derived_seed(seed, "verdict kinds", name, "solver")
    try:
        r = oh.recover(
            data.X, data.y, data.hidden, seed=solver, max_seconds=_pool.seconds(SECONDS), **data.options
        )
    except ValueError as refusal:
        return {"status": "refused", "message": str(refusal), "certified": False, "right": False, "false": ""}
    answer, truth = read(r), data.truth
    row: dict[str, Any] = {"right": False, "false": "", "seconds": float(r.seconds)}
    said = f"{r.status}, {r.message}"
    told = False
    if answer.certified and data.mean is not None:
        held = [_held(r, data, level) for level in (0.95, SIX_ERRORS)]
        row["rows"], row["rows_held"] = len(data.y), int(held[0].sum())
        named = bool(data.law) and f" {data.law}" in r.message.partition("do not tell")[2]
        told = row["other law"] = named and bool(np.mean(~held[1]) <= 0.01)
    if truth is None:
        row["false"] = said if answer.certified and not told else ""
    elif not np.any(truth.linear) and answer.network.n_hidden == truth.n_hidden:
        held = gaps(answer, truth)
        known = np.isfinite(held.error) & (held.error > 0)
        row["right"] = not held.far.any() and not held.vague
        row["intervals"], row["covered"] = int(known.sum()), int(held.covered[known].sum())
        undetermined = {i for i, unit in enumerate(answer.units) if unit != "determined"}
        far = {int(i) for i in held.unit[held.far]}
        if answer.certified and far and not far <= undetermined and not told:
            worst = np.max(np.abs(held.gap) / np.maximum(held.reach, 1e-9))
            row["false"] = f"{worst:.1f} errors off: {said}"
        row["other law"] = told and bool(far)
    decisive = (check for check in r.checks if not check.passed and check.about is not About.NOTE)
    failed = [check.name for check in decisive] or [
        f"{unit} units" for unit in sorted({*answer.units} - {"determined"})
    ]
    return row | {"certified": answer.certified, "status": answer.status, "failed": failed}


def _held(r: oh.Recovery, data: Data, level: float) -> np.ndarray:
    """Whether the band of the mean holds it, row by row."""
    low, high = r.predict_interval(data.X, level, of="mean")
    return (low <= data.mean) & (data.mean <= high)


def report(measured: list[tuple[tuple[str, int], dict[str, Any]]]) -> list[str]:
    """One row a kind, then the totals."""
    table = Table(
        "kind", "group", "certified", "false", "told of another law", "right", "right, certified", "coverage",
        "bands", "refused by", "right ones refused by",
    )  # fmt: skip
    rows = [(name, EVERY[name].group, row) for (name, _), row in measured if "broke" not in row]
    for kind in EVERY:
        if mine := [row for name, _, row in rows if name == kind]:
            table.row(kind, EVERY[kind].group, *_cells(mine))
    for group in (RIGHT, WRONG, NONE, UNSEEN):
        table.row(f"**all: {group}**", "", *_cells([row for _, one, row in rows if one == group]))
    for what, kinds in (("all", EVERY), ("kinds that no rule was made with", ADVERSARY)):
        seen = [row for name, group, row in rows if group != UNSEEN and name in kinds]
        certified = [row for row in seen if row["certified"]]
        wrong = sum(bool(row["false"]) for row in certified)
        table.say(f"\nFalse of certificates, {what}: {interval(wrong, len(certified))}; runs {len(seen)}.")
    for (name, seed), row in measured:
        if fault := row.get("broke") or row["false"]:
            table.say(f"- {name}, seed {seed}: {fault}")
    return table.lines


def _cells(rows: list[dict[str, Any]]) -> list[str]:
    right = [row for row in rows if row["right"]]
    held = [row for row in rows if row["certified"] and "intervals" in row and not row.get("other law")]
    bands = [row for row in rows if row["certified"] and "rows" in row]
    return [
        f"{sum(row['certified'] for row in rows)}/{len(rows)}",
        str(sum(bool(row["false"]) for row in rows)),
        str(sum(row.get("other law", False) for row in rows)),
        str(len(right)),
        interval(sum(row["certified"] for row in right), len(right)),
        share_of([row["covered"] for row in held], [row["intervals"] for row in held])[1],
        share_of([row["rows_held"] / row["rows"] for row in bands], [1.0] * len(bands))[1],
        _reasons(rows),
        _reasons(right),
    ]


def _reasons(rows: list[dict[str, Any]], most: int = 4) -> str:
    """What refused these runs, and in how many."""
    failed = Counter(name for row in rows if not row["certified"] for name in row.get("failed", []))
    return ", ".join(f"{name} {count}" for name, count in failed.most_common(most))
