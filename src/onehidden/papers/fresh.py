"""Fresh samples for the papers' experiments: a teacher, a law, and what an objective makes of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.objectives import Objective
from onehidden.precision import in_double
from onehidden.streams import derived_seed, stream

_PASSES = 8


def gaussian(key: jax.Array, n: int, d: int) -> jax.Array:
    """Rows of N(0, I)."""
    return jax.random.normal(key, (n, d))


@dataclass(frozen=True, eq=False)
class FreshSampler:
    """key -> the source of n fresh samples, for ``solvers.stochastic.descend``.

    Parameters
    ----------
    objective : turns (X, y) into what it reads.
    teacher : labels.
    n : samples a step.
    law : (key, n, d) -> rows, traceable.
    control : y is lowered by a fixed polynomial of this degree (at most 2) fitted on a pilot batch of n
        samples. E[q(x) S_m] = 0 for q of degree < m, so the mean of a designed objective does not move while
        its variance falls several hundred-fold. None: raw labels, as the papers have them.
    """

    objective: Objective
    teacher: OneHiddenNet
    n: int
    law: Callable[[jax.Array, int, int], jax.Array] = gaussian
    control: int | None = None
    _polynomial: tuple[Any, ...] = field(init=False, repr=False)

    @in_double
    def __post_init__(self) -> None:
        polynomial: tuple[Any, ...] = ()
        if self.control is not None:
            # The pilot batch has a stream of its own: no step ever sees its rows.
            key = jax.random.key(derived_seed(0, "paper", "pilot batch"))
            X = np.asarray(self.law(key, self.n, self.teacher.n_inputs))
            polynomial = _hermite_fit(X, self.teacher.predict(X), self.control)
        object.__setattr__(self, "_polynomial", polynomial)

    def batch(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """One batch (X, y), traceable."""
        net = self.teacher
        X = self.law(key, self.n, net.n_inputs)
        y = net.activation.fn(X @ jnp.asarray(net.weights.T) + jnp.asarray(net.bias)) @ jnp.asarray(
            net.output
        )
        y = y + net.intercept
        if self._polynomial:
            constant, linear, quadratic = self._polynomial
            y = y - constant - X @ jnp.asarray(linear) - jnp.sum((X @ jnp.asarray(quadratic)) * X, axis=1)
        return X, y

    def __call__(self, key: jax.Array) -> Any:
        return self.objective.from_batch(*self.batch(key))


def _hermite_fit(X: np.ndarray, y: np.ndarray, degree: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Fit of low degree: constant, linear and quadratic parts.

    Each pass reads the Hermite coefficients of what is left, so the noise of a pass is that of the residual:
    a few passes are least squares without its (d²/2)² normal equations.
    """
    n, d = X.shape
    constant, linear, quadratic, left = 0.0, np.zeros(d), np.zeros((d, d)), y
    for _ in range(_PASSES):
        mean = float(np.mean(left))
        along = X.T @ left / n if degree >= 1 else np.zeros(d)
        half = ((X * left[:, None]).T @ X / n - mean * np.eye(d)) / 2 if degree >= 2 else np.zeros((d, d))
        constant, linear, quadratic = (
            constant + mean - float(np.trace(half)),
            linear + along,
            quadratic + half,
        )
        left = y - constant - X @ linear - np.sum((X @ quadratic) * X, axis=1)
    return constant, linear, quadratic


def random_rows(count: int, k: int, d: int, seed: int) -> np.ndarray:
    """(count, k, d) starts with unit rows."""
    rows = stream(seed, "paper", "random rows").standard_normal((count, k, d))
    return rows / np.linalg.norm(rows, axis=2, keepdims=True)


def rotation(d: int, seed: int) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(stream(seed, "paper", "rotation").standard_normal((d, d)))[0]
