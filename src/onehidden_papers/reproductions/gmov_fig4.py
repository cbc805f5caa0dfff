"""[GMOV] Fig. 4: L with the estimated score (local likelihood of degree 2), d = k = 2."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.laws import GaussianMixture
from onehidden.matching import Match, match
from onehidden.network import OneHiddenNet
from onehidden.streams import derived_seed
from onehidden_papers.lab.stochastic import adam, descend
from onehidden_papers.objectives import ScoreDesigned, unit_rows
from onehidden_papers.reproductions.experiment import random_rows
from onehidden_papers.reproductions.record import (
    EXPLAINED,
    FAILED,
    REPRODUCED,
    Claim,
    Curves,
    Item,
    Row,
    Table,
    one_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Sources = dict[str, Callable[[np.ndarray], Any]]
REACHED = 0.05  # honest error that counts as found
NORMAL, MIXTURE, FAIR = "N(0, I)", "mixture ±1", "mixture ±½"
PLAIN, TURNED, EMPTY = "A* = I", "A* rotated by 30°", "y = 1"
G_ROW, EXACT, ESTIMATED = "G", "L, exact score", "L, estimated score"
HONEST = "honest error, μ = 0.1"
# From μ = 1 on two rows on one unit are a local minimum; the paper has 30, its theorem at most 0.01. Once
# prepared, all sources are read by one objective: a score object of its own would compile anew.
_L, _PRINTED = ScoreDesigned(0.1, 1.0, None), ScoreDesigned(30.0, 1.0, None)
COLUMNS = ("inputs and truth", "objective", "reported", "printed error, μ = 30", "honest error, μ = 30",
           "printed error, μ = 0.1", HONEST)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Sizes of a run; n is that of the paper by default."""

    n: int = 8192
    trials: int = 7


