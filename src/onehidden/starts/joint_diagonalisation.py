"""Non-orthogonal decomposition of symmetric tensors with signed weights, alone or several at once.

The start is the joint diagonalisation of random contractions [KCL]; the finish is Levenberg–Marquardt on
the tensors themselves, whose normal equations are closed forms in the Gram matrix of the components.

[KCL] Kuleshov, Chaganty, Liang, *Tensor factorization via matrix factorization*, 2015.
[FFDIAG] Ziehe, Laskov, Nolte, Müller, *A fast algorithm for joint diagonalization*, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.moments.products import symmetric_part
from onehidden.refused import Refused
from onehidden.run import stream
from onehidden.solvers import LevenbergMarquardt

_EPS = np.finfo(float).eps


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
    if precisions is None:
        omega = 1 / norms**2
    else:
        omega = np.asarray(precisions, float)
        if omega.shape != (len(arrays),) or not np.all(omega > 0) or not np.all(np.isfinite(omega)):
            raise ValueError(f"precisions must be one positive number a tensor ({len(arrays)}), got {omega}")
    omega = omega / np.sum(omega * norms**2)
    basis = _common_basis(arrays, omega, rank)
    core = [projected(a, basis) for a in arrays]
    random = stream(seed, "joint decomposition")
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for _ in range(max(1, restarts)):
        start = _diagonalise(core, omega, rank, random)
        U, W, misfit = _refine(core, omega, start)
        if basis.shape[0] > rank:  # the best fit of noisy tensors leaves the span found first
            U, W, misfit = _refine(arrays, omega, U @ basis.T, W)
        if best is None or misfit < best[0]:
            best = misfit, U, W
        if best[0] <= tolerance**2:
            break
    assert best is not None
    misfit, U, W = best
    order = np.argsort(-np.sum(omega[:, None] * W**2, axis=0), kind="stable")
    U, W = U[order], W[:, order]
    sign = np.where(U[np.arange(rank), np.argmax(np.abs(U), axis=1)] < 0, -1.0, 1.0)
    odd = np.array([a.ndim % 2 for a in arrays], bool)
    W = np.where(odd[:, None], W * sign, W)
    return JointDecomposition(U * sign[:, None], W, float(np.sqrt(max(misfit, 0.0))))


def _checked(tensors: Sequence[npt.ArrayLike], rank: int) -> list[np.ndarray]:
    arrays = [np.asarray(t, float) for t in tensors]
    if not arrays:
        raise ValueError("expected at least one tensor, got none")
    side = arrays[0].shape[0] if arrays[0].ndim else 0
    for a in arrays:
        if a.ndim < 2 or set(a.shape) != {side}:
            raise ValueError(
                f"expected tensors of order >= 2 with one common side, got {[b.shape for b in arrays]}"
            )
        if not np.all(np.isfinite(a)):
            raise ValueError("a tensor holds NaN or infinity")
    if not 1 <= rank <= side:
        raise ValueError(f"rank must be between 1 and the side {side} of the tensors, got {rank}")
    if len(arrays) == 1 and arrays[0].ndim == 2:
        raise ValueError("one matrix does not determine its components: give two or more, or a tensor")
    arrays = [symmetric_part(a) for a in arrays]
    if any(np.linalg.norm(a) == 0 for a in arrays):
        raise Refused("a tensor is zero after symmetrisation: it has no components to find")
    return arrays


def _common_basis(arrays: list[np.ndarray], omega: np.ndarray, rank: int) -> np.ndarray:
    """(r, k) orthonormal basis of the leading left singular vectors of all unfoldings together."""
    side = arrays[0].shape[0]
    if rank == side:
        return np.eye(side)
    gram = np.zeros((side, side))
    for a, weight in zip(arrays, omega, strict=True):
        flat = a.reshape(side, -1)
        gram += weight * flat @ flat.T
    return np.linalg.eigh(gram)[1][:, : -rank - 1 : -1]


def projected(a: np.ndarray, basis: Float[np.ndarray, "r k"]) -> np.ndarray:
    """Return the tensor contracted with the basis along every axis."""
    for _ in range(a.ndim):  # contracting the first axis puts the new one last: after m turns all are done
        a = np.tensordot(a, basis, axes=(0, 0))
    return a


def _diagonalise(
    arrays: list[np.ndarray], omega: np.ndarray, rank: int, random: np.random.Generator
) -> np.ndarray:
    """(k, k) unit rows from the joint diagonalisation of random contractions, in two rounds as in [KCL].

    The second round contracts along the duals of the components found first: T(·,·,dual_i) keeps
    component i and is free of the others, so that every component has a matrix where it stands alone.
    """
    matrices = _contractions(arrays, omega, np.linalg.qr(random.standard_normal((rank, rank)))[0])
    first = _ffdiag(matrices, _pencil_start(matrices, random))
    dual = _unit(np.linalg.pinv(first).T)
    second = _ffdiag(_contractions(arrays, omega, dual), first)
    return second if np.all(np.isfinite(second)) else first


def _contractions(arrays: list[np.ndarray], omega: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(l, k, k) matrices: each tensor contracted down to order 2 with rows of ``directions``."""
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


