"""The two examples of [ZSJBD] where local strong convexity fails: g(z) = z and g(z) = z², W* = I, v = 1."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden_papers.lab.convexity import population_hessian
from onehidden_papers.reproductions.record import Claim, Item, Row, Table, of, one_of

# Dimension of the null space for k = d = 4: Σ a_i = 0 leaves d² − d; antisymmetric matrices d(d−1)/2.
NULL = {"linear": 12, "quadratic": 6}


def judge(name: str, rows: Sequence[Row]) -> str:
    """Ask for the predicted null space alone; activations with P2 have none."""
    (own,) = of(rows, "activation", name)
    others = [row for row in rows if row["activation"] not in NULL]
    return one_of(
        own["null directions"] == own["expected"]
        and own["defect of the null space"] < 1e-8
        and all(row["null directions"] == 0 for row in others)
    )


def _claim(name: str, formula: str, where: str) -> Claim:
    return Claim(
        f"zsjbd-degenerate-{name}", "[ZSJBD] slides, two examples",
        f"W* = I, v = 1, φ(z) = {formula}: the expected Hessian at W* is singular, with null space {where}.",
        "Reproduced: the null space has the dimension and form that this says, to 1e-8, and activations with "
        "P2 have none. Else not reproduced.",
        partial(judge, name),
    )  # fmt: skip


CLAIMS = (_claim("linear", "z", "Σ a_j = 0"), _claim("quadratic", "z²", "A = −A'"))


def measure(settings: None, seed: int) -> Table:
    """Smallest eigenvalue and null space of the expected Hessian, with activations that have P2 beside."""
    rows, d = [], 4
    for name in ("linear", "quadratic", "relu", "squared_relu", "tanh", "sigmoid", "erf"):
        network = OneHiddenNet(np.eye(d), np.ones(d), activation=name)
        values, vectors = np.linalg.eigh(population_hessian(network))
        null = int(np.sum(values <= 1e-12 * values[-1]))
        defect = 0.0
        if name in NULL:
            directions = vectors[:, :null].T.reshape(null, d, d)  # rows are a_j
            left = directions.sum(axis=1) if name == "linear" else directions + directions.transpose(0, 2, 1)
            defect = float(np.max(np.abs(left)))
        rows.append((name, float(values[0]), float(values[-1]), null, NULL.get(name, 0), defect))
    return Table(
        "Where local strong convexity does not hold",
        ("activation", "λ_min", "λ_max", "null directions", "expected", "defect of the null space"),
        tuple(rows),
        (f"W* = I, v = 1, k = d = {d}, x ~ N(0, I); expected Hessian by quadrature.",),
    )


DEGENERATE = Item(
    "zsjbd-degenerate", "[ZSJBD] slides", "Two activations whose Hessian is singular.", CLAIMS, measure
)
