"""The span of the hidden directions: subspace iteration on a score moment, with what is known removed.

[ZSJBD] iterate on C I ± P̂_2, once for each sign. Iterating on P̂_2 itself and keeping the largest
|eigenvalues| finds both signs at once. Then each round fits a polynomial of z = V'x and a linear part, and
takes the moment of the *remainder* plus the exact moment of the polynomial: unbiased, and its noise shrinks
with the remainder. A few Gauss–Newton steps on y ~ linear + q(V'x) over V end the search: they use every
degree at once and need no score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehidden.starts.subspace_moments import cross, moment
from onehidden.starts.subspace_polynomial import Design, Polynomial, largest_degree

_OVERSAMPLE = 4
_LARGEST_DENSE = 512  # d up to which a score's order 2 is kept as a matrix
_MOST_PRODUCTS = 500  # of the polynomial: n p² must stay affordable
_ROWS_PER_UNKNOWN = 12  # the search stops gaining from rows beyond this; the last step sees all of them


@dataclass(frozen=True)
class Subspace:
    """The result.

    Attributes
    ----------
    basis : (d, k) orthonormal columns V.
    polynomial : q of z = V'x fitted to y less the linear part.
    linear : (d,) coefficients of the linear part (beside q).
    remainder : (n,) y - linear - q.
    slopes : (n, k) gradient of q at the points.
    """

    basis: np.ndarray
    polynomial: Polynomial
    linear: np.ndarray
    remainder: np.ndarray
    slopes: np.ndarray

    @property
    def misfit(self) -> float:
        return float(np.mean(self.remainder**2))


def find_subspace(
    X: np.ndarray,
    y: np.ndarray,
    k: int,
    order: int,
    seed: int,
    score: Any = None,
    *,
    rounds: int = 8,
    steps: int = 20,
    degree: int | None = None,
) -> Subspace:
    """The k directions that carry the order-``order`` moment (2 or 3) of y.

    Parameters
    ----------
    X, y : (n, d) and (n,).
    k, order, seed, score : number of directions, moment iterated on, seed of the first block, input law.
    rounds : subspace iterations on the moment of the remainder; 0 is the paper's own estimator.
    steps : most Gauss–Newton steps after them.
    degree : of the polynomial; by default the largest, up to 4, with at most n/4 products.
    """
    random = np.random.default_rng(seed)
    n, d = X.shape
    if degree is None:
        degree = largest_degree(k, min(n // 4, _MOST_PRODUCTS))
    degree = max(degree, order)
    rows = min(n, _ROWS_PER_UNKNOWN * (k * d + _MOST_PRODUCTS))
    Xs, ys = X[:rows], y[:rows]
    linear = _linear_fit(Xs, ys - np.mean(ys), None, 30)
    V = first_basis(Xs, ys - np.mean(ys) - Xs @ linear, k, order, linear, random, score)
    best = _describe(Xs, ys, V, linear, degree, score)
    current = best
    # With order 3 and a score each round would ask (2k)³ numbers a row: Gauss–Newton alone does as well.
    for _ in range(rounds if score is None or order == 2 else 0):
        V = _next_basis(Xs, current, order, random, score)
        current = _describe(Xs, ys, V, best.linear, degree, score)
        gain = best.misfit - current.misfit
        if gain > 0:
            best, before = current, best
            if gain < 1e-2 * before.misfit:
                break
    best = _gauss_newton(Xs, ys, best, score, steps)
    if rows < n:
        best = _describe(X, y, best.basis, best.linear, degree, score)
        best = _gauss_newton(X, y, best, score, min(steps, 1))
    return best


def transfer(X: np.ndarray, y: np.ndarray, found: Subspace, score: Any = None) -> Subspace:
    """The same basis, polynomial and linear part on other rows: nothing is fitted to them."""
    design = Design(X @ found.basis, found.polynomial.degree, gaussian=score is None)
    polynomial = design.adopt(found.polynomial)
    wanted = np.column_stack([polynomial.coefficients, polynomial.gradient_coefficients()])
    values = design.apply(wanted)
    return Subspace(found.basis, polynomial, found.linear, y - X @ found.linear - values[:, 0], values[:, 1:])


def _linear_fit(X: np.ndarray, y: np.ndarray, start: np.ndarray | None, steps: int) -> np.ndarray:
    """Least squares without intercept by conjugate gradients: n d a step, no d × d matrix."""
    from scipy.sparse.linalg import lsqr

    return lsqr(X, y, iter_lim=steps, atol=1e-8, btol=1e-8, x0=start)[0]


def _describe(
    X: np.ndarray, y: np.ndarray, V: np.ndarray, linear: np.ndarray, degree: int, score: Any
) -> Subspace:
    """The linear part and the polynomial for one basis, by backfitting."""
    design = Design(X @ V, degree, gaussian=score is None)
    for _ in range(2):
        explained = design.apply(design.fit(y - X @ linear).coefficients)
        linear = _linear_fit(X, y - explained, linear, 6)
    y = y - X @ linear
    polynomial = design.fit(y)
    wanted = np.column_stack([polynomial.coefficients, polynomial.gradient_coefficients()])
    values = design.apply(wanted)
    return Subspace(V, polynomial, linear, y - values[:, 0], values[:, 1:])


def first_basis(
    X: np.ndarray,
    y: np.ndarray,
    k: int,
    order: int,
    linear: np.ndarray,
    random: np.random.Generator,
    score: Any,
) -> np.ndarray:
    """(d, k) leading directions of E[y S_m] for y without its linear part: plain subspace iteration."""
    d = X.shape[1]
    width = min(d, k + _OVERSAMPLE)
    # E[y S_1] lies in the span wherever it does not vanish: a good first direction for odd g.
    B = np.linalg.qr(np.column_stack([linear, random.standard_normal((d, width - 1))]))[0]
    if order == 2:
        image = _second_moment(X, y, score)
        for _ in range(15):
            B = np.linalg.qr(image(B))[0]
        return _leading(B, image(B), k)
    if score is not None:  # each pass asks the score (2k)³ numbers a row and block: a first guess needs few
        rows = slice(0, 20 * k * d + 2000)
        X, y, width = X[rows], y[rows], k
        B = B[:, :k]
    for _ in range(10 if score is None else 4):
        B = np.linalg.svd(cross(X, y, B, 3, score), full_matrices=False)[0][:, :width]
    return B[:, :k]


def _second_moment(X: np.ndarray, y: np.ndarray, score: Any) -> Callable[[np.ndarray], np.ndarray]:
    """B -> E[y S_2] B; a score other than the Gaussian is asked once, for the d × d matrix."""
    d = X.shape[1]
    if score is None or d > _LARGEST_DENSE:
        return lambda B: cross(X, y, B, 2, score)
    P = moment(X, y, np.eye(d), 2, score).tensor
    return lambda B: P @ B


def _leading(B: np.ndarray, image: np.ndarray, k: int) -> np.ndarray:
    """Rayleigh–Ritz: the k largest |eigenvalues| of P inside the block B, from P B."""
    small = B.T @ image
    value, vector = np.linalg.eigh((small + small.T) / 2)
    return B @ vector[:, np.argsort(-np.abs(value))[:k]]


def _next_basis(
    X: np.ndarray, current: Subspace, order: int, random: np.random.Generator, score: Any
) -> np.ndarray:
    """One round: the moment of the remainder plus the exact moment of the polynomial."""
    V, r = current.basis, current.remainder
    d, k = V.shape
    known = current.polynomial.expected_derivative(order)
    if order == 2:
        width = min(d, k + _OVERSAMPLE)
        B = np.linalg.qr(np.column_stack([V, random.standard_normal((d, width - k))]))[0]
        image = _second_moment(X, r, score)
        for _ in range(5):
            B = np.linalg.qr(image(B) + V @ (known @ (V.T @ B)))[0]
        return _leading(B, image(B) + V @ (known @ (V.T @ B)), k)
    W = V
    for _ in range(2):
        small = W.T @ V
        inside = np.einsum("pqr,aq,br->pab", known, small, small).reshape(k, -1)
        W = np.linalg.svd(cross(X, r, W, 3, score) + V @ inside, full_matrices=False)[0][:, :k]
    return W


def _gauss_newton(X: np.ndarray, y: np.ndarray, current: Subspace, score: Any, steps: int) -> Subspace:
    """Damped Gauss–Newton on the basis and the linear part; the polynomial is refitted at every step."""
    damping = 0.3
    for _ in range(steps):
        for _ in range(5):
            basis, linear = _proposal(X, current, damping)
            new = _describe(X, y, basis, linear, current.polynomial.degree, score)
            if new.misfit < current.misfit:
                break
            damping *= 4
        else:
            return current
        gain = 1 - new.misfit / current.misfit
        current, damping = new, damping / 3
        if gain < 1e-3:
            break
    return current


def _proposal(X: np.ndarray, current: Subspace, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """remainder ~ Σ_a ∂_a q(z) <x, δ_a> + <x, β>, by damped conjugate gradients: n d k a step."""
    from scipy.sparse.linalg import LinearOperator, lsqr

    n, d = X.shape
    k = current.basis.shape[1]
    slopes = current.slopes

    def forward(v: np.ndarray) -> np.ndarray:
        return np.sum(slopes * (X @ v[: d * k].reshape(d, k)), axis=1) + X @ v[d * k :]

    def backward(r: np.ndarray) -> np.ndarray:
        both = X.T @ np.column_stack([r[:, None] * slopes, r])
        return np.concatenate([both[:, :k].ravel(), both[:, k]])

    operator: Any = LinearOperator((n, d * k + d), matvec=forward, rmatvec=backward, dtype=float)  # type: ignore[call-arg]
    size = damping * np.sqrt(n * np.mean(slopes**2))
    step = lsqr(operator, current.remainder, damp=size, iter_lim=40)[0]
    basis = np.linalg.qr(current.basis + step[: d * k].reshape(d, k))[0]
    return basis, current.linear + step[d * k :]
