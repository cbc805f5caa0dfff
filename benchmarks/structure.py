"""Structures: one filter at many places of a picture, and weights of at least zero.

``python -m benchmarks structure``. A ReLU layer with one 5 x 5 filter at the 100 places of a 14 x 14 picture
has 126 free parameters, 19 701 without the structure: recovered without noise from 1.5 rows for each. With
noise the fit from the truth gives the coverage of 95 % intervals, t quantiles, and the errors over the
bound: the inverse information of the free parameters at the truth. Then three tanh units of eight inputs of
which a third of the weights are zero, searched with bounds: coverage of weights by whether they are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden.certify.evaluate import certify
from onehidden.fit.problem import optimise
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream

PICTURE = oh.structure.Shifts((14, 14), (5, 5))
NO_LABELS: dict[str, Any] = dict(sample_weight=None, family=None, link=None, offset=None, trials=None)


def main(quick: bool) -> list[str]:
    exact = Table("rows", "per parameter", "runs", "exact", "largest error of a weight")
    for n in (190,):  # 1.5 for each free parameter
        rows = [row for _, row in _pool.run(recovered, [(n, seed) for seed in range(2 if quick else 5)])]
        sizes = [row["error"] for row in rows if row["status"] == "exact"]
        exact.row(n, n / 126, len(rows), len(sizes), max(sizes, default=float("nan")))
    covered = Table("rows", "noise", "runs", "coverage of filter and bias", "of outputs", "error over bound")
    for n, noise in ((252, 0.05), (504, 0.1)):
        rows = [row for _, row in _pool.run(noisy, [(n, noise, seed) for seed in range(4 if quick else 10)])]
        means = (float(np.mean([row[key] for row in rows])) for key in ("filter", "output", "ratio"))
        covered.row(n, noise, len(rows), *means)
    bounded = Table(
        "rows", "runs", "consistent", "coverage", "of positive weights", "of zero weights", "zeros at bound"
    )
    for n in (400, 1600):
        rows = [row for _, row in _pool.run(positive, [(n, seed) for seed in range(4 if quick else 10)])]
        rows = [row for row in rows if row["consistent"]] or rows
        counts = {key: sum(row[key] for row in rows) for key in rows[0]}
        above, zero = counts["above_inside"] / counts["above"], counts["zero_inside"] / counts["zero"]
        both = (counts["above_inside"] + counts["zero_inside"]) / (counts["above"] + counts["zero"])
        bounded.row(
            n, len(rows), counts["consistent"], both, above, zero, counts["at_bound"] / counts["zero"]
        )
    return [
        "Without noise:", "", *exact.lines, "", "With noise, in sd(y):", "", *covered.lines,
        "", "Weights of at least zero, noise .1:", "", *bounded.lines,
    ]  # fmt: skip


def layer(seed: int) -> oh.OneHiddenNet:
    """A teacher with one filter."""
    rng, weights = stream(seed, "teacher"), np.zeros((100, 196))
    own = rng.standard_normal(25)
    np.put_along_axis(weights, PICTURE.pixels, (own / np.linalg.norm(own))[None], axis=1)
    return oh.OneHiddenNet(weights, rng.standard_normal(100), np.full(100, 0.3), 0.5)


def recovered(n: int, seed: int) -> dict[str, Any]:
    """One recovery without noise."""
    truth, X = layer(seed), stream(seed, "rows", n).standard_normal((n, 196))
    found = oh.recover(X, truth.predict(X), structure=PICTURE, max_seconds=_pool.seconds(1200.0))
    error = float(np.max(np.abs(found.network.weights - truth.weights)))
    return {"status": str(found.status), "error": error}


@in_double
def noisy(n: int, noise: float, seed: int) -> dict[str, float]:
    """Coverage of a fit from the truth, and its errors over the bound."""
    truth, X = layer(seed), stream(seed, "rows", n).standard_normal((n, 196))
    mean = truth.predict(X)
    sigma = noise * float(np.std(mean))
    y = mean + sigma * stream(seed, "noise", n).standard_normal(n)
    problem = problem_of(read_target(X, y, **NO_LABELS).samples, Options(structure=PICTURE))
    certificate = certify(optimise(truth, problem, Run(0)).network, problem, Run(0), "classical")
    net, error = certificate.network, certificate.standard_errors
    place, reach = PICTURE.pixels[0], float(student.ppf(0.975, n - 126))
    off = np.append(net.weights[0, place] - truth.weights[0, place], net.bias[0] - truth.bias[0])
    z = np.abs(off) / np.append(error.weights[0, place], error.bias[0])
    output = net.output - truth.output
    bound = np.sqrt(np.diag(information(truth, X, sigma))[25:125])
    return {
        "filter": float(np.mean(z < reach)),
        "output": float(np.mean(np.abs(output) / error.output < reach)),
        "ratio": float(np.sqrt(np.mean((output / bound) ** 2))),
    }


def information(truth: oh.OneHiddenNet, X: np.ndarray, sigma: float) -> np.ndarray:
    """The inverse information of filter (24 ways to keep its length), bias, outputs and intercept."""
    patches = X[:, PICTURE.pixels]  # (n, places, 25)
    own = truth.weights[0, PICTURE.pixels[0]]
    t = patches @ own + truth.bias
    slope = (t > 0) * truth.output
    free = np.linalg.svd(own[None])[2][1:].T  # changes of the filter that keep its length
    J = np.column_stack([np.einsum("ns,nsf->nf", slope, patches) @ free, slope.sum(axis=1), np.maximum(t, 0)])
    J = np.column_stack([J, np.ones(len(X))])
    return sigma**2 * np.linalg.inv(J.T @ J)


def positive(n: int, seed: int) -> dict[str, int]:
    """Coverage of weights, a third of which are zero."""
    rng = stream(seed, "teacher")
    weights = rng.uniform(0.4, 1.2, (3, 8))
    weights.ravel()[rng.permutation(24)[:8]] = 0
    truth = oh.OneHiddenNet(weights, [1.0, -1.5, 2.0], rng.uniform(-0.5, 0.5, 3), 0.3, "tanh")
    X = stream(seed, "rows", n).standard_normal((n, 8))
    y = truth.predict(X) + 0.1 * stream(seed, "noise", n).standard_normal(n)
    found = oh.recover(X, y, 3, activation="tanh", structure="nonnegative")
    order = oh.match(found.network, truth).permutation
    own, errors = found.network.weights[order], found.standard_errors.weights[order]
    inside = np.abs(own - weights) <= student.ppf(0.975, n - found.freedom) * errors
    zero = weights == 0
    return {
        "consistent": int(found.status == "consistent"),
        "above": int(np.sum(~zero)),
        "above_inside": int(np.sum(inside & ~zero)),
        "zero": int(np.sum(zero)),
        "zero_inside": int(np.sum(inside & zero)),
        "at_bound": int(np.sum((own == 0) & zero)),
    }
