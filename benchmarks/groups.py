"""Groups of rows that share noise: coverage of intervals and size of tests, with and without their names.

``python -m benchmarks groups [--runs N]``: 500 samples a cell. A random effect of each group is as large
as the noise of a row. The fit begins at the truth, so that only the errors and the tests are measured. Beside
it: a linear model with the same CR2 errors, of the same groups and inputs.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy.special import stdtrit

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden.certify.evaluate import certify
from onehidden.certify.groups import GroupedCovariance
from onehidden.certify.widths import compare_larger
from onehidden.fit.problem import optimise
from onehidden.fit.samples import Samples
from onehidden.machine import double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of, record
from onehidden.run import Run, stream

CELLS = [(30, 12, False), (30, 12, True), (10, 30, False), (10, 30, True), (60, 6, False), (20, 40, True)]
TRUTH = oh.OneHiddenNet([[0.8, 0.6, 0.0], [0.0, -0.6, 0.8]], [2.0, -1.5], [0.3, -0.2], 0.3)


def main(quick: bool) -> list[str]:
    runs = int(os.environ.get("BENCH_RUNS", "20" if quick else "500"))
    cells = [(*cell, seed) for seed in range(runs) for cell in CELLS]
    table = Table(
        "groups x rows", "inputs", "parameters, by group", "mean bands, by group", "adequacy at .05",
        "further unit asked for", "parameters, groups not named", "mean bands", "adequacy", "a further unit",
        "linear model, CR2",
    )  # fmt: skip
    rows = _pool.run(run, cells)
    for cell in CELLS:
        mine = [row for (*own, _), row in rows if tuple(own) == cell and "broke" not in row]
        if not mine:
            continue
        means = {name: float(np.mean([row[name] for row in mine])) for name in mine[0]}
        count, size, constant = cell
        shown = [f"{means[f'{name}, {named}']:.3f}" for named in (True, False)
                 for name in ("parameters", "bands", "adequacy", "further")]  # fmt: skip
        inputs = "one of three constant in a group" if constant else "vary within a group"
        table.row(f"{count} x {size} ({len(mine)} runs)", inputs, *shown, f"{means['linear']:.3f}")
    return table.lines


def run(count: int, size: int, constant: bool, seed: int) -> dict[str, Any]:
    """One sample: shares of intervals that hold the truth, and tests that reject at .05."""
    rng = stream(seed, "benchmark of groups", count, size, constant)
    groups = np.repeat(np.arange(count), size)
    X = rng.standard_normal((count * size, 3))
    if constant:
        X[:, 0] = rng.standard_normal(count)[groups]
    y = TRUTH.predict(X) + 0.5 * rng.standard_normal(count)[groups] + 0.5 * rng.standard_normal(len(X))
    found: dict[str, Any] = {}
    for named in (True, False):
        own = _measured(Samples(X, y, names=("x0", "x1", "x2"), groups=groups if named else None), seed)
        found |= {f"{name}, {named}": value for name, value in own.items()}
    return found | {"linear": _linear(X, y, groups)}


def _measured(samples: Samples, seed: int) -> dict[str, float]:
    options, run = Options(hidden=2), Run(seed)
    with double():
        problem = problem_of(samples, options)
        certificate = certify(optimise(TRUTH, problem, run).network, problem, run)
        certificate = compare_larger(certificate, problem, run)
        r = record(certificate, "truth", samples, options.to_dict(), run)
    at = stream(0, "rows of the benchmark of groups").standard_normal((50, 3))
    lower, upper = r.predict_interval(at)
    mean = TRUTH.predict(at)
    match, truth = oh.match(r.network, TRUTH.canonical()), TRUTH.canonical()
    low, high = r.interval()
    p = match.permutation
    parts = [("weights", truth.weights), ("output", truth.output), ("bias", truth.bias)]
    held = []
    for name, value in parts:
        inside = (getattr(low, name)[p] <= value) & (value <= getattr(high, name)[p])
        held.append(inside[getattr(r.standard_errors, name)[p] > 0])
    checks = {check.name: check for check in r.checks}
    return {
        "parameters": float(np.mean(np.concatenate(held))),
        "bands": float(np.mean((lower <= mean) & (mean <= upper))),
        "adequacy": float(checks["fit"].value < 0.05),
        "further": float("a larger model" in checks and not checks["a larger model"].passed),
    }


def _linear(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> float:
    """Coverage of the slopes of a linear model of the same inputs, whose noise is that of the sample."""
    J = np.column_stack([np.ones(len(X)), X])
    y = y - TRUTH.predict(X) + X @ np.ones(3)
    C = np.linalg.inv(J.T @ J)
    b = C @ J.T @ y
    parts = [groups == g for g in range(groups.max() + 1)]
    covariance = GroupedCovariance(
        np.array([J[at].T @ J[at] for at in parts]), np.array([J[at].T @ (y - J @ b)[at] for at in parts]), C
    )
    reach = stdtrit(covariance.freedom.of(np.eye(4)), 0.975) * np.sqrt(np.diag(covariance.covariance))
    return float(np.mean((np.abs(b - np.array([0.0, 1, 1, 1])) <= reach)[1:]))
