"""Activations: g, its derivative, Hermite coefficients, homogeneity, reflection and the ρ of [ZSJBD]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import scipy.special

from onehidden import activation_properties
from onehidden.precision import in_double
from onehidden.quadrature import hermite_normalised, normal_expectation

LEAKY_SLOPE = 0.01
quietly = np.errstate(all="ignore")  # around a function: on the host, too, a diverging step is no warning


@dataclass(frozen=True)
class Reflection:
    """The law g(-t) = parity * g(t) + p(t), p a polynomial (coefficients by rising power).

    A unit turned around, (a, b) -> -(a, b), computes parity * g plus a polynomial of its argument: the
    orientation of a unit is therefore fixed only by the polynomial part of the whole network.
    """

    parity: int
    polynomial: tuple[float, ...] = ()

    @property
    def degree(self) -> int:
        """Degree of p; -1 when p = 0."""
        return len(self.polynomial) - 1


@dataclass(frozen=True)
class Activation:
    """One activation g; call it on NumPy arrays, or use ``fn`` inside JAX code.

    ``fn`` and ``slope`` of those here give arrays of the kind they get: what is computed on the host needs no
    compiled program. Those of a user may know JAX alone.
    """

    name: str
    fn: Callable[[jax.Array], jax.Array] = field(repr=False)
    slope: Callable[[jax.Array], jax.Array] = field(repr=False)
    homogeneity: int | None = None  # g(s t) = s^q g(t) for s > 0
    reflection: Reflection | None = None
    kinked: bool = False  # g' jumps at 0
    polynomial: bool = False  # a polynomial hides its units: the expected Hessian is singular

    def __reduce__(self) -> Any:
        # By name (worker processes, joblib): the functions themselves have no address, and copies that stay
        # equal reuse compiled code.
        return (get, (self.name,)) if self.either_kind else super().__reduce__()

    @in_double
    def __call__(self, z: npt.ArrayLike) -> np.ndarray:
        return self.on_host(self.fn, np.asarray(z, float))

    @in_double
    def derivative(self, z: npt.ArrayLike) -> np.ndarray:
        """g'(z); at a kink the mean of both sides."""
        return self.on_host(self.slope, np.asarray(z, float))

    @property
    def either_kind(self) -> bool:
        """Whether the functions take NumPy arrays as well as JAX's."""
        return _BY_NAME.get(self.name) is self

    @quietly
    def on_host(self, fn: Callable[[Any], Any], z: np.ndarray) -> np.ndarray:
        """One of this activation's functions at a NumPy array."""
        return fn(z) if self.either_kind else np.asarray(fn(jnp.asarray(z)))

    @property
    def symmetrised(self) -> Callable[[jax.Array], jax.Array]:
        """g - h of exact parity, h = -parity * p / 2: a unit with its orientation set aside."""
        return lambda t: self.fn(t) - _polynomial(self.orientation_part, t)

    @property
    def symmetrised_slope(self) -> Callable[[jax.Array], jax.Array]:
        """Derivative of ``symmetrised``."""
        lowered = tuple(q * c for q, c in enumerate(self.orientation_part))[1:]
        return lambda t: self.slope(t) - _polynomial(lowered, t)

    @property
    def orientation_part(self) -> tuple[float, ...]:
        """h, the polynomial that turning a unit around changes: g(s t) = parity^s (g - h)(t) + h(s t)."""
        if self.reflection is None:
            return ()
        return tuple(-0.5 * self.reflection.parity * c for c in self.reflection.polynomial)

    @property
    def sign_free(self) -> bool:
        """Whether turning a unit around leaves the function unchanged up to w and the intercept."""
        return self.reflection is not None and self.reflection.degree <= 0

    def hermite(self, order: int) -> float:
        """sigma_m = E[g(z) h_m(z)], the coefficient on the normalised Hermite polynomial."""
        if order < 0:
            raise ValueError(f"Hermite order must be 0 or more, got {order}")
        return normal_expectation(lambda z: self(z) * hermite_normalised(order, z))

    def rho_terms(self, sigma: float) -> tuple[float, float, float]:
        """The three quantities of [ZSJBD] Property 3.2 whose minimum is rho(sigma); any may be negative."""
        return activation_properties.rho_terms(self.derivative, sigma)

    def rho(self, sigma: float) -> float:
        """rho(sigma) of P2, [ZSJBD] Property 3.2: positive where the Hessian at the truth is definite.

        A negative minimum counts as 0: rho bounds an eigenvalue that is never negative, and the paper's
        table prints 0 for the quadratic, where the printed definition gives -4 sigma²
        (``rho_terms`` shows it).
        """
        least = min(self.rho_terms(sigma))
        # Rounding leaves 1e-32 where the exact value is 0 (linear, quadratic).
        return least if least > activation_properties.ROUNDING**2 else 0.0

    def properties(self) -> dict[str, Any]:
        """What the theory asks of an activation, decided numerically from g' (P1–P3 of [ZSJBD]).

        The tolerances stand in ``onehidden.activation_properties``.
        """
        found = activation_properties.decide(self.derivative)
        return {
            "homogeneity": self.homogeneity,
            "parity": None if self.reflection is None else self.reflection.parity,
            "reflection_degree": None if self.reflection is None else self.reflection.degree,
            "P1": found.p1,
            "P2": found.p2,
            "P3": found.p3a or found.p3b,
            "P3a": found.p3a,
            "P3b": found.p3b,
            "P1,2,3": found.p1 and found.p2 and (found.p3a or found.p3b),
            "power": found.power,
            "rho": {s: self.rho(s) for s in (0.1, 1.0, 10.0)},
        }


