"""Zhang, Yu, Wang, Gu (2019): ReLU with a tensor start; success over N/d, and the error with noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.streams import stream
from onehidden_papers.lab.convexity import empirical_hessian
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.experiment import judge_rates, map_cells
from onehidden_papers.reproductions.record import (
    EXPLAINED,
    FAILED,
    REPRODUCED,
    Claim,
    Curves,
    Item,
    Row,
    Table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# N/d -> rate for d = 20, 50, 100.
REPORTED: dict[int, tuple[float, ...]] = {
    10: (0.0, 0.0, 0.0),
    15: (0.3, 0.8, 0.6),
    20: (0.9, 1.0, 0.8),
    35: (1.0, 1.0, 1.0),
}
# d -> |W - W*| in the Frobenius norm at N/d = 40, 60, 80.
NOISE_REPORTED: dict[int, tuple[float, ...]] = {10: (0.0795, 0.058, 0.0528), 50: (0.0727, 0.0546, 0.0483)}
PAPER = "Zhang, Yu, Wang, Gu 2019"


@dataclass(frozen=True)
class Settings:
    """Sizes of the two runs and the teacher; those of the paper by default."""

    ratios: tuple[int, ...] = (10, 15, 20, 25, 30, 35)
    dimensions: tuple[int, ...] = (20, 50, 100)
    trials: int = 10
    noise_dimensions: tuple[int, ...] = (10, 50)
    noise_ratios: tuple[int, ...] = (40, 60, 80)
    noise_trials: int = 40
    units: int = 5
    condition: float = 2.0
    noise: float = 0.1
    success: float = 1e-3  # relative error of the worst row


PAPERS, SMALL = Settings(), Settings((15, 20), (20, 50), 2, (10,), noise_trials=4)


GRID_CLAIM = Claim(
    "zhang-relu-grid", f"{PAPER}, success rates",
    "ReLU, K = 5, κ = 2, no noise, success at row error 1e-3: 0 at N/d ≤ 10; .3/.8/.6 at 15 for d = "
    "20/50/100; .9/1/.8 at 20; 1 from 35 on.",
    "Reproduced: no cell lies more than three standard errors of a difference of shares below its reported "
    "rate. Else not reproduced.",
    judge_rates,
)  # fmt: skip


def judge_noise(rows: Sequence[Row]) -> str:
    if all(row["ours"] <= row["reported"] + 3 * row["standard error"] for row in rows):
        return REPRODUCED
    efficient = all(row["ours"] <= row["Cramér–Rao"] + 3 * row["standard error"] for row in rows)
    impossible = any(row["reported"] < row["Cramér–Rao"] - 3 * row["standard error"] for row in rows)
    return EXPLAINED if efficient and impossible else FAILED


NOISE_CLAIM = Claim(
    "zhang-noise", f"{PAPER}, errors with noise",
    "ReLU, K = 5, κ = 2, noise N(0, .1): |W − W*|_F at N/d = 40, 60, 80 is .0795, .058, .0528 for d = 10 and "
    ".0727, .0546, .0483 for d = 50.",
    "Reproduced: the root mean square over trials is at most every reported value, to three of its standard "
    "errors. Explained by a control: it is not, it equals the Cramér–Rao value to three standard errors, and "
    "some reported value lies below that bound by as much (the setting must then differ). Else "
    "not reproduced.",
    judge_noise,
)  # fmt: skip


def measure_grid(settings: Settings, seed: int) -> Table:
    """Success rate without noise: a relative row error below 1e-3 for every row."""
    ratios, dimensions, trials = settings.ratios, settings.dimensions, settings.trials
    cells = [(d, r * d, 1000 * seed + t) for r in ratios for d in dimensions for t in range(trials)]
    errors = np.array(map_cells(row_error, cells)).reshape(len(ratios), len(dimensions), trials)
    rows = []
    for a, ratio in enumerate(ratios):
        for b, d in enumerate(dimensions):
            reported = REPORTED[ratio][PAPERS.dimensions.index(d)] if ratio in REPORTED else "–"
            rate = float(np.mean(errors[a, b] <= settings.success))
            rows.append((ratio, d, reported, rate, float(np.max(errors[a, b])), trials))
    return Table(
        "Success rate, ReLU, K = 5, κ = 2",
        ("N/d", "d", "reported", "ours", "worst row error", "trials"),
        tuple(rows),
        ("v = 1, no noise; tensor start, then the library's finish.",),
    )


def draw_grid(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    for i, d in enumerate(sorted({row["d"] for row in rows})):
        own = [row for row in rows if row["d"] == d]
        known = [row for row in own if row["reported"] != "–"]
        axes.plot([r["N/d"] for r in own], [r["ours"] for r in own], f"C{i}o-", label=f"ours, d = {d}")
        axes.plot(
            [r["N/d"] for r in known], [r["reported"] for r in known], f"C{i}x:", label=f"reported, d = {d}"
        )
    axes.set(xlabel="N/d", ylabel="success rate", ylim=(-0.05, 1.05))
    axes.legend(fontsize="small")


def measure_noise(settings: Settings, seed: int) -> Table:
    """|W - W*|_F with v = 1 (rows w_i a_i, since only their product is determined) beside Cramér–Rao."""
    trials = settings.noise_trials
    table = [
        (d, ratio, reported)
        for d in settings.noise_dimensions
        for ratio, reported in zip(settings.noise_ratios, NOISE_REPORTED[d], strict=True)
    ]
    cells = [(d, ratio * d, 1000 * seed + t) for d, ratio, _ in table for t in range(trials)]
    found = np.array(map_cells(noisy_error, cells)).reshape(len(table), trials, 2)
    rows = []
    for (d, ratio, reported), values in zip(table, found, strict=True):
        squares = values**2
        error, bound = (float(v) for v in np.sqrt(squares.mean(axis=0)))
        # Of the root of a mean: half the relative error of the mean.
        standard = error * float(squares[:, 0].std(ddof=1) / squares[:, 0].mean() / np.sqrt(trials)) / 2
        rows.append((d, ratio, reported, error, standard, bound, error / bound, trials))
    return Table(
        "Error with noise N(0, .1), ReLU, K = 5, κ = 2",
        ("d", "N/d", "reported", "ours", "standard error", "Cramér–Rao", "ours / Cramér–Rao", "trials"),
        tuple(rows),
        (
            f"Noise of standard deviation {settings.noise:g}; root mean square over trials; Cramér–Rao on "
            "the same inputs with v known: sqrt(σ² tr (J'J)⁻¹).",
        ),
    )


def draw_noise(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    at = np.arange(len(rows))
    errors = [3 * row["standard error"] for row in rows]
    axes.errorbar(
        at, [row["ours"] for row in rows], yerr=errors, fmt="o", label="ours, three standard errors"
    )
    axes.plot(at, [row["reported"] for row in rows], "kx", label="reported")
    axes.plot(at, [row["Cramér–Rao"] for row in rows], "C3_", markersize=18, label="Cramér–Rao")
    axes.set_xticks(at, [f"d = {row['d']}\nN/d = {row['N/d']}" for row in rows])
    axes.set(ylabel="|W - W*| in the Frobenius norm")
    axes.legend()


def sample(d: int, n: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, OneHiddenNet]:
    """Return inputs, targets and their teacher (v = 1)."""
    drawn = {use: stream(seed, "paper", "zhang-relu", use, d, n) for use in ("teacher", "inputs", "noise")}
    teacher = conditioned_teacher(d, PAPERS.units, PAPERS.condition, "relu", drawn["teacher"], signed=False)
    X = drawn["inputs"].standard_normal((n, d))
    return X, teacher.predict(X) + noise * drawn["noise"].standard_normal(n), teacher


def frobenius_error(found: OneHiddenNet, teacher: OneHiddenNet) -> float:
    """|W - W*|_F after optimal pairing, output weights moved into the rows."""
    pairing = match(found, teacher).permutation
    rows = found.weights * found.output[:, None]
    return float(np.linalg.norm(rows[pairing] - teacher.weights * teacher.output[:, None]))


def cramer_rao(teacher: OneHiddenNet, X: np.ndarray, noise: float) -> float:
    """Root of the smallest total variance of an unbiased estimate of W on these inputs."""
    information = empirical_hessian(teacher, X, teacher.predict(X)) * len(X) / noise**2
    return float(np.sqrt(np.trace(np.linalg.inv(information))))


def row_error(d: int, n: int, seed: int) -> float:
    """Return the worst row error of one recovery without noise."""
    X, y, teacher = sample(d, n, 0.0, seed)
    return match(_recovered(X, y, seed), teacher).max_error


def noisy_error(d: int, n: int, seed: int) -> tuple[float, float]:
    """|W - W*|_F of one recovery with noise, and the bound on the same inputs."""
    X, y, teacher = sample(d, n, PAPERS.noise, seed)
    return frobenius_error(_recovered(X, y, seed), teacher), cramer_rao(teacher, X, PAPERS.noise)


def _recovered(X: np.ndarray, y: np.ndarray, seed: int) -> OneHiddenNet:
    import onehidden

    found = onehidden.recover(
        X, y, hidden=PAPERS.units, activation="relu", bias=False, intercept=False, start="tensor", seed=seed
    )
    return found.network


GRID = Item(
    "zhang-relu-grid",
    PAPER,
    "Success of ReLU over N/d.",
    (GRID_CLAIM,),
    measure_grid,
    draw_grid,
    SMALL,
    PAPERS,
)
NOISE_TABLE = Item(
    "zhang-noise", PAPER, "Errors with noise.", (NOISE_CLAIM,), measure_noise, draw_noise, SMALL, PAPERS
)
