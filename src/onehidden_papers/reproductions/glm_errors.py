"""[GLM] (4.1), [GMOV] (22) and Lemma 2.5: what an error of the rows proves, and does to outputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from onehidden.matching import match
from onehidden.run import stream
from onehidden_papers.reproductions.experiment import rotation
from onehidden_papers.reproductions.record import Curves, Row, Rows, one_of

RATIO, TRUE_RATIO = "error of a / δ a*_max", "error of a / δ |a*|"


def judge_metric(rows: Sequence[Row], form: str) -> str:
    """One matrix whose error is below 1/3 and which is farther from every permutation refutes the bound."""
    inside = [row for row in rows if row[form] < 1 / 3]
    bound = all(row["distance to a permutation"] <= np.sqrt(2 * row[form]) + 1e-12 for row in inside)
    return one_of(bool(inside) and bound)


def metric(settings: Any, seed: int) -> tuple[Rows, Curves]:
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
    return rows, {}


def _distance(Q: np.ndarray) -> float:
    """Smallest over permutations P of the largest entry of ||Q| − P|."""
    eye = np.eye(len(Q))
    return min(float(np.max(np.abs(np.abs(Q) - eye[list(p)]))) for p in permutations(range(len(Q))))


def outputs(B: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Algorithm 1: a_i = 2 E[y ⟨x, b_i⟩] from E[y x]; a negative one means that b_i points the wrong way."""
    return 2 * B @ moment


def judge_outputs(rows: Sequence[Row]) -> str:
    inside = [row for row in rows if row["δ κ*"] <= 0.5]
    return one_of(bool(inside) and all(row["orientations right"] and row[RATIO] <= 1 for row in inside))


def judge_corrected(rows: Sequence[Row]) -> str:
    inside = [row for row in rows if row["δ |a*| / a*_min"] < 1]
    bounded = all(row[TRUE_RATIO] <= 1 + 1e-9 for row in rows)
    return one_of(bool(inside) and bounded and all(row["orientations right"] for row in inside))


def lemma_2_5(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """E[y x] = ½ Σ a*_i b*_i exactly, so no sampling error enters; random directions and the worst."""
    d, trials = settings.d, settings.trials
    rng = stream(seed, "paper", "glm-lemma-2.5")
    rows = []
    for spread in (1.0, 3.0):
        a = np.linspace(1, spread, d)
        B = rotation(d, seed, "glm-lemma-2.5", "teacher")
        linear = B.T @ a / 2
        for share in (0.05, 0.2, 0.5, 1.0):
            delta = share / spread
            away = [rng.standard_normal(B.shape) for _ in range(trials)]
            found = np.array(
                [outputs(_moved(B, delta, way), linear) for way in (*away, -np.ones((d, 1)) * linear)]
            )
            worst, right = float(np.max(np.abs(found - a))), bool(np.all(found > 0))
            norm = float(np.linalg.norm(a))
            rows.append(
                (spread, delta, delta * spread, delta * norm / a.min(), trials + 1, right,
                 worst / (delta * a.max()), worst / (delta * norm))
            )  # fmt: skip
    return rows, {}


def _moved(B: np.ndarray, delta: float, away: np.ndarray) -> np.ndarray:
    """Return unit rows at distance δ from those of B, moved along ``away``."""
    away = away - np.sum(away * B, axis=1, keepdims=True) * B
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    cosine = 1 - delta**2 / 2
    return cosine * B + np.sqrt(1 - cosine**2) * away
