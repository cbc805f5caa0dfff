"""Random features of the inputs in which something that a network misses shows, and their sums over rows.

One large family spreads its power over everything it holds. Smaller ones, each of one kind, are each strong
where the others are weak, and the smallest of four p-values costs little.

The first pass over the rows gives what projects the features off the Jacobian, the second the cumulants of
the statistic under random signs of the residuals; see ``adequacy`` for the mathematics. Rows in memory,
streamed or on a cluster add up the same sums.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_solve, solve_triangular

from onehidden.activations import Activation
from onehidden.fit.parametrisation import Parametrisation, roots, weighed, written_out
from onehidden.fit.samples import Inputs, Numbers, Target, Weight
from onehidden.machine import in_double
from onehidden.run import stream


class FeatureKind(enum.StrEnum):
    """What the functions of a family are.

    Attributes
    ----------
    UNITS
        g(<a, z> + b), random additional units.
    PRODUCTS
        Products of three clipped <a, z>: interactions of three inputs.
    WAVES
        Triangle waves of <a, z> + b, a along one to three inputs.
    CURVES
        Powers of the fitted value: another link, or y on another scale.
    """

    UNITS = "units"
    PRODUCTS = "products"
    WAVES = "waves"
    CURVES = "curves"

    @property
    def ridge(self) -> float:
        """Number added to the unit diagonal of the Gram matrix.

        Directions that few features share weigh less.
        Measured with 250 units, 8 inputs, 1000 rows, level 1 %, ridges 0 (the projection of an F-test), .3, 1
        and 4: a missed .2 x^2 is found in 30, 75, 85, 85 % of the samples, .3 x1 x2 in 55, 100, 100, 100 %, a
        weak unit in 25, 70, 85, 90 %. None of them sees a product of three (5 %); 100 products do in 62 %.
        Waves see a sine in 57 (ridge .5) and 62 % (2), units in none.
        """
        return {
            FeatureKind.UNITS: 0.5,
            FeatureKind.PRODUCTS: 0.3,
            FeatureKind.WAVES: 2.0,
            FeatureKind.CURVES: 0.1,
        }[self]


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """Random functions of whitened inputs."""

    kind: FeatureKind
    activation: Activation  # g of the units
    directions: Float[np.ndarray, "factors M d"] = field(repr=False)
    offsets: Float[np.ndarray, " M"] = field(repr=False)
    centre: Float[np.ndarray, " d"] = field(repr=False)  # mean of the rows z; functions are drawn around it
    seen_in: Int[np.ndarray, " M"] | None = field(default=None, repr=False)  # the output of each, if several
    clip: float = 2.0  # standard deviations at which a factor of a product is cut: few rows must not decide

    @property
    def size(self) -> int:
        """M, the number of functions."""
        return len(self.offsets)

    def __call__(self, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n M"]:
        """The functions at the rows of Z."""
        centred = Z - self.centre
        if self.kind == FeatureKind.PRODUCTS:
            value = np.ones((len(Z), self.size))
            for a in self.directions:
                value *= np.clip(centred @ a.T, -self.clip, self.clip)
            return value
        t = centred @ self.directions[0].T + self.offsets
        if self.kind == FeatureKind.UNITS:
            return self.activation(t)
        t /= 2 * np.pi
        return 4 * np.abs(t - np.rint(t)) - 1  # a cosine to .7 % of its variance at a tenth of its cost

    def weighted(self, Z: np.ndarray, root: np.ndarray, q: int) -> Float[np.ndarray, "N M"]:
        """The functions times the roots of the weights, each in its output and zero in the others."""
        values = self(Z)
        if self.seen_in is None:
            return values * root[:, None]
        each = values[:, None, :] * (np.arange(q)[:, None] == self.seen_in)
        roots_ = root if root.ndim > 1 else np.repeat(root[:, None], q, axis=1)
        return weighed(roots_, each).reshape(len(Z) * q, -1)


@dataclass(frozen=True, eq=False)
class FittedCurves:
    """Powers of what the network predicts, cut off at ``clip`` standard deviations of y."""

    form: Parametrisation
    theta: Float[np.ndarray, " p"] = field(repr=False)
    powers: tuple[int, ...] = (2, 3, 4)
    clip: float = 2.5
    kind: FeatureKind = FeatureKind.CURVES

    @property
    def size(self) -> int:
        """M: the powers of each output."""
        return len(self.powers) * self.form.q

    def weighted(self, Z: np.ndarray, root: np.ndarray, q: int) -> Float[np.ndarray, "N M"]:
        """The functions times the roots of the weights, each in its output and zero in the others."""
        fitted = np.clip(self.form.predict(self.theta, Z).reshape(len(Z), q), -self.clip, self.clip)
        values = fitted[:, None, :, None] ** np.array(self.powers) * np.eye(q)[:, :, None]
        roots_ = root if root.ndim > 1 else np.repeat(root[:, None], q, axis=1)
        return weighed(roots_, values.reshape(len(Z), q, -1)).reshape(len(Z) * q, -1)


Features = RandomFeatures | FittedCurves


def random_features(
    activation: Activation,
    centre: Float[np.ndarray, " d"],
    size: int,
    seed: int,
    outputs: int | None = None,
    frequencies: tuple[float, float] = (1.0, 4.0),
) -> tuple[RandomFeatures, ...]:
    """Draw the three families of ``size`` functions each.

    ``frequencies`` are those of the waves, in radians per standard deviation.
    """
    d, found = len(centre), []
    for kind in (FeatureKind.UNITS, FeatureKind.PRODUCTS, FeatureKind.WAVES):
        rng = stream(seed, "adequacy", kind.value)
        directions = rng.standard_normal((3 if kind == FeatureKind.PRODUCTS else 1, size, d))
        offsets = rng.standard_normal(size)
        if kind == FeatureKind.WAVES:
            few = rng.integers(1, 4, (size, 1))  # whitened coordinates stay near the inputs they come from
            directions *= np.argsort(rng.random((size, d)), axis=1) < few
            offsets = rng.uniform(0, 2 * np.pi, size)
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        if kind == FeatureKind.WAVES:
            directions *= rng.uniform(*frequencies, (size, 1))
        seen_in = None if outputs is None else rng.integers(outputs, size=size)
        found.append(
            RandomFeatures(kind, activation, directions, offsets, np.asarray(centre, float), seen_in)
        )
    return tuple(found)


class Block(NamedTuple):
    """Some rows: weighted residuals, Jacobian and features of each family; plain target and weights.

    Of several outputs N is n q, those of a row next to each other.
    """

    r: Float[np.ndarray, " N"]
    J: Float[np.ndarray, "N p"]
    F: list[Float[np.ndarray, "N M"]]
    y: Float[np.ndarray, " N"]
    weight: Float[np.ndarray, " N"]


Terms = Callable[[Block], list[np.ndarray]]


@dataclass(frozen=True, eq=False)
class FitAndFeatures:
    """A fit and the families of features: rows in, blocks out.

    ``piece`` is the size of a block in bytes; one that fits in the cache takes a third of the time of 64 MiB.
    """

    form: Parametrisation
    theta: Float[np.ndarray, " p"] = field(repr=False)
    families: tuple[Features, ...]
    piece: int = 16 << 20

    def blocks(self, Z: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Iterator[Block]:
        """Pieces of bounded size."""
        every, q = roots(weight, len(y)), self.form.q
        width = (self.form.size + sum(family.size for family in self.families)) * q
        step = 1 << max(8, (self.piece // (8 * width)).bit_length() - 1)
        for at in range(0, len(y), step):
            z, target, root = Z[at : at + step], y[at : at + step], every[at : at + step]
            r, J = written_out(self.form, self.theta, z, target, root)
            F = [family.weighted(z, root, q) for family in self.families]
            mass = root**2  # of information matrices the sums over columns are their diagonals
            mass = np.repeat(mass, q) if root.ndim == 1 else mass if root.ndim == 2 else mass.sum(axis=1)
            yield Block(r, J, F, target.ravel(), mass.ravel())


class Total:
    """Accumulator of terms that are sums over rows."""

    def __init__(self, fit: FitAndFeatures, terms: Terms) -> None:
        self.fit, self.terms = fit, terms
        self.sums: list[np.ndarray] = []

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> Total:
        """Add rows; their numbers do not matter."""
        for block in self.fit.blocks(Z, y, weight):
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
    """First pass: moments of y and r, J'r, and F'F, J'F, F'r of every family."""
    r, J, F, y, weight = block
    each = [term for f in F for term in (f.T @ f, J.T @ f, f.T @ r)]
    return [np.array([weight.sum(), weight @ y, weight @ y**2, r @ r]), J.T @ r, *each]


def sign_moments(
    block: Block, leverages: Float[np.ndarray, "p s"], maps: tuple[tuple[np.ndarray, np.ndarray], ...]
) -> list[np.ndarray]:
    """Second pass: V'U^2 V, V'U^2 D V and the sums of D, D^2, D^3 for every family.

    U = diag(u), u_i = r_i / sqrt(1 - h_i) and D_i = u_i^2 |V_i|^2. A row that the fit passes through says
    nothing about its noise: 1 - h is at least 1e-3.
    """
    h = np.sum((block.J @ leverages) ** 2, axis=1)
    u = block.r / np.sqrt(np.maximum(1 - h, 1e-3))
    return [term for V in _projected(block, maps) for term in _moments_of(V * u[:, None])]


def _projected(
    block: Block, maps: tuple[tuple[np.ndarray, np.ndarray], ...]
) -> Iterator[Float[np.ndarray, "N M"]]:
    """V of every family."""
    for f, (coefficients, root) in zip(block.F, maps, strict=True):
        yield (f - block.J @ coefficients) @ root


def _moments_of(rows: Float[np.ndarray, "N M"]) -> list[np.ndarray]:
    own = np.sum(rows**2, axis=1)
    weighted = rows * np.sqrt(own)[:, None]
    return [rows.T @ rows, weighted.T @ weighted, np.array([own.sum(), own @ own, own @ own**2])]


class SignsByGroup:
    """Accumulator of ``sign_moments`` where all rows of a group g have one sign.

    In the place of a row's u V stands V_g' (I - H_g)^(-1/2) r_g. With R_g = J_g C, of ``leverages`` C, and
    K_g = R_g' R_g it is V_g' r_g + V_g' R_g phi(K_g) R_g' r_g, phi(k) = ((1 - k)^(-1/2) - 1) / k: sums over
    rows again, of G M p numbers.
    """

    def __init__(
        self,
        fit: FitAndFeatures,
        groups: Int[np.ndarray, " n"],
        leverages: Float[np.ndarray, "p s"],
        maps: tuple[tuple[np.ndarray, np.ndarray], ...],
    ) -> None:
        self._fit, self._groups, self._leverages, self._maps = fit, groups, leverages, maps
        count, s = int(groups.max()) + 1, leverages.shape[1]
        self._square, self._score = np.zeros((count, s, s)), np.zeros((count, s))
        self._sums = [np.zeros((count, root.shape[1], s + 1)) for _, root in maps]

    @in_double
    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> SignsByGroup:
        """Add rows, which their numbers name."""
        assert row is not None
        own, at = np.repeat(self._groups[row], self._fit.form.q), 0
        for block in self._fit.blocks(Z, y, weight):
            groups = own[at : at + len(block.r)]
            order = np.argsort(groups, kind="stable")
            found, first = np.unique(groups[order], return_index=True)
            parts = list(zip(found, np.split(order, first[1:]), strict=True))
            R = block.J @ self._leverages
            beside = np.column_stack([block.r, R])
            for group, part in parts:
                self._square[group] += R[part].T @ R[part]
                self._score[group] += R[part].T @ block.r[part]
            for total, V in zip(self._sums, _projected(block, self._maps), strict=True):
                for group, part in parts:
                    total[group] += V[part].T @ beside[part]
            at += len(block.r)
        return self

    def merge(self, other: SignsByGroup) -> SignsByGroup:
        """Add the sums of other rows."""
        self._square, self._score = self._square + other._square, self._score + other._score
        self._sums = [mine + new for mine, new in zip(self._sums, other._sums, strict=True)]
        return self

    def result(self) -> list[np.ndarray]:
        """The sums of ``sign_moments``."""
        value, vector = np.linalg.eigh(self._square)
        value = np.clip(value, 1e-9, 1 - 1e-3)
        phi = (1 / np.sqrt(1 - value) - 1) / value
        along = np.einsum("gsk,gk,gtk,gt->gs", vector, phi, vector, self._score, optimize=True)
        rows = [one[:, :, 0] + np.einsum("gms,gs->gm", one[:, :, 1:], along) for one in self._sums]
        return [term for one in rows for term in _moments_of(one)]


@dataclass(frozen=True, eq=False)
class Projection:
    """(J'J)^+ = S (L L')^-1 S: ``scale`` S (p,), ``factor`` L (p, p).

    Scale invariance makes J'J singular; 1e-10 of a unit diagonal is added and changes no projection.
    """

    scale: Float[np.ndarray, " p"]
    factor: Float[np.ndarray, "p p"]

    @classmethod
    def of(cls, hessian: Float[np.ndarray, "p p"]) -> Projection:
        """From J'J."""
        size = np.diag(hessian)
        scale = np.where(size > 0, 1 / np.sqrt(np.maximum(size, np.finfo(float).tiny)), 0.0)
        unit = hessian * scale[:, None] * scale
        return cls(scale, np.linalg.cholesky(unit + 1e-10 * np.eye(len(unit))))

    def coefficients(self, cross: Float[np.ndarray, "p M"]) -> Float[np.ndarray, "p M"]:
        """(J'J)^+ J'F of J'F: the projection of F on the columns of J has these coefficients."""
        return self.scale[:, None] * cho_solve((self.factor, True), self.scale[:, None] * cross)

    def leverages(self, seed: int, sketch: int = 200) -> Float[np.ndarray, "p s"]:
        """C with h_i = |J_i C|^2: a root of (J'J)^+.

        Of more than ``sketch`` parameters random signs of its columns, which give each leverage to 10 %.
        """
        p = len(self.scale)
        signs = np.eye(p)
        if p > sketch:
            draws = stream(seed, "adequacy", "leverages").integers(0, 2, (p, sketch))
            signs = (2.0 * draws - 1) / np.sqrt(sketch)
        return self.scale[:, None] * solve_triangular(self.factor, signs, trans=1, lower=True)


