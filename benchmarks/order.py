"""The same rows in another order, and the same table by function and by estimator: one verdict, one network.

``python -m benchmarks order [--runs SHUFFLES]``: 200 shuffles of a small table of each of four kinds, with
noise, against the table as it is; 100 tables by ``recover`` and by ``OneHiddenRegressor``.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks._verdict_data import network
from onehidden.run import derived_seed, stream

SECONDS = 20.0
TABLES = ("relu", "tanh", "softplus", "dose")


def main(quick: bool) -> list[str]:
    runs = int(os.environ.get("BENCH_RUNS", "5" if quick else "200"))
    table = Table("table", "shuffles", "status as it is", "another status", "another network")
    rows = dict(_pool.run(shuffled, [(name, number) for name in TABLES for number in range(-1, runs)]))
    for name in TABLES:
        first, others = rows[name, -1], [rows[name, number] for number in range(runs)]
        status = sum(one["status"] != first["status"] for one in others)
        away = sum(not np.allclose(one["loss"], first["loss"], rtol=1e-6) for one in others)
        table.row(name, len(others), first["status"], status, away)
    cells = [(number,) for number in range(10 if quick else 100)]
    both = [row for _, row in _pool.run(by_both, cells) if "broke" not in row]
    table.say("")
    same = Counter((one["function"] == one["estimator"], one["apart"] < 1e-9) for one in both)
    table.say(
        f"Function and estimator on {len(both)} tables: {same[True, True]} with one status and one network, "
        f"{same[True, False]} with one status alone, {same[False, True] + same[False, False]} with two."
    )
    return table.lines


def one_table(name: str) -> tuple[np.ndarray, np.ndarray, str]:
    """A table of few rows with noise."""
    rng = stream(7, "order", name)
    if name == "dose":
        x = np.repeat(np.log([0.1, 0.3, 1.0, 3.0, 10.0, 30.0]), 4)
        mean = 1 + 5 / (1 + np.exp(-1.3 * (x - 0.4)))
        return x[:, None], np.round(mean + 0.3 * rng.standard_normal(len(x)), 2), "sigmoid"
    X = rng.standard_normal((150, 3))
    f = network(rng, X, name, 1, False).predict(X)
    return X, f + 0.5 * np.std(f) * rng.standard_normal(len(f)), name


def shuffled(name: str, number: int) -> dict[str, Any]:
    """The answer to a table in another order; -1 is the order it has."""
    X, y, g = one_table(name)
    if number >= 0:
        order = stream(number, "order", name, "shuffle").permutation(len(y))
        X, y = X[order], y[order]
    r = oh.recover(X, y, 1, activation=g, seed=0, max_seconds=_pool.seconds(SECONDS))
    return {"status": str(r.status), "loss": float(r.loss)}


def by_both(number: int) -> dict[str, Any]:
    """One table by the function and by the estimator."""
    rng = stream(number, "order", "function and estimator")
    n, d, k = int(rng.integers(60, 300)), int(rng.integers(1, 5)), int(rng.integers(1, 3))
    g = ("relu", "tanh", "softplus")[number % 3]
    X = rng.standard_normal((n, d)) * rng.uniform(0.5, 20, d)
    f = network(rng, X, g, k, False).predict(X)
    y = f + rng.uniform(0.1, 0.8) * np.std(f) * rng.standard_normal(n)
    seed, limit = derived_seed(number, "order", "solver"), _pool.seconds(SECONDS)
    r = oh.recover(X, y, k, activation=g, seed=seed, max_seconds=limit)
    model = oh.OneHiddenRegressor(n_hidden=k, activation=g, random_state=seed, max_seconds=limit).fit(X, y)
    apart = np.max(np.abs(model.network_.predict(X) - r.network.predict(X))) / np.std(y)
    return {"function": str(r.status), "estimator": str(model.recovery_.status), "apart": float(apart)}
