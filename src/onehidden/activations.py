"""Activations: one entry each, with all that the library knows about it.

A new activation is one entry of ``_ALL``: the function and its derivative on NumPy or JAX arrays, the laws
it obeys, its relatives, and how it is written in exports.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import scipy.special

from onehidden import activation_properties
from onehidden.activation_properties import hermite_normalised, normal_expectation
from onehidden.machine import in_double

LEAKY_SLOPE = 0.01
quietly = np.errstate(all="ignore")  # a diverging step gives no warning on the host either


@dataclass(frozen=True)
class ReversalIdentity:
    """The identity g(-t) = parity * g(t) + p(t), p a polynomial (coefficients by rising power).

    A unit of reversed orientation, (-a, -b), computes parity * g plus a polynomial of its argument: the
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

    Parameters
    ----------
    name : str
        Its name.
    fn, slope : callable
        g and g' of an array; g' by differentiation if not given. Those of the library return arrays of the
        kind they get, so that small problems need no compiled program. Those of a user may know JAX alone.
    homogeneity : int, optional
        q where g(s t) = s^q g(t) for s > 0.
    reversal : ReversalIdentity, optional
        How g(-t) follows from g(t).
    kinked : bool
        Whether g' jumps at 0.
    polynomial : bool
        Whether g is a polynomial, which hides its units: the expected Hessian is singular.
    relatives : tuple of str
        Names of activations of similar shape. With noise, a certificate fits a network of each to the same
        rows and reports those that fit as well. The first is the one that fits data of this activation
        best. An activation that saturates lists a ramp, since two of its units can pass for a ramp.
    equivalent : str
        Another activation whose networks with an intercept compute the same functions.
    compared : bool
        Whether ``activation="auto"`` tries it, and one unit of another activation is compared with it.
    multiplicative : bool
        Whether g(s + t) = g(s) g(t): a bias is a factor of the output, and none is free.
    half_period : float
        P where g(t + P) = -g(t); zero where there is none.
    text, latex : str
        g(z) in Python with ``math``, and g(t) in LaTeX.
    graph : callable, optional
        (o, z) -> g(z) for PyTorch and ONNX, by arithmetic and the operators relu, abs, sign, exp, log,
        tanh, sigmoid, erf, sin, atan, divide and maximum of ``o``, under the names that they have in
        ``torch``.
    formula : str
        A unit in printed formulas, with {} for its argument; the name with brackets where empty.
    """

    name: str
    fn: Callable[[jax.Array], jax.Array] = field(repr=False)
    slope: Callable[[jax.Array], jax.Array] = field(default=None, repr=False)  # type: ignore[assignment]
    homogeneity: int | None = None
    reversal: ReversalIdentity | None = None
    kinked: bool = False
    polynomial: bool = False
    relatives: tuple[str, ...] = field(default=(), repr=False)
    equivalent: str = field(default="", repr=False)
    compared: bool = field(default=False, repr=False)
    multiplicative: bool = field(default=False, repr=False)
    half_period: float = field(default=0.0, repr=False)
    text: str = field(default="", repr=False)
    latex: str = field(default="", repr=False)
    graph: Callable[[Any, Any], Any] | None = field(default=None, repr=False)
    formula: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.slope is None:
            object.__setattr__(self, "slope", _derivative(self.fn))

    def __reduce__(self) -> Any:
        # By name, for worker processes: lambdas cannot be pickled, and equal copies share compiled code.
        return (get, (self.name,)) if self.either_kind else super().__reduce__()

    @in_double
    def __call__(self, z: npt.ArrayLike) -> np.ndarray:
        return self.on_host(self.fn, np.asarray(z, float))

    @in_double
    def derivative(self, z: npt.ArrayLike) -> np.ndarray:
        """Compute g'(z); at a kink the mean of both sides.

        Parameters
        ----------
        z : array_like
            Arguments.

        Returns
        -------
        ndarray
            The derivatives, of the shape of ``z``.
        """
        return self.on_host(self.slope, np.asarray(z, float))

    def export(self, o: Any, z: Any) -> Any:
        """g(z) by the operators of an export, see ``graph``."""
        if self.graph is None:
            raise ValueError(self._lacking("graph"))
        return self.graph(o, z)

    def written(self, form: str) -> str:
        """``text`` or ``latex``; one sentence where it is missing."""
        if not (found := getattr(self, form)):
            raise ValueError(self._lacking(form))
        return found

    def _lacking(self, name: str) -> str:
        return f"the activation {self.name} cannot be exported like this: give it {name}=, see Activation"

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
        """The part g - h of exact parity, h = -parity * p / 2: a unit without its orientation."""
        return lambda t: self.fn(t) - _polynomial(self.orientation_part, t)

    @property
    def symmetrised_slope(self) -> Callable[[jax.Array], jax.Array]:
        """Derivative of ``symmetrised``."""
        lowered = tuple(q * c for q, c in enumerate(self.orientation_part))[1:]
        return lambda t: self.slope(t) - _polynomial(lowered, t)

    @property
    def orientation_part(self) -> tuple[float, ...]:
        """h, the polynomial that reversing a unit changes: g(s t) = parity^s (g - h)(t) + h(s t)."""
        if self.reversal is None:
            return ()
        return tuple(-0.5 * self.reversal.parity * c for c in self.reversal.polynomial)

    @property
    def sign_free(self) -> bool:
        """Whether reversing a unit leaves the function unchanged up to w and the intercept."""
        return self.reversal is not None and self.reversal.degree <= 0

    def hermite(self, order: int) -> float:
        """Compute sigma_m = E[g(z) h_m(z)], the coefficient on the normalised Hermite polynomial.

        Parameters
        ----------
        order : int
            The order m.

        Returns
        -------
        float
            The coefficient.
        """
        if order < 0:
            raise ValueError(f"Hermite order must be 0 or more, got {order}")
        return normal_expectation(lambda z: self(z) * hermite_normalised(order, z))

    @property
    def smooth_relative(self) -> str | None:
        """The relative without a kink that fits its data best."""
        return next((name for name in self.relatives if not get(name).kinked), None)

    def rho_terms(self, sigma: float) -> tuple[float, float, float]:
        """The three quantities of [ZSJBD] Property 3.2 whose minimum is rho(sigma); any may be negative."""
        return activation_properties.rho_terms(self.derivative, sigma)

    def rho(self, sigma: float) -> float:
        """Compute rho(sigma) of [ZSJBD], Property 3.2: positive where the Hessian at the truth is definite.

        A negative minimum counts as 0: rho bounds an eigenvalue that is never negative, and the paper's
        table prints 0 for the quadratic, where the printed definition gives -4 sigma²
        (``rho_terms`` shows it).

        Parameters
        ----------
        sigma : float
            Standard deviation of the argument of g.

        Returns
        -------
        float
            rho(sigma), at least 0.
        """
        least = min(self.rho_terms(sigma))
        # Rounding leaves 1e-32 where the exact value is 0 (linear, quadratic).
        return least if least > 1e-24 else 0.0

    def properties(self) -> dict[str, Any]:
        """Properties that the theory needs, decided numerically from g' (P1–P3 of [ZSJBD]).

        The tolerances are those of ``onehidden.activation_properties.SlopeProperties``.

        Returns
        -------
        dict
            Answers and numbers by name.
        """
        found = activation_properties.SlopeProperties.of(self.derivative)
        return {
            "homogeneity": self.homogeneity,
            "parity": None if self.reversal is None else self.reversal.parity,
            "reflection_degree": None if self.reversal is None else self.reversal.degree,
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


_EVEN, _ODD = ReversalIdentity(+1), ReversalIdentity(-1)
_RAMP = ReversalIdentity(+1, (0.0, -1.0))


def _relu(t: Any) -> Any:
    return xp(t).maximum(t, 0)


def _step(t: Any) -> Any:
    return 0.5 * (1 + xp(t).sign(t))


def _sigmoid(t: Any) -> Any:
    return _special(t).expit(t)


def _softplus(t: Any) -> Any:
    return xp(t).logaddexp(t, xp(t).zeros_like(t))


def _decay(t: Any) -> Any:
    """exp(t) - 1 for t < 0, else 0."""
    return xp(t).expm1(xp(t).minimum(t, 0))


def _exponential_unit(name: str, scale: float, alpha: float, **more: Any) -> Activation:
    """scale t for t > 0, scale alpha (exp(t) - 1) else."""
    return Activation(
        name,
        lambda t: scale * (_relu(t) + alpha * _decay(t)),
        lambda t: scale * (_step(t) + alpha * _step(-t) * (1 + _decay(t))),
        text=f"{scale} * (z if z > 0 else {alpha} * math.expm1(z))",
        latex=rf"{scale:.5g}\,(\max(t, 0) + {alpha:.5g}\,(e^{{\min(t, 0)}} - 1))",
        # The sum comes last: ONNX Runtime would fuse a factor next to a MatMul as a float32.
        graph=lambda o, z: scale * o.relu(z) + scale * alpha * (o.exp(-o.relu(-z)) - 1.0),
        **more,
    )


def _mish_slope(t: Any) -> Any:
    risen = xp(t).tanh(_softplus(t))
    return risen + t * (1 - risen**2) * _sigmoid(t)


def _gelu_slope(t: Any) -> Any:
    return _special(t).ndtr(t) + t * xp(t).exp(-(t**2) / 2) / math.sqrt(2 * math.pi)


_ALL = (
    Activation(
        "relu",
        _relu,
        _step,
        homogeneity=1,
        reversal=_RAMP,
        kinked=True,
        relatives=("leaky_relu", "softplus", "gelu"),
        compared=True,
        text="max(z, 0.0)",
        latex=r"\max(t, 0)",
        graph=lambda o, z: o.relu(z),
        formula="max(0, {})",
    ),
    Activation(
        "leaky_relu",
        lambda t: xp(t).where(t > 0, t, LEAKY_SLOPE * t),
        lambda t: LEAKY_SLOPE + (1 - LEAKY_SLOPE) * _step(t),
        homogeneity=1,
        reversal=ReversalIdentity(+1, (0.0, -1.0 - LEAKY_SLOPE)),
        kinked=True,
        relatives=("relu", "softplus", "gelu"),
        compared=True,
        text=f"z if z > 0 else {LEAKY_SLOPE} * z",
        latex=rf"\max(t, {LEAKY_SLOPE}\,t)",
        graph=lambda o, z: o.maximum(z, LEAKY_SLOPE * z),
    ),
    Activation(
        "squared_relu",
        lambda t: _relu(t) ** 2,
        lambda t: 2 * _relu(t),
        homogeneity=2,
        reversal=ReversalIdentity(-1, (0.0, 0.0, 1.0)),
        relatives=("cubed_relu", "gelu", "softplus"),
        compared=True,
        text="max(z, 0.0) ** 2",
        latex=r"\max(t, 0)^2",
        graph=lambda o, z: o.relu(z) * o.relu(z),
    ),
    Activation(
        "cubed_relu",
        lambda t: _relu(t) ** 3,
        lambda t: 3 * _relu(t) ** 2,
        homogeneity=3,
        reversal=ReversalIdentity(+1, (0.0, 0.0, 0.0, -1.0)),
        relatives=("squared_relu",),
        compared=True,
        text="max(z, 0.0) ** 3",
        latex=r"\max(t, 0)^3",
        graph=lambda o, z: o.relu(z) * o.relu(z) * o.relu(z),
    ),
    Activation(
        "sigmoid",
        _sigmoid,
        lambda t: _sigmoid(t) * _sigmoid(-t),
        reversal=ReversalIdentity(-1, (1.0,)),
        relatives=("erf", "softplus"),
        equivalent="tanh",
        compared=True,
        text="1.0 / (1.0 + math.exp(-z)) if z > 0 else math.exp(z) / (1.0 + math.exp(z))",
        latex=r"\frac{1}{1 + e^{-t}}",
        graph=lambda o, z: o.sigmoid(z),
    ),
    Activation(
        "tanh",
        lambda t: xp(t).tanh(t),
        lambda t: 1 / xp(t).cosh(xp(t).clip(t, -350, 350)) ** 2,
        reversal=_ODD,
        relatives=("erf", "softplus"),
        equivalent="sigmoid",
        compared=True,
        text="math.tanh(z)",
        latex=r"\tanh t",
        graph=lambda o, z: o.tanh(z),
    ),
    # The papers' erf: the integral of exp(-s^2) from 0 to t, that is sqrt(pi)/2 times the usual one.
    Activation(
        "erf",
        lambda t: 0.5 * math.sqrt(math.pi) * _special(t).erf(t),
        lambda t: xp(t).exp(-xp(t).minimum(t**2, 700.0)),
        reversal=_ODD,
        relatives=("tanh", "softplus"),
        compared=True,
        text="0.5 * math.sqrt(math.pi) * math.erf(z)",
        latex=r"\int_0^t e^{-s^2}\,ds",
        # The sign comes last: ONNX Runtime would fuse a factor next to a MatMul as a float32.
        graph=lambda o, z: o.sign(z) * (0.5 * math.sqrt(math.pi) * o.erf(o.abs(z))),
    ),
    Activation(
        "softplus",
        _softplus,
        _sigmoid,
        reversal=_RAMP,
        relatives=("gelu", "relu", "squared_relu"),
        compared=True,
        text="max(z, 0.0) + math.log1p(math.exp(-abs(z)))",
        latex=r"\log(1 + e^t)",
        graph=lambda o, z: o.relu(z) + o.log(1.0 + o.exp(-o.abs(z))),
    ),
    Activation(
        "gelu",
        lambda t: t * _special(t).ndtr(t),
        _gelu_slope,
        reversal=_RAMP,
        relatives=("softplus", "relu", "squared_relu"),
        compared=True,
        text="0.5 * z * math.erfc(-z / math.sqrt(2.0))",
        latex=r"t\,\Phi(t)",
        graph=lambda o, z: z * (0.5 * (1.0 + o.erf(math.sqrt(0.5) * z))),
    ),
    Activation(
        "abs",
        lambda t: xp(t).abs(t),
        lambda t: xp(t).sign(t),
        homogeneity=1,
        reversal=_EVEN,
        kinked=True,
        compared=True,
        text="abs(z)",
        latex=r"\lvert t \rvert",
        graph=lambda o, z: o.abs(z),
        formula="|{}|",
    ),
    Activation(
        "quadratic",
        lambda t: t * t,
        lambda t: 2 * t,
        homogeneity=2,
        reversal=_EVEN,
        polynomial=True,
        compared=True,
        text="z * z",
        latex="t^2",
        graph=lambda o, z: z * z,
        formula="({})²",
    ),
    Activation(
        "linear",
        lambda t: t,
        lambda t: xp(t).ones_like(t),
        homogeneity=1,
        reversal=_ODD,
        polynomial=True,
        compared=True,
        text="z",
        latex="t",
        graph=lambda o, z: z,
        formula="({})",
    ),
    Activation(
        "exp",
        lambda t: xp(t).exp(t),
        lambda t: xp(t).exp(t),
        multiplicative=True,
        text="math.exp(z)",
        latex="e^t",
        graph=lambda o, z: o.exp(z),
        formula="exp({})",
    ),
    Activation(
        "gaussian",
        lambda t: xp(t).exp(-(t**2) / 2),
        lambda t: -t * xp(t).exp(-(t**2) / 2),
        reversal=_EVEN,
        text="math.exp(-z * z / 2.0)",
        latex="e^{-t^2/2}",
        graph=lambda o, z: o.exp(-0.5 * (z * z)),
    ),
    Activation(
        "silu",
        lambda t: t * _sigmoid(t),
        lambda t: _sigmoid(t) * (1 + t * _sigmoid(-t)),
        reversal=_RAMP,
        relatives=("gelu", "softplus", "mish"),
        text="z / (1.0 + math.exp(-z)) if z > 0 else z * math.exp(z) / (1.0 + math.exp(z))",
        latex=r"\frac{t}{1 + e^{-t}}",
        graph=lambda o, z: z * o.sigmoid(z),
    ),
    _exponential_unit("elu", 1.0, 1.0, relatives=("softplus", "silu", "gelu")),
    # The numbers of self-normalising networks, arXiv:1706.02515.
    _exponential_unit(
        "selu",
        1.0507009873554805,
        1.6732632423543772,
        kinked=True,
        relatives=("elu", "leaky_relu", "softplus"),
    ),
    Activation(
        "mish",
        lambda t: t * xp(t).tanh(_softplus(t)),
        _mish_slope,
        relatives=("silu", "gelu", "softplus"),
        text="z * math.tanh(max(z, 0.0) + math.log1p(math.exp(-abs(z))))",
        latex=r"t \tanh(\log(1 + e^t))",
        graph=lambda o, z: z * o.tanh(o.relu(z) + o.log(1.0 + o.exp(-o.abs(z)))),
    ),
    Activation(
        "softsign",
        lambda t: t / (1 + xp(t).abs(t)),
        lambda t: 1 / (1 + xp(t).abs(t)) ** 2,
        reversal=_ODD,
        relatives=("arctan", "tanh"),
        text="z / (1.0 + abs(z))",
        latex=r"\frac{t}{1 + \lvert t \rvert}",
        graph=lambda o, z: o.divide(z, 1.0 + o.abs(z)),
    ),
    Activation(
        "arctan",
        lambda t: xp(t).arctan(t),
        lambda t: 1 / (1 + t**2),
        reversal=_ODD,
        relatives=("softsign", "tanh"),
        text="math.atan(z)",
        latex=r"\arctan t",
        graph=lambda o, z: o.atan(z),
    ),
    Activation(
        "sin",
        lambda t: xp(t).sin(t),
        lambda t: xp(t).cos(t),
        reversal=_ODD,
        half_period=math.pi,
        text="math.sin(z)",
        latex=r"\sin t",
        graph=lambda o, z: o.sin(z),
    ),
    Activation(
        "cloglog",
        lambda t: -xp(t).expm1(-xp(t).exp(t)),
        lambda t: xp(t).exp(t - xp(t).exp(t)),
        relatives=("sigmoid", "erf"),
        text="-math.expm1(-math.exp(min(z, 700.0)))",
        latex=r"1 - e^{-e^t}",
        graph=lambda o, z: 1.0 - o.exp(-o.exp(z)),
    ),
)
_BY_NAME = {a.name: a for a in _ALL}


def names(compared: bool = False) -> list[str]:
    """Names of the activations, or of those that are compared by default."""
    return [one.name for one in _ALL if one.compared or not compared]


@lru_cache(maxsize=64)
def _derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of a function, element by element; the same object for the same function."""
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


