"""Looks: families of random functions in which something that a network misses would show.

One large family spreads its power over all it holds. Three smaller ones, each of one kind, are each strong
where the others are blind, and the smallest of three p-values costs little.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.streams import stream

CLIP = 2.0  # standard deviations: beyond, a factor of a product stays what it is, or few rows would decide
FREQUENCIES = (1.0, 4.0)  # radians per standard deviation


class Kind(enum.StrEnum):
    """What the functions of a look are.

    UNITS : g(<a, z> + b), random further units. PRODUCTS : of three clipped <a, z>: interactions of three
    inputs. WAVES : triangle waves of <a, z> + b, a along one to three inputs.
    """

    UNITS = "units"
    PRODUCTS = "products"
    WAVES = "waves"


# Added to the unit diagonal of the functions' Gram matrix: what few functions share weighs less in the
# statistic. Measured with 250 units, 8 inputs, 1000 rows, level 1 %, ridges 0 (an F-test's projection), 0.3,
# 1 and 4: a missed 0.2 x^2 was found in 30, 75, 85, 85 % of samples, 0.3 x1 x2 in 55, 100, 100, 100 %, a weak
# unit in 25, 70, 85, 90 %. None of them sees a product of three (5 %): 100 products do in 62 %; waves see a
# sine in 57 (0.5) and 62 % (2), units in none.
RIDGE = {Kind.UNITS: 0.5, Kind.PRODUCTS: 0.3, Kind.WAVES: 2.0}


@dataclass(frozen=True, eq=False)
class Look:
    """Random functions of whitened inputs.

    Attributes
    ----------
    kind : of the functions.
    activation : g of the units.
    directions : (factors, M, d).
    offsets : (M,).
    centre : (d,) mean of the rows z: functions are drawn around it.
    seen_in : (M,) the output each function is looked for in, None where there is one.
    """

    kind: Kind
    activation: Activation
    directions: Float[np.ndarray, "q M d"] = field(repr=False)
    offsets: Float[np.ndarray, " M"] = field(repr=False)
    centre: Float[np.ndarray, " d"] = field(repr=False)
    seen_in: Int[np.ndarray, " M"] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """M, the number of functions."""
        return len(self.offsets)

    @property
    def ridge(self) -> float:
        """How much is added to the unit diagonal of their Gram matrix."""
        return RIDGE[self.kind]

    def __call__(self, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n M"]:
        """The functions at the rows of Z."""
        centred = Z - self.centre
        if self.kind == Kind.PRODUCTS:
            value = np.ones((len(Z), self.size))
            for a in self.directions:
                value *= np.clip(centred @ a.T, -CLIP, CLIP)
            return value
        t = centred @ self.directions[0].T + self.offsets
        if self.kind == Kind.UNITS:
            return self.activation(t)
        t /= 2 * np.pi
        return 4 * np.abs(t - np.rint(t)) - 1  # a cosine to 0.7 % of its variance at a tenth of its price


def looks(
    activation: Activation,
    centre: Float[np.ndarray, " d"],
    size: int,
    seed: int,
    outputs: int | None = None,
) -> tuple[Look, ...]:
    """The three looks of ``size`` functions each, drawn for this seed; of several outputs each in one."""
    d, found = len(centre), []
    for kind in Kind:
        rng = stream(seed, "adequacy", kind.value)
        directions = rng.standard_normal((3 if kind == Kind.PRODUCTS else 1, size, d))
        offsets = rng.standard_normal(size)
        if kind == Kind.WAVES:
            few = rng.integers(1, 4, (size, 1))  # whitened coordinates stay near the inputs they come from
            directions *= np.argsort(rng.random((size, d)), axis=1) < few
            offsets = rng.uniform(0, 2 * np.pi, size)
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        if kind == Kind.WAVES:
            directions *= rng.uniform(*FREQUENCIES, (size, 1))
        seen_in = None if outputs is None else rng.integers(outputs, size=size)
        found.append(Look(kind, activation, directions, offsets, np.asarray(centre, float), seen_in))
    return tuple(found)
