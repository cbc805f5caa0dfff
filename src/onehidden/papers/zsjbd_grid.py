"""ICML Fig. 1(a) of [ZSJBD]: success rate of tensor start and descent over d and n, squared ReLU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onehidden.matching import match
from onehidden.papers.conditioned import conditioned_teacher
from onehidden.papers.parallel import map_cells
from onehidden.papers.record import Reproduction
from onehidden.streams import stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

K, KAPPA, ACTIVATION, SUCCESS = 5, 2.0, "squared_relu", 0.01
DIMENSIONS = (10, 20, 30, 40, 50, 60, 70, 80, 90)
# Read off the figure: n -> rate over 10 trials for each d.
REPORTED: dict[int, tuple[float, ...]] = {
    1000: (0.7, 1, 0.6, 0.6, 0.3, 0.2, 0.2, 0.6, 0.1),
    2000: (1, 0.9, 1, 0.8, 0.9, 0.8, 0.6, 0.4, 0.6),
    4000: (1, 1, 0.9, 1, 1, 0.8, 0.8, 1, 0.8),
    8000: (1, 1, 1, 1, 1, 1, 1, 1, 1),
}
FULL_D, FULL_N, FULL_TRIALS = DIMENSIONS, tuple(range(1000, 9001, 1000)), 10
SMALL_D, SMALL_N, SMALL_TRIALS = (10, 50, 90), (1000, 2000), 2


def run(full: bool = False, seed: int = 0) -> Reproduction:
    """Success means every row within 1 %, rows at unit norm, as the figure counts it."""
    dimensions, sizes = (FULL_D, FULL_N) if full else (SMALL_D, SMALL_N)
    trials = FULL_TRIALS if full else SMALL_TRIALS
    cells = [(d, n, 1000 * seed + t) for n in sizes for d in dimensions for t in range(trials)]
    errors = np.array(map_cells(trial, cells)).reshape(len(sizes), len(dimensions), trials)
    rates = np.mean(errors <= SUCCESS, axis=2)
    rows = []
    for a, n in enumerate(sizes):
        for b, d in enumerate(dimensions):
            reported = REPORTED[n][DIMENSIONS.index(d)] if n in REPORTED else "–"
            rows.append((n, d, reported, float(rates[a, b]), float(np.max(errors[a, b])), trials))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        image = axes.imshow(rates, origin="lower", vmin=0, vmax=1, cmap="gray", aspect="auto")
        axes.set_xticks(range(len(dimensions)), [str(d) for d in dimensions])
        axes.set_yticks(range(len(sizes)), [str(n) for n in sizes])
        axes.set_xlabel("d")
        axes.set_ylabel("n")
        figure.colorbar(image, label="success rate")

    better = all(row[2] == "–" or row[3] >= float(row[2]) for row in rows)
    return Reproduction(
        name="zsjbd-icml-grid",
        title="Success rate, squared ReLU, k = 5, κ = 2",
        paper="[ZSJBD] ICML Fig. 1(a)",
        columns=("n", "d", "reported", "ours", "worst row error", "trials"),
        rows=tuple(rows),
        verdict="reproduced" if better else "not reproduced",
        notes=(
            "tensor start, then the library's finish; v = ±1, no noise; reported rates are over 10 trials",
        ),
        draw=draw,
    )


def trial(d: int, n: int, seed: int) -> float:
    """The worst row error of one recovery."""
    import onehidden

    random = stream(seed, "paper", "zsjbd-icml-grid", "teacher", d, n)
    teacher = conditioned_teacher(d, K, KAPPA, ACTIVATION, random, signed=True)
    X = stream(seed, "paper", "zsjbd-icml-grid", "inputs", d, n).standard_normal((n, d))
    found = onehidden.recover(
        X, teacher.predict(X), hidden=K, activation=ACTIVATION, bias=False, intercept=False, start="tensor",
        seed=seed,
    )  # fmt: skip
    return match(found.network, teacher).max_error
