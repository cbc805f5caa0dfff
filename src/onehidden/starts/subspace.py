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
from functools import cached_property

import numpy as np
from jaxtyping import Float

from onehidden.laws.base import Score
from onehidden.moments.in_subspace import Design, Polynomial, cross, largest_degree, moment
from onehidden.moments.weights import Weight, of_rows, rooted, weighted_mean
from onehidden.run import stream


@dataclass(frozen=True)
class Subspace:
    """y ~ <l, x> + q(V'x): orthonormal columns V (d, k), the polynomial q and the linear part l (d,).

    ``remainder`` (n,) is what they leave of y, ``slopes`` (n, k) the gradient of q at the rows and ``misfit``
    the weighted mean of the squared remainder.
    """

    basis: Float[np.ndarray, "d k"]
    polynomial: Polynomial
    linear: Float[np.ndarray, " d"]
    remainder: Float[np.ndarray, " n"]
    slopes: Float[np.ndarray, "n k"]
    misfit: float


@dataclass(frozen=True)
class Rows:
    """The samples of a search: X (n, d), y (n,), the input law (None: N(0, I)) and weights (n,) or None."""

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    score: Score | None = None
    weight: Weight = None

    def part(self, rows: slice) -> Rows:
        return Rows(self.X[rows], self.y[rows], self.score, of_rows(self.weight, rows))

    @cached_property
    def centred(self) -> Float[np.ndarray, " n"]:
        """Target y less its mean."""
        return self.y - float(weighted_mean(self.y, self.weight))

    @cached_property
    def scaled(self) -> Float[np.ndarray, "n d"]:
        """X with each row times the root of its weight."""
        return rooted(self.X, self.weight)

    def linear_fit(
        self, target: Float[np.ndarray, " n"], start: Float[np.ndarray, " d"] | None, steps: int
    ) -> Float[np.ndarray, " d"]:
        """Least squares without intercept by conjugate gradients: n d a step, no d × d matrix."""
        from scipy.sparse.linalg import lsqr

        target = rooted(target, self.weight)
        return lsqr(self.scaled, target, iter_lim=steps, atol=1e-8, btol=1e-8, x0=start)[0]

    def described(
        self, V: np.ndarray, linear: np.ndarray, design: Design, polynomial: Polynomial
    ) -> Subspace:
        """Return the subspace with this linear part and polynomial, and what they leave of y."""
        wanted = np.column_stack([polynomial.coefficients, polynomial.gradient_coefficients()])
        values = design.apply(wanted)
        remainder = self.y - self.X @ linear - values[:, 0]
        misfit = float(weighted_mean(remainder**2, self.weight))
        return Subspace(V, polynomial, linear, remainder, values[:, 1:], misfit)

    def design(self, V: np.ndarray, degree: int) -> Design:
        """Return the polynomials of z = V'x at these rows."""
        return Design(self.X @ V, degree, gaussian=self.score is None, weight=self.weight)


