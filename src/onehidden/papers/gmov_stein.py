"""[GMOV] Lemma B.2, (21) and Examples 1, 2: the identities behind L, as printed and with the sign."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from onehidden.laws import GaussianMixture
from onehidden.network import OneHiddenNet
from onehidden.papers.fresh import rotation
from onehidden.papers.glm_theorems import COLUMNS, agree, draw
from onehidden.papers.gmov_fig3 import without_degree_two
from onehidden.papers.gmov_landscape import SHIFT, kappa_4
from onehidden.papers.record import Claim, Item, Row, Table, one_of
from onehidden.streams import derived_seed, stream

D = 3
PRINTED, SIGNED = "Lemma B.2 as printed, m = 3: E[y ∇³f/f] = E[∇³y]", "with the sign (−1)^m, m = 3"
CROSS = "(21): E[y S_4(u,u,v,v)] = Σ w κ ⟨a,u⟩²⟨a,v⟩²"
EXAMPLE = "Examples 1 and 2: t_1, t_2 of a mixture"
LIMIT = 4.0


def _one(rows: Sequence[Row], formula: str) -> str:
    row = next(row for row in rows if row["formula"] == formula)
    return one_of(row["deviation in standard errors"] <= LIMIT)


def _claim(name: str, where: str, says: str, formula: str) -> Claim:
    rule = f"Reproduced: within {LIMIT:g} standard errors of Monte Carlo. Else not reproduced."
    return Claim(name, where, says, rule, lambda rows: _one(rows, formula))


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
        lambda rows: agree(rows, CROSS),
    ),
    _claim(
        "gmov-examples", "[GMOV] Examples 1, 2",
        "t_1 and t_2 of a Gaussian and of a mixture are the contractions of S_4.", EXAMPLE,
    ),
)  # fmt: skip


def measure(full: bool, seed: int) -> Table:
    """Third order with tanh, fourth with ReLU, x of a mixture; examples at random points."""
    repeats, n = (400, 20_000) if full else (60, 10_000)
    law = GaussianMixture([0.5, 0.5], [SHIFT * np.ones(D), -SHIFT * np.ones(D)], np.eye(D))
    A = rotation(D, derived_seed(seed, "paper", "gmov-stein", "teacher"))
    w = np.array([1.0, 1.5, 2.0])
    rng = stream(seed, "paper", "gmov-stein", "directions")
    u = rng.standard_normal(D)
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
        (SIGNED, exact3, mean3, error3, abs(exact3 - mean3) / error3),
        (PRINTED, exact3, -mean3, error3, abs(exact3 + mean3) / error3),
        (CROSS, exact4, mean4, error4, abs(exact4 - mean4) / error4),
        ("control: twice (21)", 2 * exact4, mean4, error4, abs(2 * exact4 - mean4) / error4),
    ]
    X = law.sample(100, derived_seed(seed, "paper", "gmov-stein", "points"))
    gaps = [
        np.max(np.abs(_printed(X, law, u, v) - law.contract(X, u, u, v, v))),
        np.max(np.abs(_printed(X, law, u, u) - law.contract(X, u, u, u, u))),
    ]
    rounding = 1e-12
    rows.append((EXAMPLE, float(max(gaps)), 0.0, rounding, float(max(gaps)) / rounding))
    return Table(
        f"Identities behind L, d = {D}, mixture ±{SHIFT}", COLUMNS, tuple(rows),
        (f"{repeats} batches of {n} samples; the examples are held to 1e-12 at 100 points. For (21) y is "
         "freed of its degree-2 part, which moves no expectation E[y S_4].",),
    )  # fmt: skip


def _printed(X: np.ndarray, law: GaussianMixture, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Example 2 with t_1 of Example 1 (which is t_2 for u = v), letter by letter."""
    total = np.zeros(len(X))
    for weight, mean in zip(law.posterior(X).T, law.means, strict=True):
        a, b = (X - mean) @ u, (X - mean) @ v
        uu, vv, uv = u @ u, v @ v, u @ v
        total += weight * (a**2 * b**2 - uu * b**2 - 4 * a * b * uv - vv * a**2 + uu * vv + 2 * uv**2)
    return total


STEIN = Item("gmov-stein", "[GMOV] Lemma B.2, (21)", "The identities behind L.", CLAIMS, measure, draw)
