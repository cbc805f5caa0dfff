"""[GLM] Theorems C.4 and C.5: F for rows that are not orthogonal, F_δ for fewer rows than inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.streams import derived_seed, stream
from onehidden_papers.objectives import NonOrthogonal
from onehidden_papers.problems.problem import conditioned
from onehidden_papers.reproductions.experiment import minima, random_rows
from onehidden_papers.reproductions.record import Claim, Item, Row, Table, of, one_of

SQUARE, NARROW = "F, k = d", "F_δ, k < d"


@dataclass(frozen=True)
class Settings:
    """Sizes of a run; ``c`` is the constant of the theorems."""

    starts: int = 50
    c: float = 0.01
    close: float = 0.01  # honest error of a minimum at the truth


def _judge(setting: str, rows: Sequence[Row]) -> str:
    own = of(rows, "setting", setting)
    return one_of(bool(own) and all(row["reach the truth"] == row["starts"] for row in own))


def _claim(name: str, where: str, says: str, setting: str) -> Claim:
    rule = (
        f"Reproduced: every start, driven past saddles by second-order steps, ends where the rows of B⁺ᵀ are "
        f"those of ΓB* to honest error {Settings.close}. Else not reproduced: one counterexample refutes it."
    )
    return Claim(name, where, says, rule, partial(_judge, setting))


CLAIMS = (
    _claim(
        "glm-theorem-c.4", "[GLM] Theorem C.4; Theorems C.1, C.2, Corollary C.3; [GMOV] Remark 3",
        "For independent rows, μ ≤ c/κ_a, λ ≥ 1/(c a*_min), every local minimum of F has B^{−ᵀ} = PDΓB*, "
        "Γ = diag(√a*).", SQUARE,
    ),
    _claim(
        "glm-theorem-c.5", "[GLM] Theorem C.5; Lemmas C.6, C.7",
        "For k < d the same holds for F_δ with the pseudo-inverse, up to any accuracy for small δ.", NARROW,
    ),
)  # fmt: skip


def measure(settings: Settings, seed: int) -> Table:
    """Minima of F on exact moments from random starts, rows of condition number 2."""
    starts, c = settings.starts, settings.c
    rows = []
    for setting, k, d, delta in ((SQUARE, 4, 4, 0.0), (NARROW, 3, 5, 1e-4)):
        for spread in (1.0, 2.0):
            draw = stream(seed, "paper", "glm-theorem-c.4", "teacher", setting)
            B = conditioned(2.0)(draw, k, d)
            B /= np.linalg.norm(B, axis=1, keepdims=True)
            teacher = OneHiddenNet(B, np.linspace(1, spread, k))
            F = NonOrthogonal(c / spread, 1 / c, delta)
            first = random_rows(starts, k, d, derived_seed(seed, "paper", "glm-theorem-c.4", "starts"))
            found = [F.rows(point) for point in minima(F, first, teacher)]
            angles, lengths = np.array([_gaps(one, teacher) for one in found]).T
            reached = int(np.sum(angles <= settings.close))
            rows.append((setting, k, d, spread, starts, reached, float(angles.max()), float(lengths.max())))
    return Table(
        f"Minima of F and F_δ on exact moments, {starts} starts",
        ("setting", "k", "d", "κ_a", "starts", "reach the truth", "worst 1 − cosine", "worst |length − √a*|"),
        tuple(rows),
        (f"c = {c}; δ = 1e-4 for k < d; B* of condition number 2 with rows at unit norm.",),
    )


def _gaps(found: np.ndarray, teacher: OneHiddenNet) -> tuple[float, float]:
    """1 − the smallest cosine between paired rows, and the largest gap between |row| and √a*."""
    length = np.linalg.norm(found, axis=1)
    unit = found / length[:, None]
    order = match(unit, teacher.weights).permutation
    cosine = np.abs(np.sum(unit[order] * teacher.weights, axis=1))
    return float(1 - np.min(cosine)), float(np.max(np.abs(length[order] - np.sqrt(teacher.output))))


THEOREM_C = Item(
    "glm-theorem-c.4",
    "[GLM] Theorems C.4, C.5",
    "F and F_δ for rows that are not orthogonal.",
    CLAIMS,
    measure,
    default=Settings(starts=10),
    full=Settings(),
)
