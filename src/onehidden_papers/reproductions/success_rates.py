"""Success of the tensor start: [ZSJBD] ICML Fig. 1(a), and the grids of Zhang, Yu, Wang, Gu (2019)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import stream
from onehidden_papers.lab.convexity import empirical_hessian
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.experiment import map_cells
from onehidden_papers.reproductions.record import (
    EXPLAINED,
    FAILED,
    REPRODUCED,
    Curves,
    Row,
    Table,
    item,
    one_of,
    printed,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """Sizes of the figure of [ZSJBD] and its teacher; those of the paper by default."""

    dimensions: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90)
    sizes: tuple[int, ...] = tuple(range(1000, 9001, 1000))
    trials: int = 10
    units: int = 5
    condition: float = 2.0
    activation: str = "squared_relu"
    success: float = 0.01  # relative error of the worst row


@dataclass(frozen=True)
class ReluSettings:
    """Sizes of the two runs of Zhang et al. and the teacher; those of the paper by default."""

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


Trial = Callable[[int, int, int], tuple[float, float]]  # (d, n, seed) -> two measured numbers


def measured(
    trial: Trial, cells: Iterable[tuple[int, int]], trials: int, seed: int
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Every cell (d, n) with what its trials measured, (trials, 2)."""
    cells = list(cells)
    found = map_cells(trial, [(d, n, 1000 * seed + t) for d, n in cells for t in range(trials)])
    return zip(cells, np.array(found).reshape(len(cells), trials, 2), strict=True)


def recovered(X: np.ndarray, y: np.ndarray, activation: str, seed: int) -> OneHiddenNet:
    """Return the network that the tensor start finds, with the width of the papers."""
    import onehidden

    given = {"hidden": Settings.units, "activation": activation, "bias": False, "intercept": False}
    return onehidden.recover(X, y, **given, start="tensor", seed=seed).network


def judge_rates(rows: Sequence[Row]) -> str:
    """No cell clearly below its reported rate: both rates are shares of few trials."""
    return one_of(all(not below(row) for row in rows if row["reported"] != "–"))


def below(row: Row, reported_trials: int = 10) -> bool:
    """Whether ours lies more than three standard errors of the difference below the reported rate."""
    known, ours, trials = float(row["reported"]), float(row["ours"]), int(row["trials"])
    share = (known * reported_trials + ours * trials) / (reported_trials + trials)
    error = np.sqrt(share * (1 - share) * (1 / reported_trials + 1 / trials))
    return ours < known - 3 * error


# [ZSJBD]: squared ReLU over d and n


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
    found = recovered(X, teacher.predict(X), paper.activation, seed)
    m = match(found, teacher)
    paired = found.output[m.permutation] if np.all(m.permutation >= 0) else np.zeros(paper.units)
    return m.max_error, float(np.all(np.sign(paired) == np.sign(teacher.output)))


def measure_grid(settings: Settings, seed: int, run: Trial = trial) -> Table:
    """Success means every row within 1 %, rows at unit norm, as the figure counts it."""
    known, rows = printed("zsjbd-icml-grid"), []
    cells = [(d, n) for n in settings.sizes for d in settings.dimensions]
    for (d, n), found in measured(run, cells, settings.trials, seed):
        reported = known[n][Settings.dimensions.index(d)] if n in known else "–"
        errors, signs = found.T
        rate = float(np.mean(errors <= settings.success))
        rows.append((n, d, reported, rate, float(np.mean(signs)), float(errors.max()), settings.trials))
    return Table(
        "Success rate, squared ReLU, k = 5, κ = 2",
        ("n", "d", "reported", "ours", "signs right", "worst row error", "trials"),
        tuple(rows),
        ("Tensor start, then the library's finish; v = ±1, no noise; reported rates are over 10 trials.",),
    )


