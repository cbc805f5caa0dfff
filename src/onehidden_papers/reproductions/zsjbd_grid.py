"""ICML Fig. 1(a) of [ZSJBD]: success rate of tensor start and descent over d and n, squared ReLU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onehidden.matching import match
from onehidden.streams import stream
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.experiment import judge_rates, map_cells
from onehidden_papers.reproductions.record import Claim, Curves, Item, Row, Table, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Read off the figure: n -> rate over 10 trials for each d.
REPORTED: dict[int, tuple[float, ...]] = {
    1000: (0.7, 1, 0.6, 0.6, 0.3, 0.2, 0.2, 0.6, 0.1),
    2000: (1, 0.9, 1, 0.8, 0.9, 0.8, 0.6, 0.4, 0.6),
    4000: (1, 1, 0.9, 1, 1, 0.8, 0.8, 1, 0.8),
    8000: (1, 1, 1, 1, 1, 1, 1, 1, 1),
}


@dataclass(frozen=True)
class Settings:
    """Sizes of a run and the teacher; those of the paper by default."""

    dimensions: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90)
    sizes: tuple[int, ...] = tuple(range(1000, 9001, 1000))
    trials: int = 10
    units: int = 5
    condition: float = 2.0
    activation: str = "squared_relu"
    success: float = 0.01  # relative error of the worst row


PAPERS = Settings()
Trial = Callable[[int, int, int], tuple[float, float]]  # (d, n, seed) -> worst row error, signs right


def judge_linear(rows: Sequence[Row]) -> str:
    """Every d succeeds at the largest n of the table, at 90 samples per input or fewer."""
    top = max(row["n"] for row in rows)
    last = [row for row in rows if row["n"] == top]
    return one_of(all(row["ours"] >= 0.9 and row["signs right"] >= 0.9 for row in last))


CLAIMS = (
    Claim(
        "zsjbd-icml-grid", "[ZSJBD] ICML Fig. 1(a)",
        "k = 5, κ = 2, squared ReLU, v = ±1, no noise, 10 trials a cell: success rates of tensor start and "
        "descent from .1 (d = 90, n = 1000) to 1 (n = 8000, every d).",
        "Reproduced: no cell lies more than three standard errors of a difference of shares below its "
        "reported rate. Else not reproduced.",
        judge_rates,
    ),
    Claim(
        "zsjbd-overall", "[ZSJBD] slides, overall theorem",
        "For homogeneous activations with P1–P3(a), n = O(d log(1/ε)) samples give W* to ε and v* exactly.",
        "Reproduced: at the largest n of the table at least nine in ten trials of every d have every row "
        "within 1 % and every sign of v right. Else not reproduced.",
        judge_linear,
    ),
)  # fmt: skip


def trial(d: int, n: int, seed: int) -> tuple[float, float]:
    """Return the worst row error of one recovery, and whether every sign of v is right."""
    import onehidden

    random = stream(seed, "paper", "zsjbd-icml-grid", "teacher", d, n)
    teacher = conditioned_teacher(d, PAPERS.units, PAPERS.condition, PAPERS.activation, random, signed=True)
    X = stream(seed, "paper", "zsjbd-icml-grid", "inputs", d, n).standard_normal((n, d))
    found = onehidden.recover(
        X, teacher.predict(X), hidden=PAPERS.units, activation=PAPERS.activation, bias=False, intercept=False,
        start="tensor", seed=seed,
    )  # fmt: skip
    m = match(found.network, teacher)
    paired = found.network.output[m.permutation] if np.all(m.permutation >= 0) else np.zeros(PAPERS.units)
    return m.max_error, float(np.all(np.sign(paired) == np.sign(teacher.output)))


def measure(
    settings: Settings, seed: int, run: Callable[[int, int, int], tuple[float, float]] = trial
) -> Table:
    """Success means every row within 1 %, rows at unit norm, as the figure counts it."""
    dimensions, sizes, trials = settings.dimensions, settings.sizes, settings.trials
    cells = [(d, n, 1000 * seed + t) for n in sizes for d in dimensions for t in range(trials)]
    found = np.array(map_cells(run, cells)).reshape(len(sizes), len(dimensions), trials, 2)
    rows = []
    for a, n in enumerate(sizes):
        for b, d in enumerate(dimensions):
            reported = REPORTED[n][PAPERS.dimensions.index(d)] if n in REPORTED else "–"
            errors, signs = found[a, b, :, 0], found[a, b, :, 1]
            rate = float(np.mean(errors <= settings.success))
            rows.append((n, d, reported, rate, float(np.mean(signs)), float(errors.max()), trials))
    return Table(
        "Success rate, squared ReLU, k = 5, κ = 2",
        ("n", "d", "reported", "ours", "signs right", "worst row error", "trials"),
        tuple(rows),
        ("Tensor start, then the library's finish; v = ±1, no noise; reported rates are over 10 trials.",),
    )


def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    sizes, dimensions = (sorted({row[key] for row in rows}) for key in ("n", "d"))
    rates = {(row["n"], row["d"]): row["ours"] for row in rows}
    table = [[rates[n, d] for d in dimensions] for n in sizes]
    image = axes.imshow(table, origin="lower", vmin=0, vmax=1, cmap="gray", aspect="auto")
    axes.set_xticks(range(len(dimensions)), [str(d) for d in dimensions])
    axes.set_yticks(range(len(sizes)), [str(n) for n in sizes])
    axes.set(xlabel="d", ylabel="n")
    figure.colorbar(image, label="success rate")


GRID = Item(
    "zsjbd-icml-grid", "[ZSJBD] ICML Fig. 1(a)", "Success over d and n.", CLAIMS, measure, draw,
    Settings((10, 50, 90), (1000, 2000), 2), PAPERS,
)  # fmt: skip
