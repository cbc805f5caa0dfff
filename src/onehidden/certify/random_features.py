"""Random features of the inputs in which something that a network misses shows, and their sums over rows.

One large family spreads its power over everything it holds. Smaller ones, each of one kind, are each strong
where the others are weak, and the smallest of four p-values costs little.

The first pass over the rows gives what projects the features off the Jacobian, the second the cumulants of
the statistic under random signs of the residuals; see ``residuals`` for the mathematics.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.certify.groups import Groups, sums_by_group
from onehidden.fit.parametrisation import Parametrisation, roots, weighed, written_out
from onehidden.fit.samples import Inputs, Numbers, Target, Weight
from onehidden.run import stream


class FeatureKind(enum.StrEnum):
    """What the functions of a family are."""

    UNITS = "units"  # g(<a, z> + b), random additional units
    PRODUCTS = "products"  # of three clipped <a, z>: interactions of three inputs
    WAVES = "waves"  # triangle waves of <a, z> + b, a along one to three inputs
    CURVES = "curves"  # powers of the fitted value: another link, or y on another scale

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
    offsets: Float[np.ndarray, "factors M"] = field(repr=False)
    seen_in: Int[np.ndarray, " M"] = field(repr=False)  # the output of each
    clip: float = 2.0  # standard deviations at which a factor of a product is cut: few rows must not decide

    def __call__(self, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n M"]:
        """The functions at the rows of Z."""
        t = Z @ self.directions.mT + self.offsets[:, None]
        if self.kind == FeatureKind.PRODUCTS:
            return np.prod(np.clip(t, -self.clip, self.clip), axis=0)
        if self.kind == FeatureKind.UNITS:
            return self.activation(t[0])
        t = t[0] / (2 * np.pi)
        return 4 * np.abs(t - np.rint(t)) - 1  # a cosine to .7 % of its variance at a tenth of its cost


@dataclass(frozen=True, eq=False)
class FittedCurves:
    """Powers of what the network predicts in each output, cut off at ``clip`` standard deviations of y."""

    form: Parametrisation
    theta: Float[np.ndarray, " p"] = field(repr=False)
    powers: tuple[int, ...] = (2, 3, 4)
    clip: float = 2.5
    kind: FeatureKind = FeatureKind.CURVES

    @property
    def seen_in(self) -> Int[np.ndarray, " M"]:
        """The output of each."""
        return np.repeat(np.arange(self.form.q), len(self.powers))

    def __call__(self, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n M"]:
        """The functions at the rows of Z."""
        fitted = np.clip(self.form.predict(self.theta, Z), -self.clip, self.clip)
        return (fitted.reshape(len(Z), -1, 1) ** np.array(self.powers)).reshape(len(Z), -1)


def random_features(
    activation: Activation,
    centre: Float[np.ndarray, " d"],
    size: int,
    seed: int,
    outputs: int | None = None,
    frequencies: tuple[float, float] = (1.0, 4.0),
) -> tuple[RandomFeatures, ...]:
    """Three families of ``size`` functions about ``centre``, the mean of the rows z.

    ``frequencies`` of waves are in radians per deviation.
    """
    d, found = len(centre), []
    for kind in (FeatureKind.UNITS, FeatureKind.PRODUCTS, FeatureKind.WAVES):
        rng = stream(seed, "adequacy", kind.value)
        directions = rng.standard_normal((3 if kind == FeatureKind.PRODUCTS else 1, size, d))
        offsets = rng.standard_normal(size) if kind != FeatureKind.PRODUCTS else np.zeros(size)
        if kind == FeatureKind.WAVES:
            few = rng.integers(1, 4, (size, 1))  # whitened coordinates stay near the inputs they come from
            directions *= np.argsort(rng.random((size, d)), axis=1) < few
            offsets = rng.uniform(0, 2 * np.pi, size)
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        if kind == FeatureKind.WAVES:
            directions *= rng.uniform(*frequencies, (size, 1))
        seen_in = np.zeros(size, int) if outputs is None else rng.integers(outputs, size=size)
        found.append(RandomFeatures(kind, activation, directions, offsets - directions @ centre, seen_in))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class FitAndFeatures:
    """A fit and the families of features: rows in, blocks out.

    ``piece`` is the size of a block in bytes; one that fits in the cache takes a third of the time of 64 MiB.
    """

    form: Parametrisation
    theta: Float[np.ndarray, " p"] = field(repr=False)
    families: tuple[RandomFeatures | FittedCurves, ...]
    piece: int = 16 << 20

    def blocks(
        self, Z: Inputs, y: Target, weight: Weight
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray, list[np.ndarray]]]:
        """Some rows, their weighted residuals (N,), Jacobian (N, p) and features (N, M) of each family.

        Of several outputs N is n q, those of a row next to each other.
        """
        every, q = roots(weight, len(y)), self.form.q
        width = (self.form.size + sum(len(one.seen_in) for one in self.families)) * q
        step = 1 << max(8, (self.piece // (8 * width)).bit_length() - 1)
        for at in range(0, len(y), step):
            rows = slice(at, at + step)
            r, J = written_out(self.form, self.theta, Z[rows], y[rows], every[rows])
            # A function is zero in all outputs but its own.
            F = [one(Z[rows])[:, None, :] * (np.arange(q)[:, None] == one.seen_in) for one in self.families]
            yield rows, r, J, [weighed(every[rows], f).reshape(len(r), -1) for f in F]


def cross_moments(
    fit: FitAndFeatures, Z: Inputs, y: Target, weight: Weight, row: Numbers
) -> list[np.ndarray]:
    """First pass: moments of y and r, J'r, and F'F, J'F, F'r of every family."""
    root, y_each = roots(weight, len(y)), y.reshape(len(y), -1)
    mass = root**2 if root.ndim < 3 else np.sum(root**2, axis=1)  # of information matrices the diagonal
    mass = np.broadcast_to(mass.reshape(len(y), -1), y_each.shape)
    total: list[Any] = [np.array([np.sum(mass * y_each**power) for power in range(3)])]
    total += [0.0] * (2 + 3 * len(fit.families))
    for _, r, J, F in fit.blocks(Z, y, weight):
        each = [term for f in F for term in (f.T @ f, J.T @ f, f.T @ r)]
        total[1:] = [a + b for a, b in zip(total[1:], [r @ r, J.T @ r, *each], strict=True)]
    return total


@dataclass(frozen=True, eq=False)
class Projected:
    """One family after the first pass: F~ = (F - J coefficients) scale and V = F~ (factor')^-1."""

    kind: FeatureKind
    coefficients: Float[np.ndarray, "p M"]  # of the projection of F on J
    scale: Float[np.ndarray, " M"]
    gram: Float[np.ndarray, "M M"]  # F~'F~, of unit diagonal
    factor: Float[np.ndarray, "M M"]  # lower triangle of gram + ridge
    cross: Float[np.ndarray, " M"]  # F~'r

    @classmethod
    def of(
        cls,
        kind: FeatureKind,
        C: Float[np.ndarray, "p p"],
        gradient: Float[np.ndarray, " p"],
        gram: Float[np.ndarray, "M M"],
        cross: Float[np.ndarray, "p M"],
        toward: Float[np.ndarray, " M"],
    ) -> Projected:
        """From F'F, J'F, F'r, given J'r, which is zero at a minimum but for rounding and kinks."""
        coefficients = C @ (C.T @ cross)
        left = gram - cross.T @ coefficients
        size = np.diag(left)
        own = size > 1e-10 * np.diag(gram)  # the others lie in the span of J to rounding
        scale = np.where(own, 1 / np.sqrt(np.where(own, size, 1.0)), 0.0)
        left = left * scale[:, None] * scale
        factor = np.linalg.cholesky(left + kind.ridge * np.eye(len(left)))
        return cls(kind, coefficients, scale, left, factor, scale * (toward - coefficients.T @ gradient))

    @property
    def statistic(self) -> float:
        """t = |V'r|^2."""
        return float(np.sum((np.linalg.inv(self.factor) @ self.cross) ** 2))

    @cached_property
    def root(self) -> Float[np.ndarray, "M M"]:
        """V = (F - J coefficients) root."""
        return self.scale[:, None] * np.linalg.inv(self.factor).T

    def columns(self, F: Float[np.ndarray, "N M"], J: Float[np.ndarray, "N p"]) -> Float[np.ndarray, "N M"]:
        """V at some rows."""
        return (F - J @ self.coefficients) @ self.root


def sign_moments(
    fit: FitAndFeatures,
    C: Float[np.ndarray, "p p"],
    projected: Sequence[Projected],
    count: int,
    shifts: Float[np.ndarray, "G p"] | None,
    Z: Inputs,
    y: Target,
    weight: Weight,
    number: Groups,
) -> list[np.ndarray]:
    """Second pass: of every family the moments of U V, or where there are few signs its sums by sign.

    U = diag(u), u_i = r_i / sqrt(1 - h_i), h_i = |J_i C|^2. A row that the fit passes through says nothing
    about its noise: 1 - h is at least 1e-3. Of rows with ``count`` signs the sums are V_g'u_g. Rows of a
    group have one: u_g = (I - H_g)^(-1/2) r_g, H_g their block of the projection on J, and ``shifts`` are
    those of ``GroupedCovariance``.
    """
    total: list[Any] = []
    for rows, r, J, F in fit.blocks(Z, y, weight):
        own = np.repeat(number[rows], fit.form.q) if count else np.zeros(0, int)
        if shifts is None:
            u = r / np.sqrt(np.maximum(1 - np.sum((J @ C) ** 2, axis=1), 1e-3))
        else:
            u = r + np.sum(J * shifts[own], axis=1)
        each = [u[:, None] * one.columns(f, J) for f, one in zip(F, projected, strict=True)]
        terms = [sums_by_group(count, values, own)[1] for values in each] if count else moments_of(*each)
        total = [a + b for a, b in zip(total or [0.0] * len(terms), terms, strict=True)]
    return total


def moments_of(*families: Float[np.ndarray, "N M"]) -> list[np.ndarray]:
    """V'U^2 V, V'U^2 D V and the sums of D, D^2, D^3 of the rows of each U V, D their squared lengths."""
    found = list[np.ndarray]()
    for rows in families:
        own = np.sum(rows**2, axis=1)
        weighted = rows * np.sqrt(own)[:, None]
        found += [rows.T @ rows, weighted.T @ weighted, np.array([own.sum(), own @ own, own @ own**2])]
    return found
