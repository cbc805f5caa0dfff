"""Teachers of a given condition number, as the experiments of [ZSJBD] and Zhang et al. (2019) draw them."""

from __future__ import annotations

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.problems.problem import conditioned


def conditioned_teacher(
    d: int, k: int, kappa: float, activation: str, random: np.random.Generator, *, signed: bool
) -> OneHiddenNet:
    """W* = U diag(σ) Q' with random orthonormal U, Q and σ evenly spaced from 1 to κ; v = ±1 or 1."""
    rows = conditioned(kappa, scale=1.0)(random, k, d)
    output = random.choice([-1.0, 1.0], k) if signed else np.ones(k)
    return OneHiddenNet(rows, output, activation=activation)
