"""Success of the tensor start over d and n: [ZSJBD] ICML Fig. 1(a)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from onehidden.matching import match
from onehidden.recovery import recover
from onehidden.run import stream
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.experiment import map_cells
from onehidden_papers.reproductions.record import Curves, Row, Rows, one_of, printed, sizes_of


def judge_rates(rows: Sequence[Row]) -> str:
    """No cell clearly below its reported rate: both rates are shares of few trials."""
    return one_of(all(not below(row) for row in rows if row["reported"] != "–"))


def below(row: Row, reported_trials: int = 10) -> bool:
    """Whether ours lies more than three standard errors of the difference below the reported rate."""
    known, ours, trials = float(row["reported"]), float(row["ours"]), int(row["trials"])
    share = (known * reported_trials + ours * trials) / (reported_trials + trials)
    error = np.sqrt(share * (1 - share) * (1 / reported_trials + 1 / trials))
    return ours < known - 3 * error


def judge_overall(rows: Sequence[Row]) -> str:
    """Every d succeeds at the largest n of the table, at 90 samples per input or fewer."""
    top = max(row["n"] for row in rows)
    last = [row for row in rows if row["n"] == top]
    return one_of(all(row["ours"] >= 0.9 and row["signs right"] >= 0.9 for row in last))


def trial(d: int, n: int, seed: int) -> tuple[float, float]:
    """Return the worst row error of one recovery, and whether every sign of v is right."""
    paper = sizes_of("zsjbd-icml-grid")
    random = stream(seed, "paper", "zsjbd-icml-grid", "teacher", d, n)
    teacher = conditioned_teacher(d, paper.units, paper.condition, paper.activation, random, signed=True)
    X = stream(seed, "paper", "zsjbd-icml-grid", "inputs", d, n).standard_normal((n, d))
    found = recover(
        X, teacher.predict(X), paper.units, activation=paper.activation, bias=False, intercept=False,
        start="tensor", seed=seed,
    ).network  # fmt: skip
    m = match(found, teacher)
    paired = found.output[m.permutation] if np.all(m.permutation >= 0) else np.zeros(paper.units)
    return m.max_error, float(np.all(np.sign(paired) == np.sign(teacher.output)))


def measure(
    sizes: Any, seed: int, run: Callable[[int, int, int], tuple[float, float]] = trial
) -> tuple[Rows, Curves]:
    """Success means every row within 1 %, rows at unit norm, as the figure counts it."""
    known, paper, rows = printed("zsjbd-icml-grid"), sizes_of("zsjbd-icml-grid"), []
    cells = list(product(sizes.sizes, sizes.dimensions))
    found = map_cells(run, [(d, n, 1000 * seed + t) for n, d in cells for t in range(sizes.trials)])
    for (n, d), values in zip(cells, np.reshape(found, (len(cells), sizes.trials, 2)), strict=True):
        reported = known[n][paper.dimensions.index(d)] if n in known else "–"
        errors, signs = values.T
        rate = float(np.mean(errors <= paper.success))
        rows.append((n, d, reported, rate, float(np.mean(signs)), float(errors.max()), sizes.trials))
    return rows, {}
