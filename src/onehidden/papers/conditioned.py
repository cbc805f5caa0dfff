"""Teachers of a given condition number, as the experiments of [ZSJBD] and Zhang et al. (2019) draw them."""

from __future__ import annotations

import numpy as np

from onehidden.network import OneHiddenNet


def conditioned_teacher(
    d: int, k: int, kappa: float, activation: str, random: np.random.Generator, *, signed: bool
) -> OneHiddenNet:
    """W* = U diag(σ) Q' with random orthonormal U, Q and σ evenly spaced from 1 to κ; v = ±1 or 1."""
    left = np.linalg.qr(random.standard_normal((d, k)))[0]
    right = np.linalg.qr(random.standard_normal((k, k)))[0]
    rows = (left * np.linspace(1, kappa, k)) @ right
    output = random.choice([-1.0, 1.0], k) if signed else np.ones(k)
    return OneHiddenNet(rows.T, output, activation=activation)
