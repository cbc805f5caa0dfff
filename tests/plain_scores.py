"""Scores written out plainly for the tests: the interface of a law, and nothing shared with the library."""

from __future__ import annotations

from itertools import permutations

import numpy as np


def sym(a: np.ndarray) -> np.ndarray:
    """Symmetrisation over all axes but the first."""
    orders = list(permutations(range(1, a.ndim)))
    return sum(a.transpose(0, *p) for p in orders) / len(orders)


def outer(*parts: np.ndarray) -> np.ndarray:
    """Outer product sample by sample."""
    out = parts[0]
    for p in parts[1:]:
        out = out.reshape(*out.shape, *(1,) * (p.ndim - 1)) * p.reshape(
            len(p), *(1,) * (out.ndim - 1), *p.shape[1:]
        )
    return out


def from_derivatives(G: list[np.ndarray], order: int) -> np.ndarray:
    """S_m from G_j = ∇^j log f (section 2 of the theory)."""
    if order == 1:
        return -G[0]
    if order == 2:
        return outer(G[0], G[0]) + G[1]
    if order == 3:
        return -(outer(G[0], G[0], G[0]) + 3 * sym(outer(G[1], G[0])) + G[2])
    return (
        outer(G[0], G[0], G[0], G[0])
        + 6 * sym(outer(G[1], G[0], G[0]))
        + 3 * sym(outer(G[1], G[1]))
        + 4 * sym(outer(G[2], G[0]))
        + G[3]
    )


def log_derivatives(score, X: np.ndarray, order: int, basis: np.ndarray) -> list[np.ndarray]:
    """G_1 … G_order along the columns of a basis, from the scores of a law: the definition turned around."""
    G: list[np.ndarray] = []
    for m in range(1, order + 1):
        r = basis.shape[1]
        lower = from_derivatives([*G, np.zeros((len(X), *(r,) * m))], m)
        G.append((-1) ** m * (score.score(X, m, subspace=basis) - lower))
    return G


class LogisticProduct:
    """Independent logistic coordinates of variance 1."""

    scale = np.sqrt(3) / np.pi

    def __init__(self, n_inputs: int) -> None:
        self.n_inputs = n_inputs

    def sample(self, n: int, random: np.random.Generator) -> np.ndarray:
        return random.logistic(0, self.scale, (n, self.n_inputs))

    def score(self, X: np.ndarray, order: int, subspace: np.ndarray | None = None) -> np.ndarray:
        return from_derivatives(self.derivatives(X, order, subspace), order)

    def derivatives(self, X: np.ndarray, order: int, subspace: np.ndarray | None = None) -> list[np.ndarray]:
        """G_1 … G_order of the log-density along the columns of ``subspace``."""
        B = np.eye(X.shape[1]) if subspace is None else subspace
        p = 1 / (1 + np.exp(-X / self.scale))
        q = p * (1 - p)
        one = [1 - 2 * p, -2 * q, -2 * q * (1 - 2 * p), -2 * q * (1 - 6 * q)]
        G = []
        for j in range(order):
            power = B
            for _ in range(j):
                power = (power[:, :, None] * B[:, None, :]).reshape(len(B), -1)
            G.append((one[j] / self.scale ** (j + 1) @ power).reshape(len(X), *(B.shape[1],) * (j + 1)))
        return G


class GaussianMixture:
    """Equal mixture of N(±mean, I)."""

    def __init__(self, mean: np.ndarray) -> None:
        self.mean = np.asarray(mean, float)
        self.n_inputs = len(self.mean)

    def sample(self, n: int, random: np.random.Generator) -> np.ndarray:
        return random.standard_normal((n, self.n_inputs)) + random.choice([-1.0, 1.0], (n, 1)) * self.mean

    def score(self, X: np.ndarray, order: int, subspace: np.ndarray | None = None) -> np.ndarray:
        B = np.eye(X.shape[1]) if subspace is None else subspace
        plus = 1 / (1 + np.exp(-2 * X @ self.mean))
        total = 0.0
        for share, centre in ((plus, self.mean), (1 - plus, -self.mean)):
            z = (X - centre) @ B
            metric = np.broadcast_to(B.T @ B, (len(X), B.shape[1], B.shape[1]))
            G = [-z, -metric, np.zeros((len(X), *(B.shape[1],) * 3)), np.zeros((len(X), *(B.shape[1],) * 4))]
            S = from_derivatives(G[: max(order, 2)], order) if order < 3 else from_derivatives(G, order)
            total = total + share.reshape(-1, *(1,) * order) * S
        return total
