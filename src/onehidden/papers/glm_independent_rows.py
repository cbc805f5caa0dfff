"""[GLM] Theorems C.4 and C.5: F for rows that are not orthogonal, F_δ for fewer rows than inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import NonOrthogonal
from onehidden.papers.fresh import random_rows
from onehidden.papers.record import Claim, Item, Row, Table, one_of
from onehidden.problems.problem import conditioned
from onehidden.solvers.saddle_free import saddle_free_newton
from onehidden.streams import derived_seed, stream

C, CLOSE = 0.01, 0.01
SQUARE, NARROW = "F, k = d", "F_δ, k < d"


def _judge(rows: Sequence[Row], setting: str) -> str:
    own = [row for row in rows if row["setting"] == setting]
    return one_of(bool(own) and all(row["reach the truth"] == row["starts"] for row in own))


def _claim(name: str, where: str, says: str, setting: str) -> Claim:
    rule = (
        f"Reproduced: every start, driven past saddles by second-order steps, ends where the rows of B⁺ᵀ are "
        f"those of ΓB* to honest error {CLOSE}. Else not reproduced: one counterexample refutes it."
    )
    return Claim(name, where, says, rule, lambda rows: _judge(rows, setting))


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


def measure(full: bool, seed: int) -> Table:
    """Minima of F on exact moments from random starts, rows of condition number 2."""
    starts = 50 if full else 10
    rows = []
    for setting, k, d, delta in ((SQUARE, 4, 4, 0.0), (NARROW, 3, 5, 1e-4)):
        for spread in (1.0, 2.0):
            draw = stream(seed, "paper", "glm-theorem-c.4", "teacher", setting)
            B = conditioned(2.0)(draw, k, d)
            B /= np.linalg.norm(B, axis=1, keepdims=True)
            teacher = OneHiddenNet(B, np.linspace(1, spread, k))
            F = NonOrthogonal(C / spread, 1 / C, delta)
            first = random_rows(starts, k, d, derived_seed(seed, "paper", "glm-theorem-c.4", "starts"))
            run = saddle_free_newton(F.function, first, F.prepare(teacher), steps=1000, radius=0.2)
            found = [F.rows(point) for point in run.params]
            unit = [rows_ / np.linalg.norm(rows_, axis=1, keepdims=True) for rows_ in found]
            angles = np.array([_angle(rows_, B) for rows_ in unit])
            scale = np.array([_length(rows_, teacher) for rows_ in found])
            reached = int(np.sum(angles <= CLOSE))
            rows.append((setting, k, d, spread, starts, reached, float(angles.max()), float(scale.max())))
    return Table(
        f"Minima of F and F_δ on exact moments, {starts} starts",
        ("setting", "k", "d", "κ_a", "starts", "reach the truth", "worst 1 − cosine", "worst |length − √a*|"),
        tuple(rows),
        (f"c = {C}; δ = 1e-4 for k < d; B* of condition number 2 with rows at unit norm.",),
    )


def _angle(found: np.ndarray, truth: np.ndarray) -> float:
    """1 − the smallest cosine between paired rows."""
    m = match(found, truth)
    return float(1 - np.min(np.abs(np.sum(found[m.permutation] * truth, axis=1))))


def _length(found: np.ndarray, teacher: OneHiddenNet) -> float:
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    order = match(unit, teacher.weights).permutation
    return float(np.max(np.abs(np.linalg.norm(found[order], axis=1) - np.sqrt(teacher.output))))


THEOREM_C = Item(
    "glm-theorem-c.4",
    "[GLM] Theorems C.4, C.5",
    "F and F_δ for rows that are not orthogonal.",
    CLAIMS,
    measure,
)
