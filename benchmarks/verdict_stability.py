"""The same data, told differently: whether the status of an answer changes.

``python -m benchmarks verdict_stability [--runs DATA_SETS]``: 60 data sets with noise, each recovered as it
is and again with another seed, order of rows, scale of a column, rotation of the inputs, and two threads in
place of one. A change of status counts; of certificates also a network that is another.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table, interval
from benchmarks._verdict_data import network
from benchmarks._verdict_kinds import noise
from benchmarks.verdict_kinds import SECONDS
from onehidden.run import derived_seed, stream

Rng = np.random.Generator
VARIANTS: dict[str, Callable[[Rng, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "as it is": lambda rng, X, y: (X, y),
    "seed": lambda rng, X, y: (X, y),
    "order": lambda rng, X, y: _ordered(rng.permutation(len(y)), X, y),
    "scale": lambda rng, X, y: (X * np.where(np.arange(X.shape[1]) == 0, 1e3, 1.0), 7.3 * y),
    "rotation": lambda rng, X, y: (X @ np.linalg.qr(rng.standard_normal((X.shape[1],) * 2))[0], y),
    "threads": lambda rng, X, y: (X, y),
}


def _ordered(order: np.ndarray, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X[order], y[order]


def data_set(number: int) -> tuple[np.ndarray, np.ndarray, int, str]:
    """Eight to fifteen rows a parameter, noise of .2 to .8 of the signal: where verdicts are hardest."""
    rng = stream(number, "verdict stability")
    d, k = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    g = ("relu", "tanh", "softplus")[number % 3]
    X = rng.standard_normal((int(rng.uniform(8, 15) * (k * (d + 2) + 1)), d)) * rng.uniform(0.5, 2, d)
    f = network(rng, X, g, k, False).predict(X)
    y = f + rng.uniform(0.2, 0.8) * np.std(f) * noise(rng, len(f), ("equal", "t3", "skewed")[number // 3 % 3])
    return X, y, k, g


def main(quick: bool) -> list[str]:
    first = int(os.environ.get("BENCH_SEEDS", "0"))
    sets = range(first, first + int(os.environ.get("BENCH_RUNS", "6" if quick else "60")))
    lines: dict[tuple[int, str], dict[str, Any]] = {}
    for threads, names in ((1, [name for name in VARIANTS if name != "threads"]), (2, ["threads"])):
        cells = [(number, name) for number in sets for name in names]
        lines |= {cell: row for cell, row in _pool.run(run, cells, threads)}
    table = Table("told differently by", "another status", "certified by one alone", "another network")
    every = np.zeros(4, int)
    for name in list(VARIANTS)[1:]:
        counts = np.zeros(4, int)
        for number in sets:
            first, again = lines[number, "as it is"], lines[number, name]
            if "broke" in first or "broke" in again:
                continue
            away = abs(np.log(again["loss"] / first["loss"])) * first["n"] > 0.5
            one = first["certified"] != again["certified"]
            counts += np.array([1, first["status"] != again["status"], one, away])
        every += counts
        table.row(name, *(interval(int(count), int(counts[0])) for count in counts[1:]))
    table.row("**all**", *(interval(int(count), int(every[0])) for count in every[1:]))
    for number in sets:
        found = {name: lines[number, name].get("status", "broke") for name in VARIANTS}
        if len(set(found.values())) > 1:
            failed = {name: lines[number, name].get("failed") for name in VARIANTS}
            table.say(f"- set {number}: " + "; ".join(f"{n} {found[n]} {failed[n] or ''}" for n in VARIANTS))
    return table.lines


def run(number: int, variant: str) -> dict[str, Any]:
    """One recovery of one data set, told in one way."""
    X, y, k, g = data_set(number)
    X, y = VARIANTS[variant](stream(number, "verdict stability", variant), X, y)
    seed = derived_seed(number, "verdict stability", variant if variant == "seed" else "", "solver")
    r = oh.recover(X, y, k, activation=g, seed=seed, max_seconds=_pool.seconds(SECONDS))
    loss = r.loss / 7.3**2 if variant == "scale" else r.loss
    failed = [check.name for check in r.checks if not check.passed]
    return {
        "status": str(r.status), "certified": r.status.certified, "loss": float(loss), "n": len(y),
        "failed": failed, "seconds": float(r.seconds),
    }  # fmt: skip
