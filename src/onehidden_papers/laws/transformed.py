"""Affine images of laws, and laws given by a smooth log-density."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.machine import double, in_double
from onehidden_papers.laws.base import Derivatives, Directions, Law, Points, Tensors, Values, as_points


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
        return self._derivatives(as_points(X, self.n_inputs), 0, np.zeros((self.n_inputs, 1)))[0]

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        return list(self._derivatives(X, order, V)[1:])

    @in_double
    def _derivatives(self, X: Points, order: int, V: Directions) -> list[np.ndarray]:
        """Log f at the rows of X and its derivatives along V up to an order."""
        return [np.asarray(part, dtype=float) for part in self._compiled(order, X, V)]

    @cached_property
    def _compiled(self) -> Callable[..., list[jax.Array]]:
        def derivatives(order: int, x: jax.Array, V: jax.Array) -> list[jax.Array]:
            # Differentiating t -> fn(x + V t) keeps every tensor at r^j.
            functions = [lambda t: self._fn(x + V @ t)]
            for _ in range(order):
                functions.append(jax.jacfwd(functions[-1]))
            return [fn(jnp.zeros(V.shape[1])) for fn in functions]

        return jax.jit(jax.vmap(derivatives, in_axes=(None, 0, None)), static_argnums=0)
