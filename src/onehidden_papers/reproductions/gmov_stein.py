"""[GMOV] Lemma B.2, (21) and Examples 1, 2: the identities behind L, as printed and with the sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from onehidden.laws import GaussianMixture
from onehidden.network import OneHiddenNet
from onehidden.streams import derived_seed, stream
from onehidden_papers.reproductions.experiment import (
    COMPARED,
    DEVIATION,
    LIMIT,
    SHIFT,
    agree,
    compared,
    draw_deviations,
    kappa_4,
    mixture,
    rotation,
    without_degree_two,
)
from onehidden_papers.reproductions.record import Claim, Item, Row, Table, of, one_of

PRINTED, SIGNED = "Lemma B.2 as printed, m = 3: E[y ∇³f/f] = E[∇³y]", "with the sign (−1)^m, m = 3"
CROSS = "(21): E[y S_4(u,u,v,v)] = Σ w κ ⟨a,u⟩²⟨a,v⟩²"
EXAMPLE = "Examples 1 and 2: t_1, t_2 of a mixture"


@dataclass(frozen=True)
class Settings:
    """Monte Carlo batches of a run."""

    repeats: int = 400
    n: int = 20_000
    d: int = 3


def _one(formula: str, rows: Sequence[Row]) -> str:
    (row,) = of(rows, "formula", formula)
    return one_of(row[DEVIATION] <= LIMIT)


def _claim(name: str, where: str, says: str, formula: str) -> Claim:
    rule = f"Reproduced: within {LIMIT:g} standard errors of Monte Carlo. Else not reproduced."
    return Claim(name, where, says, rule, partial(_one, formula))


CLAIMS = (
    _claim(
        "gmov-lemma-b.2", "[GMOV] Lemma B.2 with (2); Lemma B.1",
        "E[y S_m(x)] = E[∇^m y] with S_m = ∇^m f/f, for every m ≥ 1.", PRINTED,
    ),
    _claim(
        "gmov-lemma-b.2-corrected", "[GMOV] Lemma B.2, corrected",
        "The same with S_m = (−1)^m ∇^m f/f.", SIGNED,
    ),
    Claim(
        "gmov-theorem-4", "[GMOV] Theorem 4, (21)",
        "E[y S_4(u,u,v,v)] = Σ_i w_i E[g''''(⟨a_i, x⟩)] ⟨a_i, u⟩²⟨a_i, v⟩².",
        f"Reproduced: within {LIMIT:g} standard errors of Monte Carlo, and twice its value outside. Else not "
        "reproduced.",
        partial(agree, CROSS),
    ),
    _claim(
        "gmov-examples", "[GMOV] Examples 1, 2",
        "t_1 and t_2 of a Gaussian and of a mixture are the contractions of S_4.", EXAMPLE,
    ),
)  # fmt: skip


def measure(settings: Settings, seed: int) -> Table:
    """Third order with tanh, fourth with ReLU, x of a mixture; examples at random points."""
    repeats, n, law = settings.repeats, settings.n, mixture(settings.d)
    A = rotation(settings.d, derived_seed(seed, "paper", "gmov-stein", "teacher"))
    w = np.array([1.0, 1.5, 2.0])
    rng = stream(seed, "paper", "gmov-stein", "directions")
    u = rng.standard_normal(settings.d)
    u /= np.linalg.norm(u)
    # Halfway between two rows the fourth moment is large.
    v, z = (A[0] + A[1]) / np.sqrt(2), (A[0] - A[1]) / np.sqrt(2)
    smooth, relu = OneHiddenNet(A, w, activation="tanh"), OneHiddenNet(A, w)
    third, fourth, curve = [], [], []
    for i in range(repeats):
        X = law.sample(n, derived_seed(seed, "paper", "gmov-stein", "inputs", i))
        third.append(np.mean(smooth.predict(X) * law.contract(X, u, u, u)))
        fourth.append(np.mean(without_degree_two(X, relu.predict(X)) * law.contract(X, v, v, z, z)))
        t = np.tanh(X @ A.T)
        curve.append(np.mean((-2 * (1 - t**2) * (1 - 3 * t**2)) @ (w * (A @ u) ** 3)))  # tanh'''
    exact3 = float(np.mean(curve))
    exact4 = float(kappa_4(SHIFT * A.sum(axis=1)) @ (w * (A @ v) ** 2 * (A @ z) ** 2))
    error3 = float(np.std(np.array(third) - curve) / np.sqrt(repeats))
    error4 = float(np.std(fourth) / np.sqrt(repeats))
    mean3, mean4 = float(np.mean(third)), float(np.mean(fourth))
    rows = [
        compared(SIGNED, exact3, mean3, error3),
        compared(PRINTED, exact3, -mean3, error3),
        compared(CROSS, exact4, mean4, error4),
        compared("control: twice (21)", 2 * exact4, mean4, error4),
    ]
    X = law.sample(100, derived_seed(seed, "paper", "gmov-stein", "points"))
    gaps = [
        np.max(np.abs(_printed(X, law, u, v) - law.contract(X, u, u, v, v))),
        np.max(np.abs(_printed(X, law, u, u) - law.contract(X, u, u, u, u))),
    ]
    rounding = 1e-12
    rows.append((EXAMPLE, float(max(gaps)), 0.0, rounding, float(max(gaps)) / rounding))
    return Table(
        f"Identities behind L, d = {settings.d}, mixture ±{SHIFT}", COMPARED, tuple(rows),
        (f"{repeats} batches of {n} samples; the examples are held to 1e-12 at 100 points. For (21) y is "
         "freed of its degree-2 part, which moves no expectation E[y S_4].",),
    )  # fmt: skip


def _printed(X: np.ndarray, law: GaussianMixture, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return example 2 with t_1 of Example 1 (which is t_2 for u = v), letter by letter."""
    total = np.zeros(len(X))
    for weight, mean in zip(law.posterior(X).T, law.means, strict=True):
        a, b = (X - mean) @ u, (X - mean) @ v
        uu, vv, uv = u @ u, v @ v, u @ v
        total += weight * (a**2 * b**2 - uu * b**2 - 4 * a * b * uv - vv * a**2 + uu * vv + 2 * uv**2)
    return total


STEIN = Item(
    "gmov-stein",
    "[GMOV] Lemma B.2, (21)",
    "The identities behind L.",
    CLAIMS,
    measure,
    draw_deviations,
    Settings(60, 10_000),
    Settings(),
)
