"""[GLM] Lemma 2.5: rows that are nearly right give the outputs and the orientations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onehidden.streams import derived_seed, stream
from onehidden_papers.reproductions.experiment import rotation
from onehidden_papers.reproductions.record import Claim, Item, Row, Table, one_of

RATIO, TRUE_RATIO = "error of a / δ a*_max", "error of a / δ |a*|"


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    d: int = 8
    trials: int = 20_000


def judge(rows: Sequence[Row]) -> str:
    inside = [row for row in rows if row["δ κ*"] <= 0.5]
    return one_of(bool(inside) and all(row["orientations right"] and row[RATIO] <= 1 for row in inside))


def judge_corrected(rows: Sequence[Row]) -> str:
    inside = [row for row in rows if row["δ |a*| / a*_min"] < 1]
    bounded = all(row[TRUE_RATIO] <= 1 + 1e-9 for row in rows)
    return one_of(bool(inside) and bounded and all(row["orientations right"] for row in inside))


CLAIMS = (
    Claim(
        "glm-lemma-2.5",
        "[GLM] Lemma 2.5, Algorithm 1",
        "Unit rows δ-close to B* up to order and sign, δ ≤ 1/(2κ*), give a with |a − Pa*|_∞ ≤ δ a*_max and "
        "the orientations, by a_i = 2E[y⟨x, b_i⟩] for ReLU.",
        "Reproduced: in every trial with δκ* ≤ ½ all orientations are right and the error of a is at most "
        "δ a*_max. Else not reproduced: one counterexample refutes it.",
        judge,
    ),
    Claim(
        "glm-lemma-2.5-corrected",
        "[GLM] Lemma 2.5, corrected; Lemma D.2",
        "a_i − a*_i = ⟨b_i − b*_i, Σ a*_j b*_j⟩, so the error is at most δ|a*| (up to √k larger than "
        "printed), and the orientations are right for δ < a*_min/|a*|.",
        "Reproduced: in every trial the error of a is at most δ|a*|, and orientations are right wherever "
        "δ|a*| < a*_min. Else not reproduced.",
        judge_corrected,
    ),
)


def measure(settings: Settings, seed: int) -> Table:
    """E[y x] = ½ Σ a*_i b*_i exactly, so no sampling error enters; random directions and the worst."""
    d, trials = settings.d, settings.trials
    rng = stream(seed, "paper", "glm-lemma-2.5")
    rows = []
    for spread in (1.0, 3.0):
        a = np.linspace(1, spread, d)
        B = rotation(d, derived_seed(seed, "paper", "glm-lemma-2.5", "teacher"))
        linear = B.T @ a / 2
        for share in (0.05, 0.2, 0.5, 1.0):
            delta = share / spread
            away = [rng.standard_normal(B.shape) for _ in range(trials)]
            found = np.array(
                [2 * _moved(B, delta, way) @ linear for way in (*away, -np.ones((d, 1)) * linear)]
            )
            worst, right = float(np.max(np.abs(found - a))), bool(np.all(found > 0))
            norm = float(np.linalg.norm(a))
            rows.append(
                (spread, delta, delta * spread, delta * norm / a.min(), trials + 1, right,
                 worst / (delta * a.max()), worst / (delta * norm))
            )  # fmt: skip
    return Table(
        f"Outputs from rows moved by δ, d = k = {d}, orthonormal B*",
        ("κ*", "δ", "δ κ*", "δ |a*| / a*_min", "trials", "orientations right", RATIO, TRUE_RATIO),
        tuple(rows),
        ("Rows are moved by exactly δ and kept at unit norm, in random directions and once against "
         "Σ a*_j b*_j.",
         "The proof bounds ⟨a*, u⟩ by a*_max |u| where |a*||u| is meant."),
    )  # fmt: skip


def _moved(B: np.ndarray, delta: float, away: np.ndarray) -> np.ndarray:
    """Return unit rows at distance δ from those of B, moved along ``away``."""
    away = away - np.sum(away * B, axis=1, keepdims=True) * B
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    cosine = 1 - delta**2 / 2
    return cosine * B + np.sqrt(1 - cosine**2) * away


LEMMA_2_5 = Item(
    "glm-lemma-2.5", "[GLM] Lemma 2.5", "Outputs and orientations from rows.", CLAIMS, measure,
    default=Settings(trials=2000), full=Settings(),
)  # fmt: skip
