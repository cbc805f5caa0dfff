"""Sums over rows that the adequacy test asks for: two passes, in memory, streamed or on a cluster.

The first pass gives what projects the functions of a look off the Jacobian; the second the cumulants of the
statistic under random signs of the residuals. See ``onehidden.certify.adequacy`` for the mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from onehidden.certify.looks import Look
from onehidden.fit.form import Form, roots, weighed, written_out
from onehidden.fit.rows import Inputs, Numbers, Target, Weight
from onehidden.precision import in_double
from onehidden.streams import stream

_NEGLIGIBLE = (
    1e-10  # of a unit diagonal: gauge directions make J'J singular, and add nothing to its projection
)
_SKETCH = 200  # parameters up to which leverages are exact; beyond, a sketch knows each to 10 % of itself
_LEAST = 1e-3  # of 1 - h: a row that the fit goes through says nothing about its noise
_BYTES = 16 << 20  # one block of rows of J and F: what a cache holds is three times as fast as 64 MiB


class Block(NamedTuple):
    """Some rows: weighted residuals, Jacobian and functions of each look; plain target and weights.

    Of several outputs N is n q, those of a row next to each other.
    """

    r: Float[np.ndarray, " N"]
    J: Float[np.ndarray, "N p"]
    F: list[Float[np.ndarray, "N M"]]
    y: Float[np.ndarray, " N"]
    weight: Float[np.ndarray, " N"]


Terms = Callable[[Block], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class View:
    """A fit and the looks at it: rows in, blocks out."""

    form: Form
    theta: Float[np.ndarray, " p"] = field(repr=False)
    looks: tuple[Look, ...]

    def blocks(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Iterator[Block]:
        """Pieces of bounded size."""
        every, q = roots(weight, len(y)), self.form.q
        width = (self.form.size + sum(look.size for look in self.looks)) * q
        step = 1 << max(8, (_BYTES // (8 * width)).bit_length() - 1)
        for at in range(0, len(y), step):
            z, target, root = Z[at : at + step], y[at : at + step], every[at : at + step]
            r, J = written_out(self.form, self.theta, z, target, root)
            F = [_functions(look, z, root, q) for look in self.looks]
            square = root**2  # of information matrices the sums over columns are their diagonals
            mass = (
                np.repeat(square, q) if root.ndim == 1 else square if root.ndim == 2 else square.sum(axis=1)
            )
            yield Block(r, J, F, target.ravel(), mass.ravel())


def _functions(look: Look, z: np.ndarray, root: np.ndarray, q: int) -> Float[np.ndarray, "N M"]:
    """The functions of a look times the roots of the weights, each in its output and zero in the others."""
    values = look(z)
    if look.seen_in is None:
        return values * root[:, None]
    each = values[:, None, :] * (np.arange(q)[:, None] == look.seen_in)
    return weighed(root if root.ndim > 1 else np.repeat(root[:, None], q, axis=1), each).reshape(
        len(z) * q, -1
    )


class Total:
    """Accumulator of terms that are sums over rows."""

    def __init__(self, view: View, terms: Terms) -> None:
        self.view, self.terms = view, terms
        self.sums: list[np.ndarray] = []

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> Total:
        """Add rows; their numbers do not matter."""
        for block in self.view.blocks(Z, y, weight):
            self._add(self.terms(block))
        return self

    def merge(self, other: Total) -> Total:
        self._add(other.sums)
        return self

    def result(self) -> list[np.ndarray]:
        return self.sums

    def _add(self, terms: list[np.ndarray]) -> None:
        if not self.sums:  # a part without rows has none
            self.sums = terms
        elif terms:
            self.sums = [mine + new for mine, new in zip(self.sums, terms, strict=True)]


def cross_moments(block: Block) -> list[np.ndarray]:
    """First pass: moments of y and r, J'r, and F'F, J'F, F'r of every look."""
    r, J, F, y, weight = block
    each = [term for f in F for term in (f.T @ f, J.T @ f, f.T @ r)]
    return [np.array([weight.sum(), weight @ y, weight @ y**2, r @ r]), J.T @ r, *each]


@dataclass(frozen=True, eq=False)
class Projection:
    """(J'J)^+ = S (L L')^-1 S but for directions below _NEGLIGIBLE: ``scale`` S (p,), ``factor`` L (p, p)."""

    scale: Float[np.ndarray, " p"]
    factor: Float[np.ndarray, "p p"]

    @classmethod
    def of(cls, hessian: Float[np.ndarray, "p p"]) -> Projection:
        """From J'J."""
        size = np.diag(hessian)
        scale = np.where(size > 0, 1 / np.sqrt(np.maximum(size, 1e-300)), 0.0)
        unit = hessian * scale[:, None] * scale
        return cls(scale, np.linalg.cholesky(unit + _NEGLIGIBLE * np.eye(len(unit))))

    def coefficients(self, cross: Float[np.ndarray, "p M"]) -> Float[np.ndarray, "p M"]:
        """(J'J)^+ J'F of J'F: the projection of F on the columns of J has these coefficients."""
        from scipy.linalg import cho_solve

        return self.scale[:, None] * cho_solve((self.factor, True), self.scale[:, None] * cross)

    def leverages(self, seed: int) -> Float[np.ndarray, "p s"]:
        """C with h_i = |J_i C|^2: a root of (J'J)^+, or for many parameters random signs of its columns."""
        from scipy.linalg import solve_triangular

        p = len(self.scale)
        signs = np.eye(p)
        if p > _SKETCH:
            draws = stream(seed, "adequacy", "leverages").integers(0, 2, (p, _SKETCH))
            signs = (2.0 * draws - 1) / np.sqrt(_SKETCH)
        return self.scale[:, None] * solve_triangular(self.factor, signs, trans=1, lower=True)


