"""Efficiency with noise: error against the Cramér–Rao bound and coverage of the 95 % intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden.run import derived_seed, stream

N, D, K = 20_000, 20, 5
SECONDS = 120.0


def main(quick: bool) -> list[str]:
    cases = [(law, sigma) for law in ("gaussian", "logistic") for sigma in (0.05, 0.1, 0.3)]
    return rows(cases[:2] if quick else cases, 20 if quick else 500)


def rows(cases: list[tuple[str, float]], repetitions: int) -> list[str]:
    """One row a law and noise level (as a share of std y); d = 20, k = 5, n = 20 000."""
    table = Table(
        "inputs", "noise / std y", "repetitions", "consistent", "RMSE / CRB, pooled", "median parameter",
        "worst parameter", "worst by chance", "coverage of 95 %",
    )  # fmt: skip
    cells = [(law, sigma, i) for law, sigma in cases for i in range(repetitions)]
    measured = _pool.run(noisy_trial, cells)
    for law, sigma in cases:
        mine = [row for cell, row in measured if cell[:2] == (law, sigma) and "broke" not in row]
        if not mine:
            continue
        errors, bounds, covered = (np.array([row[key] for row in mine]) for key in ("error", "bound", "in"))
        ratio = np.sqrt(np.mean(np.square(errors), axis=0) / np.mean(np.square(bounds), axis=0))
        pooled = float(np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(bounds))))
        # What the worst of as many ratios is when every estimate sits exactly on the bound.
        rng = stream(0, "benchmark", "noise", "chance")
        chance = rng.chisquare(len(mine), (2000, len(ratio))) / len(mine)
        table.row(
            law, sigma, len(mine), sum(row["status"] == "consistent" for row in mine), pooled,
            float(np.median(ratio)), float(np.max(ratio)),
            float(np.median(np.sqrt(chance.max(axis=1)))), f"{100 * np.mean(covered):.2f} %",
        )  # fmt: skip
    return table.lines


def noisy_trial(law: str, noise: float, repetition: int) -> dict[str, Any]:
    """Errors, bounds and whether the 95 % interval covers, for every parameter of one repetition.

    The teacher is the same in all repetitions: a bound belongs to a parameter.
    """
    problem = oh.problems.get(f"{law}-relu-orthonormal-{D}x{K}")
    truth = problem.teacher(0)
    X = problem.law.sample(N, derived_seed(repetition, "benchmark", "noise", "inputs"))
    clean = truth.predict(X)
    sigma = noise * clean.std()
    y = clean + sigma * stream(repetition, "benchmark", "noise", "noise").standard_normal(len(clean))
    r = oh.recover(X, y, K, bias=problem.bias, seed=repetition, max_seconds=_pool.seconds(SECONDS))
    p = oh.match(r.network, truth).permutation

    def flat(record: Any) -> np.ndarray:
        return np.concatenate([record.weights[p].ravel(), record.output[p], [record.intercept]])

    target = np.concatenate([truth.weights.ravel(), truth.output, [truth.intercept]])
    low, high = (flat(end) for end in r.interval(0.95))
    return {
        "error": (flat(r.network) - target).tolist(),
        "bound": cramer_rao(truth, X, sigma).tolist(),
        "in": ((low <= target) & (target <= high)).tolist(),
        "status": r.status,
    }


def cramer_rao(net: oh.OneHiddenNet, X: np.ndarray, sigma: float) -> np.ndarray:
    """Standard deviations no unbiased estimate of (rows, outputs, intercept) at unit norm can beat.

    Written apart from the library: the constrained bound N (N' F N)^-1 N', N a basis of the null space of
    the constraints' gradients by SVD.
    """
    k, d = net.weights.shape
    on = (X @ net.weights.T > 0).astype(float)
    J = ((on * net.output)[:, :, None] * X[:, None, :]).reshape(len(X), k * d)
    J = np.column_stack([J, np.maximum(X @ net.weights.T, 0), np.ones(len(X))])
    constraints = np.zeros((k, J.shape[1]))
    for i in range(k):
        constraints[i, i * d : (i + 1) * d] = net.weights[i]
    N = np.linalg.svd(constraints)[2][k:].T
    covariance = N @ np.linalg.inv(N.T @ (J.T @ J) @ N) @ N.T
    return sigma * np.sqrt(np.diag(covariance))