@dataclass(frozen=True, eq=False)
class ProjectedFeatures:
    """One family after the first pass: F~ = (F - J coefficients) scale and V = F~ root."""

    coefficients: Float[np.ndarray, "p M"]  # of the projection of F on J
    scale: Float[np.ndarray, " M"]
    gram: Float[np.ndarray, "M M"]  # F~'F~, of unit diagonal
    factor: Float[np.ndarray, "M M"]  # lower triangle of gram + ridge; root is the inverse of its transpose
    cross: Float[np.ndarray, " M"]  # F~'r

    @classmethod
    def of(
        cls,
        family: RandomFeatures | FittedCurves,
        onto: Projection,
        gradient: np.ndarray,
        moments: list[np.ndarray],
    ) -> ProjectedFeatures:
        """From F'F, J'F, F'r, given J'r, which is zero at a minimum but for rounding and kinks."""
        gram, cross, toward = moments
        coefficients = onto.coefficients(cross)
        left = gram - cross.T @ coefficients
        size = np.diag(left)
        own = size > 1e-10 * np.diag(gram)  # the others lie in the span of J to rounding
        scale = np.where(own, 1 / np.sqrt(np.where(own, size, 1.0)), 0.0)
        left = left * scale[:, None] * scale
        factor = np.linalg.cholesky(left + family.kind.ridge * np.eye(len(left)))
        return cls(coefficients, scale, left, factor, scale * (toward - coefficients.T @ gradient))

    @property
    def root(self) -> Float[np.ndarray, "M M"]:
        return np.linalg.inv(self.factor).T

    @property
    def map(self) -> tuple[Float[np.ndarray, "p M"], Float[np.ndarray, "M M"]]:
        """What the second pass needs: V = (F - J map[0]) map[1]."""
        return self.coefficients, self.scale[:, None] * self.root
