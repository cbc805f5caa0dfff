"""Non-orthogonal decomposition of symmetric tensors with signed weights, alone or several at once.

Random contractions of the tensors are diagonalised jointly [KCL], as [ZSJBD] does.

[KCL] Kuleshov, Chaganty, Liang, *Tensor factorization via matrix factorization*, 2015.
[FFDIAG] Ziehe, Laskov, Nolte, Müller, *A fast algorithm for joint diagonalization*, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from onehidden.fit.rounding import EPS
from onehidden.refused import Refused
from onehidden.run import stream
from onehidden_papers.moments.products import contracted


def joint_decompose(
    tensors: Sequence[np.ndarray],
    precisions: Sequence[float],
    rank: int,
    seed: int = 0,
    *,
    restarts: int = 6,  # random contractions tried; the smallest misfit wins
) -> Float[np.ndarray, "k r"]:
    """Unit rows u_i of symmetric tensors T_l ~ sum_i w_li u_i^(⊗m_l): one set of directions for all.

    The tensors have orders 2, 3, 4, ... and one common side, which is ``rank`` or more; one has order 3 or
    more, or there are several matrices. A squared misfit counts with the precision of its tensor.
    """
    norms = np.array([np.linalg.norm(a) for a in tensors])
    if not np.all(norms > 0):
        raise Refused("a tensor is zero: it has no components to find")
    omega = np.asarray(precisions) / np.sum(precisions * norms**2)
    basis = common_basis(tensors, omega, rank)
    core = [contracted(a, basis) for a in tensors]
    random = stream(seed, "joint decomposition")
    best, U = np.inf, np.eye(rank)
    for _ in range(restarts):
        rows = _diagonalise(core, omega, rank, random)
        misfit = _misfit(core, omega, rows)
        if misfit < best:
            best, U = misfit, rows
        if best <= 100 * EPS:  # of the squared norms, which is one
            break
    return U @ basis.T


def common_basis(
    arrays: Sequence[np.ndarray], omega: Sequence[float] | np.ndarray, rank: int
) -> Float[np.ndarray, "r k"]:
    """Orthonormal basis of the leading left singular vectors of all unfoldings together."""
    flat = [np.sqrt(weight) * a.reshape(len(a), -1) for a, weight in zip(arrays, omega, strict=True)]
    return np.linalg.eigh(sum(one @ one.T for one in flat))[1][:, : -rank - 1 : -1]


def _diagonalise(
    arrays: Sequence[np.ndarray], omega: np.ndarray, rank: int, random: np.random.Generator
) -> Float[np.ndarray, "k k"]:
    """Unit rows from the joint diagonalisation of random contractions, in two rounds as in [KCL].

    The second round contracts along the duals of the components found first: T(·,·,dual_i) keeps
    component i and is free of the others, so that every component has a matrix where it stands alone.
    """
    matrices = _contractions(arrays, omega, np.linalg.qr(random.standard_normal((rank, rank)))[0])
    first = _ffdiag(matrices, _pencil_start(matrices, random))
    dual = _unit(np.linalg.pinv(first).T)
    second = _ffdiag(_contractions(arrays, omega, dual), first)
    return second if np.all(np.isfinite(second)) else first


def _contractions(
    arrays: Sequence[np.ndarray], omega: np.ndarray, directions: Float[np.ndarray, "l k"]
) -> Float[np.ndarray, "m k k"]:
    """Each tensor contracted down to order 2 with rows of ``directions``."""
    out = []
    for a, weight in zip(arrays, omega, strict=True):
        if a.ndim == 2:
            out.append(np.sqrt(weight) * a[None])
            continue
        first = np.tensordot(directions, a, axes=(1, 0))  # (l, r, …, r)
        for shift in (0,) if a.ndim == 3 else (0, 1):  # beyond order 3: with itself, and with its neighbour
            slices = first
            for step in range(1, a.ndim - 2):
                slices = np.einsum("lp,lp...->l...", np.roll(directions, shift * step, axis=0), slices)
            out.append(np.sqrt(weight) * slices)
    return np.concatenate(out)


def _pencil_start(matrices: np.ndarray, random: np.random.Generator) -> Float[np.ndarray, "k k"]:
    """Unit rows: eigenvectors of M_a M_b⁻¹ for two random combinations of the matrices."""
    Ma, Mb = np.tensordot(random.standard_normal((2, len(matrices))), matrices, axes=1)
    value, vector = np.linalg.eig(Ma @ np.linalg.pinv(Mb))
    # Noise can make two real eigenvalues a complex pair: its real and imaginary parts span the same plane.
    return _unit(np.where(np.imag(value) < 0, np.imag(vector), np.real(vector)).T)


def _ffdiag(matrices: np.ndarray, start: np.ndarray, steps: int = 200) -> Float[np.ndarray, "k k"]:
    """Joint diagonalisation by the multiplicative Newton-like steps of [FFDIAG]; weights may have any sign.

    Matrices are U' diag(d_l) U with the rows of U sought; B = U'⁻¹ makes every B M_l B' diagonal.
    """
    # pinv bounds the first B when the pencil gave two nearly equal rows.
    B = np.linalg.pinv(start, rcond=1e-6).T
    current = B @ matrices @ B.T
    off = ~np.eye(len(start), dtype=bool)
    best, kept, stale = np.inf, B, 0
    for _ in range(steps):
        diagonal = np.einsum("lii->li", current)
        scale = np.sqrt(np.sum(diagonal**2))
        if not np.isfinite(scale) or scale == 0:
            break
        objective = np.sum(current[:, off] ** 2) / scale**2
        stale = 0 if objective < 0.99 * best else stale + 1
        if objective < best:
            best, kept = objective, B
        if objective < EPS**1.5 or stale >= 8:
            break
        z = diagonal.T @ diagonal
        y = np.einsum("lj,lij->ij", diagonal, current)
        determinant = np.maximum(np.outer(np.diag(z), np.diag(z)) - z**2, EPS * np.max(z) ** 2)
        step = np.where(off, (z * y.T - np.diag(z)[:, None] * y) / determinant, 0.0)
        size = np.linalg.norm(step)
        step *= min(1.0, 0.9 / max(size, EPS))  # I + step stays invertible
        B = B + step @ B
        B = B / np.linalg.norm(B, axis=1, keepdims=True)
        current = B @ matrices @ B.T
    return _unit(np.linalg.pinv(kept).T)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)


def _misfit(arrays: Sequence[np.ndarray], omega: np.ndarray, U: Float[np.ndarray, "k r"]) -> float:
    """Weighted squared norm of what the tensors have besides their best fit along given directions."""
    gram, total = U @ U.T, 0.0
    for a, weight in zip(arrays, omega, strict=True):
        along = np.tensordot(U, a, axes=(1, 0))
        for _ in range(a.ndim - 1):
            along = np.einsum("kp,kp...->k...", U, along)
        fitted = along @ np.linalg.lstsq(gram**a.ndim, along, rcond=1e-10)[0]
        total += weight * float(np.sum(a**2) - fitted)
    return total