@dataclass(frozen=True, eq=False)
class Lens:
    """One look after the first pass: F~ = (F - J shadow) scale and V = F~ root.

    Attributes
    ----------
    shadow : (p, M) coefficients of the projection of F on J. scale : (M,).
    gram : (M, M) F~'F~, of unit diagonal.
    factor : (M, M) lower triangle of gram + ridge; root is the inverse of its transpose.
    toward : (M,) F~'r.
    """

    shadow: Float[np.ndarray, "p M"]
    scale: Float[np.ndarray, " M"]
    gram: Float[np.ndarray, "M M"]
    factor: Float[np.ndarray, "M M"]
    toward: Float[np.ndarray, " M"]

    @property
    def root(self) -> Float[np.ndarray, "M M"]:
        return np.linalg.inv(self.factor).T

    @property
    def glass(self) -> tuple[Float[np.ndarray, "p M"], Float[np.ndarray, "M M"]]:
        """What the second pass needs: V = (F - J glass[0]) glass[1]."""
        return self.shadow, self.scale[:, None] * self.root


def lens(look: Look, onto: Projection, gradient: Float[np.ndarray, " p"], moments: list[np.ndarray]) -> Lens:
    """The lens of a look from its F'F, J'F, F'r, given J'r: zero at a minimum but for rounding and kinks."""
    gram, cross, toward = moments
    shadow = onto.coefficients(cross)
    left = gram - cross.T @ shadow
    size = np.diag(left)
    # What lies in the span of J to rounding has no part of its own.
    own = size > _NEGLIGIBLE * np.diag(gram)
    scale = np.where(own, 1 / np.sqrt(np.where(own, size, 1.0)), 0.0)
    left = left * scale[:, None] * scale
    factor = np.linalg.cholesky(left + look.ridge * np.eye(len(left)))
    return Lens(shadow, scale, left, factor, scale * (toward - shadow.T @ gradient))


def sign_moments(
    block: Block, leverages: Float[np.ndarray, "p s"], glasses: tuple[tuple[np.ndarray, np.ndarray], ...]
) -> list[np.ndarray]:
    """Second pass: V'U^2 V, V'U^2 D V and the sums of D, D^2, D^3 for every look.

    U = diag(u), u_i = r_i / sqrt(1 - h_i) and D_i = u_i^2 |V_i|^2.
    """
    h = np.sum((block.J @ leverages) ** 2, axis=1)
    u = block.r / np.sqrt(np.maximum(1 - h, _LEAST))
    terms = []
    for f, (shadow, root) in zip(block.F, glasses, strict=True):
        rows = (f - block.J @ shadow) @ root * u[:, None]
        own = np.sum(rows**2, axis=1)
        weighted = rows * np.sqrt(own)[:, None]
        terms += [rows.T @ rows, weighted.T @ weighted, np.array([own.sum(), own @ own, own @ own**2])]
    return terms
