"""Product laws: independent coordinates of one shape; every G_j is diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import ceil, factorial, log, pi
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.run import stream
from onehidden_papers.laws.base import Derivatives, Directions, Law, Points, Values, as_points, power_sum


class ProductLaw(Law):
    """Coordinates x_j = scale · t_j with t_j independent of one standard shape.

    A subclass names the standard shape, a distribution of SciPy, and its parameters, and supplies
    ``_line_derivative``, the derivatives of its log-density.

    Parameters
    ----------
    d : int
        Number of inputs.
    scale : float
        Factor of every coordinate.
    """

    _shape: ClassVar[str]
    _parameters: Mapping[str, float] = MappingProxyType({})

    def __init__(self, d: int, scale: float = 1.0) -> None:
        if int(d) != d or d < 1:
            raise ValueError(f"the number of inputs must be a positive integer, got {d}")
        self.n_inputs = int(d)
        if not (np.isfinite(scale) and scale > 0):
            raise ValueError(f"scale must be a positive number, got {scale}")
        self.scale = float(scale)

    @property
    def mean(self) -> Float[np.ndarray, " d"]:
        return np.zeros(self.n_inputs)

    @property
    def cov(self) -> Float[np.ndarray, "d d"]:
        return self.scale**2 * float(self._line.var()) * np.eye(self.n_inputs)

    def sample(self, n: int, seed: int) -> Points:
        rng = stream(seed, "law", type(self).__name__)
        return self.scale * self._line.rvs(size=(n, self.n_inputs), random_state=rng)

    def log_density(self, X: npt.ArrayLike) -> Values:
        t = as_points(X, self.n_inputs) / self.scale
        return np.sum(self._line.logpdf(t), axis=1) - self.n_inputs * log(self.scale)

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        t, orders = X / self.scale, range(1, order + 1)
        return [power_sum(self._line_derivative(t, j) / self.scale**j, V, j) for j in orders]

    @cached_property
    def _line(self) -> Any:
        from scipy import stats

        return getattr(stats, self._shape)(**self._parameters)

    def _line_derivative(self, t: np.ndarray, j: int) -> np.ndarray:
        """j-th derivative of the log-density of the standard shape."""
        raise NotImplementedError


@lru_cache(maxsize=64)
def _tanh_polynomial(j: int) -> np.polynomial.Polynomial:
    """d^j/ds^j log sech(s) as a polynomial in tanh(s): -T, then P -> P'(T)(1 - T²)."""
    P = np.polynomial.Polynomial([0.0, -1.0])
    for _ in range(j - 1):
        P = P.deriv() * np.polynomial.Polynomial([1.0, 0.0, -1.0])
    return P


class Logistic(ProductLaw):
    """f(t) = ¼ sech²(t/2), variance π²/3.

    Parameters
    ----------
    d : int
        Number of inputs.
    scale : float
        Factor of every coordinate.
    """

    _shape = "logistic"

    def _line_derivative(self, t: np.ndarray, j: int) -> np.ndarray:
        return 2 * 0.5**j * _tanh_polynomial(j)(np.tanh(t / 2))


class Sech(ProductLaw):
    """f(t) = ½ sech(πt/2), variance 1.

    Parameters
    ----------
    d : int
        Number of inputs.
    scale : float
        Factor of every coordinate.
    """

    _shape = "hypsecant"
    _parameters = MappingProxyType({"scale": 2 / pi})

    def _line_derivative(self, t: np.ndarray, j: int) -> np.ndarray:
        return (pi / 2) ** j * _tanh_polynomial(j)(np.tanh(pi / 2 * t))


class StudentT(ProductLaw):
    """Student's t with ``df`` degrees of freedom in every coordinate; variance df/(df-2) where df > 2.

    Parameters
    ----------
    d : int
        Number of inputs.
    df : float
        Degrees of freedom, positive.
    scale : float
        Factor of every coordinate.
    """

    _shape = "t"

    def __init__(self, d: int, df: float, scale: float = 1.0) -> None:
        super().__init__(d, scale)
        if not (np.isfinite(df) and df > 0):
            raise ValueError(f"df must be a positive number, got {df}")
        self.df = float(df)
        self._parameters = {"df": self.df}

    def _line_derivative(self, t: np.ndarray, j: int) -> np.ndarray:
        # log(df + t²) = 2 Re log(t + i√df), so every derivative is a real part of a power.
        root = 1 / (t + 1j * np.sqrt(self.df))
        return -(self.df + 1) * (-1) ** (j - 1) * factorial(j - 1) * (root**j).real


class GeneralizedGaussian(ProductLaw):
    """f(t) ∝ exp(-|t|^power).

    Smooth for even powers. Otherwise f^(m) has a point mass or worse at 0 once m >= power + 1, and the
    formula is no score of that order: ``valid_order`` says how far it holds.

    Parameters
    ----------
    d : int
        Number of inputs.
    power : float
        Exponent, positive.
    scale : float
        Factor of every coordinate.
    """

    _shape = "gennorm"

    def __init__(self, d: int, power: float, scale: float = 1.0) -> None:
        super().__init__(d, scale)
        if not (np.isfinite(power) and power > 0):
            raise ValueError(f"power must be a positive number, got {power}")
        self.power = float(power)
        self._parameters = {"beta": self.power}
        if power % 2:
            self.valid_order = ceil(power)

    def _line_derivative(self, t: np.ndarray, j: int) -> np.ndarray:
        falling = float(np.prod([self.power - i for i in range(j)]))
        with np.errstate(divide="ignore"):
            size = np.abs(t) ** (self.power - j)
        # At t = 0 a negative power has no value; zero is as good as any on a null set.
        return -falling * np.where(np.isfinite(size), size, 0.0) * np.sign(t) ** (j % 2)


class Laplace(GeneralizedGaussian):
    """f(t) = ½ exp(-|t|), variance 2. Not smooth at 0: only S_1 = sgn is a score (``valid_order`` 1).

    S_4 = sgn^{⊗4} as [GMOV] uses it leaves out the point masses of f'''' and fails ``scores.validity``.

    Parameters
    ----------
    d : int
        Number of inputs.
    scale : float
        Factor of every coordinate.
    """

    def __init__(self, d: int, scale: float = 1.0) -> None:
        super().__init__(d, 1.0, scale)


class Uniform(ProductLaw):
    """Uniform on [-scale, scale]^d. No score: f jumps at the edge (``valid_order`` 0); S_m = 0 inside.

    Parameters
    ----------
    d : int
        Number of inputs.
    scale : float
        Half the width of every coordinate.
    """

    _shape = "uniform"
    _parameters = MappingProxyType({"loc": -1.0, "scale": 2.0})

    valid_order = 0.0

    def _line_derivative(self, t: np.ndarray, j: int) -> np.ndarray:
        return np.zeros_like(t)
