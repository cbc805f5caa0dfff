"""Random features of the inputs in which something that a network misses shows, and their sums over rows.

One large family spreads its power over everything it holds. Smaller ones, each of one kind, are each strong
where the others are weak, and the smallest of four p-values costs little.

The first pass over the rows gives what projects the features off the Jacobian, the second the cumulants of
the statistic under random signs of the residuals; see ``residuals`` for the mathematics.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from onehidden.activations import Activation
from onehidden.certify.groups import Groups
from onehidden.fit.parametrisation import Parametrisation, roots, weighed, written_out
from onehidden.fit.samples import Inputs, Numbers, Target, Weight
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
        """Number added to the unit diagonal of the Gram matrix: directions of few features weigh less.

        Measured with 250 units, 8 inputs, 1000 rows, level 1 %, ridges 0 (the projection of an F-test), .3, 1
        and 4: a missed .2 x^2 is found in 30, 75, 85, 85 % of the samples, .3 x1 x2 in 55, 100, 100, 100 %, a
        weak unit in 25, 70, 85, 90 %. None of them sees a product of three (5 %); 100 products do in 62 %.
        """
        return {"units": 0.5, "products": 0.3, "waves": 2.0, "curves": 0.1}[self.value]


@dataclass(frozen=True, eq=False)
class RandomFeatures:
    """Random functions of whitened inputs."""

    kind: FeatureKind
    activation: Activation  # g of the units
    directions: Float[np.ndarray, "factors M d"] = field(repr=False)
    offsets: Float[np.ndarray, " M"] = field(repr=False)
    centre: Float[np.ndarray, " d"] = field(repr=False)  # mean of the rows z; functions are drawn around it
    seen_in: Int[np.ndarray, " M"] = field(repr=False)  # the output of each
    clip: float = 2.0  # standard deviations at which a factor of a product is cut: few rows must not decide

    def __call__(self, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n M"]:
        """The functions at the rows of Z."""
        centred = Z - self.centre
        if self.kind == FeatureKind.PRODUCTS:
            value = np.ones((len(Z), len(self.offsets)))
            for a in self.directions:
                value *= np.clip(centred @ a.T, -self.clip, self.clip)
            return value
        t = centred @ self.directions[0].T + self.offsets
        if self.kind == FeatureKind.UNITS:
            return self.activation(t)
        t /= 2 * np.pi
        return 4 * np.abs(t - np.rint(t)) - 1  # a cosine to .7 % of its variance at a tenth of its cost

    def by_output(self, Z: Float[np.ndarray, "n d"], q: int) -> Float[np.ndarray, "n q M"]:
        """The functions, each in its output and zero in the others."""
        return self(Z)[:, None, :] * (np.arange(q)[:, None] == self.seen_in)


@dataclass(frozen=True, eq=False)
class FittedCurves:
    """Powers of what the network predicts in each output, cut off at ``clip`` standard deviations of y."""

    form: Parametrisation
    theta: Float[np.ndarray, " p"] = field(repr=False)
    powers: tuple[int, ...] = (2, 3, 4)
    clip: float = 2.5
    kind: FeatureKind = FeatureKind.CURVES

    def by_output(self, Z: Float[np.ndarray, "n d"], q: int) -> Float[np.ndarray, "n q M"]:
        """The functions, each in its output and zero in the others."""
        fitted = np.clip(self.form.predict(self.theta, Z).reshape(len(Z), q), -self.clip, self.clip)
        values = fitted[:, None, :, None] ** np.array(self.powers) * np.eye(q)[:, :, None]
        return values.reshape(len(Z), q, -1)


def random_features(
    activation: Activation,
    centre: Float[np.ndarray, " d"],
    size: int,
    seed: int,
    outputs: int | None = None,
    frequencies: tuple[float, float] = (1.0, 4.0),
) -> tuple[RandomFeatures, ...]:
    """Three families of ``size`` functions; ``frequencies`` of waves are in radians per deviation."""
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
        seen_in = np.zeros(size, int) if outputs is None else rng.integers(outputs, size=size)
        found.append(RandomFeatures(kind, activation, directions, offsets, centre, seen_in))
    return tuple(found)


class Block(NamedTuple):
    """Weighted residuals, Jacobian and features of each family; plain target and weights.

    Of several outputs N is n q, those of a row next to each other.
    """

    r: Float[np.ndarray, " N"]
    J: Float[np.ndarray, "N p"]
    F: list[Float[np.ndarray, "N M"]]
    y: Float[np.ndarray, " N"]
    weight: Float[np.ndarray, " N"]


@dataclass(frozen=True, eq=False)
class FitAndFeatures:
    """A fit and the families of features: rows in, blocks out.

    ``piece`` is the size of a block in bytes; one that fits in the cache takes a third of the time of 64 MiB.
    """

    form: Parametrisation
    theta: Float[np.ndarray, " p"] = field(repr=False)
    families: tuple[RandomFeatures | FittedCurves, ...]
    piece: int = 16 << 20

    def blocks(self, Z: Inputs, y: Target, weight: Weight) -> Iterator[Block]:
        every, q = roots(weight, len(y)), self.form.q
        width = (self.form.size + sum(one.by_output(Z[:1], q).shape[2] for one in self.families)) * q
        step = 1 << max(8, (self.piece // (8 * width)).bit_length() - 1)
        for at in range(0, len(y), step):
            z, target, root = Z[at : at + step], y[at : at + step], every[at : at + step]
            r, J = written_out(self.form, self.theta, z, target, root)
            each = root if root.ndim > 1 else np.repeat(root[:, None], q, axis=1)
            F = [weighed(each, one.by_output(z, q)).reshape(len(r), -1) for one in self.families]
            # Of information matrices the diagonal.
            mass = each**2 if each.ndim == 2 else (each**2).sum(axis=1)
            yield Block(r, J, F, target.ravel(), mass.ravel())


def cross_moments(
    fit: FitAndFeatures, Z: Inputs, y: Target, weight: Weight, row: Numbers
) -> list[np.ndarray]:
    """First pass: moments of y and r, J'r, and F'F, J'F, F'r of every family."""
    total: list[Any] = [0.0] * (2 + 3 * len(fit.families))
    for r, J, F, target, mass in fit.blocks(Z, y, weight):
        moments = np.array([mass.sum(), mass @ target, mass @ target**2, r @ r])
        each = [term for f in F for term in (f.T @ f, J.T @ f, f.T @ r)]
        total = [a + b for a, b in zip(total, [moments, J.T @ r, *each], strict=True)]
    return total


class Projections(NamedTuple):
    """What the second pass needs of the first: C with h_i = |J_i C|², and V = (F - J coefficients) root."""

    leverages: Float[np.ndarray, "p p"]
    maps: tuple[tuple[Float[np.ndarray, "p M"], Float[np.ndarray, "M M"]], ...]

    def of(self, block: Block) -> list[Float[np.ndarray, "N M"]]:
        """V of every family."""
        pairs = zip(block.F, self.maps, strict=True)
        return [(f - block.J @ coefficients) @ root for f, (coefficients, root) in pairs]


def sign_moments(
    fit: FitAndFeatures, known: Projections, Z: Inputs, y: Target, weight: Weight, row: Numbers
) -> list[np.ndarray]:
    """Second pass: V'U^2 V, V'U^2 D V and the sums of D, D^2, D^3 for every family.

    U = diag(u), u_i = r_i / sqrt(1 - h_i) and D_i = u_i^2 |V_i|^2. A row that the fit passes through says
    nothing about its noise: 1 - h is at least 1e-3.
    """
    total: list[Any] = [0.0] * 3 * len(fit.families)
    for block in fit.blocks(Z, y, weight):
        h = np.sum((block.J @ known.leverages) ** 2, axis=1)
        u = block.r / np.sqrt(np.maximum(1 - h, 1e-3))
        terms = [term for V in known.of(block) for term in moments_of(V * u[:, None])]
        total = [a + b for a, b in zip(total, terms, strict=True)]
    return total


def moments_of(rows: Float[np.ndarray, "N M"]) -> list[np.ndarray]:
    """V'U^2 V, V'U^2 D V and the sums of D, D^2, D^3 of the rows of U V."""
    own = np.sum(rows**2, axis=1)
    weighted = rows * np.sqrt(own)[:, None]
    return [rows.T @ rows, weighted.T @ weighted, np.array([own.sum(), own @ own, own @ own**2])]


def group_sums(
    fit: FitAndFeatures,
    known: Projections,
    shifts: Float[np.ndarray, "G p"],
    Z: Inputs,
    y: Target,
    weight: Weight,
    group: Groups,
) -> list[np.ndarray]:
    """V_g' (I - H_g)^(-1/2) r_g of every family: the place of a row's u V where a group has one sign.

    H_g is the block of the projection on J, ``shifts`` are those of ``GroupedCovariance``.
    """
    total, at = [np.zeros((len(shifts), len(root))) for _, root in known.maps], 0
    for block in fit.blocks(Z, y, weight):
        own = np.repeat(group[at : (at := at + len(block.r) // fit.form.q)], fit.form.q)
        u = block.r + np.sum(block.J * shifts[own], axis=1)
        signed = csr_array((u, (own, np.arange(len(u)))), shape=(len(shifts), len(u)))
        total = [sums + signed @ V for sums, V in zip(total, known.of(block), strict=True)]
    return total
