"""Noise that rows of a group share: y = f(x) + u_g + e, a random intercept u for each group g.

With rows multiplied by the roots s of their weights, rho = var(u) / var(e) and m = s's over the rows of a
group, the noise of a group has the covariance V = I + rho s s' in units of var(e), and

    V^-1 = I - rho / (1 + rho m) s s',    V^(-1/2) = I - (1 - (1 + rho m)^(-1/2)) / m s s'.

Residuals and Jacobian times V^(-1/2) are a least-squares problem of independent rows. rho maximises the
likelihood of what the parameters leave (REML): with Q an orthonormal basis of the columns of J and r the
residuals, the parameters move along the tangent, and over rho

    (n - p) log r'Pr + log|V| + log|Q'V^-1 Q|,    P = V^-1 - V^-1 Q (Q'V^-1 Q)^-1 Q'V^-1,

is smallest. All of it are sums over groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation, roots


@dataclass(frozen=True)
class SharedNoise:
    """V of all groups: the group of each row, the root of its weight, and rho."""

    groups: Int[np.ndarray, " n"]  # from 0 on
    root: Float[np.ndarray, " n"]
    ratio: float

    @cached_property
    def mass(self) -> Float[np.ndarray, " G"]:
        """m of each group."""
        return np.bincount(self.groups, self.root**2)

    @cached_property
    def _scatter(self) -> csr_array:
        """(G, n) the root of each row at its group."""
        return csr_array((self.root, (self.groups, np.arange(len(self.root)))))

    def sums(self, columns: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "G ..."]:
        """s' columns of each group."""
        return self._scatter @ columns

    def whitened(self, columns: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
        """V^(-1/2) columns."""
        share = (1 - 1 / np.sqrt(1 + self.ratio * self.mass)) / self.mass
        return columns - self._scatter.T @ (self.sums(columns).T * share).T


class SharedNoiseLeastSquares(InMemoryLeastSquares):
    """Generalised least squares: residuals and Jacobian times V^(-1/2); one Jacobian (n, p) is held."""

    def __init__(
        self,
        form: Parametrisation,
        X: Float[np.ndarray, "n d"],
        y: Float[np.ndarray, " n"],
        weight: Float[np.ndarray, " n"] | None,
        shared: SharedNoise,
    ) -> None:
        super().__init__(form, X, y, weight)
        self._shared = shared
        self._last: tuple[bytes, np.ndarray] = (b"", np.zeros((0, 0)))

    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """(n,) whitened residuals."""
        return self._shared.whitened(super().residuals(theta))

    def loss(self, theta: np.ndarray) -> float:
        """r'V^-1 r."""
        return float(np.sum(self.residuals(theta) ** 2))

    def jacobian(self, theta: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """(m, p) some rows of the whitened Jacobian."""
        key = np.asarray(theta, float).tobytes()
        if self._last[0] != key:
            self._last = key, self._shared.whitened(super().jacobian(theta, slice(0, self.n)))
        return self._last[1][rows]

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'V^-1 J, J'V^-1 r and r'V^-1 r."""
        J, r = self.jacobian(theta, slice(0, self.n)), self.residuals(theta)
        return J.T @ J, J.T @ r, float(r @ r)


def likely_ratio(
    fit: InMemoryLeastSquares,
    theta: Float[np.ndarray, " p"],
    groups: Int[np.ndarray, " n"],
    weight: Float[np.ndarray, " n"] | None,
) -> float:
    """rho by restricted likelihood about parameters of the fit of independent rows; 0 if none is likelier."""
    J, r, root = fit.jacobian(theta, slice(0, fit.n)), fit.residuals(theta), roots(weight, fit.n)
    length = np.linalg.norm(J, axis=0)
    left, size, _ = np.linalg.svd(J / np.where(length > 0, length, 1.0), full_matrices=False)
    Q = left[:, size > 1e-7 * size[0]]
    shared = SharedNoise(groups, root, 0.0)
    mass, A, b = shared.mass, shared.sums(Q), shared.sums(r)
    along, square, identity = Q.T @ r, float(r @ r), np.eye(Q.shape[1])

    def criterion(share: float) -> float:
        ratio = share / (1 - share)  # share of the noise, from 0 to 1
        c = ratio / (1 + ratio * mass)
        within, toward = identity - A.T @ (c[:, None] * A), along - A.T @ (c * b)
        rest = square - float(c @ b**2) - float(toward @ np.linalg.solve(within, toward))
        spread = float(np.sum(np.log1p(ratio * mass))) + float(np.linalg.slogdet(within)[1])
        return (fit.n - Q.shape[1]) * float(np.log(max(rest, np.finfo(float).tiny))) + spread

    found = minimize_scalar(criterion, bounds=(0, 1 - 1e-9), method="bounded", options={"xatol": 1e-11})
    share = float(found.x)  # pyright: ignore[reportAttributeAccessIssue]
    return 0.0 if criterion(0.0) <= criterion(share) else share / (1 - share)
