"""Laws made of others: affine images, elliptical laws, bananas, and any smooth log-density."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import (
    Derivatives,
    Directions,
    Law,
    Points,
    Tensors,
    Values,
    as_dimension,
    as_points,
    as_spd,
)
from onehidden.machine import double, in_double
from onehidden.run import stream


class Affine(Law):
    """The law of x = matrix · z + shift for z of another law: scores transform as tensors.

    Parameters
    ----------
    law : Law
        The law of z.
    matrix : array_like of shape (d, d)
        Invertible.
    shift : array_like of shape (d,) or None
        Zero when None.
    """

    def __init__(self, law: Law, matrix: npt.ArrayLike, shift: npt.ArrayLike | None = None) -> None:
        d = law.n_inputs
        self.matrix = np.array(matrix, dtype=float)
        self.shift = np.zeros(d) if shift is None else np.array(shift, dtype=float)
        if self.matrix.shape != (d, d) or self.shift.shape != (d,):
            raise ValueError(
                f"an affine image of {d} inputs needs a ({d}, {d}) matrix and a shift of {d}, "
                f"got {self.matrix.shape} and {self.shift.shape}"
            )
        if not np.linalg.cond(self.matrix) < 1e12:
            raise ValueError("the matrix of an affine image must be invertible (condition below 1e12)")
        self.law = law
        self.n_inputs = d
        self.valid_order = law.valid_order
        self._inverse = np.linalg.inv(self.matrix)
        self._log_volume = float(np.linalg.slogdet(self.matrix)[1])

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return self.matrix @ self.law.mean + self.shift

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        return self.matrix @ self.law.cov @ self.matrix.T

    def sample(self, n: int, seed: int) -> Points:
        return self.law.sample(n, seed) @ self.matrix.T + self.shift

    def log_density(self, X: npt.ArrayLike) -> Values:
        return self.law.log_density(self._back(as_points(X, self.n_inputs))) - self._log_volume

    def _back(self, X: Points) -> Points:
        return (X - self.shift) @ self._inverse.T

    def _tensor(self, X: Points, order: int, V: Directions) -> Tensors:
        return self.law._tensor(self._back(X), order, self._inverse @ V)

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        return self.law._log_derivatives(self._back(X), order, self._inverse @ V)


class FromLogDensity(Law):
    """Any law whose log-density is written in JAX operations; derivatives by nested forward mode.

    Parameters
    ----------
    fn : callable
        x (d,) -> log f(x), up to a constant.
    d : int
        Number of inputs.
    sampler : callable or None
        (n, seed) -> (n, d), where one exists.
    """

    def __init__(
        self,
        fn: Callable[[jax.Array], jax.Array],
        d: int,
        sampler: Callable[[int, int], np.ndarray] | None = None,
    ) -> None:
        self.n_inputs = int(d)
        self._fn = fn
        self._sampler = sampler
        self._compiled: dict[int, Callable[..., Any]] = {}
        try:
            with double():
                shape = jax.eval_shape(fn, jax.ShapeDtypeStruct((self.n_inputs,), jnp.float64)).shape
        except Exception as error:
            raise ValueError(
                f"fn must be a log-density written with jax.numpy, x of shape ({d},) -> number; "
                f"it failed with: {str(error).splitlines()[0]}"
            ) from None
        if shape != ():
            raise ValueError(f"fn must return one number for one x, it returned shape {shape}")

    def sample(self, n: int, seed: int) -> Points:
        if self._sampler is None:
            raise ValueError("this law was given no sampler: pass sampler=(n, seed) -> (n, d)")
        return self._sampler(n, seed)

    def log_density(self, X: npt.ArrayLike) -> Values:
        return self._call(0, as_points(X, self.n_inputs), np.zeros((self.n_inputs, 1)))[0]

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        return list(self._call(order, X, V)[1:])

    @in_double
    def _call(self, order: int, X: np.ndarray, V: np.ndarray) -> list[np.ndarray]:
        if order not in self._compiled:

            def derivatives(x: jax.Array, V: jax.Array) -> list[jax.Array]:
                # Differentiating t -> fn(x + V t) keeps every tensor at r^j.
                fn = lambda t: self._fn(x + V @ t)  # noqa: E731
                out = []
                for j in range(order + 1):
                    out.append(fn(jnp.zeros(V.shape[1])))
                    if j < order:
                        fn = jax.jacfwd(fn)
                return out

            self._compiled[order] = jax.jit(jax.vmap(derivatives, in_axes=(0, None)))
        return [np.asarray(part, dtype=float) for part in self._compiled[order](X, V)]


class Elliptical(FromLogDensity):
    """log f(x) = radial(Q) + const, Q = (x - mean)ᵀ scatter⁻¹ (x - mean).

    Parameters
    ----------
    radial : callable
        Q -> log-density of one point, in JAX operations; normalised by the caller where it matters.
    mean : array_like of shape (d,)
        Centre.
    scatter : array_like of shape (d, d)
        Positive definite.
    radius : callable or None
        (rng, n) -> radii √Q of n samples; without it the law cannot be sampled.
    """

    def __init__(
        self,
        radial: Callable[[jax.Array], jax.Array],
        mean: npt.ArrayLike,
        scatter: npt.ArrayLike,
        radius: Callable[[np.random.Generator, int], np.ndarray] | None = None,
    ) -> None:
        self._mean = centre = np.atleast_1d(np.array(mean, dtype=float))
        self.scatter, self._root = as_spd(scatter, len(centre), "scatter")
        self._radius = radius
        inverse, level = np.linalg.inv(self.scatter), np.sum(np.log(np.diag(self._root)))
        super().__init__(lambda x: radial((x - centre) @ (inverse @ (x - centre))) - level, len(centre))

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return self._mean

    def sample(self, n: int, seed: int) -> Points:
        if self._radius is None:
            raise ValueError("this elliptical law was given no radius sampler: pass radius=(rng, n) -> radii")
        rng = stream(seed, "law", type(self).__name__)
        z = rng.standard_normal((n, self.n_inputs))
        z *= (self._radius(rng, n) / np.linalg.norm(z, axis=1))[:, None]
        return self._mean + z @ self._root.T


class MultivariateT(Elliptical):
    """Multivariate Student t: one heavy-tailed scale shared by all coordinates.

    Parameters
    ----------
    mean : array_like of shape (d,)
        Centre.
    scatter : array_like of shape (d, d)
        Positive definite; the covariance is df/(df-2) times it where df > 2.
    df : float
        Degrees of freedom, positive.
    """

    def __init__(self, mean: npt.ArrayLike, scatter: npt.ArrayLike, df: float) -> None:
        if not (np.isfinite(df) and df > 0):
            raise ValueError(f"df must be a positive number, got {df}")
        d = len(np.atleast_1d(mean))
        norm = lgamma((df + d) / 2) - lgamma(df / 2) - d / 2 * log(df * pi)
        self.df = float(df)
        super().__init__(
            lambda Q: norm - (df + d) / 2 * jnp.log1p(Q / df),
            mean,
            scatter,
            lambda rng, n: np.sqrt(rng.chisquare(d, n) / (rng.chisquare(df, n) / df)),
        )

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        return self.scatter * (self.df / (self.df - 2) if self.df > 2 else float("inf"))


class Banana(FromLogDensity):
    """x = z but for x_{2j+1} = z_{2j+1} + bend (z_{2j}² - 1), z ~ N(0, I), j < pairs.

    Mean zero; uncorrelated, variance 1 + 2 bend² along the bent coordinates, 1 elsewhere.

    Parameters
    ----------
    d : int
        Number of inputs, at least 2.
    bend : float
        How much the parabola adds.
    pairs : int
        How many neighbouring pairs of coordinates are bent, from the first on.
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
