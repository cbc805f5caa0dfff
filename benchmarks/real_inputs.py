"""Real tables with planted ReLU teachers with biases: what recover says, and whether it is true.

Every table with all its rows, k = 3, 5, 10, ten teachers each. A teacher is exactly recovered, or the status
must say that it was not.
"""

from __future__ import annotations

from typing import Any

import onehidden as oh
from benchmarks import _lanes, _pool, _truth
from benchmarks._table import Table
from benchmarks.catalogue import STATUSES, summary

SECONDS = 120.0


def main(quick: bool) -> list[str]:
    table = Table("table", "n", "d", "k", "runs", *STATUSES, "right", "false certificates", "longest s")
    widths, seeds = ((3,), 1) if quick else ((3, 5, 10), 10)
    cells = [(name, k, seed) for name in oh.problems.TABLES for k in widths for seed in range(seeds)]
    measured = _lanes.measured(cell, cells, lambda c: c[:2])
    for name, inputs in oh.problems.TABLES.items():
        for k in widths:
            rows = [row for c, row in measured if c[:2] == (name, k)]
            if rows:
                table.row(name, inputs.n_rows, inputs.n_inputs, k, len(rows), *summary(rows))
    for c, row in measured:
        if fault := row.get("broke") or row["false"]:
            table.say(f"- {fault}: `python -m benchmarks.catalogue {c[0]}-relu-{c[1]} {c[2]} 0 right`")
    return table.lines


def cell(table: str, k: int, seed: int) -> dict[str, Any]:
    return _truth.trial(f"{table}-relu-{k}", seed, 0.0, "right", 0, _pool.seconds(SECONDS))
