"""Activations: one entry each, with all that the library knows about it.

A new activation is one entry of ``_COMMON`` or ``_FURTHER``: its formula and derivative by operators that
arrays and exports share, and its relatives. The laws that it obeys are found from its values.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import scipy.special

from onehidden.machine import in_double
from onehidden.refused import meant

_GRID = np.linspace(-6.0, 6.0, 97)  # where laws of an activation are looked for
quietly = np.errstate(all="ignore")  # a diverging step gives no warning on the host either

Formula = Callable[[Any, Any], Any]  # of operators o and a value z
# The operators of a formula that every export has. Slopes, which are not exported, may use cos as well.
OPERATORS = (
    "relu", "abs", "sign", "exp", "expm1", "log", "sqrt", "tanh", "sigmoid", "softplus", "erf", "ndtr", "sin",
    "atan", "maximum",
)  # fmt: skip


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
    relatives : tuple of str
        Names of activations of similar shape. With noise, a certificate fits a network of each to the same
        rows and reports those that fit as well. The first is the one that fits data of this activation
        best. An activation that saturates lists a ramp, since two of its units can pass for a ramp.
    equivalent : str
        Another activation whose networks with an intercept compute the same functions.
    half_period : float
        P where g(t + P) = -g(t); zero where there is none.
    graph : callable, optional
        (o, z) -> g(z) for exports, by arithmetic and the operators of ``o`` named in ``OPERATORS``.
    formula : str
        A unit in printed formulas, with {} for its argument; the name with brackets where empty.
    """

    name: str
    fn: Callable[[jax.Array], jax.Array] = field(repr=False)
    slope: Callable[[jax.Array], jax.Array] = field(default=None, repr=False)  # type: ignore[assignment]
    relatives: tuple[str, ...] = field(default=(), repr=False)
    equivalent: str = field(default="", repr=False)
    half_period: float = field(default=0.0, repr=False)
    graph: Formula | None = field(default=None, repr=False)
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

    @cached_property
    def homogeneity(self) -> int | None:
        """q where g(s t) = s^q g(t) for s > 0; None where there is none up to 3."""
        once, twice = self(_GRID), self(2 * _GRID)
        return next((q for q in (1, 2, 3) if np.allclose(twice, 2.0**q * once)), None)

    @cached_property
    def reversal(self) -> ReversalIdentity | None:
        """How g(-t) follows from g(t), with a polynomial of degree 3 at most."""
        values = self(_GRID)
        small = 1e-12 * max(float(np.max(np.abs(values))), 1.0)
        for degree in range(-1, 4):
            for parity in (1, -1):
                missed, found = _nearest_polynomial(degree, values[::-1] - parity * values)
                if missed < small:
                    return ReversalIdentity(parity, found)
        return None

    @cached_property
    def kinked(self) -> bool:
        """Whether g' jumps at 0."""
        sides = self.derivative([-1e-7, 1e-7])
        return bool(abs(sides[1] - sides[0]) > 1e-3 * max(1.0, float(np.max(np.abs(sides)))))

    @cached_property
    def polynomial(self) -> bool:
        """Whether g is a polynomial, which hides its units: the expected Hessian is singular."""
        return self._is_polynomial(4)

    def _is_polynomial(self, degree: int) -> bool:
        values = self(_GRID)
        return _nearest_polynomial(degree, values)[0] < 1e-12 * float(np.max(np.abs(values)))

    @cached_property
    def multiplicative(self) -> bool:
        """Whether g(s + t) = g(s) g(t): a bias is a factor of the output, and none is free."""
        once, same = self(_GRID), partial(np.allclose, rtol=1e-12, atol=0.0)
        return same(self(2 * _GRID), once**2) and same(self(_GRID + 1.0), once * self(1.0))

    def export(self, o: Any, z: Any) -> Any:
        """g(z) by the operators of an export, see ``graph``."""
        if self.graph is None:
            raise ValueError(f"the activation {self.name} cannot be exported: give it graph=, see Activation")
        if not self._graph_is_fn:
            raise ValueError(f"graph= of the activation {self.name} is not fn, or uses unknown operators")
        return self.graph(o, z)

    @cached_property
    def _graph_is_fn(self) -> bool:
        try:
            assert self.graph is not None
            exported = SimpleNamespace(**{name: getattr(_ON_HOST, name) for name in OPERATORS})
            return bool(np.allclose(self.graph(exported, _GRID), self(_GRID), rtol=1e-9, atol=1e-12))
        except AttributeError:  # no such operator
            return False

    @property
    def either_kind(self) -> bool:
        """Whether the functions take NumPy arrays as well as JAX's."""
        return _BY_NAME.get(self.name) is self

    @quietly
    def on_host(self, fn: Callable[[Any], Any], z: np.ndarray) -> np.ndarray:
        """One of this activation's functions at a NumPy array, also while JAX traces a program."""
        if self.either_kind:
            return fn(z)
        with jax.ensure_compile_time_eval():
            return np.asarray(fn(jnp.asarray(z)))

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
        return importlib.import_module(_THEORY).hermite(self, order)

    def rho(self, sigma: float) -> float:
        """Compute rho(sigma) of [ZSJBD], Property 3.2: positive where the Hessian at the truth is definite.

        Parameters
        ----------
        sigma : float
            Standard deviation of the argument of g.

        Returns
        -------
        float
            rho(sigma), at least 0.
        """
        return importlib.import_module(_THEORY).rho(self, sigma)

    def properties(self) -> dict[str, Any]:
        """Properties that the theory needs, decided numerically from g' (P1–P3 of [ZSJBD]).

        Returns
        -------
        dict
            Answers and numbers by name.
        """
        return importlib.import_module(_THEORY).properties(self)


