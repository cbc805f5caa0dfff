"""Success of the tensor start over d and n: [ZSJBD] ICML Fig. 1(a)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from onehidden.matching import match
from onehidden.recovery import recover
from onehidden.run import stream
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.experiment import draw_columns, map_cells
from onehidden_papers.reproductions.record import Row, Table, item, one_of, printed


@dataclass(frozen=True)
class Settings:
    """Sizes of the figure and its teacher; those of the paper by default."""

    dimensions: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90)
    sizes: tuple[int, ...] = tuple(range(1000, 9001, 1000))
    trials: int = 10
    units: int = 5
    condition: float = 2.0
    activation: str = "squared_relu"
    success: float = 0.01  # relative error of the worst row


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
    paper = Settings()
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
    settings: Settings, seed: int, run: Callable[[int, int, int], tuple[float, float]] = trial
) -> Table:
    """Success means every row within 1 %, rows at unit norm, as the figure counts it."""
    known, rows = printed("zsjbd-icml-grid"), []
    cells = list(product(settings.sizes, settings.dimensions))
    found = map_cells(run, [(d, n, 1000 * seed + t) for n, d in cells for t in range(settings.trials)])
    for (n, d), values in zip(cells, np.reshape(found, (len(cells), settings.trials, 2)), strict=True):
        reported = known[n][Settings.dimensions.index(d)] if n in known else "–"
        errors, signs = values.T
        rate = float(np.mean(errors <= settings.success))
        rows.append((n, d, reported, rate, float(np.mean(signs)), float(errors.max()), settings.trials))
    return Table(
        "Success rate, squared ReLU, k = 5, κ = 2",
        ("n", "d", "reported", "ours", "signs right", "worst row error", "trials"),
        tuple(rows),
        ("Tensor start, then the library's finish; v = ±1, no noise; reported rates are over 10 trials.",),
    )


GRID = item(
    "zsjbd-icml-grid", {"zsjbd-icml-grid": judge_rates, "zsjbd-overall": judge_overall}, measure,
    draw_columns("n", ("ours", "reported"), by="d", ylabel="success rate, one line a d"),
    Settings((10, 50, 90), (1000, 2000), 2), Settings(),
)  # fmt: skip
