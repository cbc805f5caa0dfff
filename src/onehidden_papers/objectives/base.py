"""What every objective shares: one traceable function of (parameters, source), with three public faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from math import factorial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden import activations
from onehidden.activations import Activation
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden_papers.moments import score_moments
from onehidden_papers.moments.rows import checked_samples
from onehidden_papers.objectives.sources import SOURCES, GaussianBatch, RankOne, Tensors


class Objective:
    """A function to minimise, of parameters and of what is known about the data.

    Subclasses are frozen dataclasses (hashable, so that one compilation serves all calls) and define
    ``function(params, source)`` and ``orders``, the score moments they read.
    """

    activation: str
    orders: tuple[int, ...] = ()
    score: Any = None  # of the inputs; None: x ~ N(0, I)
    largest: ClassVar[int] = 32  # inputs of which moments are formed

    def function(self, params: Any, source: Any) -> jax.Array:
        """Return the objective as traceable JAX code; ``source`` comes from ``prepare``."""
        raise TypeError(f"{type(self).__name__} does not define its function")

    def from_batch(self, X: jax.Array, y: jax.Array) -> Any:
        """Return the source of a batch, traceable: for samplers inside a compiled loop."""
        if self.score is None:
            return GaussianBatch.of(X, y)
        if X.shape[1] > self.largest:
            raise ValueError(
                f"the moment of order 4 of {X.shape[1]} inputs is too large (limit {self.largest}): pass "
                "score moments in the span of T_2 instead"
            )
        return Tensors.of(score_moments(X, y, self.score, self.orders, control_degree=-1), self.orders)

    def from_teacher(self, teacher: OneHiddenNet) -> Any:
        """Return the source of exact moments, x ~ N(0, I)."""
        return RankOne.of(teacher, self.orders)

    def value_and_grad(self, params: Any, source: Any) -> tuple[jax.Array, Any]:
        """Value and gradient, traceable."""
        return jax.value_and_grad(self.function)(params, source)

    def project(self, params: Any) -> Any:
        """Back to the feasible set after a step; the designed objectives have none."""
        return params

    @in_double
    def prepare(self, data: object) -> Any:
        """Return the source behind a batch (X, y), score moments (``data[m]``) or a prepared source."""
        if isinstance(data, SOURCES):
            return data
        if isinstance(data, OneHiddenNet):
            return self.from_teacher(data)
        if isinstance(data, tuple | list):
            X, y = checked_batch(data)
            return self.from_batch(jnp.asarray(X), jnp.asarray(y))
        if isinstance(data, Mapping) or hasattr(data, "__getitem__"):
            return Tensors.of(data, self.orders)
        raise ValueError(
            f"data must be a batch (X, y) or score moments with data[m], got {type(data).__name__}"
        )

    @in_double
    def value(self, params: Any, data: object) -> float:
        """Compute the objective on a batch or on moments.

        Parameters
        ----------
        params : array_like of shape (k, d)
            Rows B; of some objectives a pair (a, B).
        data : object
            A batch (X, y), score moments, a network for its exact moments, or a prepared source.

        Returns
        -------
        float
            The value.
        """
        return float(_value(self, as_double(params), self.prepare(data)))

    def gradient(self, params: Any, data: object) -> Any:
        """Compute the gradient on a batch or on moments.

        Parameters
        ----------
        params : array_like of shape (k, d)
            Rows B; of some objectives a pair (a, B).
        data : object
            A batch (X, y), score moments, a network for its exact moments, or a prepared source.

        Returns
        -------
        ndarray
            The gradient, of the shape of ``params``.
        """
        return self.value_and_gradient(params, data)[1]

    @in_double
    def value_and_gradient(self, params: Any, data: object) -> tuple[float, Any]:
        """Return both, as NumPy's numbers."""
        value, gradient = _value_and_grad(self, as_double(params), self.prepare(data))
        return float(value), jax.tree.map(np.asarray, gradient)

    @in_double
    def population(self, params: Any, teacher: OneHiddenNet) -> float:
        """Compute the exact expectation for x ~ N(0, I) and labels of the teacher.

        Parameters
        ----------
        params : array_like of shape (k, d)
            Rows B; of some objectives a pair (a, B).
        teacher : OneHiddenNet
            The true network.

        Returns
        -------
        float
            The expectation.
        """
        return self.value(params, self.from_teacher(teacher))