_THEORY = "onehidden_papers.activation_properties"


def xp(t: Any) -> ModuleType:
    """The functions of arrays of t's kind: NumPy's or JAX's."""
    return np if isinstance(t, np.ndarray | np.generic) else jnp


def _polynomial(coefficients: tuple[float, ...], t: Any) -> Any:
    """Polynomial with coefficients by rising power, at t."""
    return sum((c * t**q for q, c in enumerate(coefficients) if c), xp(t).zeros_like(t))


def _nearest_polynomial(degree: int, values: np.ndarray) -> tuple[float, tuple[float, ...]]:
    """How far values on the grid are from a polynomial of this degree (-1: from zero), and that one."""
    if degree < 0:
        return float(np.max(np.abs(values))), ()
    found = np.polynomial.Polynomial.fit(_GRID, values, degree)
    coefficients = found.convert().coef
    rounded = np.where(np.abs(coefficients) < 1e-9, 0.0, np.round(coefficients, 12))
    return float(np.max(np.abs(values - found(_GRID)))), tuple(float(c) for c in rounded)


def _operators(xp: Any, special: Any) -> SimpleNamespace:
    """The operators of a formula for arrays of NumPy or JAX."""
    return SimpleNamespace(
        relu=lambda z: xp.maximum(z, 0.0),
        softplus=lambda z: xp.logaddexp(z, 0.0),
        sigmoid=special.expit,
        erf=special.erf,
        ndtr=special.ndtr,
        atan=xp.arctan,
        **{
            name: getattr(xp, name)
            for name in ("abs", "sign", "exp", "expm1", "log", "sqrt", "tanh", "sin", "cos", "maximum")
        },
    )


_ON_HOST, _TRACED = _operators(np, scipy.special), _operators(jnp, jax.scipy.special)


def _formula(name: str, graph: Formula, slope: Formula, relatives: str = "", **more: Any) -> Activation:
    """An activation of the library, whose formulas serve NumPy, JAX and exports."""

    def of_array(formula: Formula) -> Callable[[Any], Any]:
        return lambda t: formula(_ON_HOST if xp(t) is np else _TRACED, t)

    return Activation(name, of_array(graph), of_array(slope), tuple(relatives.split()), graph=graph, **more)


def _step(o: Any, z: Any) -> Any:
    return 0.5 * (1.0 + o.sign(z))


def _sech_squared(o: Any, z: Any) -> Any:
    """1 / cosh(z)^2, without overflow and with the digits of its tails."""
    decay = o.exp(-2.0 * o.abs(z))
    return 4.0 * decay / (1.0 + decay) ** 2


def _gelu_slope(o: Any, z: Any) -> Any:
    return o.ndtr(z) + z * o.exp(-0.5 * (z * z)) / math.sqrt(2 * math.pi)


def _mish_slope(o: Any, z: Any) -> Any:
    risen = o.tanh(o.softplus(z))
    return risen + z * (1.0 - risen**2) * o.sigmoid(z)


def _exponential_unit(name: str, scale: float, alpha: float, relatives: str) -> Activation:
    """scale t for t > 0, scale alpha (exp(t) - 1) else."""

    def graph(o: Any, z: Any) -> Any:
        # The sum comes last: ONNX Runtime would fuse a factor next to a MatMul as a float32.
        return scale * o.relu(z) + scale * alpha * o.expm1(-o.relu(-z))

    def slope(o: Any, z: Any) -> Any:
        return scale * (_step(o, z) + alpha * _step(o, -z) * o.exp(-o.relu(-z)))

    return _formula(name, graph, slope, relatives)


def _papers_erf(o: Any, z: Any) -> Any:
    """The integral of exp(-s^2) from 0 to t, that is sqrt(pi)/2 times the usual one."""
    # The sign comes last: ONNX Runtime would fuse a factor next to a MatMul as a float32.
    return o.sign(z) * (0.5 * math.sqrt(math.pi) * o.erf(o.abs(z)))


def _leaky_slope(o: Any, z: Any) -> Any:
    return 0.01 + 0.99 * _step(o, z)


def _silu_slope(o: Any, z: Any) -> Any:
    return o.sigmoid(z) * (1.0 + z * o.sigmoid(-z))


