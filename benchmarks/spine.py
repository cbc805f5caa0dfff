"""The spine: exact recovery over the catalogue, efficiency with noise, time against plain peers.

Success is a worst relative error of rows, outputs, biases and intercept of at most 1e-8 after matching.
"""

from __future__ import annotations

import os
import resource
import time

import numpy as np

import onehidden as oh
from benchmarks import _peers
from benchmarks._table import Table
from onehidden.papers.parallel import map_cells, workers

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
EXACT = 1e-8


def main(quick: bool) -> list[str]:
    seeds = range(2 if quick else 10)
    timing = row_one_time(peers=not quick)
    lines = exact_rows(seeds)
    lines += noise_rows(40 if quick else 400)
    return lines + timing


def worst_error(found: oh.OneHiddenNet, truth: oh.OneHiddenNet) -> float:
    m = oh.match(found, truth)
    return max(m.max_error, m.output_error, m.bias_error, m.intercept_error)


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


def cramer_rao(net: oh.OneHiddenNet, X: np.ndarray, sigma: float) -> np.ndarray:
    """Standard deviations no unbiased estimate of (rows, outputs, intercept) at unit norm can beat.

    Written apart from the library: the constrained bound N (N' F N)^-1 N', N a basis of the null space of
    the constraints' gradients by SVD.
    """
    k, d = net.weights.shape
    on = (X @ net.weights.T + net.bias > 0).astype(float)
    J = np.concatenate(
        [(on * net.output)[:, :, None] * X[:, None, :], np.zeros((len(X), k, 0))], axis=2
    ).reshape(len(X), k * d)
    J = np.column_stack([J, np.maximum(X @ net.weights.T + net.bias, 0), np.ones(len(X))])
    constraints = np.zeros((k, J.shape[1]))
    for i in range(k):
        constraints[i, i * d : (i + 1) * d] = net.weights[i]
    N = np.linalg.svd(constraints)[2][k:].T
    covariance = N @ np.linalg.inv(N.T @ (J.T @ J) @ N) @ N.T
    return sigma * np.sqrt(np.diag(covariance))


def noisy_trial(repetition: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors, bounds and whether the 95 % interval covers, for every parameter of one repetition."""
    problem = oh.problems.get("relu-noisy-20x5")
    truth = problem.teacher(0)
    X = problem.law.sample(problem.n, 1000 + repetition)
    clean = truth.predict(X)
    sigma = problem.noise * clean.std()
    y = clean + sigma * np.random.default_rng(repetition).standard_normal(len(clean))
    r = oh.recover(X, y, problem.n_hidden, seed=repetition)
    p = oh.match(r.network, truth).permutation

    def flat(record) -> np.ndarray:
        return np.concatenate([record.weights[p].ravel(), record.output[p], [record.intercept]])

    target = np.concatenate([truth.weights.ravel(), truth.output, [truth.intercept]])
    low, high = (flat(end) for end in r.interval(0.95))
    return flat(r.network) - target, cramer_rao(truth, X, sigma), (low <= target) & (target <= high)


def noise_rows(repetitions: int) -> list[str]:
    """Noise of a tenth of std(y): root mean squared error against the bound, coverage of the intervals."""
    with workers(os.cpu_count() or 1):
        trials = map_cells(noisy_trial, [(i,) for i in range(repetitions)])
    errors, bounds, covered = (np.array(part) for part in zip(*trials, strict=True))
    ratio = np.sqrt(np.mean(np.square(errors), axis=0) / np.mean(np.square(bounds), axis=0))
    # What the worst of as many ratios is when every estimate sits exactly on the bound.
    rng = np.random.default_rng(0)
    chance = np.sqrt(rng.chisquare(repetitions, (2000, len(ratio))) / repetitions).max(axis=1)
    pooled = float(np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(bounds))))
    table = Table("noise 0.1 std(y), n = 20 000, d = 20, k = 5", "figure")
    table.row("repetitions", repetitions)
    table.row("RMSE / Cramér–Rao, all parameters pooled", pooled)
    table.row("RMSE / Cramér–Rao, median parameter", float(np.median(ratio)))
    table.row("RMSE / Cramér–Rao, worst parameter", float(np.max(ratio)))
    table.row("worst parameter on the bound by chance alone (median)", float(np.median(chance)))
    table.row("coverage of 95 % intervals", f"{100 * np.mean(covered):.2f} %")
    return table.lines


def row_one_time(peers: bool) -> list[str]:
    """The first row in a fresh process state: time with compilation, peak memory, and what peers need."""
    problem = oh.problems.get("relu-rotation-50")
    X, y, truth = problem.sample(None, 0)
    begin = time.perf_counter()
    r = oh.recover(X, y, problem.n_hidden, seed=0)
    ours = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    table = Table("relu-rotation-50, n = 16 384", "seconds", "ratio to ours", "relative loss", "worst error")
    table.row(
        f"onehidden, with compilation; peak memory {peak:.2f} GiB", ours, 1.0, f"{r.loss / y.var():.1e}",
        f"{worst_error(r.network, truth):.1e}",
    )  # fmt: skip
    if peers:
        for peer in (_peers.torch_wide_and_prune, _peers.sklearn_restarts):
            result = peer(X, y, problem.n_hidden)
            error = worst_error(result.network, truth)
            table.row(
                result.title, result.seconds, result.seconds / ours, f"{result.loss:.1e}", f"{error:.1e}"
            )
    return table.lines
