"""Exact recovery with few samples: at the numbers aimed at, and the fewest that do nine times out of ten.

``BENCH_PARTS``: aims (``_aims``), fewest. There n / p, p = k d, is taken from a geometric grid by bisection
for every size and law; at the n found, two baselines have the same samples, seeds and time: the true width
from 20 random starts by Levenberg–Marquardt on the squared loss, and wide-and-prune in PyTorch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _aims, _peers, _pool, _truth
from benchmarks._table import Table
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import descend
from onehidden.run import Run, stream
from onehidden.solvers import LevenbergMarquardt

GRID = (1.2, 1.5, 2.0, 2.5, 3.2, 4.0, 5.0, 6.4, 8.0, 10.0, 12.8, 16.0)
SIZES = ((20, 20), (50, 50), (50, 5))
LAWS = ("gaussian", "laplace", "logistic", "student5", "uniform", "mixture")
SECONDS = {(20, 20): 300.0, (50, 50): 600.0, (50, 5): 120.0, (10, 3): 30.0}
SEEDS, NEEDED, FIRST = 10, 9, 3
STARTS = 20


@dataclass
class Search:
    """Bisection for one size and law: the grid below ``low`` fails, from ``high`` on it succeeds."""

    d: int
    k: int
    law: str
    low: int = -1
    high: int = len(GRID)

    @property
    def middle(self) -> int:
        return (self.low + self.high) // 2

    @property
    def open(self) -> bool:
        return self.high - self.low > 1

    def cells(self, at: int, seeds: range, method: str = "onehidden") -> list[tuple[Any, ...]]:
        n = round(GRID[at] * self.d * self.k)
        return [(method, f"{self.law}-relu-orthonormal-{self.d}x{self.k}", n, seed) for seed in seeds]


def main(quick: bool) -> list[str]:
    parts = os.environ.get("BENCH_PARTS", "aims fewest").split()
    found = _aims.lines(quick) if "aims" in parts else []
    return found + (["", *_fewest(quick)] if "fewest" in parts else [])


def _fewest(quick: bool) -> list[str]:
    sizes, laws = (((10, 3),), ("gaussian",)) if quick else (SIZES, LAWS)
    searches = [Search(d, k, law) for d, k in sizes for law in laws]
    searches = [s for s in searches if list(_pool.chosen(s.cells(0, range(1))))]
    while narrowing := [s for s in searches if s.open]:
        _level(narrowing)
    table = Table(
        "d", "k", "inputs", "fewest n / p", "n", "exact", "median s",
        f"l2 of width k, {STARTS} starts + LM: within 1e-6", "PyTorch wide-and-prune: within 1e-6",
    )  # fmt: skip
    found = [s for s in searches if s.high < len(GRID)]
    seeds = {"onehidden": range(SEEDS), "random starts": range(2 if quick else SEEDS)}
    seeds["torch"] = seeds["random starts"]
    cells = [c for s in found for method in seeds for c in s.cells(s.high, seeds[method], method)]
    rows = dict(_pool.run(cell, cells, _threads(found)))
    for s in searches:
        if s not in found:
            table.row(s.d, s.k, s.law, f"> {GRID[-1]}", "", "", "", "", "")
            continue
        ours, random, torch = ([rows[c] for c in s.cells(s.high, seeds[m], m) if c in rows] for m in seeds)
        seconds = [row["seconds"] for row in ours if "broke" not in row]
        table.row(
            s.d, s.k, s.law, GRID[s.high], round(GRID[s.high] * s.d * s.k), _share(ours),
            f"{np.median(seconds):.1f}", _share(random), _share(torch),
        )  # fmt: skip
    devices = sorted({row["device"] for row in rows.values() if "device" in row})
    table.say(f"p = k d. Each run on: {', '.join(devices)}; at most {_limits(sizes)}.")
    return table.lines


def _limits(sizes: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{_pool.seconds(SECONDS[d, k]):.0f} s at d = {d}, k = {k}" for d, k in sizes)


def _level(searches: list[Search]) -> None:
    """One step of every open bisection: a few seeds first, the others where those leave it open."""
    first = [c for s in searches for c in s.cells(s.middle, range(FIRST))]
    rows = dict(_pool.run(cell, first, _threads(searches)))
    hopeful = [s for s in searches if _failures(s, rows) <= SEEDS - NEEDED]
    rest = [c for s in hopeful for c in s.cells(s.middle, range(FIRST, SEEDS))]
    rows |= dict(_pool.run(cell, rest, _threads(searches)))
    for s in searches:
        if _failures(s, rows) <= SEEDS - NEEDED:
            s.high = s.middle
        else:
            s.low = s.middle


def _threads(searches: list[Search]) -> int:
    """Cores of one run: small problems gain nothing from a second."""
    return 2 if any(s.d * s.k > 400 for s in searches) else 1


def _failures(search: Search, rows: dict[tuple[Any, ...], dict[str, Any]]) -> int:
    mine = (rows.get(c) for c in search.cells(search.middle, range(SEEDS)))
    return sum(not row.get("right", False) for row in mine if row is not None)


def _share(rows: list[dict[str, Any]]) -> str:
    return f"{sum(row.get('right', False) for row in rows)}/{len(rows)}"


def cell(method: str, name: str, n: int, seed: int) -> dict[str, Any]:
    """One seed by one method; a worst relative error of 1e-8 against the truth, for baselines of 1e-6."""
    problem = oh.problems.get(name)
    limit = _pool.seconds(SECONDS[problem.n_inputs, problem.n_hidden])
    if method == "onehidden":
        return _truth.trial(name, seed, 0.0, "right", n, limit)
    X, y, truth = problem.sample(n, seed)
    begin = time.perf_counter()
    if method == "torch":
        net = _peers.torch_wide_and_prune(X, y, problem.n_hidden, width=max(64, 8 * problem.n_hidden)).network
    else:
        net = random_starts(X, y, problem.n_hidden, seed, limit)
    error = _truth.worst_error(net, truth)
    return {"right": error <= _peers.FOUND, "error": error, "seconds": time.perf_counter() - begin}


def random_starts(
    X: np.ndarray, y: np.ndarray, k: int, seed: int, limit: float, bias: bool = False
) -> oh.OneHiddenNet:
    """The squared loss in all parameters at the true width, the best of 20 random starts within the time."""
    form = Parametrisation(oh.activations.get("relu"), X.shape[1], k, bias)
    scale = float(y.std())
    fit = InMemoryLeastSquares(form, X, (y - y.mean()) / scale)
    solver = LevenbergMarquardt(max_steps=200, floor=1e-29 * len(y), patience=20)
    rng = stream(seed, "benchmark", "efficiency", "starts")
    run, best = Run(seed, limit), None
    for _ in range(STARTS):
        rows = rng.standard_normal((k, X.shape[1])) / np.sqrt(X.shape[1])
        theta = form.pack(rows, rng.standard_normal(k) / np.sqrt(k), 0.5 * rng.standard_normal(k) * bias)
        solution = descend(solver, fit, theta, run, "random starts", len(y))
        best = solution if best is None or solution.loss < best.loss else best
        if best.loss <= 1e-26 * len(y) or run.expired():
            break
    assert best is not None
    weights, output, biases, _, constant = form.unpack(best.theta)
    return oh.OneHiddenNet(
        weights, output * scale, biases if bias else None, float(constant) * scale + y.mean(), "relu"
    )
