"""[GMOV] Theorem 1 and Remark 1: the rate of LLSFE of degree p for the score of order m ≤ p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from onehidden.scores.local_polynomial import polynomial_fit
from onehidden.streams import stream
from onehidden_papers.reproductions.record import OPEN, Claim, Curves, Item, Row, Table, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """Sizes of a run, the mixture and the query; the half-width is h = scale · n^(−1/(2p+3))."""

    trials: int = 400
    degrees: tuple[int, ...] = (2, 3, 4)
    sizes: tuple[int, ...] = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
    centre: float = 1.0  # components at ±1
    query: float = 0.7
    scale: float = 4.0
    kernel: str = "tricube"


def bound(p: int, m: int) -> float:
    """Return the exponent of Remark 1 for d = 1."""
    return -(p + 1 - m) / (2 * p + 3)


def judge(rows: Sequence[Row]) -> str:
    """Slopes at or below the exponent, to three standard errors; a conjecture on optimality is not judged."""
    return one_of(
        all(row["slope"] <= row["exponent of Remark 1"] + 3 * row["standard error"] for row in rows)
    )


CLAIMS = (
    Claim(
        "gmov-theorem-1", "[GMOV] Theorem 1, Remark 1; Lemma 2.1",
        "For p ≥ m and h = n^(−1/(2p+2+d)) the error of LLSFE is O_p(n^(−(p+1−m)/(2p+2+d))).",
        "Reproduced: for p = 2, 3, 4 and every m ≤ p the slope of the log median error against log n lies at "
        "or below that exponent, to three standard errors. Else not reproduced.",
        judge,
    ),
    Claim(
        "gmov-remark-2", "[GMOV] Remark 2",
        "Conjecture: LLSFE is minimax rate-optimal.",
        "Cannot be judged: no run can show a lower bound over all estimators.",
        lambda rows: OPEN,
    ),
)  # fmt: skip


def measure(settings: Settings, seed: int) -> Table:
    """Measure on a mixture on the line, a query off the centre, degrees 2, 3 and 4, a compact kernel."""
    trials = settings.trials
    medians: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for p in settings.degrees:
        for n in settings.sizes:
            errors = np.array([_errors(settings, p, n, seed, trial) for trial in range(trials)])
            for m in range(1, p + 1):
                own = np.sort(errors[:, m - 1])
                half = 0.5 / np.sqrt(trials)
                se = float(np.quantile(own, 0.5 + half) - np.quantile(own, 0.5 - half)) / 2
                medians.setdefault((p, m), []).append((float(np.median(own)), se))
    x = np.log(settings.sizes)
    weight = (x - x.mean()) / np.sum((x - x.mean()) ** 2)
    rows, curves = [], {}
    for (p, m), found in medians.items():
        middle, se = np.array(found).T
        error = float(np.linalg.norm(weight * se / middle))
        rows.append((p, m, *middle, float(weight @ np.log(middle)), error, bound(p, m)))
        curves[f"p = {p}, m = {m}"] = (settings.sizes, middle)
    return Table(
        f"LLSFE at a point of a mixture on the line, {trials} samples",
        ("p", "m", *(f"median error, n = {n}" for n in settings.sizes), "slope", "standard error",
         "exponent of Remark 1"),
        tuple(rows),
        (f"½N(1, 1) + ½N(−1, 1), query {settings.query}, {settings.kernel} kernel of half-width "
         f"{settings.scale:g} n^(−1/(2p+3)).",),
        curves,
    )  # fmt: skip


def _errors(settings: Settings, p: int, n: int, seed: int, trial: int) -> list[float]:
    """|Ŝ_m − S_m| at the query, m = 1 … p, of one sample."""
    rng = stream(seed, "paper", "gmov-theorem-1", p, n, trial)
    Z = rng.standard_normal((n, 1)) + rng.choice([-settings.centre, settings.centre], size=(n, 1))
    h = settings.scale * n ** (-1 / (2 * p + 3))
    fit = polynomial_fit(Z, np.array([[settings.query]]), np.array([h]), p, settings.kernel)
    found = _scores([float(part.ravel()[0]) for part in fit.derivatives])
    return [abs(a - b) for a, b in zip(found, true_scores(settings, p), strict=True)]


def _scores(G: Sequence[float]) -> list[float]:
    """S_m = (−1)^m f^(m)/f from derivatives of log f, by f^(m) = Σ_j C(m−1, j) f^(j) G_(m−j)."""
    ratio = [1.0]
    for m in range(1, len(G) + 1):
        ratio.append(sum(comb(m - 1, j) * ratio[j] * G[m - j - 1] for j in range(m)))
    return [(-1) ** m * ratio[m] for m in range(1, len(G) + 1)]


def true_scores(settings: Settings, p: int) -> list[float]:
    """Posterior-weighted Hermite polynomials of the distance from each component."""
    away = settings.query + np.array([-settings.centre, settings.centre])
    weight = np.exp(-0.5 * away**2)
    weight /= weight.sum()
    hermite = [np.polynomial.hermite_e.hermeval(away, np.eye(p + 1)[m]) for m in range(1, p + 1)]
    return [float(weight @ values) for values in hermite]


def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    for name, (sizes, errors) in curves.items():
        axes.loglog(sizes, errors, "o-", label=name)
    axes.set(xlabel="n", ylabel="median |Ŝ_m − S_m|")
    axes.legend(fontsize="x-small", ncols=3)


THEOREM_1 = Item(
    "gmov-theorem-1",
    "[GMOV] Theorem 1",
    "The rate of LLSFE.",
    CLAIMS,
    measure,
    draw,
    Settings(60),
    Settings(),
)
