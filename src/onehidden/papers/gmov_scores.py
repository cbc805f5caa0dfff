"""[GMOV] Figures 1 and 2: error of estimated scores against n, percentiles over trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onehidden.laws import Gaussian, GaussianMixture, Law
from onehidden.papers.parallel import map_cells
from onehidden.papers.record import Reproduction
from onehidden.streams import derived_seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)
PERCENTILES = (5, 25, 50, 75, 95)
QUANTITIES = {2: "|Ŝ_2 - S_2|_sp", 4: "|Ŝ_4 - S_4|_F"}
LOCAL, BEST = "LLSFE, p = 2, automatic h", "mixture by BIC"
HINDSIGHT = "LLSFE, p = 2, best h in hindsight"
BANDWIDTHS = (0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.3, 1.7, 2.5, 5.0)

# Medians read off the figures; slopes as the text prints them.
REPORTED = {
    "gmov-fig1": {
        2: (0.253, 0.176, 0.123, 0.0886, 0.0623, 0.0452, 0.0322),
        4: (1.62, 1.12, 0.746, 0.520, 0.371, 0.262, 0.185),
    },
    "gmov-fig2": {
        2: (0.648, 0.553, 0.466, 0.395, 0.332, 0.282, 0.244),
        4: (3.67, 3.42, 3.22, 3.02, 2.83, 2.65, 2.48),
    },
}
PRINTED_SLOPES = {"gmov-fig1": {2: -0.5143, 4: -0.4984}, "gmov-fig2": {2: -0.2587, 4: -0.1343}}
LAWS: dict[str, Law] = {
    "gmov-fig1": Gaussian(np.zeros(2), np.eye(2)),
    "gmov-fig2": GaussianMixture([0.5, 0.5], [[1.0, 1.0], [-1.0, -1.0]], np.eye(2)),
}
# Samples drawn at each n, each queried at 100 fresh points of the law.
_QUERIES = 100
_DEFAULT = {
    LOCAL: (16, 16, 12, 10, 8, 6, 4),
    HINDSIGHT: (40, 30, 20, 16, 12, 8, 4),
    BEST: (100, 60, 50, 40, 30, 30, 30),
}
_FULL = {LOCAL: (100,) * 7, HINDSIGHT: (100,) * 7, BEST: (500,) * 7}


def figure_1(full: bool = False, seed: int = 0) -> Reproduction:
    """Standard normal inputs, d = 2."""
    return _figure("gmov-fig1", "Score errors, x ~ N(0, I), d = 2", full, seed)


def figure_2(full: bool = False, seed: int = 0) -> Reproduction:
    """Two normal components at ±(1, 1), d = 2."""
    return _figure("gmov-fig2", "Score errors, x ~ ½N(1, I) + ½N(-1, I), d = 2", full, seed)


def _figure(name: str, title: str, full: bool, seed: int) -> Reproduction:
    samples = _FULL if full else _DEFAULT
    cells = [
        (name, who, n, trial, seed)
        for who, counts in samples.items()
        for n, count in zip(SIZES, counts, strict=True)
        for trial in range(count)
    ]
    errors: dict[str, dict[int, list[tuple[np.ndarray, np.ndarray]]]] = {who: {} for who in samples}
    for (_, who, n, _, _), pair in zip(cells, map_cells(trial_errors, cells), strict=True):
        errors[who].setdefault(n, []).append(pair)
    rows: list[tuple[Any, ...]] = []
    medians: dict[tuple[str, int], np.ndarray] = {}
    for who, found in errors.items():
        for place, (order, quantity) in enumerate(QUANTITIES.items()):
            # (choices of h, queries): one row but for the choice in hindsight, where the best median wins.
            pooled = [np.concatenate([pair[place] for pair in found[n]], axis=1) for n in SIZES]
            best = [e[np.argmin(np.median(e, axis=1))] for e in pooled]
            table = np.array([np.percentile(e, PERCENTILES) for e in best])
            medians[who, order] = table[:, 2]
            for n, reported, line in zip(SIZES, REPORTED[name][order], table, strict=True):
                below = "yes" if line[2] <= reported else "no"
                rows.append((quantity, who, n, reported, *map(float, line), below))
    return Reproduction(
        name,
        title,
        "GMOV",
        ("error", "estimator", "n", "reported median", *(f"{p} %" for p in PERCENTILES), "at or below"),
        tuple(rows),
        _verdict(name, medians),
        _notes(name, medians, full),
        _picture(name, medians),
    )


def trial_errors(name: str, who: str, n: int, trial: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of S_2 (spectral norm) and S_4 (Frobenius norm) of one sample, (choices, queries) each."""
    from onehidden.scores import LocalLikelihood, MixtureScore

    law = LAWS[name]
    X = law.sample(n, derived_seed(seed, "paper", name, "inputs", n, trial))
    Q = law.sample(_QUERIES, derived_seed(seed, "paper", name, "queries", n, trial))
    estimators: list[Any] = {
        LOCAL: [LocalLikelihood()],
        HINDSIGHT: [LocalLikelihood(bandwidth=h) for h in BANDWIDTHS],
        BEST: [MixtureScore(max_components=3)],
    }[who]
    true_second, true_fourth = law.score(Q, 2), law.score(Q, 4)
    second, fourth = [], []
    for estimator in estimators:
        fitted = estimator.fit(X)
        second.append(np.abs(np.linalg.eigvalsh(fitted.score(Q, 2) - true_second)).max(axis=1))
        fourth.append(np.linalg.norm((fitted.score(Q, 4) - true_fourth).reshape(len(Q), -1), axis=1))
    return np.array(second), np.array(fourth)


