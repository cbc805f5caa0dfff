"""How many samples each method needs for d = 5 … 50 on one and the same problem.

ReLU units with orthonormal rows in general position, w = 1, no noise; inputs of unit variance, Gaussian or
logistic; k = 3 units, or as many as inputs. Found: honest error at most .1 (every unit has a found one of
cosine .9 or more, and the other way round). The grid of n is k d 2^(j/2) above the k d unknowns, which are
the limit without noise; the answer is its smallest n, by bisection, at which three of five samples are found.
Objectives descend from three random starts by Adam, the best kept by its own value; y is freed of what does
not move their mean, so they begin where that can be fitted. Where k < d, G and L are read in the span of the
second moment, as the tensor start is. Nothing is finished by least squares: a method stands alone.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from benchmarks import _pool
from benchmarks._table import Table
from benchmarks.estimated import score_moment
from onehidden import laws, recover
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.refused import Refused
from onehidden.run import derived_seed
from onehidden_papers.lab.descents import adam, cosine_decay, first_order_descent
from onehidden_papers.objectives import HermiteLoss, ScoreDesigned, SquaredLoss, unit_rows
from onehidden_papers.reproductions.experiment import random_rows, rotation
from onehidden_papers.scores import LocalLikelihood
from onehidden_papers.starts.tensor import tensor_start

FOUND, STARTS, SAMPLES, STEPS = 0.1, 3, 5, 800
# (law, units at d inputs, inputs): k = d = 50 takes an accelerator.
SETTINGS: tuple[tuple[str, int | None, tuple[int, ...]], ...] = (
    ("normal", 3, (5, 10, 20, 50)),
    ("logistic", 3, (5, 10, 20, 50)),
    ("normal", None, (5, 10, 20)),
)
LARGEST = 16_384
LARGEST_ESTIMATED = 4096  # a fit of the score compares every two rows, for every bandwidth tried
SECONDS = 30.0  # of one recovery
_SCALE = float(np.sqrt(3) / np.pi)  # of the logistic law of unit variance

Rows = np.ndarray
# From μ = 1 on, two rows on one unit are a local minimum. Moments of any law are read by this one object.
_L = ScoreDesigned(0.1, 1.0, None)


def main(quick: bool) -> list[str]:
    cells = [
        (law, units or d, d, method)
        for law, units, dimensions in (SETTINGS[:1] if quick else SETTINGS)
        for d in (dimensions[:1] if quick else dimensions)
        for method in METHODS
        if (law, method) != ("normal", KNOWN)
    ]
    table = Table(
        "inputs", "k", "d", "method", "unknowns", "samples needed", "tried up to", "runs", "seconds"
    )
    for (law, k, d, method), row in _pool.run(cell, cells, remark=lambda cell, row: str(row)):
        needed = f"more than {row['largest']}" if row["needed"] is None else row["needed"]
        table.row(law, k, d, method, k * d, needed, row["largest"], row["runs"], round(row["seconds"], 1))
    table.say("")
    table.say("normal inputs: L with the known score is G.")
    return table.lines


def grid(k: int, d: int, method: str) -> list[int]:
    """Numbers of samples that are tried."""
    largest = LARGEST_ESTIMATED if method == ESTIMATED else LARGEST
    least = max(k * (d + 1), 2 * (1 + d + comb(k + 1, 2)) if method in (DESIGNED, KNOWN, ESTIMATED) else 0)
    sizes = [int(np.ceil(k * d * 2 ** (j / 2))) for j in range(40)]
    return [n for n in sizes if least <= n <= largest]


def cell(law: str, k: int, d: int, method: str) -> dict[str, Any]:
    """The smallest n of the grid at which most samples are found; None where the largest is not enough."""
    begun, runs = time.perf_counter(), 0
    sizes = grid(k, d, method)

    def enough(n: int) -> bool:
        nonlocal runs
        found = failed = 0
        while 2 * max(found, failed) < SAMPLES:
            if _error(law, k, d, n, method, found + failed) <= FOUND:
                found += 1
            else:
                failed += 1
        runs += found + failed
        return found > failed

    low, high, stride = (
        -1,
        len(sizes),
        2,
    )  # sizes[low] is not enough, sizes[high] is; beyond the grid: unknown
    while high - low > 1:  # strides double until a size is enough, then the gap is halved
        middle = min(low + stride, len(sizes) - 1) if high == len(sizes) else (low + high) // 2
        low, high = (low, middle) if enough(sizes[middle]) else (middle, high)
        stride *= 2
    needed = sizes[high] if high < len(sizes) else None
    return {"needed": needed, "largest": sizes[-1], "runs": runs, "seconds": time.perf_counter() - begun}


def _error(law: str, k: int, d: int, n: int, method: str, sample: int) -> float:
    seed = derived_seed(5, "benchmark", "samples needed", law, k, d, sample)
    teacher = OneHiddenNet(rotation(d, seed)[:k], np.ones(k))
    X = _law(law, d).sample(n, derived_seed(seed, "inputs", n))
    rows = METHODS[method](X, teacher.predict(X), k, seed)
    return match(rows, teacher.weights).honest_error


def _law(law: str, d: int) -> laws.Law:
    return laws.Gaussian(np.zeros(d), np.eye(d)) if law == "normal" else laws.Logistic(d, _SCALE)


def _squared(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    return _pair(SquaredLoss(), X, y, k, seed, None)


def _hermite(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    loss = HermiteLoss((2, 4))
    return _pair(loss, X, left_of(y, X), k, seed, loss.project)


def _pair(
    loss: SquaredLoss | HermiteLoss, X: Rows, y: Rows, k: int, seed: int, project: Callable | None
) -> Rows:
    start = np.ones((STARTS, k)), random_rows(STARTS, k, X.shape[1], seed)
    steps = 2 * STEPS
    run = first_order_descent(
        loss.value_and_grad, start, optimiser=adam(cosine_decay(0.02, steps)), steps=steps,
        data=loss.prepare((X, y)), project=project,
    )  # fmt: skip
    return run.params[1][int(np.argmin(run.values[:, -1]))]


def _designed(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    return _in_span(laws.Gaussian(np.zeros(X.shape[1]), np.eye(X.shape[1])), X, y, k, seed)


def _known(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    return _in_span(_law("logistic", X.shape[1]), X, y, k, seed)


def _estimated(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    with warnings.catch_warnings():  # degree 2 for order 4 is what [GMOV] ask for
        warnings.simplefilter("ignore", UserWarning)
        return _in_span(LocalLikelihood(degree=2).fit(X), X, y, k, seed)


def _in_span(score: laws.ScoreFunction, X: Rows, y: Rows, k: int, seed: int) -> Rows:
    """L in the span of E[y S_2(x)], the top k eigenvectors: the theorems of G and L are of k = d."""
    second = score_moment(score, X, left_of(y, X), 2, np.eye(X.shape[1]))
    size, vectors = np.linalg.eigh((second + second.T) / 2)
    V = vectors[:, np.argsort(-np.abs(size))[:k]]
    Z = X @ V
    upper = np.triu_indices(k)
    lean = left_of(y, X, Z[:, upper[0]] * Z[:, upper[1]])  # degree 2 where the units lie moves no T_4
    # Seen in V, a standard normal law is one again: its moments need no dense scores.
    normal = isinstance(score, laws.Gaussian)
    data = (Z, lean) if normal else {4: score_moment(score, X, lean, 4, V)}
    run = first_order_descent(
        _L.value_and_grad, random_rows(STARTS, k, k, seed), optimiser=adam(0.02), steps=STEPS,
        data=_L.prepare(data), project=unit_rows,
    )  # fmt: skip
    return run.params[int(np.argmin(run.values[:, -1]))] @ V.T


def left_of(y: Rows, *features: Rows) -> Rows:
    """Residual of y after least squares on 1 and the features."""
    columns = np.column_stack([np.ones(len(y)), *features])
    return y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0]


def _tensor(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    """The start alone, with the Gaussian score whatever the law, as [ZSJBD] have it; refused is not found."""
    try:
        return tensor_start(X, y, k, seed=0).weights
    except Refused:
        return np.eye(k, X.shape[1])


def _recover(X: Rows, y: Rows, k: int, seed: int) -> Rows:
    limit = _pool.seconds(SECONDS)
    found = recover(X, y, hidden=k, bias=False, intercept=False, seed=0, max_seconds=limit).network
    return found.weights


SQUARED, HERMITE, DESIGNED = "ℓ2, random starts", "f'", "G"
KNOWN, ESTIMATED, TENSOR, OURS = "L, known score", "L, LLSFE", "tensor start", "recover"
METHODS: dict[str, Callable[[Rows, Rows, int, int], Rows]] = {
    SQUARED: _squared,
    HERMITE: _hermite,
    DESIGNED: _designed,
    KNOWN: _known,
    ESTIMATED: _estimated,
    TENSOR: _tensor,
    OURS: _recover,
}