def _pencil_start(matrices: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(k, k) unit rows: eigenvectors of M_a M_b⁻¹ for two random combinations of the matrices."""
    Ma, Mb = np.tensordot(random.standard_normal((2, len(matrices))), matrices, axes=1)
    value, vector = np.linalg.eig(Ma @ np.linalg.pinv(Mb))
    # Noise can make two real eigenvalues a complex pair: its real and imaginary parts span the same plane.
    rows = np.where(np.imag(value) < 0, np.imag(vector), np.real(vector)).T
    return _unit(rows)


def _ffdiag(matrices: np.ndarray, start: np.ndarray, steps: int = 200) -> np.ndarray:
    """Joint diagonalisation by the multiplicative Newton-like steps of [FFDIAG]; weights may have any sign.

    Matrices are U' diag(d_l) U with the rows of U sought; B = U'⁻¹ makes every B M_l B' diagonal.
    """
    k = start.shape[0]
    # pinv bounds the first B when the pencil gave two nearly equal rows.
    B = np.linalg.pinv(start, rcond=1e-6).T
    current = B @ matrices @ B.T
    off = ~np.eye(k, dtype=bool)
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
        if objective < _EPS**1.5 or stale >= 8:
            break
        z = diagonal.T @ diagonal
        y = np.einsum("lj,lij->ij", diagonal, current)
        determinant = np.maximum(np.outer(np.diag(z), np.diag(z)) - z**2, _EPS * np.max(z) ** 2)
        step = np.where(off, (z * y.T - np.diag(z)[:, None] * y) / determinant, 0.0)
        size = np.linalg.norm(step)
        step *= min(1.0, 0.9 / max(size, _EPS))  # I + step stays invertible
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


def _misfits(arrays: list[np.ndarray], U: np.ndarray, W: np.ndarray) -> list[np.ndarray]:
    """T_l minus its fit; entry by entry, so that exact tensors are fitted to rounding, not to its root."""
    out = []
    for a, w in zip(arrays, W, strict=True):
        half = a.ndim // 2
        fit = (_power(U, half) * w[:, None]).T @ _power(U, a.ndim - half)
        out.append(a - fit.reshape(a.shape))
    return out


def contracted(a: np.ndarray, U: Float[np.ndarray, "k r"]) -> Float[np.ndarray, "k r"]:
    """(k, r) contractions a(u_i, …, u_i, ·)."""
    out = np.tensordot(U, a, axes=(1, 0))
    for _ in range(a.ndim - 2):
        out = np.einsum("kp,kp...->k...", U, out)
    return out


def best_weights(arrays: list[np.ndarray], U: Float[np.ndarray, "k r"]) -> Float[np.ndarray, "L k"]:
    """(L, k) least-squares weights for given directions."""
    gram = U @ U.T
    return np.stack(
        [np.linalg.lstsq(gram**a.ndim, np.sum(contracted(a, U) * U, axis=1), rcond=1e-10)[0] for a in arrays]
    )


def _normal_equations(
    orders: list[int], misfits: list[np.ndarray], omega: np.ndarray, U: np.ndarray, W: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """J'J and J'(misfit) of the weighted least squares in (U, W).

    <sym(u_i^(m-1) δ), sym(u_j^(m-1) δ')> m² = m [ g^(m-1) <δ,δ'> + (m-1) g^(m-2) <δ,u_j><u_i,δ'> ] with
    g = <u_i,u_j>. The length of u_i can be traded against its weights: the term u_i u_i' fixes it.
    """
    k, r = U.shape
    gram, count = U @ U.T, len(orders)
    same, crossed = np.zeros((k, k)), np.zeros((k, k))
    mixed = np.zeros((k, r, count, k))
    weights = np.zeros((count, k, count, k))
    gradient_u, gradient_w = np.zeros((k, r)), np.zeros((count, k))
    for l, m in enumerate(orders):
        pair = omega[l] * m * np.outer(W[l], W[l])
        same += pair * gram ** (m - 1)
        crossed += pair * (m - 1) * gram ** (m - 2)
        mixed[:, :, l, :] = np.einsum("i,ij,ja->iaj", omega[l] * m * W[l], gram ** (m - 1), U)
        weights[l, :, l, :] = omega[l] * gram**m
        along = contracted(misfits[l], U)
        gradient_u += omega[l] * m * W[l][:, None] * along
        gradient_w[l] = omega[l] * np.sum(along * U, axis=1)
    directions = np.einsum("ij,ja,ib->iajb", crossed, U, U, optimize=True)
    directions += same[:, None, :, None] * np.eye(r)[None, :, None, :]
    own = np.arange(k)
    directions[own, :, own, :] += np.diag(same)[:, None, None] * U[:, :, None] * U[:, None, :]
    p, q = k * r, count * k
    full = np.empty((p + q, p + q))
    full[:p, :p] = directions.reshape(p, p)
    full[:p, p:] = mixed.reshape(p, q)
    full[p:, :p] = full[:p, p:].T
    full[p:, p:] = weights.reshape(q, q)
    return full, np.concatenate([gradient_u.ravel(), gradient_w.ravel()])


class _TensorFit:
    """Weighted least squares of tensors in components and weights, for ``LevenbergMarquardt``."""

    def __init__(self, arrays: list[np.ndarray], omega: np.ndarray, rank: int) -> None:
        self.arrays, self.omega, self.shape = arrays, omega, (rank, len(arrays[0]))

    def parts(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Components (k, r) and weights (L, k)."""
        size = self.shape[0] * self.shape[1]
        return theta[:size].reshape(self.shape), theta[size:].reshape(-1, self.shape[0])

    def loss(self, theta: np.ndarray) -> float:
        """Return the weighted sum of squared misfits."""
        misfits = _misfits(self.arrays, *self.parts(theta))
        return float(sum(weight * np.sum(e**2) for weight, e in zip(self.omega, misfits, strict=True)))

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r."""
        U, W = self.parts(theta)
        orders, misfits = [a.ndim for a in self.arrays], _misfits(self.arrays, U, W)
        matrix, gradient = _normal_equations(orders, misfits, self.omega, U, W)
        return matrix, -gradient, self.loss(theta)

    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and Q'r from the eigenvectors of J'J: J itself is not formed."""
        matrix, gradient, _ = self.normal_equations(theta)
        value, vector = np.linalg.eigh(matrix)
        root = np.sqrt(np.maximum(value, _EPS * value[-1]))
        return root[:, None] * vector.T, (vector.T @ gradient) / root


def _refine(
    arrays: list[np.ndarray], omega: np.ndarray, start: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, float]:
    """Levenberg-Marquardt on the tensors: unit rows, weights and the weighted squared misfit."""
    U = _unit(start)
    W = best_weights(arrays, U) if weights is None else weights
    fit = _TensorFit(arrays, omega, len(U))
    solver = LevenbergMarquardt(60, floor=(4 * _EPS) ** 2, damping=1e-3, rtol=1e-9)
    found = solver.solve(fit, np.concatenate([U.ravel(), W.ravel()]))
    U, W = fit.parts(found.theta)
    length = np.linalg.norm(U, axis=1)
    orders = np.array([a.ndim for a in arrays])
    return U / length[:, None], W * length[None, :] ** orders[:, None], found.loss