# Name, g, g' and relatives. These are tried by ``activation="auto"``, and one unit of another activation is
# compared with all of them.
_COMMON = (
    _formula("relu", lambda o, z: o.relu(z), _step, "leaky_relu softplus gelu", formula="max(0, {})"),
    _formula("leaky_relu", lambda o, z: o.maximum(z, 0.01 * z), _leaky_slope, "relu softplus gelu"),
    _formula(
        "squared_relu", lambda o, z: o.relu(z) * z, lambda o, z: 2.0 * o.relu(z), "cubed_relu gelu softplus"
    ),
    _formula("cubed_relu", lambda o, z: o.relu(z) * z * z, lambda o, z: 3.0 * o.relu(z) * z, "squared_relu"),
    _formula(
        "sigmoid",
        lambda o, z: o.sigmoid(z),
        lambda o, z: o.sigmoid(z) * o.sigmoid(-z),
        "erf softplus",
        equivalent="tanh",
    ),
    _formula("tanh", lambda o, z: o.tanh(z), _sech_squared, "erf softplus", equivalent="sigmoid"),
    _formula("erf", _papers_erf, lambda o, z: o.exp(-z * z), "tanh softplus"),
    _formula("softplus", lambda o, z: o.softplus(z), lambda o, z: o.sigmoid(z), "gelu relu squared_relu"),
    _formula("gelu", lambda o, z: z * o.ndtr(z), _gelu_slope, "softplus relu squared_relu"),
    _formula("abs", lambda o, z: o.abs(z), lambda o, z: o.sign(z), formula="|{}|"),
    _formula("quadratic", lambda o, z: z * z, lambda o, z: 2.0 * z, formula="({})²"),
    _formula("linear", lambda o, z: z, lambda o, z: 0.0 * z + 1.0, formula="({})"),
)
_FURTHER = (
    _formula("exp", lambda o, z: o.exp(z), lambda o, z: o.exp(z), formula="exp({})"),
    _formula("gaussian", lambda o, z: o.exp(-0.5 * (z * z)), lambda o, z: -z * o.exp(-0.5 * (z * z))),
    _formula("silu", lambda o, z: z * o.sigmoid(z), _silu_slope, "gelu softplus mish"),
    _exponential_unit("elu", 1.0, 1.0, "softplus silu gelu"),
    # The numbers of self-normalising networks, arXiv:1706.02515.
    _exponential_unit("selu", 1.0507009873554805, 1.6732632423543772, "elu leaky_relu softplus"),
    _formula("mish", lambda o, z: z * o.tanh(o.softplus(z)), _mish_slope, "silu gelu softplus"),
    _formula(
        "softsign", lambda o, z: z / (1.0 + o.abs(z)), lambda o, z: 1.0 / (1.0 + o.abs(z)) ** 2, "arctan tanh"
    ),
    _formula("arctan", lambda o, z: o.atan(z), lambda o, z: 1.0 / (1.0 + z * z), "softsign tanh"),
    _formula("sin", lambda o, z: o.sin(z), lambda o, z: o.cos(z), half_period=math.pi),
    _formula("cloglog", lambda o, z: -o.expm1(-o.exp(z)), lambda o, z: o.exp(z - o.exp(z)), "sigmoid erf"),
)
_BY_NAME = {one.name: one for one in (*_COMMON, *_FURTHER)}


def names(compared: bool = False) -> list[str]:
    """Names of the activations, or of those that are compared by default."""
    return [one.name for one in _COMMON] if compared else list(_BY_NAME)


@lru_cache(maxsize=64)
def _derivative(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The derivative of a function, element by element; the same object for the same function."""
    return lambda z: jax.jvp(function, (z,), (jnp.ones_like(z),))[1]


@lru_cache(maxsize=64)
@in_double
def of_function(function: Callable[[Any], Any]) -> Activation:
    """An activation made of a function, under its name; ``Activation`` takes relatives and a graph as well.

    Parameters
    ----------
    function : callable
        g of an array, element by element, by operations that JAX can trace.

    Returns
    -------
    Activation
        The activation.

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
    return _checked(Activation("g" if name == "<lambda>" else name, function))


@lru_cache(maxsize=64)
@in_double
def _checked(found: Activation) -> Activation:
    """An activation of a user, or a sentence where it is none."""
    name = found.name
    try:
        values = np.asarray(jax.jit(found.fn)(jnp.asarray(_GRID)), float)
    except Exception as error:
        reason = str(error).splitlines()[0][:120]
        raise ValueError(f"the activation {name} must be written with jax.numpy: {reason}") from None
    if values.shape != _GRID.shape or not np.all(np.isfinite(values)):
        raise ValueError(f"the activation {name} must map an array of any numbers to as many finite ones")
    if found._is_polynomial(1):
        what = "constant" if np.ptp(values) <= 1e-12 * np.max(np.abs(values)) else "linear"
        raise ValueError(f"the activation {name} is {what}: its units cannot be told from a linear function")
    return found


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
        return activation if activation.either_kind else _checked(activation)
    if isinstance(activation, np.ufunc):
        activation = activation.__name__  # one that JAX cannot trace, and that may have a name here
    if callable(activation):
        return of_function(activation)
    if not isinstance(activation, str) or activation not in _BY_NAME:
        logistic = {"logistic": "sigmoid", "expit": "sigmoid", "swish": "silu"}
        raise ValueError(f"unknown activation {activation!r}: {meant(activation, names(), '', logistic)}")
    return _BY_NAME[activation]
