"""[GLM] (4.1), also [GMOV] (22): when the printed error proves that rows are a permutation of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from onehidden.matching import match
from onehidden.streams import stream
from onehidden_papers.reproductions.record import FAILED, REPRODUCED, Claim, Item, Row, Table


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    d: int = 6
    noises: int = 40


def _judge(form: str, rows: Sequence[Row]) -> str:
    """One matrix whose error is below 1/3 and which is farther from every permutation refutes the bound."""
    inside = [row for row in rows if row[form] < 1 / 3]
    bound = all(row["distance to a permutation"] <= np.sqrt(2 * row[form]) + 1e-12 for row in inside)
    return REPRODUCED if inside and bound else FAILED


_RULE = (
    "Reproduced: every matrix of the table with e < 1/3 lies within √(2e) of a signed permutation. "
    "Not reproduced: one does not."
)
CLAIMS = (
    Claim(
        "glm-metric", "[GLM] (4.1); [GMOV] (22)",
        "With e(Q) = min{1 − min_i max_j |Q_ij|, 1 − min_j max_i |Q_ij|} and unit rows, e(Q) ≤ ε < 1/3 puts "
        "Q within √(2ε) of a permutation matrix in the infinity norm.",
        _RULE, partial(_judge, "e with min, as printed"),
    ),
    Claim(
        "glm-metric-corrected", "[GLM] (4.1), corrected",
        "The same with max in place of min.", _RULE, partial(_judge, "e with max, honest"),
    ),
)  # fmt: skip


def measure(settings: Settings, seed: int) -> Table:
    """Permutations moved by noise of several sizes, and matrices whose rows collapse on few axes."""
    rng, eye = stream(seed, "paper", "glm-metric"), np.eye(settings.d)
    collapsed = eye[np.zeros(settings.d, int)]
    partly = eye[np.r_[0, 0, np.arange(2, settings.d)]]
    cases = [("all rows e_1", collapsed), ("two rows e_1, e_2 not found", partly)]
    for noise in np.geomspace(0.01, 0.5, settings.noises):
        Q = eye[rng.permutation(len(eye))] + noise * rng.standard_normal(eye.shape)
        cases.append((f"permutation and noise {noise:.3g}", Q))
    rows = []
    for label, Q in cases:
        Q = Q / np.linalg.norm(Q, axis=1, keepdims=True)
        m = match(Q, eye)
        rows.append((label, m.printed_error, m.honest_error, _distance(Q)))
    return Table(
        f"The papers' error of a matrix of unit rows, d = {settings.d}",
        ("matrix", "e with min, as printed", "e with max, honest", "distance to a permutation"),
        tuple(rows),
        ("Distance: largest entry of |Q| − P over the best P, by bottleneck assignment.",),
    )


def _distance(Q: np.ndarray) -> float:
    """Smallest over permutations P of the largest entry of ||Q| − P|: a bottleneck assignment."""
    from scipy.optimize import linear_sum_assignment

    size = np.abs(Q)
    chosen = np.maximum(1 - size, 0)
    for bound in np.unique(np.concatenate([chosen.ravel(), size.ravel()])):
        # Place (i, j) may be taken if its own gap and all others of its row and column stay below the bound.
        ok = chosen <= bound
        for i, j in zip(*np.nonzero(ok), strict=True):
            ok[i, j] = max(np.delete(size[i], j).max(), np.delete(size[:, j], i).max()) <= bound
        if ok[linear_sum_assignment(~ok)].all():
            return float(bound)
    return 1.0


METRIC = Item(
    "glm-metric", "[GLM] (4.1)", "What the printed parameter error proves.", CLAIMS, measure,
    default=Settings(noises=12), full=Settings(),
)  # fmt: skip
