"""Bananas: Gaussian pairs bent by a parabola, smooth and dependent in every rotation."""

from __future__ import annotations

from math import log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.laws.base import as_dimension
from onehidden.laws.transformed import FromLogDensity
from onehidden.streams import stream


class Banana(FromLogDensity):
    """x = z but for x_{2j+1} = z_{2j+1} + bend (z_{2j}² - 1), z ~ N(0, I), j < pairs.

    Mean zero; uncorrelated, variance 1 + 2 bend² along the bent coordinates, 1 elsewhere.

    Parameters
    ----------
    d : number of inputs, at least 2.
    bend : how much the parabola adds.
    pairs : how many neighbouring pairs of coordinates are bent, from the first on.
    """

    def __init__(self, d: int, bend: float = 0.5, pairs: int = 1) -> None:
        d = as_dimension(d)
        if not 1 <= pairs <= d // 2:
            raise ValueError(f"{d} inputs have {d // 2} pairs to bend, got pairs = {pairs}")
        if not np.isfinite(bend):
            raise ValueError(f"bend must be a finite number, got {bend}")
        self.bend, self.pairs = float(bend), int(pairs)
        straight, bent = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)

        def log_density(x: jax.Array) -> jax.Array:
            # The map z -> x has unit Jacobian.
            z = x.at[bent].add(-bend * (x[straight] ** 2 - 1))
            return -0.5 * jnp.sum(z**2) - 0.5 * d * log(2 * pi)

        def sampler(n: int, seed: int) -> np.ndarray:
            x = stream(seed, "law", "Banana").standard_normal((n, d))
            x[:, bent] += bend * (x[:, straight] ** 2 - 1)
            return x

        super().__init__(log_density, d, sampler)

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return np.zeros(self.n_inputs)

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        variance = np.ones(self.n_inputs)
        variance[1 : 2 * self.pairs : 2] += 2 * self.bend**2
        return np.diag(variance)
