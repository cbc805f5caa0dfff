"""The orthonormal frame that several symmetric tensors share, by orthogonalised power iteration.

Far more robust to noise than a free decomposition: directions that must stay at right angles cannot gather
on one strong component, and a step costs one contraction of each tensor and one small SVD.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from onehidden.starts.joint_diagonalisation import contracted
from onehidden.streams import stream

_STEPS = 80


def shared_frame(
    tensors: Sequence[np.ndarray],
    rank: int,
    seed: int = 0,
    *,
    precisions: Sequence[float],
    restarts: int = 8,
) -> tuple[Float[np.ndarray, "k r"], float]:
    """(k, r) orthonormal rows u_i that maximise Σ_l p_l Σ_i T_l(u_i, …, u_i)², and that value.

    For orthonormal rows this is the least-squares fit of Σ_i λ_li u_i^(⊗m) to all tensors, weighted by p_l.
    Odd orders and matrices come first, from random frames: their noise makes fewer false maxima than that of
    order 4, which joins from the best frame found.

    Parameters
    ----------
    tensors : symmetric, orders 2 to 4, one common side r.
    rank : number k of rows, at most r.
    seed : of the random frames.
    precisions : 1 / variance of T_l(u, …, u) at a unit vector u, up to one common factor.
    restarts : random frames tried.
    """
    weighted = list(zip(tensors, precisions, strict=True))
    low = [pair for pair in weighted if pair[0].ndim < 4]
    first = low if any(t.ndim == 3 for t, _ in low) else weighted
    rng = stream(seed, "shared frame")
    side = len(tensors[0])
    best, value = np.eye(rank, side), -np.inf
    for _ in range(restarts):
        start = np.linalg.qr(rng.standard_normal((side, rank)))[0].T
        # Order 3 alone first: a matrix has maxima of its own at every frame of its eigenvectors.
        above = [pair for pair in first if pair[0].ndim > 2] or first
        frame, reached = _climb(first, _climb(above, start)[0])
        if reached > value:
            best, value = frame, reached
    return (best, value) if len(first) == len(weighted) else _climb(weighted, best)


def _climb(weighted: list[tuple[np.ndarray, float]], U: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows to the polar factor of the gradient while the objective rises."""
    kept, value = U, -np.inf
    for _ in range(_STEPS):
        gradient, reached = np.zeros_like(U), 0.0
        for tensor, weight in weighted:
            along = contracted(tensor, U)
            size = np.sum(along * U, axis=1)
            gradient += weight * tensor.ndim * size[:, None] * along
            reached += weight * float(size @ size)
        if reached <= value * (1 + 1e-9):
            break
        kept, value = U, reached
        left, _, right = np.linalg.svd(gradient, full_matrices=False)
        U = left @ right
    return kept, value
