"""The two examples of [ZSJBD] where local strong convexity fails: g(z) = z and g(z) = z², W* = I, v = 1."""

from __future__ import annotations

import numpy as np

from onehidden.lab.convexity import population_hessian
from onehidden.network import OneHiddenNet
from onehidden.papers.record import Reproduction

SIZE = 4
TOLERANCE = 1e-12  # of the largest eigenvalue
# Dimension of the null space for k = d: Σ a_i = 0 leaves d² - d; antisymmetric matrices d(d-1)/2.
NULL = {"linear": SIZE * SIZE - SIZE, "quadratic": SIZE * (SIZE - 1) // 2}


def run(full: bool = False, seed: int = 0) -> Reproduction:
    """Smallest eigenvalue and null space of the expected Hessian, with activations that have P2 beside."""
    rows, good = [], True
    for name in ("linear", "quadratic", "relu", "squared_relu", "tanh", "sigmoid", "erf"):
        network = OneHiddenNet(np.eye(SIZE), np.ones(SIZE), activation=name)
        values, vectors = np.linalg.eigh(population_hessian(network))
        null = int(np.sum(values <= TOLERANCE * values[-1]))
        seen = "–"
        if name in NULL:
            directions = vectors[:, :null].T.reshape(null, SIZE, SIZE)  # rows are a_j
            defect = (
                directions.sum(axis=1) if name == "linear" else directions + directions.transpose(0, 2, 1)
            )
            seen = "Σ a_j = 0" if name == "linear" else "A = -A'"
            good &= null == NULL[name] and float(np.max(np.abs(defect))) < 1e-8
        else:
            good &= null == 0
        rows.append((name, float(values[0]), float(values[-1]), null, NULL.get(name, 0), seen))
    return Reproduction(
        name="zsjbd-degenerate",
        title="Where local strong convexity does not hold",
        paper="[ZSJBD] slides, two examples",
        columns=("activation", "λ_min", "λ_max", "null directions", "expected", "null space seen"),
        rows=tuple(rows),
        verdict="reproduced" if good else "not reproduced",
        notes=(f"W* = I, v = 1, k = d = {SIZE}, x ~ N(0, I); expected Hessian by quadrature",),
    )