@partial(jax.jit, static_argnums=0)
def _value(objective: Objective, params: Any, source: Any) -> jax.Array:
    return objective.function(params, source)


@partial(jax.jit, static_argnums=0)
def _value_and_grad(objective: Objective, params: Any, source: Any) -> tuple[jax.Array, Any]:
    return objective.value_and_grad(params, source)


def as_double(params: Any) -> Any:
    """Return rows B, or a pair (a, B), as JAX arrays; refuse other shapes."""
    pair = isinstance(params, tuple | list)
    if pair and len(params) != 2:
        raise ValueError(f"parameters must be rows B or a pair (a, B), got {len(params)} things")
    *outputs, B = (jnp.asarray(np.asarray(p, float)) for p in (params if pair else [params]))
    if B.ndim != 2 or any(a.shape != B.shape[:1] for a in outputs):
        raise ValueError(f"parameters must be a (k, d) matrix of rows, or a (k,) and such, got {B.shape}")
    return (*outputs, B) if pair else B


def checked_batch(data: Sequence[npt.ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d) and y (n,) of a batch, in double precision and finite; refuse what is not."""
    if len(data) != 2:
        raise ValueError(f"a batch is a pair (X, y), got {len(data)} things")
    X, y, _ = checked_samples(data[0], data[1])
    if len(y) == 0:
        raise ValueError("a batch needs at least one row")
    return X, y


def unit_rows(B: jax.Array) -> jax.Array:
    """Rows scaled to unit norm.

    Parameters
    ----------
    B : jax.Array of shape (k, d)
        Rows, none of them zero.

    Returns
    -------
    jax.Array of shape (k, d)
        The rows divided by their norms.
    """
    return B / jnp.linalg.norm(B, axis=1, keepdims=True)


# Which orders of the score moments carry signal, with which sign: the refusal of blind objectives

# Quadrature returns an exact zero as rounding of terms up to the size of h_m: far below any true coefficient.
_BLIND = 1e-9


@cache
def sigma(activation: Activation, order: int) -> float:
    """σ_m = E[g(z) h_m(z)], kept."""
    return activation.hermite(order)


def kappa(activation: Activation, order: int) -> float:
    """Expected derivative κ_m = E[g^{(m)}(z)] = √(m!) σ_m, z ~ N(0, 1).

    Parameters
    ----------
    activation : Activation
        The activation g.
    order : int
        The order m.

    Returns
    -------
    float
        κ_m.
    """
    return float(np.sqrt(factorial(order)) * sigma(activation, order))


def seeing_orders(activation: Activation) -> list[int]:
    """Return the orders 1 … 6 whose moment E[y S_m] does not vanish under N(0, I) with b = 0."""
    return [m for m in range(1, 7) if abs(sigma(activation, m)) > _BLIND]


def require_signal(activation: str | Activation, order: int, who: str) -> None:
    """Refuse an order without signal, and name those that have it."""
    g = activations.get(activation)
    if abs(sigma(g, order)) > _BLIND:
        return
    working = [m for m in seeing_orders(g) if m >= 3]
    advice = (
        f"order {working[0]} carries signal: use a start built on the moment of order {working[0]}"
        if working
        else "no order from 3 to 6 does: only the span of the rows can be found from moments"
    )
    raise ValueError(
        f"{who} reads order {order}, but E[g^({order})] = 0 for {g.name} under N(0, 1): "
        f"it would follow noise alone; {advice}"
    )
