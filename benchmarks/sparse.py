"""Units of few inputs: five ReLU units of six of 300 inputs each, 2000 rows, noise of .2 sd(y).

``python -m benchmarks sparse``. Half of the rows choose the inputs of each unit, the others are fitted: how
often all inputs are right, the coverage of 95 % intervals of the weights, biases and outputs, and the error
of the mean on 4000 further rows, in sd(y), beside scikit-learn's MLP of 100 units, whose ridge penalty (.01,
.1, 1, 10) a fifth of the rows chooses. A unit's weights are +-uniform(.5, 1.5), scaled to length one, or 1.5
for tanh. The second table has fits from the truth on half as many rows whose inputs are known: what the rows
that did not choose can at best cover.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
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


def main(quick: bool) -> list[str]:
    table = Table(
        "activation",
        "runs",
        "all inputs right",
        "certified",
        "coverage",
        "CPU s",
        "error",
        "MLP",
    )
    for activation in ("relu",) if quick else ("relu", "tanh"):
        cells = [(activation, seed) for seed in range(2 if quick else 10)]
        rows = [row for _, row in _pool.run(measured, cells) if "broke" not in row]
        covered = sum(row["inside"] for row in rows) / max(sum(row["of"] for row in rows), 1)
        table.row(
            activation,
            len(rows),
            sum(row["right"] for row in rows),
            sum(row["certified"] for row in rows),
            covered,
            *(float(np.median([row[key] for row in rows])) for key in ("seconds", "error", "mlp")),
        )
    known = Table("activation", "runs of known inputs, 1000 rows", "coverage")
    for activation in ("relu", "tanh"):
        rows = [
            row for _, row in _pool.run(fitted, [(activation, 1000 + i) for i in range(4 if quick else 40)])
        ]
        known.row(activation, len(rows), sum(row["inside"] for row in rows) / sum(row["of"] for row in rows))
    return [*table.lines, "", *known.lines]


def teacher(activation: str, seed: int, d: int = 300, k: int = 5, inputs: int = 6) -> oh.OneHiddenNet:
    """Five units."""
    rng, weights = stream(seed, "sparse teacher"), np.zeros((k, d))
    for row in weights:
        row[rng.permutation(d)[:inputs]] = rng.uniform(0.5, 1.5, inputs) * rng.choice([-1, 1], inputs)
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    weights *= 1.0 if activation == "relu" else 1.5
    output = rng.uniform(0.7, 1.5, k) * rng.choice([-1, 1], k)
    return oh.OneHiddenNet(weights, output, rng.uniform(-0.5, 0.5, k), 0.3, activation)


def measured(activation: str, seed: int, n: int = 2000, noise: float = 0.2) -> dict[str, Any]:
    """One recovery."""
    truth = teacher(activation, seed)
    X, fresh = (
        stream(seed, name).standard_normal((rows, 300)) for name, rows in (("rows", n), ("new", 4000))
    )
    mean, wanted = truth.predict(X), truth.predict(fresh)
    y = mean + noise * float(np.std(mean)) * stream(seed, "noise").standard_normal(n)
    began = time.process_time()
    found = oh.recover(X, y, 5, activation=activation, structure="sparse", errors="classical")
    seconds = time.process_time() - began
    truth = truth.canonical()
    match = oh.match(found.network, truth)
    order, net = match.permutation, found.network
    right = bool(np.array_equal(net.weights[order] != 0, truth.weights != 0))
    inside = covered(found, truth, order, found.residual_freedom) if right else (0, 0)
    spread = float(np.std(wanted))
    fits = {"error": found.predict, "mlp": mlp(X, y, seed)}
    error = {name: float(np.sqrt(np.mean((fit(fresh) - wanted) ** 2))) / spread for name, fit in fits.items()}
    return {
        "right": right,
        "certified": bool(found.converged),
        "inside": inside[0],
        "of": inside[1],
        "seconds": seconds,
    } | error


@in_double
def fitted(activation: str, seed: int, n: int = 1000, noise: float = 0.2) -> dict[str, int]:
    """The fit from the truth whose inputs are known."""
    truth = teacher(activation, seed)
    own = np.flatnonzero(truth.weights.any(axis=0))
    truth = replace(truth, weights=truth.weights[:, own], linear=truth.linear[own])
    X = stream(seed, "rows").standard_normal((n, len(own)))
    mean = truth.predict(X)
    y = mean + noise * float(np.std(mean)) * stream(seed, "noise").standard_normal(n)
    options = Options(activation=activation, structure=oh.structure.Zeros(truth.weights == 0))
    problem = problem_of(read_target(X, y).samples, options)
    certificate = certify(optimise(truth, problem, Run(0)).network, problem, Run(0), "classical")
    truth = truth.canonical(ordered=False, turned=False)
    inside, of = covered(certificate, truth, np.arange(5), n - certificate.n_parameters)
    return {"inside": inside, "of": of}


def covered(found: Any, truth: oh.OneHiddenNet, order: np.ndarray, freedom: int) -> tuple[int, int]:
    """How many of the weights, biases and outputs lie in their intervals, and how many there are."""
    net, errors, inside, of = found.network, found.standard_errors, 0, 0
    odd = net.activation.name == "tanh"
    signs = np.sign(np.sum(net.weights[order] * truth.weights, axis=1)) if odd else np.ones(len(order))
    for name in ("weights", "bias", "output"):
        own, sd = getattr(net, name)[order], getattr(errors, name)[order]
        off = np.abs((own.T * signs).T - getattr(truth, name))[sd > 0]
        inside += int(np.sum(off < student.ppf(0.975, freedom) * sd[sd > 0]))
        of += len(off)
    return inside, of


def mlp(X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """Predictions of scikit-learn's network."""
    from sklearn.neural_network import MLPRegressor

    def fitted(alpha: float, rows: slice) -> Any:
        model = MLPRegressor(alpha=alpha, max_iter=300, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X[rows], y[rows]).predict

    kept, left = slice(0, len(y) * 4 // 5), slice(len(y) * 4 // 5, None)
    penalties = [0.01, 0.1, 1.0, 10.0]
    losses = [float(np.mean((fitted(alpha, kept)(X[left]) - y[left]) ** 2)) for alpha in penalties]
    return fitted(penalties[int(np.argmin(losses))], slice(None))