@lru_cache(maxsize=64)
@in_double
def of_function(function: Callable[[Any], Any]) -> Activation:
    """An activation made of a function: its derivative by JAX, its identities found on a grid.

    What is found: homogeneity, a kink at zero, whether it is a polynomial, and how g(-t) follows from g(t).
    ``Activation`` takes what cannot be found, such as relatives and the text of exports.

    Parameters
    ----------
    function : callable
        g of an array, element by element, by operations that JAX can trace.

    Returns
    -------
    Activation
        The activation, under the name of the function.

    Raises
    ------
    ValueError
        One sentence, where the function cannot be traced, is not finite, constant or linear.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> import onehidden as oh
    >>> g = oh.activations.of_function(lambda t: t**2 * jnp.exp(-t**2))
    >>> g.reversal.parity, g.homogeneity, g.kinked
    (1, None, False)
    """
    name = getattr(function, "__name__", "g")
    name = "g" if name == "<lambda>" else name
    t = np.linspace(-6.0, 6.0, 97)
    try:
        values = np.asarray(jax.jit(function)(jnp.asarray(t)), float)
    except Exception as error:
        reason = str(error).splitlines()[0][:120]
        raise ValueError(f"the activation {name} cannot be traced by JAX: {reason}") from None
    if values.shape != t.shape:
        raise ValueError(f"the activation {name} must map {t.shape} numbers to as many, got {values.shape}")
    if not np.all(np.isfinite(values)):
        where = t[np.argmin(np.isfinite(values))]
        raise ValueError(f"the activation {name} is not finite at {where:g}: define it on all numbers")

    def left(degree: int, of: np.ndarray) -> tuple[float, np.ndarray]:
        """What a polynomial of this degree misses, as a share, and its coefficients."""
        V = np.vander(t / 6, degree + 1, increasing=True)
        found = np.linalg.lstsq(V, of, rcond=None)[0]
        missed = float(np.max(np.abs(of - V @ found))) / max(float(np.max(np.abs(values))), 1e-300)
        return missed, found / 6.0 ** np.arange(degree + 1)

    for degree, what in ((0, "constant"), (1, "linear")):
        if left(degree, values)[0] < 1e-12:
            raise ValueError(
                f"the activation {name} is {what}: its units cannot be told from a linear function"
            )
    reversal = None
    for parity in (1, -1):
        for degree in (-1, 0, 1, 2, 3):
            rest = values[::-1] - parity * values
            missed, polynomial = (
                (float(np.max(np.abs(rest))), np.zeros(0)) if degree < 0 else left(degree, rest)
            )
            if reversal is None and missed < 1e-12 * max(float(np.max(np.abs(values))), 1.0):
                polynomial = np.where(np.abs(polynomial) < 1e-9, 0.0, np.round(polynomial, 12))
                reversal = ReversalIdentity(parity, tuple(float(c) for c in np.trim_zeros(polynomial, "b")))

    slope = _derivative(function)
    sides = np.asarray(slope(jnp.asarray([-1e-7, 1e-7])), float)
    powers = [q for q in (1, 2, 3) if np.allclose(np.asarray(function(jnp.asarray(2 * t))), 2.0**q * values)]
    return Activation(
        name, function, slope, homogeneity=powers[0] if powers else None, reversal=reversal,
        kinked=abs(sides[1] - sides[0]) > 1e-3 * max(1.0, float(np.max(np.abs(sides)))),
        polynomial=any(left(degree, values)[0] < 1e-12 for degree in (2, 3, 4)),
    )  # fmt: skip


def get(activation: str | Activation | Callable[[Any], Any]) -> Activation:
    """The activation of that name, or of a function; an ``Activation`` passes through.

    Parameters
    ----------
    activation : str, Activation or callable
        One of ``names()``, an activation, or a function that JAX can trace, see ``of_function``.

    Returns
    -------
    Activation
        The activation.

    Raises
    ------
    ValueError
        For an unknown name, and for a function that is no activation.

    Examples
    --------
    >>> import onehidden as oh
    >>> g = oh.activations.get("relu")
    >>> g([-1.0, 2.0]).tolist()
    [0.0, 2.0]
    """
    if isinstance(activation, Activation):
        return activation
    if callable(activation):
        return of_function(activation)
    if not isinstance(activation, str) or activation not in _BY_NAME:
        raise ValueError(f"unknown activation {activation!r}: choose one of {', '.join(_BY_NAME)}")
    return _BY_NAME[activation]
