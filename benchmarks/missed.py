"""With noise: how often the loss that recover found lies above that of a descent from the truth.

A teacher with biases and outputs of both signs; noise .05, .2, .5 of std(y), 10, 30, 100 samples a parameter.
Missed is a loss more than one unit of n log(loss) above that of the minimum next to the truth.
``BENCH_RUNS`` cells are drawn at random from all (default 100): the catalogue has thousands. ``BENCH_FIRST``
passes over so many of them.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool, _truth
from benchmarks._table import Table
from onehidden.run import stream

LAWS = ("gaussian", "correlated", "banana", "student5", "mixture")  # banana: skewed
TABLES = ("diabetes", "digits", "terrain")
ACTIVATIONS = ("relu", "tanh", "softplus")
WIDTHS, NOISES, RATIOS = (3, 6, 10), (0.05, 0.2, 0.5), (10, 30, 100)
D, SEEDS = 8, 5
SECONDS = 120.0
WORTH = 1.0  # of n log(loss)


def main(quick: bool) -> list[str]:
    runs = int(os.environ.get("BENCH_RUNS", 8 if quick else 100))
    rows = _pool.run(
        cell, drawn(runs), remark=lambda c, row: f"{row['gap']:.1f} above" if missed(row) else ""
    )
    table = Table("activation", "runs", "missed", "worst gap", "median s", "missed by")
    for g in (*ACTIVATIONS, "all"):
        mine = [(c, row) for c, row in rows if g in (c[1], "all") and "broke" not in row]
        if not mine:
            continue
        lost = [(c, row) for c, row in mine if missed(row)]
        who = Counter(str(row["origin"]) for _, row in lost)
        table.row(
            g, len(mine), len(lost), max(row["gap"] for _, row in mine),
            float(np.median([row["seconds"] for _, row in mine])),
            ", ".join(f"{origin} {count}" for origin, count in who.items()),
        )  # fmt: skip
    for c, row in rows:
        if "broke" not in row and missed(row):
            table.say(
                f"- {' '.join(map(str, c))}: {row['gap']:.1f} above, {row['status']} by {row['origin']}"
            )
    return table.lines


def missed(row: dict[str, Any]) -> bool:
    """Whether the search ended above the minimum next to the truth."""
    return row["gap"] > WORTH


def drawn(runs: int) -> list[tuple[Any, ...]]:
    """So many cells of all, at random; of a table only those that it has the rows for."""
    every = list(product((*LAWS, *TABLES), ACTIVATIONS, WIDTHS, NOISES, RATIOS, range(SEEDS)))
    every = [c for c in every if c[0] in LAWS or size(*c[:3], c[4]) <= oh.problems.TABLES[c[0]].n_rows]
    order = stream(0, "benchmark", "missed", "cells").permutation(len(every))
    first = int(os.environ.get("BENCH_FIRST", 0))
    return [every[i] for i in order[first : first + runs]]


def size(law: str, g: str, k: int, ratio: int) -> int:
    """Samples of a cell: ``ratio`` for each of the k (d + 2) + 1 parameters."""
    return ratio * (k * (oh.problems.get(name(law, g, k)).n_inputs + 2) + 1)


def name(law: str, g: str, k: int) -> str:
    """Of the problem in the catalogue."""
    return f"{law}-{g}-biased-{D}x{k}" if law in LAWS else f"{law}-{g}-{k}"


def cell(law: str, g: str, k: int, noise: float, ratio: int, seed: int) -> dict[str, Any]:
    """One recovery, and how far above the descent from the truth it ends in n log(loss)."""
    problem = replace(oh.problems.get(name(law, g, k)), noise=noise)
    X, y, truth = problem.sample(size(law, g, k, ratio), seed)
    limit = _pool.seconds(SECONDS)
    r = oh.recover(X, y, k, activation=g, bias=True, seed=seed, max_seconds=limit)
    gap = _truth.evidence(X, y, r.loss, truth, bias=True)
    return {"gap": gap, "status": r.status, "origin": r.origin, "seconds": r.seconds}
