"""[GLM] Theorem 2.7: the landscape of G on N samples is that of its expectation once N is large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from onehidden.laws.gaussian import standard_normal
from onehidden.network import OneHiddenNet
from onehidden.streams import derived_seed
from onehidden_papers.objectives import GaussianDesigned
from onehidden_papers.reproductions.experiment import (
    REACHED,
    fourth_moment,
    honest_errors,
    judge_by_size,
    minima,
    random_rows,
    rotation,
)
from onehidden_papers.reproductions.record import Claim, Curves, Item, Row, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """Sizes of a run; ``c`` is the constant of the theorem."""

    sizes: tuple[int, ...] = (1 << 14, 1 << 17, 1 << 20, 1 << 23)
    starts: int = 50
    d: int = 4
    c: float = 0.01


CLAIM = Claim(
    "glm-theorem-2.7",
    "[GLM] Theorem 2.7; Theorem E.1, Lemmas E.2, E.5, Corollary E.4",
    "For N ≥ poly(d, 1/ε) samples every approximate local minimum of the empirical G is ε-close to a "
    "permutation of B*.",
    f"Reproduced: at the largest N every start ends within honest error {REACHED}, and the worst error is "
    "smaller than at the smallest N. Cannot be judged: errors fall with N and are not there yet (the "
    "polynomial is not stated). Else not reproduced.",
    partial(judge_by_size, reached="starts near the truth", tries="starts"),
)


def measure(settings: Settings, seed: int) -> Table:
    """Every start descended to a minimum of the empirical G, raw labels."""
    d, starts = settings.d, settings.starts
    truth = rotation(d, derived_seed(seed, "paper", "glm-theorem-2.7", "teacher"))
    teacher = OneHiddenNet(truth, np.ones(d))
    G = GaussianDesigned(settings.c, 1 / settings.c)
    first = random_rows(starts, d, d, derived_seed(seed, "paper", "glm-theorem-2.7", "starts"))
    rows = []
    for n in settings.sizes:
        T4 = fourth_moment(standard_normal(d), teacher, n, derived_seed(seed, "paper", "glm-theorem-2.7", n))
        errors = honest_errors(minima(G, first, {4: T4}, steps=600), truth)
        rows.append(
            (n, starts, int(np.sum(errors <= REACHED)), float(errors.max()), float(np.median(errors)))
        )
    return Table(
        f"Minima of G on N samples, d = k = {d}, a* = 1, {starts} starts",
        ("N", "starts", "starts near the truth", "worst honest error", "median honest error"),
        tuple(rows),
        (f"μ = {settings.c}, λ = {1 / settings.c:g}, the theorem's own; raw labels.",),
    )


def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    sizes = [row["N"] for row in rows]
    axes.loglog(sizes, [row["worst honest error"] for row in rows], "o-", label="worst of the starts")
    axes.loglog(sizes, [row["median honest error"] for row in rows], "s-", label="median")
    axes.axhline(REACHED, color="grey", linestyle=":")
    axes.set(xlabel="N", ylabel="honest error")
    axes.legend()


THEOREM_2_7 = Item(
    "glm-theorem-2.7", "[GLM] Theorem 2.7", "The landscape of G on N samples.", (CLAIM,), measure, draw,
    Settings((1 << 13, 1 << 16, 1 << 19), 10), Settings(),
)  # fmt: skip
