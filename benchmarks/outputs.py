"""Several outputs over one hidden layer: exact recovery from few samples, and what a step costs.

The numbers of a target count as samples: n q / p, p = k (d + q) weights into the units and out of them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden import activations
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation
from onehidden.machine import in_double
from onehidden.run import stream
from onehidden.solvers import LevenbergMarquardt

SEEDS, SECONDS = 10, 600.0
# inputs, d, k, q, n; rows orthonormal where d = k
CASES = (
    ("gaussian", 50, 50, 10, 1000),
    ("gaussian", 50, 50, 10, 2000),
    ("gaussian", 20, 10, 3, 190),
    ("correlated", 20, 10, 3, 190),
    ("uniform", 20, 10, 3, 190),
    ("wine", 13, 10, 3, 130),
    ("breast cancer", 30, 10, 3, 275),
)


def main(quick: bool) -> list[str]:
    lines = recoveries((3,) if quick else range(2, len(CASES)), 1 if quick else SEEDS)
    return [*lines, "", *steps(3 if quick else 10)]


def recoveries(numbers: Any, seeds: int) -> list[str]:
    """Exact answers of each case; ``BENCH_CASES`` names others, as 0,1."""
    import os

    chosen = [int(i) for i in os.environ.get("BENCH_CASES", "").split(",") if i] or list(numbers)
    table = Table("inputs", "d", "k", "q", "n", "n q / p", "exact", "median s", "statuses")
    cells = [(i, seed) for i in chosen for seed in range(seeds)]
    measured = _pool.run(recovery, cells, threads=int(os.environ.get("BENCH_THREADS", "1")))
    for i in chosen:
        law, d, k, q, n = CASES[i]
        mine = [row for cell, row in measured if cell[0] == i]
        good = [row for row in mine if "broke" not in row]
        words = sorted({row["status"] for row in good})
        told = ", ".join(f"{word} {sum(row['status'] == word for row in good)}" for word in words)
        seconds = float(np.median([row["seconds"] for row in good])) if good else float("nan")
        exact = f"{sum(row['right'] for row in good)}/{len(mine)}"
        table.row(law, d, k, q, n, f"{n * q / (k * (d + q)):.2f}", exact, f"{seconds:.1f}", told)
    table.say("Exact: every row within 1e-8 of its own length. Teachers share no stream with the solver.")
    return table.lines


def recovery(case: int, seed: int) -> dict[str, Any]:
    """One recovery: whether it is exact, and what it says of itself."""
    law, d, k, q, n = CASES[case]
    rng = stream(seed, "benchmark", "outputs", law, "teacher")
    A = rng.standard_normal((k, d))
    A = np.linalg.qr(A.T)[0].T if d == k else A / np.linalg.norm(A, axis=1, keepdims=True)
    net = oh.OneHiddenNet(A, rng.standard_normal((k, q)), 0.3 * rng.standard_normal(k))
    X = _inputs(law, n, d, seed)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    teacher = oh.OneHiddenNet(net.weights / spread, net.output, net.bias - (net.weights / spread) @ centre)
    began = time.perf_counter()
    r = oh.recover(X, teacher.predict(X), k, seed=seed, max_seconds=_pool.seconds(SECONDS))
    error = oh.match(r.network, teacher).max_error
    seconds = time.perf_counter() - began
    return {"right": bool(error <= 1e-8), "error": error, "status": str(r.status), "seconds": seconds}


def _inputs(law: str, n: int, d: int, seed: int) -> np.ndarray:
    from sklearn import datasets

    rng = stream(seed, "benchmark", "outputs", law, "inputs")
    if law == "gaussian":
        return rng.standard_normal((n, d))
    if law == "uniform":
        return rng.uniform(-1, 1, (n, d))
    if law == "correlated":
        root = np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
        return rng.standard_normal((n, d)) @ root.T
    table = {"wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}[law]()
    return table.data[rng.permutation(len(table.data))[:n]]


@in_double
def steps(repetitions: int) -> list[str]:
    """Seconds of a step of Levenberg–Marquardt with one output and with ten, d = k = 50, n = 2000."""
    table = Table("q", "parameters", "median s a step", "over one output")
    rng, solver, median = stream(0, "benchmark", "outputs", "steps"), LevenbergMarquardt(damping=1e-5), {}
    X = rng.standard_normal((2000, 50))
    for q in (None, 2, 10):
        form = Parametrisation(activations.get("relu"), 50, 50, True, True, outputs=q)
        fit = InMemoryLeastSquares(form, X, rng.standard_normal((2000, *form.tail)))
        state, seconds = solver.init(fit, 0.1 * rng.standard_normal(form.size)), []
        for _ in range(repetitions + 1):
            began = time.perf_counter()
            solver.step(fit, state)
            seconds.append(time.perf_counter() - began)
        median[q] = float(np.median(seconds[1:]))
        table.row(form.q, form.size, median[q], f"{median[q] / median[None]:.2f}")
    return table.lines