def draw_grid(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    sizes, dimensions = (sorted({row[key] for row in rows}) for key in ("n", "d"))
    rates = {(row["n"], row["d"]): row["ours"] for row in rows}
    table = [[rates[n, d] for d in dimensions] for n in sizes]
    image = axes.imshow(table, origin="lower", vmin=0, vmax=1, cmap="gray", aspect="auto")
    axes.set_xticks(range(len(dimensions)), [str(d) for d in dimensions])
    axes.set_yticks(range(len(sizes)), [str(n) for n in sizes])
    axes.set(xlabel="d", ylabel="n")
    figure.colorbar(image, label="success rate")


# Zhang et al.: ReLU over N/d, and the error with noise


def judge_noise(rows: Sequence[Row]) -> str:
    if all(row["ours"] <= row["reported"] + 3 * row["standard error"] for row in rows):
        return REPRODUCED
    efficient = all(row["ours"] <= row["Cramér–Rao"] + 3 * row["standard error"] for row in rows)
    impossible = any(row["reported"] < row["Cramér–Rao"] - 3 * row["standard error"] for row in rows)
    return EXPLAINED if efficient and impossible else FAILED


def measure_relu(settings: ReluSettings, seed: int) -> Table:
    """Success rate without noise: a relative row error below 1e-3 for every row."""
    known, rows = printed("zhang-relu-grid"), []
    cells = [(d, ratio * d) for ratio in settings.ratios for d in settings.dimensions]
    for (d, n), found in measured(row_error, cells, settings.trials, seed):
        ratio, errors = n // d, found[:, 0]
        reported = known[ratio][ReluSettings.dimensions.index(d)] if ratio in known else "–"
        rate = float(np.mean(errors <= settings.success))
        rows.append((ratio, d, reported, rate, float(np.max(errors)), settings.trials))
    return Table(
        "Success rate, ReLU, K = 5, κ = 2",
        ("N/d", "d", "reported", "ours", "worst row error", "trials"),
        tuple(rows),
        ("v = 1, no noise; tensor start, then the library's finish.",),
    )


def draw_relu(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
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


def measure_noise(settings: ReluSettings, seed: int) -> Table:
    """|W - W*|_F with v = 1 (rows w_i a_i, since only their product is determined) beside Cramér–Rao."""
    trials, ratios = settings.noise_trials, settings.noise_ratios
    cells = [(d, ratio * d) for d, ratio in product(settings.noise_dimensions, ratios)]
    rows = []
    for (d, n), values in measured(noisy_error, cells, trials, seed):
        reported = printed("zhang-noise")[d][ReluSettings.noise_ratios.index(n // d)]
        squares = values**2
        error, bound = (float(v) for v in np.sqrt(squares.mean(axis=0)))
        # Of the root of a mean: half the relative error of the mean.
        standard = error * float(squares[:, 0].std(ddof=1) / squares[:, 0].mean() / np.sqrt(trials)) / 2
        rows.append((d, n // d, reported, error, standard, bound, error / bound, trials))
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
    units, condition = ReluSettings.units, ReluSettings.condition
    teacher = conditioned_teacher(d, units, condition, "relu", drawn["teacher"], signed=False)
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


def row_error(d: int, n: int, seed: int) -> tuple[float, float]:
    """Return the worst row and the worst output error of one recovery without noise."""
    X, y, teacher = sample(d, n, 0.0, seed)
    found = match(recovered(X, y, "relu", seed), teacher)
    return found.max_error, found.output_error


def noisy_error(d: int, n: int, seed: int) -> tuple[float, float]:
    """|W - W*|_F of one recovery with noise, and the bound on the same inputs."""
    X, y, teacher = sample(d, n, ReluSettings.noise, seed)
    error = frobenius_error(recovered(X, y, "relu", seed), teacher)
    return error, cramer_rao(teacher, X, ReluSettings.noise)


GRID = item(
    "zsjbd-icml-grid", {"zsjbd-icml-grid": judge_rates, "zsjbd-overall": judge_overall},
    measure_grid, draw_grid, Settings((10, 50, 90), (1000, 2000), 2), Settings(),
)  # fmt: skip
SMALL = ReluSettings((15, 20), (20, 50), 2, (10,), noise_trials=4)
RELU_GRID = item(
    "zhang-relu-grid", {"zhang-relu-grid": judge_rates}, measure_relu, draw_relu, SMALL, ReluSettings()
)
NOISE_TABLE = item(
    "zhang-noise", {"zhang-noise": judge_noise}, measure_noise, draw_noise, SMALL, ReluSettings()
)