def find_subspace(
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    k: int,
    order: int,
    seed: int,
    score: Score | None = None,  # None for N(0, I)
    *,
    weight: Weight = None,
    rounds: int = 8,  # subspace iterations on the moment of the remainder; 0 is the paper's own estimator
    steps: int = 20,  # Gauss-Newton steps after them at most
    degree: int | None = None,  # None: the largest, up to 4, with at most n/4 products
    products: int = 500,  # of the polynomial at most
) -> Subspace:
    """Return the k directions that carry the order-``order`` moment (2 or 3) of y."""
    random = stream(seed, "subspace")
    whole = Rows(X, y, score, weight)
    n, d = X.shape
    if degree is None:
        degree = largest_degree(k, min(n // 4, products))
    degree = max(degree, order)
    rows = min(n, 12 * (k * d + products))  # the search gains little from more
    some = whole if rows == n else whole.part(slice(0, rows))
    linear = some.linear_fit(some.centred, None, 30)
    V = first_basis(some, some.centred - some.X @ linear, k, order, linear, random)
    best = _describe(some, V, linear, degree)
    current = best
    # With order 3 and a score each round would ask (2k)³ numbers per row: Gauss–Newton alone does as well.
    for _ in range(rounds if score is None or order == 2 else 0):
        V = _next_basis(some, current, order, random)
        current = _describe(some, V, best.linear, degree)
        gain = best.misfit - current.misfit
        if gain > 0:
            best, before = current, best
            if gain < 1e-2 * before.misfit:
                break
    best = _gauss_newton(some, best, steps)
    if rows < n:
        best = _describe(whole, best.basis, best.linear, degree)
        best = _gauss_newton(whole, best, min(steps, 1))
    return best


def transfer(rows: Rows, found: Subspace) -> Subspace:
    """Return the same basis, polynomial and linear part on other rows: nothing is fitted to them."""
    design = rows.design(found.basis, found.polynomial.degree)
    return rows.described(found.basis, found.linear, design, design.adopt(found.polynomial))


def _describe(rows: Rows, V: np.ndarray, linear: np.ndarray, degree: int) -> Subspace:
    """Return the linear part and the polynomial for one basis, by backfitting."""
    design = rows.design(V, degree)
    for _ in range(2):
        explained = design.apply(design.fit(rows.y - rows.X @ linear).coefficients)
        linear = rows.linear_fit(rows.y - explained, linear, 6)
    return rows.described(V, linear, design, design.fit(rows.y - rows.X @ linear))


def first_basis(
    rows: Rows,
    rest: Float[np.ndarray, " n"],
    k: int,
    order: int,
    linear: Float[np.ndarray, " d"],
    random: np.random.Generator,
) -> Float[np.ndarray, "d k"]:
    """(d, k) leading directions of E[rest S_m], rest = y less its linear part: subspace iteration."""
    d = rows.X.shape[1]
    width = min(d, k + 4)
    # E[y S_1] lies in the span wherever it does not vanish: a good first direction for odd g.
    B = np.linalg.qr(np.column_stack([linear, random.standard_normal((d, width - 1))]))[0]
    if order == 2:
        image = _second_moment(rows, rest)
        for _ in range(15):
            B = np.linalg.qr(image(B))[0]
        return _leading(B, image(B), k)
    if rows.score is not None:  # each pass asks (2k)³ numbers per row and block: a first guess needs few
        few = slice(0, 20 * k * d + 2000)
        rows, rest, width = rows.part(few), rest[few], k
        B = B[:, :k]
    for _ in range(10 if rows.score is None else 4):
        image3 = cross(rows.X, rest, B, 3, rows.score, rows.weight)
        B = np.linalg.svd(image3, full_matrices=False)[0][:, :width]
    return B[:, :k]


def _second_moment(rows: Rows, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """B -> E[values S_2] B; a score other than the Gaussian is asked once, for the d × d matrix."""
    d = rows.X.shape[1]
    if rows.score is None or d > 512:
        return lambda B: cross(rows.X, values, B, 2, rows.score, rows.weight)
    P = moment(rows.X, values, np.eye(d), 2, rows.score, rows.weight).tensor
    return lambda B: P @ B


def _leading(B: np.ndarray, image: np.ndarray, k: int) -> np.ndarray:
    """Rayleigh–Ritz: the k largest |eigenvalues| of P inside the block B, from P B."""
    small = B.T @ image
    value, vector = np.linalg.eigh((small + small.T) / 2)
    return B @ vector[:, np.argsort(-np.abs(value))[:k]]


def _next_basis(rows: Rows, current: Subspace, order: int, random: np.random.Generator) -> np.ndarray:
    """One round: the moment of the remainder plus the exact moment of the polynomial."""
    V, r = current.basis, current.remainder
    d, k = V.shape
    known = current.polynomial.expected_derivative(order)
    if order == 2:
        width = min(d, k + 4)
        B = np.linalg.qr(np.column_stack([V, random.standard_normal((d, width - k))]))[0]
        image = _second_moment(rows, r)
        for _ in range(5):
            B = np.linalg.qr(image(B) + V @ (known @ (V.T @ B)))[0]
        return _leading(B, image(B) + V @ (known @ (V.T @ B)), k)
    W = V
    for _ in range(2):
        small = W.T @ V
        inside = np.einsum("pqr,aq,br->pab", known, small, small).reshape(k, -1)
        outside = cross(rows.X, r, W, 3, rows.score, rows.weight)
        W = np.linalg.svd(outside + V @ inside, full_matrices=False)[0][:, :k]
    return W


def _gauss_newton(rows: Rows, current: Subspace, steps: int) -> Subspace:
    """Damped Gauss–Newton on the basis and the linear part; the polynomial is refitted at every step."""
    damping = 0.3
    for _ in range(steps):
        for _ in range(5):
            basis, linear = _proposal(rows, current, damping)
            new = _describe(rows, basis, linear, current.polynomial.degree)
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


def _proposal(rows: Rows, current: Subspace, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the basis and linear part after a damped step: remainder ~ Σ_a ∂_a q(z) <x, δ_a> + <x, β>."""
    from scipy.sparse.linalg import LinearOperator, lsqr

    n, d = rows.X.shape
    k = current.basis.shape[1]
    slopes, scaled = current.slopes, rows.scaled

    def forward(v: np.ndarray) -> np.ndarray:
        return np.sum(slopes * (scaled @ v[: d * k].reshape(d, k)), axis=1) + scaled @ v[d * k :]

    def backward(r: np.ndarray) -> np.ndarray:
        both = scaled.T @ np.column_stack([r[:, None] * slopes, r])
        return np.concatenate([both[:, :k].ravel(), both[:, k]])

    operator: object = LinearOperator((n, d * k + d), matvec=forward, rmatvec=backward, dtype=float)  # type: ignore[call-arg]
    size = damping * np.linalg.norm(rooted(slopes, rows.weight)) / np.sqrt(k)
    step = lsqr(operator, rooted(current.remainder, rows.weight), damp=float(size), iter_lim=40)[0]  # type: ignore[arg-type]
    basis = np.linalg.qr(current.basis + step[: d * k].reshape(d, k))[0]
    return basis, current.linear + step[d * k :]
