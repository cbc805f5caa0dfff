"""Cost of the tensor start at d = 100, k = 10, n = 10⁵ and its growth in n, d and k."""

from __future__ import annotations

import time

import numpy as np

from benchmarks._table import Table
from onehidden.matching import match
from onehidden.run import stream
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.starts.tensor import tensor_start

REFERENCE = (100_000, 100, 10)
SWEEPS = {
    "n": [(25_000, 100, 10), (50_000, 100, 10), REFERENCE, (200_000, 100, 10)],
    "d": [(50_000, 50, 5), (50_000, 100, 5), (50_000, 200, 5), (50_000, 400, 5)],
    "k": [(50_000, 100, 5), (50_000, 100, 10), (50_000, 100, 20)],
}
QUICK = {"n": [(10_000, 50, 5), (20_000, 50, 5)], "d": [(10_000, 50, 5), (10_000, 100, 5)], "k": []}


def main(quick: bool) -> list[str]:
    table = Table("varied", "n", "d", "k", "seconds", "CPU seconds", "worst row error of the start")
    for varied, sizes in (QUICK if quick else SWEEPS).items():
        seconds = [_row(table, varied, *size) for size in sizes]
        if len(sizes) > 1:
            grown = [size["ndk".index(varied)] for size in sizes]
            slope = np.polyfit(np.log(grown), np.log(seconds), 1)[0]
            table.say(f"growth in {varied}: CPU seconds ~ {varied}^{slope:.2f}")
    return table.lines


def _row(table: Table, varied: str, n: int, d: int, k: int) -> float:
    random = stream(0, "benchmark", "tensor start", "teacher")
    teacher = conditioned_teacher(d, k, 2.0, "relu", random, signed=True)
    X = stream(0, "benchmark", "tensor start", "inputs").standard_normal((n, d))
    y = teacher.predict(X)
    began, used = time.perf_counter(), time.process_time()
    start = tensor_start(X, y, k, activation="relu")
    seconds, used = time.perf_counter() - began, time.process_time() - used
    table.row(varied, n, d, k, seconds, used, match(start, teacher).max_error)
    return used
