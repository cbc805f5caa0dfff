"""The squared loss f, its Hermite-restricted form f' of [GLM] Section 2.1, and pair kernels."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from onehidden import activations
from onehidden.activations import Activation
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden_papers.objectives.base import Objective, as_double, seeing_orders, sigma, unit_rows
from onehidden_papers.objectives.sources import GaussianBatch, RankOne, Tensors


def pair_kernel(
    g: Activation, U: np.ndarray, h: Activation, V: np.ndarray, radii: int = 80, angles: int = 32
) -> np.ndarray:
    """(k, l) matrix of E[g(⟨u_i,x⟩) h(⟨v_j,x⟩)], x ~ N(0, I), for g and h that are smooth on both sides of 0.

    In polar coordinates of the plane of (u, v) their kinks are half-lines, which cut the circle into four
    arcs with a smooth integrand each. Radii beyond 12 weigh 1e-31.
    """
    (t, w), (s, v) = (np.polynomial.legendre.leggauss(nodes) for nodes in (angles, radii))
    r = 6 * (s + 1)
    density = 6 * v * r * np.exp(-(r**2) / 2) / (2 * np.pi)
    nu, nv = np.linalg.norm(U, axis=1), np.linalg.norm(V, axis=1)
    theta = np.arccos(np.clip(U @ V.T / np.maximum(np.outer(nu, nv), np.finfo(float).tiny), -1, 1))
    out = np.empty(theta.shape)
    for i, between in enumerate(theta):
        quarter = np.full_like(between, np.pi / 2)
        edges = np.stack([-quarter, quarter, between - quarter, between + quarter], axis=-1) % (2 * np.pi)
        edges = np.sort(edges, axis=-1)
        half = np.diff(edges, axis=-1, append=edges[:, :1] + 2 * np.pi)[..., None] / 2
        phi = (edges[..., None] + half * (t + 1)).reshape(len(between), -1)
        first = g(nu[i] * r[:, None] * np.cos(phi)[:, None])  # (l, radii, angles)
        second = h(nv[:, None, None] * r[:, None] * np.cos(phi - between[:, None])[:, None])
        arcs = (half * w).reshape(len(between), -1)
        out[i] = np.einsum("jra,jra,r,ja->j", first, second, density, arcs, optimize=True)
    return out


def _split(params: Any) -> tuple[Any, Any]:
    """Split into (a, B); rows alone mean outputs held at one."""
    return params if isinstance(params, tuple) else (np.ones(params.shape[0]), params)


@dataclass(frozen=True)
class SquaredLoss(Objective):
    """f(a, B) = E|y − Σ_i a_i g(⟨b_i, x⟩)|².

    Parameters are the pair (a, B), or rows B alone with all outputs held at one.

    Parameters
    ----------
    activation : str
        Name of g.
    """

    activation: str = "relu"

    def __post_init__(self) -> None:
        activations.get(self.activation)

    def function(self, params: Any, source: GaussianBatch) -> jax.Array:
        a, B = _split(params)
        return jnp.mean((source.y - activations.get(self.activation).fn(source.X @ B.T) @ a) ** 2)

    def prepare(self, data: object) -> Any:
        source = super().prepare(data)
        if not isinstance(source, GaussianBatch):
            raise ValueError(
                "the squared loss is no function of finitely many score moments: pass a batch (X, y), use "
                "HermiteLoss on moments, or population(params, teacher)"
            )
        return source

    @in_double
    def population(self, params: Any, teacher: OneHiddenNet) -> float:
        """E|y − ŷ|² for x ~ N(0, I), exact by pair kernels; biases and intercept must be zero."""
        a, B = (np.asarray(part) for part in _split(as_double(params)))
        _require_centred(teacher)
        g, t = activations.get(self.activation), teacher.activation
        w, A = teacher.output, teacher.weights
        return float(
            w @ pair_kernel(t, A, t, A) @ w
            - 2 * w @ pair_kernel(t, A, g, B) @ a
            + a @ pair_kernel(g, B, g, B) @ a
        )


@dataclass(frozen=True)
class HermiteLoss(Objective):
    """f'(a, B) = E|y − Σ_i a_i γ(⟨b_i, x⟩)|², γ = Σ_{m ∈ orders} σ_m h_m, rows of unit norm ([GLM] (2.5)).

    On moments it is Σ_m |T_m/√(m!) − σ_m Σ_i a_i b_i^{⊗m}|²_F, that is Σ σ_m² f_m: the batch form less a
    constant (Theorem 2.2). ``orders="even"`` takes the even part of g, ½|z| for ReLU.

    Parameters
    ----------
    orders : tuple of int or str
        Hermite orders kept, or "even".
    activation : str
        The teacher's.
    """

    orders: tuple[int, ...] | str = (2, 4)  # type: ignore[assignment]
    activation: str = "relu"

    def __post_init__(self) -> None:
        if self.orders == "even":
            return
        if isinstance(self.orders, str) or len(self.orders) == 0 or min(self.orders) < 0:
            raise ValueError(f'orders must be a tuple such as (2, 4) or "even", got {self.orders!r}')
        object.__setattr__(self, "orders", tuple(int(m) for m in self.orders))
        g = activations.get(self.activation)
        if all(abs(s) < 1e-9 for s in self._sigma().values()):
            raise ValueError(
                f"{g.name} has no Hermite coefficient of orders {self.orders}: it would follow noise alone; "
                f"orders {seeing_orders(g)} carry signal"
            )

    def _sigma(self) -> dict[int, float]:
        g = activations.get(self.activation)
        return {int(m): sigma(g, int(m)) for m in self.orders}

    def _features(self, z: jax.Array) -> jax.Array:
        if self.orders == "even":
            g = activations.get(self.activation).fn
            return (g(z) + g(-z)) / 2
        known = self._sigma()
        series = [known.get(m, 0.0) / np.sqrt(factorial(m)) for m in range(max(known) + 1)]
        return jnp.polyval(jnp.asarray(np.polynomial.hermite_e.herme2poly(series)[::-1]), z)

    def function(self, params: Any, source: GaussianBatch | Tensors | RankOne) -> jax.Array:
        a, B = _split(params)
        if isinstance(source, GaussianBatch):
            return jnp.mean((source.y - self._features(source.X @ B.T) @ a) ** 2)
        gram, value = B @ B.T, jnp.zeros((), B.dtype)
        for m, s in self._sigma().items():
            value += source.norm_squared(m) / factorial(m)
            value += -2 * s / np.sqrt(factorial(m)) * (a @ source.along(B, m)) + s**2 * (a @ gram**m @ a)
        return value

    def prepare(self, data: object) -> Any:
        if self.orders == "even" and not isinstance(data, tuple | list | GaussianBatch):
            raise ValueError('orders="even" holds infinitely many orders: pass a batch (X, y) or name orders')
        return super().prepare(data)

    @in_double
    def population(self, params: Any, teacher: OneHiddenNet) -> float:
        """E|y − ŷ|² for x ~ N(0, I) and unit rows (project first), constant included."""
        source, B = self.prepare(teacher), np.asarray(_split(as_double(params))[1])
        if np.max(np.abs(np.linalg.norm(B, axis=1) - 1)) > 1e-8:
            raise ValueError("the closed form of f' holds for rows of unit norm: project them first")
        _require_centred(teacher)
        t, w = teacher.activation, teacher.output
        energy = w @ pair_kernel(t, teacher.weights, t, teacher.weights) @ w
        seen = sum(float(source.norm_squared(m)) / factorial(m) for m in self._sigma())
        return float(energy - seen) + self.value(params, source)

    def project(self, params: Any) -> Any:
        return (params[0], unit_rows(params[1])) if isinstance(params, tuple) else unit_rows(params)


def _require_centred(teacher: OneHiddenNet) -> None:
    if np.any(teacher.bias != 0) or teacher.intercept != 0:
        raise ValueError("the closed form of a squared loss needs a teacher without biases and intercept")
