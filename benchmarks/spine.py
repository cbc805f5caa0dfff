"""The spine: exact recovery over the catalogue, efficiency with noise, time against plain peers.

Success is a worst relative error of rows, outputs, biases and intercept of at most 1e-8 after matching.
"""

from __future__ import annotations

import resource
import time

import numpy as np

import onehidden as oh
from benchmarks import _peers, noise
from benchmarks._table import Table
from benchmarks._truth import EXACT, worst_error

PATIENCE = 12  # times our own that a peer may take
ROWS = (
    "relu-rotation-50",
    "relu-orthonormal-200x5",
    "relu-orthonormal-50x10",
    "relu-conditioned-20x10",
    "tanh-20x10",
    "sigmoid-20x10",
    "erf-20x10",
    "squared-relu-20x10",
    "softplus-20x10",
    "gelu-20x10",
    "leaky-relu-20x10",
    "relu-biased-20x10",
    "relu-correlated-20x10",
)


def main(quick: bool) -> list[str]:
    seeds = range(2 if quick else 10)
    timing = row_one_time(peers=not quick)
    lines = exact_rows(seeds)
    lines += noise.rows([("gaussian", 0.1)], 40 if quick else 400)
    return lines + timing


def exact_rows(seeds: range) -> list[str]:
    table = Table("problem", "n", "exact", "worst error", "median s", "slowest s", "start that won")
    for name in ROWS:
        problem = oh.problems.get(name)
        errors, seconds, origins = [], [], []
        for seed in seeds:
            X, y, truth = problem.sample(None, seed)
            r = oh.recover(
                X, y, problem.n_hidden, activation=problem.activation, bias=problem.bias, seed=seed
            )
            errors.append(worst_error(r.network, truth))
            seconds.append(r.seconds)
            origins.append(r.origin)
        won = ", ".join(f"{origins.count(o)} {o}" for o in sorted(set(origins)))
        success = sum(e <= EXACT for e in errors)
        table.row(
            problem.title, problem.n, f"{success}/{len(errors)}", f"{max(errors):.1e}",
            f"{np.median(seconds):.1f}", f"{max(seconds):.1f}", won,
        )  # fmt: skip
    return table.lines


def row_one_time(peers: bool) -> list[str]:
    """The first row in a fresh process state: time with compilation, peak memory, and what peers need."""
    problem = oh.problems.get("relu-rotation-50")
    X, y, truth = problem.sample(None, 0)
    begin = time.perf_counter()
    r = oh.recover(X, y, problem.n_hidden, bias=problem.bias, seed=0)
    ours = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    table = Table("relu-rotation-50, n = 16 384", "seconds", "ratio to ours", "relative loss", "worst error")
    table.row(
        f"onehidden, with compilation; peak memory {peak:.2f} GiB", ours, 1.0, f"{r.loss / y.var():.1e}",
        f"{worst_error(r.network, truth):.1e}",
    )  # fmt: skip
    if peers:

        def reached(network: oh.OneHiddenNet) -> bool:
            return worst_error(network, truth) <= _peers.FOUND

        for result in (
            _peers.torch_until(X, y, problem.n_hidden, reached, PATIENCE * ours),
            _peers.sklearn_restarts(X, y, problem.n_hidden),
        ):
            error = worst_error(result.network, truth)
            table.row(
                result.title, result.seconds, result.seconds / ours, f"{result.loss:.1e}", f"{error:.1e}"
            )
    return table.lines
