"""Exact recovery at the samples that were aimed at: ten teachers a row, whose streams no solver shares.

Of tables all rows count, and a teacher whose own certificate is not exact is set aside: the rows there cannot
tell it from others. ``BENCH_ONLY`` picks cells (``*50x50*``), ``JAX_PLATFORMS`` the machine.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool, _truth
from benchmarks._table import Table
from onehidden.certify.certificate import Status
from onehidden.certify.evaluate import certify
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.run import Run, stream

SEEDS = 10


@dataclass(frozen=True)
class Aim:
    """A kind of teacher, samples for each of its k d weights (0: all of a table), seconds, what is asked."""

    problem: str
    outputs: str  # "all 1", "both signs", "Gaussian"
    ratio: float
    seconds: float
    asked: str

    @property
    def size(self) -> int:
        problem = oh.problems.get(self.problem)
        return round(self.ratio * problem.n_hidden * problem.n_inputs) or problem.n


AIMS = [
    *(Aim(f"{table}-relu-10", "both signs", 0, 600, asked)
      for table, asked in (("wine", "7"), ("breast-cancer", "9"), ("iris", "9"))),
    *(Aim(f"{table}-relu-10", "Gaussian", 0, 600, "beside") for table in ("wine", "breast-cancer", "iris")),
    Aim("gaussian-relu-orthonormal-20x20", "both signs", 1.5, 300, "9"),
    Aim("gaussian-relu-orthonormal-20x20", "Gaussian", 1.5, 300, "beside"),
    Aim("gaussian-relu-orthonormal-20x20", "all 1", 2.0, 300, "9"),
    Aim("gaussian-relu-orthonormal-50x5", "both signs", 1.5, 120, "9"),
    Aim("mixture-relu-orthonormal-50x5", "both signs", 2.0, 120, "9"),
    Aim("gaussian-relu-orthonormal-50x50", "both signs", 2.0, 300, "9"),
    Aim("gaussian-relu-orthonormal-50x50", "Gaussian", 2.0, 300, "beside"),
    Aim("gaussian-relu-orthonormal-50x50", "all 1", 2.8, 300, "9"),
    Aim("gaussian-relu-orthonormal-50x50", "both signs", 3.3, 300, "two cores"),
    Aim("mixture-relu-orthonormal-50x50", "both signs", 3.3, 300, "9"),
]  # fmt: skip


def lines(quick: bool) -> list[str]:
    """The table of all aims."""
    aims = [AIMS[2]] if quick else AIMS
    cells = [(a.problem, a.outputs, a.ratio, seed) for seed in range(2 if quick else SEEDS) for a in aims]
    rows = _pool.run(cell, cells, threads=2)
    table = Table("problem", "outputs", "n / p", "n", "exact", "asked", "median s", "slowest s", "on")
    for aim in aims:
        mine = [row for c, row in rows if c[:3] == (aim.problem, aim.outputs, aim.ratio)]
        told = [row for row in mine if "broke" not in row and row["telling"]]
        if not told:
            continue
        seconds = [row["seconds"] for row in told]
        table.row(
            aim.problem, aim.outputs, aim.ratio or "all rows", aim.size,
            f"{sum(row['right'] for row in told)}/{len(told)}", aim.asked, float(np.median(seconds)),
            max(seconds), ", ".join(sorted({row["device"] for row in told})),
        )  # fmt: skip
    return table.lines


def cell(problem: str, outputs: str, ratio: float, seed: int) -> dict[str, Any]:
    """One recovery, held against its teacher."""
    (aim,) = (a for a in AIMS if (a.problem, a.outputs, a.ratio) == (problem, outputs, ratio))
    kind = oh.problems.get(problem)
    X, _, drawn = kind.sample(aim.size, seed)
    truth = replace(drawn, output=_outputs(aim, kind.n_hidden, seed))
    y = truth.predict(X)
    r = oh.recover(X, y, kind.n_hidden, bias=kind.bias, seed=seed, max_seconds=_pool.seconds(aim.seconds))
    row = _truth.judged(r, truth, 0.0) | {"device": _truth.device()}
    return row | {"telling": bool(row["right"] or aim.ratio or _telling(X, y, truth))}


def _outputs(aim: Aim, k: int, seed: int) -> np.ndarray:
    draw = stream(seed, "benchmark", "aims", aim.problem, aim.outputs)
    if aim.outputs == "Gaussian":
        return draw.standard_normal(k)
    return np.ones(k) if aim.outputs == "all 1" else draw.permutation(np.resize([1.0, -1.0], k))


def _telling(X: np.ndarray, y: np.ndarray, truth: oh.OneHiddenNet) -> bool:
    """Whether the rows certify the teacher itself."""
    samples = Samples(X, y)
    around = samples.coordinates(True)
    problem = Problem(samples, Parametrisation(truth.activation, around.rank, truth.n_hidden, True), around)
    return certify(truth, problem, Run()).status == Status.EXACT


if __name__ == "__main__":
    print("\n".join(lines(False)))
