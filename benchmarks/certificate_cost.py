"""What the certificate costs: its share of a recovery at d = k = 20, n = 10 000, stage by stage.

The stages are those of ``recover``: the search (with the checks of each answer), then the comparisons.
Seconds are those of the processor, on one thread where ``NPROC`` and ``OPENBLAS_NUM_THREADS`` are 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

import onehidden as oh
from benchmarks._table import Table
from onehidden import machine
from onehidden.certify.evaluate import certify
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.search import compared, search
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import checked_samples
from onehidden.run import Run, stream

T = TypeVar("T")
D, K, N = 20, 20, 10_000


def main(quick: bool) -> list[str]:
    table = Table(
        "activation", "noise", "status", "search s", "checks s", "comparisons s", "certificate / whole"
    )
    for name in ("relu",) if quick else ("relu", "tanh", "softplus"):
        for noise in (0.0, 0.3):
            table.row(*cost(name, noise))
    return table.lines


@in_double
def cost(name: str, noise: float) -> tuple[str, float, str, float, float, float, float]:
    """Processor seconds of search, checks and comparisons, after a first run that compiles."""
    draw = stream(0, "certificate cost", "teacher", name)
    A = np.linalg.qr(draw.standard_normal((D, K)))[0].T
    truth = oh.OneHiddenNet(A, draw.choice([-1.0, 1.0], K), 0.3 * draw.standard_normal(K), 0.5, name)
    X = draw.standard_normal((N, D))
    clean = truth.predict(X)
    y = clean + noise * clean.std() * draw.standard_normal(N)
    options = Options(
        hidden=K, activation=name, bias=True, intercept=True, score="auto", start="auto", seed=1,
        max_seconds=None, errors="auto", progress=False,
    )  # fmt: skip
    with machine.threads_for(K * (D + 2) + 1):
        _once(X, y, options)
        return (name, noise, *_once(X, y, options))


def _once(X: np.ndarray, y: np.ndarray, options: Options) -> tuple[str, float, float, float, float]:
    problem, run = problem_of(checked_samples(X, y, None), options), Run(options.seed)
    found, whole = _timed(lambda: search(problem, options, run))
    evaluated = sum(record.stage.startswith("certified") for record in run.trace)
    one = _timed(lambda: certify(found.certificate.network, problem, run, options.errors))[1]
    last, comparisons = _timed(lambda: compared(found, problem, options, run))
    checks = evaluated * one
    share = (checks + comparisons) / (whole + comparisons)
    return str(last.certificate.status), whole - checks, checks, comparisons, share


def _timed(act: Callable[[], T]) -> tuple[T, float]:
    begin = time.process_time()
    value = act()
    return value, time.process_time() - begin