def slope(medians: npt.ArrayLike) -> float:
    """Least-squares slope of log error against log n."""
    return float(np.polyfit(np.log(SIZES), np.log(medians), 1)[0])


def _verdict(name: str, medians: dict[tuple[str, int], np.ndarray]) -> str:
    """The claim is that LLSFE with p = 2 falls with n to the reported size; h was not stated.

    So it is reproduced when the automatic or some fixed h does that, to 15 %, at every n.
    """
    for order, reported in REPORTED[name].items():
        reached = np.minimum(medians[LOCAL, order], medians[HINDSIGHT, order])
        if slope(reached) >= 0 or np.max(reached / np.array(reported)) > 1.15:
            return "not reproduced"
    return "reproduced"


def _notes(name: str, medians: dict[tuple[str, int], np.ndarray], full: bool) -> tuple[str, ...]:
    notes = []
    for order, quantity in QUANTITIES.items():
        reported = REPORTED[name][order]
        notes.append(
            f"{quantity}: slope reported {PRINTED_SLOPES[name][order]:.4f} "
            f"(its curve says {slope(reported):.3f}), LLSFE {slope(medians[LOCAL, order]):.3f}, "
            f"mixture {slope(medians[BEST, order]):.3f}; "
            f"largest ratio to the reported median: LLSFE {np.max(medians[LOCAL, order] / reported):.2f}, "
            f"in hindsight {np.max(medians[HINDSIGHT, order] / reported):.2f}, "
            f"mixture {np.max(medians[BEST, order] / reported):.2f}."
        )
    notes.append(
        "The paper states neither h nor the query points. Here queries are fresh draws of the law; the "
        "automatic h and the shape of the quadratic term come from leave-one-out likelihood. The reported "
        "medians are about what the best h in hindsight, chosen for each n and order, can reach."
    )
    if name == "gmov-fig1":
        notes.append(
            "With such queries the unrestricted Gaussian maximum likelihood fit, the efficient limit h -> "
            "infinity of p = 2, has median .290 at n = 128: below that only a restricted curvature can go."
        )
    else:
        notes.append(
            "p = 2 has no third and fourth derivative: its S_4 keeps a bias. The mixture family contains "
            "this law, which is what its faster fall rests on."
        )
    trials = "100 (LLSFE) or 500 (mixture)" if full else "4 to 100"
    notes.append(f"Percentiles over {trials} samples times {_QUERIES} queries each.")
    return tuple(notes)


def _picture(name: str, medians: dict[tuple[str, int], np.ndarray]) -> Callable[[Figure], None]:
    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, 2)
        for ax, (order, quantity) in zip(axes, QUANTITIES.items(), strict=True):
            ax.loglog(SIZES, REPORTED[name][order], "k--", label="reported")
            for who, mark in ((LOCAL, "o-"), (HINDSIGHT, "^-"), (BEST, "s-")):
                ax.loglog(SIZES, medians[who, order], mark, label=who)
            ax.set_xlabel("n")
            ax.set_title(quantity)
        axes[0].legend(fontsize=8)

    return draw