def xp(t: Any) -> ModuleType:
    """The functions of arrays of t's kind: NumPy's or JAX's."""
    return np if isinstance(t, np.ndarray | np.generic) else jnp


def _special(t: Any) -> ModuleType:
    return scipy.special if xp(t) is np else jax.scipy.special


def _polynomial(coefficients: tuple[float, ...], t: Any) -> Any:
    """Polynomial with coefficients by rising power, at t."""
    return sum((c * t**q for q, c in enumerate(coefficients) if c), xp(t).zeros_like(t))


def _relu(t: Any) -> Any:
    return xp(t).maximum(t, 0)


def _power_of_relu(q: int) -> tuple[Callable, Callable]:
    return (lambda t: _relu(t) ** q), (lambda t: q * _relu(t) ** (q - 1))


def _gelu_slope(t: Any) -> Any:
    return _special(t).ndtr(t) + t * xp(t).exp(-(t**2) / 2) / _SQRT_TWO_PI


def _step(t: Any) -> Any:
    return 0.5 * (1 + xp(t).sign(t))


def _sigmoid(t: Any) -> Any:
    return _special(t).expit(t)


_HALF_SQRT_PI, _SQRT_TWO_PI = float(0.5 * np.sqrt(np.pi)), float(np.sqrt(2 * np.pi))
_EVEN, _ODD = Reflection(+1), Reflection(-1)

_ALL = (
    Activation("relu", _relu, _step, 1, Reflection(+1, (0.0, -1.0)), True),
    Activation(
        "leaky_relu",
        lambda t: xp(t).where(t > 0, t, LEAKY_SLOPE * t),
        lambda t: LEAKY_SLOPE + (1 - LEAKY_SLOPE) * _step(t),
        1,
        Reflection(+1, (0.0, -1.0 - LEAKY_SLOPE)),
        True,
    ),
    Activation("squared_relu", *_power_of_relu(2), 2, Reflection(-1, (0.0, 0.0, 1.0))),
    Activation("cubed_relu", *_power_of_relu(3), 3, Reflection(+1, (0.0, 0.0, 0.0, -1.0))),
    Activation(
        "sigmoid",
        _sigmoid,
        lambda t: _sigmoid(t) * _sigmoid(-t),
        reflection=Reflection(-1, (1.0,)),
    ),
    Activation(
        "tanh",
        lambda t: xp(t).tanh(t),
        lambda t: 1 / xp(t).cosh(xp(t).clip(t, -350, 350)) ** 2,
        reflection=_ODD,
    ),
    # The papers' erf: the integral of exp(-s^2) from 0 to t, that is sqrt(pi)/2 times the usual one.
    Activation(
        "erf",
        lambda t: _HALF_SQRT_PI * _special(t).erf(t),
        lambda t: xp(t).exp(-xp(t).minimum(t**2, 700.0)),
        reflection=_ODD,
    ),
    Activation(
        "softplus",
        lambda t: xp(t).logaddexp(t, xp(t).zeros_like(t)),
        _sigmoid,
        reflection=Reflection(+1, (0.0, -1.0)),
    ),
    Activation(
        "gelu",
        lambda t: t * _special(t).ndtr(t),
        _gelu_slope,
        reflection=Reflection(+1, (0.0, -1.0)),
    ),
    Activation("abs", lambda t: xp(t).abs(t), lambda t: xp(t).sign(t), 1, _EVEN, True),
    Activation("quadratic", lambda t: t * t, lambda t: 2 * t, 2, _EVEN, polynomial=True),
    Activation("linear", lambda t: t, lambda t: xp(t).ones_like(t), 1, _ODD, polynomial=True),
)
_BY_NAME = {a.name: a for a in _ALL}


def names() -> list[str]:
    """The activations that can be asked for by name."""
    return list(_BY_NAME)


def get(activation: str | Activation) -> Activation:
    """The activation of that name; an ``Activation`` passes through."""
    if isinstance(activation, Activation):
        return activation
    if not isinstance(activation, str) or activation not in _BY_NAME:
        raise ValueError(f"unknown activation {activation!r}: choose one of {', '.join(_BY_NAME)}")
    return _BY_NAME[activation]
