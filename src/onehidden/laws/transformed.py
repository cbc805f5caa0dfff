"""Laws made from others or from a formula: affine images, elliptical laws, any differentiable log-density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lgamma, log, pi
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import Law, as_points, as_spd
from onehidden.laws.partitions import chain
from onehidden.precision import in_double
from onehidden.streams import stream


class Affine(Law):
    """The law of x = matrix · z + shift for z of another law: scores transform as tensors.

    Parameters
    ----------
    law : the law of z.
    matrix : (d, d), invertible.
    shift : (d,); zero when None.
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

    def sample(self, n: int, seed: int) -> Float[np.ndarray, "n d"]:
        return self.law.sample(n, seed) @ self.matrix.T + self.shift

    def log_density(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        return self.law.log_density(self._back(as_points(X, self.n_inputs))) - self._log_volume

    def _back(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        return (X - self.shift) @ self._inverse.T

    def _tensor(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> Float[np.ndarray, "n ..."]:
        return self.law._tensor(self._back(X), order, self._inverse @ V)

    def _entry(
        self, X: Float[np.ndarray, "n d"], V: Float[np.ndarray, "d r"], index: Sequence[int]
    ) -> Float[np.ndarray, " n"]:
        return self.law._entry(self._back(X), self._inverse @ V, index)

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        return self.law._log_derivatives(self._back(X), order, self._inverse @ V)


class Elliptical(Law):
    """log f(x) = radial(Q) + const, Q = (x - mean)ᵀ scatter⁻¹ (x - mean).

    Parameters
    ----------
    radial : Q -> log-density of one point, in JAX operations; normalised by the caller where it matters.
    mean : (d,).
    scatter : (d, d), positive definite.
    radius : (rng, n) -> radii √Q of n samples; without it the law cannot be sampled.
    """

    def __init__(
        self,
        radial: Callable[[jax.Array], jax.Array],
        mean: npt.ArrayLike,
        scatter: npt.ArrayLike,
        radius: Callable[[np.random.Generator, int], np.ndarray] | None = None,
    ) -> None:
        self._mean = np.atleast_1d(np.array(mean, dtype=float))
        self.n_inputs = len(self._mean)
        self.scatter, self._root = as_spd(scatter, self.n_inputs, "scatter")
        self._precision = np.linalg.inv(self.scatter)
        self._radius = radius
        self._radial = radial
        self._compiled: dict[int, Callable[..., Any]] = {}

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return self._mean

    def sample(self, n: int, seed: int) -> Float[np.ndarray, "n d"]:
        if self._radius is None:
            raise ValueError("this elliptical law was given no radius sampler: pass radius=(rng, n) -> radii")
        rng = stream(seed, "law", type(self).__name__)
        z = rng.standard_normal((n, self.n_inputs))
        z *= (self._radius(rng, n) / np.linalg.norm(z, axis=1))[:, None]
        return self._mean + z @ self._root.T

    def log_density(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        X = as_points(X, self.n_inputs)
        return self._phi(np.sum((X - self._mean) @ self._precision * (X - self._mean), axis=1), 0) - np.sum(
            np.log(np.diag(self._root))
        )

    @in_double
    def _phi(self, Q: Float[np.ndarray, " n"], k: int) -> Float[np.ndarray, " n"]:
        """The k-th derivative of the radial log-density."""
        if k not in self._compiled:
            fn = self._radial
            for _ in range(k):
                fn = jax.grad(fn)
            self._compiled[k] = jax.jit(jax.vmap(fn))
        return np.asarray(self._compiled[k](Q), dtype=float)

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
        centred = X - self._mean
        PV = self._precision @ V
        Q = np.sum(centred @ self._precision * centred, axis=1)
        second = np.broadcast_to(2 * V.T @ PV, (len(X), V.shape[1], V.shape[1]))
        derivative = {k: self._phi(Q, k) for k in range(1, order + 1)}
        return list(chain(derivative.__getitem__, (2 * centred @ PV, second), order))


class MultivariateT(Elliptical):
    """Multivariate Student t: one heavy-tailed scale shared by all coordinates."""

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


class FromLogDensity(Law):
    """Any law whose log-density is written in JAX operations; derivatives by nested forward mode.

    Parameters
    ----------
    fn : x (d,) -> log f(x), up to a constant.
    d : number of inputs.
    sampler : (n, seed) -> (n, d), where one exists.
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
            shape = jax.eval_shape(fn, jax.ShapeDtypeStruct((self.n_inputs,), jnp.float32)).shape
        except Exception as error:
            raise ValueError(
                f"fn must be a log-density written with jax.numpy, x of shape ({d},) -> number; "
                f"it failed with: {str(error).splitlines()[0]}"
            ) from None
        if shape != ():
            raise ValueError(f"fn must return one number for one x, it returned shape {shape}")

    def sample(self, n: int, seed: int) -> Float[np.ndarray, "n d"]:
        if self._sampler is None:
            raise ValueError("this law was given no sampler: pass sampler=(n, seed) -> (n, d)")
        return self._sampler(n, seed)

    def log_density(self, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
        return self._call(0, as_points(X, self.n_inputs), np.zeros((self.n_inputs, 1)))[0]

    def _log_derivatives(
        self, X: Float[np.ndarray, "n d"], order: int, V: Float[np.ndarray, "d r"]
    ) -> list[np.ndarray | None]:
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