def _errors(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    return {(row["inputs and truth"], row["objective"]): row[HONEST] for row in rows}


def judge_normal(rows: Sequence[Row]) -> str:
    found = _errors(rows)
    places = [(f"{NORMAL}, {truth}", who) for truth in (PLAIN, TURNED) for who in (G_ROW, ESTIMATED)]
    return one_of(all(found[place] <= REACHED for place in places))


def judge_mixture(rows: Sequence[Row]) -> str:
    """Ask that the exact score sees the network too, and that nothing is found without a network."""
    found = _errors(rows)
    if found[f"{MIXTURE}, {PLAIN}", ESTIMATED] > REACHED:
        return FAILED
    exact, without = found[f"{MIXTURE}, {PLAIN}", EXACT], found[f"{MIXTURE}, {EMPTY}", ESTIMATED]
    return REPRODUCED if exact <= REACHED < without else EXPLAINED


def judge_fair(rows: Sequence[Row]) -> str:
    found = _errors(rows)
    return one_of(all(found[f"{FAIR}, {TURNED}", who] <= REACHED for who in (EXACT, ESTIMATED)))


CLAIMS = (
    Claim(
        "gmov-fig4-normal", "[GMOV] Fig. 4, Gaussian inputs",
        "k = d = 2, n = 8192, A* = I: L with LLSFE operates close to G (.0045 and .0036).",
        f"Reproduced: median honest error of both ≤ {REACHED}, at A* = I and rotated. Else not reproduced.",
        judge_normal,
    ),
    Claim(
        "gmov-fig4-mixture", "[GMOV] Fig. 4, mixture inputs",
        "½N(1, I) + ½N(−1, I), A* = I: G ends at .1375, L with LLSFE at a global minimum (.0223).",
        f"Not reproduced: L with LLSFE ends above honest error {REACHED}. Reproduced: it does not, L with "
        "the exact score does not either, and without a network (y = 1) L with LLSFE does not find the axes. "
        "Else explained by a control.",
        judge_mixture,
    ),
    Claim(
        "gmov-fig4-fair", "[GMOV] Fig. 4, a fair version",
        "½N(½, I) + ½N(−½, I), A* rotated, where κ_4 is of one sign: L finds A* with the exact score and "
        "with LLSFE.",
        f"Reproduced: median honest error of both ≤ {REACHED}. Else not reproduced.",
        judge_fair,
    ),
)  # fmt: skip


def measure(settings: Settings, seed: int) -> Table:
    """Gaussian and mixture inputs: G, L with the exact and the estimated score; rotated A*, constant y."""
    n, trials = settings.n, settings.trials
    angle = np.pi / 6
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    places = [
        (NORMAL, PLAIN, np.eye(2), {G_ROW: 0.0036, ESTIMATED: 0.0045}),
        (NORMAL, TURNED, turned, {}),
        (MIXTURE, PLAIN, np.eye(2), {G_ROW: 0.1375, ESTIMATED: 0.0223}),
        (MIXTURE, TURNED, turned, {}),
        (MIXTURE, EMPTY, np.eye(2), {}),
        (FAIR, TURNED, turned, {}),
    ]
    rows = []
    for law, truth, A, reported in places:
        teacher = OneHiddenNet(A, np.ones(2))
        errors: dict[str, list[tuple[float, ...]]] = {}
        for trial in range(trials):
            X, sources = _inputs(law, n, seed, trial)
            y = np.ones(n) if truth == EMPTY else teacher.predict(X)
            for name, source in sources.items():
                known = source(y)
                start = random_rows(1, 2, 2, derived_seed(seed, "paper", "gmov-fig4", "start", trial))
                m, p = _run(_L, known, A, start), _run(_PRINTED, known, A, start)
                found = (p.printed_error, p.honest_error, m.printed_error, m.honest_error)
                errors.setdefault(name, []).append(found)
        for name, values in errors.items():
            middle = (float(v) for v in np.median(np.array(values), axis=0))
            rows.append((f"{law}, {truth}", name, reported.get(name, ""), *middle))
    return Table(
        f"G and L with the estimated score, k = d = 2, n = {n}, median of {trials}",
        COLUMNS,
        tuple(rows),
        (
            "Mixture ±1 and A* = I: the exact κ_4 = (t² − 1)φ(t) at t = ⟨a_i, 1⟩ = 1 is zero, so no "
            "objective of order 4 sees the network; what the estimated score follows is the bias of "
            "its degree 2.",
            "With y = 1 there is no network: an objective that still finds the axes reads the input law.",
        ),
    )


@lru_cache(maxsize=64)
def _inputs(law: str, n: int, seed: int, trial: int) -> tuple[np.ndarray, Sources]:
    """Return the inputs and the sources of each objective; scores are estimated once a trial."""
    from onehidden.scores import LocalLikelihood

    shift = {NORMAL: 0.0, MIXTURE: 1.0, FAIR: 0.5}[law] * np.ones(2)
    mixture = GaussianMixture([0.5, 0.5], [shift, -shift], np.eye(2))
    X = mixture.sample(n, derived_seed(seed, "paper", "gmov-fig4", "inputs", law, trial))
    true, estimate = mixture.score(X, 4), LocalLikelihood(degree=2).fit(X)
    with warnings.catch_warnings():  # the bias of degree 2 is what the figure is about
        warnings.simplefilter("ignore", UserWarning)
        found = estimate.score(X, 4)
    return X, {
        G_ROW: lambda y: _L.prepare((X, y)),
        EXACT: lambda y: _L.prepare({4: np.tensordot(y, true, 1) / len(y)}),
        ESTIMATED: lambda y: _L.prepare({4: np.tensordot(y, found, 1) / len(y)}),
    }


def _run(objective: ScoreDesigned, source: object, A: np.ndarray, start: np.ndarray) -> Match:
    run = descend(
        objective.value_and_grad, start, optimiser=adam(0.02), steps=800, data=source, project=unit_rows,
    )  # fmt: skip
    return match(run.params[0], A)


def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    found = _errors(rows)
    places = list(dict.fromkeys(place for place, _ in found))
    for shift, who in enumerate((G_ROW, EXACT, ESTIMATED)):
        at = np.arange(len(places)) + 0.27 * (shift - 1)
        axes.barh(at, [max(found[place, who], 1e-4) for place in places], height=0.25, label=who)
    axes.axvline(REACHED, color="grey", linestyle=":")
    axes.set_yticks(range(len(places)), places)
    axes.set(xscale="log", xlabel="median honest error, μ = 0.1")
    axes.minorticks_off()  # their labels would run into each other
    axes.set_xticks([0.01, 0.03, 0.1, 0.3], [".01", ".03", ".1", ".3"])
    axes.legend(fontsize="small")


FIG4 = Item(
    "gmov-fig4", "[GMOV] Fig. 4", "L with the estimated score in the plane.", CLAIMS, measure, draw,
    Settings(4096, 3), Settings(),
)  # fmt: skip
