"""Non-orthogonal decomposition of symmetric tensors with signed weights, alone or several at once.

Random contractions of the tensors are diagonalised jointly [KCL], as [ZSJBD] does.

[KCL] Kuleshov, Chaganty, Liang, *Tensor factorization via matrix factorization*, 2015.
[FFDIAG] Ziehe, Laskov, Nolte, Müller, *A fast algorithm for joint diagonalization*, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.fit.rounding import EPS
from onehidden.refused import Refused
from onehidden.run import stream


@dataclass(frozen=True)
class JointDecomposition:
    """T_l ~ sum_i weights_li u_i^(⊗m_l): several tensors, one set of directions."""

    # (k, r) unit rows, the largest total weight first, the largest entry of a row positive.
    components: np.ndarray
    weights: np.ndarray  # (L, k) signed, a row for each tensor
    residual: float  # square root of the weighted squared misfit over the weighted squared norm


def joint_decompose(
    tensors: Sequence[npt.ArrayLike],
    rank: int,
    seed: int = 0,
    *,
    precisions: Sequence[float] | None = None,  # weight of each squared misfit; None: 1 / |T|^2
    restarts: int = 6,  # random contractions tried; the smallest residual wins
    tolerance: float = 1e-12,  # relative residual at which no further restart is made
) -> JointDecomposition:
    """Decompose symmetric matrices and tensors that share ``rank`` directions.

    The tensors have orders 2, 3, 4, ... and one common side, which is ``rank`` or more; one has order 3 or
    more, or there are several matrices. Their symmetric parts are used.
    """
    arrays = _checked(tensors, rank)
    norms = np.array([np.linalg.norm(a) for a in arrays])
    omega = 1 / norms**2 if precisions is None else np.asarray(precisions, float)
    if omega.shape != (len(arrays),) or not np.all((omega > 0) & np.isfinite(omega)):
        raise ValueError(f"precisions must be one positive number a tensor ({len(arrays)}), got {omega}")
    omega = omega / np.sum(omega * norms**2)
    basis = _common_basis(arrays, omega, rank)
    core = [_projected(a, basis) for a in arrays]
    random = stream(seed, "joint decomposition")
    best, U = np.inf, np.eye(rank)
    for _ in range(restarts):
        rows = _diagonalise(core, omega, rank, random)
        misfit = _misfit(core, omega, rows, _least_squares_weights(core, rows))
        if misfit < best:
            best, U = misfit, rows
        if best <= tolerance**2:
            break
    U = U @ basis.T
    U *= np.where(U[np.arange(rank), np.argmax(np.abs(U), axis=1)] < 0, -1.0, 1.0)[:, None]
    W = _least_squares_weights(arrays, U)
    order = np.argsort(-np.sum(omega[:, None] * W**2, axis=0), kind="stable")
    return JointDecomposition(U[order], W[:, order], float(np.sqrt(_misfit(arrays, omega, U, W))))


def _checked(tensors: Sequence[npt.ArrayLike], rank: int) -> list[np.ndarray]:
    arrays = [np.asarray(t, float) for t in tensors]
    side = max((len(a) for a in arrays), default=0)
    if not arrays or any(a.ndim < 2 or set(a.shape) != {side} or not np.isfinite(a).all() for a in arrays):
        raise ValueError(
            "expected at least one tensor, all finite, of order 2 or more and with one common side, got "
            f"{[a.shape for a in arrays]}"
        )
    if not 1 <= rank <= side:
        raise ValueError(f"rank must be between 1 and the side {side} of the tensors, got {rank}")
    if len(arrays) == 1 and arrays[0].ndim == 2:
        raise ValueError("one matrix does not determine its components: give two or more, or a tensor")
    arrays = [symmetric_part(a) for a in arrays]
    if any(np.linalg.norm(a) == 0 for a in arrays):
        raise Refused("a tensor is zero after symmetrisation: it has no components to find")
    return arrays


def _common_basis(arrays: list[np.ndarray], omega: np.ndarray, rank: int) -> Float[np.ndarray, "r k"]:
    """Orthonormal basis of the leading left singular vectors of all unfoldings together."""
    flat = [np.sqrt(weight) * a.reshape(len(a), -1) for a, weight in zip(arrays, omega, strict=True)]
    return np.linalg.eigh(sum(one @ one.T for one in flat))[1][:, : -rank - 1 : -1]


def _projected(a: np.ndarray, basis: Float[np.ndarray, "r k"]) -> np.ndarray:
    """Return the tensor contracted with the basis along every axis."""
    for _ in range(a.ndim):  # contracting the first axis puts the new one last: after m turns all are done
        a = np.tensordot(a, basis, axes=(0, 0))
    return a


def _diagonalise(
    arrays: list[np.ndarray], omega: np.ndarray, rank: int, random: np.random.Generator
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
    arrays: list[np.ndarray], omega: np.ndarray, directions: Float[np.ndarray, "l k"]
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


def _power(rows: np.ndarray, order: int) -> np.ndarray:
    """(k, r^m) rows u_i^(⊗m), flattened."""
    out = rows
    for _ in range(order - 1):
        out = (out[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    return out


def _misfit(arrays: list[np.ndarray], omega: np.ndarray, U: np.ndarray, W: np.ndarray) -> float:
    """Weighted sum of the squared entries of T_l - sum_i w_li u_i^(⊗m)."""
    total = 0.0
    for a, weight, w in zip(arrays, omega, W, strict=True):
        half = a.ndim // 2
        fitted = (_power(U, half) * w[:, None]).T @ _power(U, a.ndim - half)
        total += weight * float(np.sum((a - fitted.reshape(a.shape)) ** 2))
    return total


def _least_squares_weights(arrays: list[np.ndarray], U: np.ndarray) -> Float[np.ndarray, "L k"]:
    """Weights that fit each tensor best with given directions."""
    gram, out = U @ U.T, []
    for a in arrays:
        along = np.tensordot(U, a, axes=(1, 0))
        for _ in range(a.ndim - 1):
            along = np.einsum("kp,kp...->k...", U, along)
        out.append(np.linalg.lstsq(gram**a.ndim, along, rcond=1e-10)[0])
    return np.stack(out)


def symmetric_part(a: np.ndarray) -> np.ndarray:
    """Mean of a tensor over all orders of its axes."""
    orders = list(permutations(range(a.ndim)))
    return sum((a.transpose(p) for p in orders), np.zeros_like(a)) / len(orders)
