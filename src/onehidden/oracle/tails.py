"""What an activation looks like from far away: a polynomial on either side, and a transition between.

From a distance R the transition of a unit, of width about 1/|a|, is a point on a line, and the transitions
of different units lie about R/k apart. There every unit can be looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.activations import Activation

_FAR = np.geomspace(60, 3000, 40)
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Tail:
    """g(z) = P_-(z) for z << 0 and P_+(z) for z >> 0, with P_+ - P_- = jump (z - root)^degree.

    Attributes
    ----------
    degree : 0 for a step (tanh), 1 for a kink (ReLU, softplus), 2, 3 for powers of ReLU.
    jump, root : see above; for a step ``root`` is where g is halfway.
    sharp : whether the polynomials reach up to the root itself.
    left, right : coefficients of P_-, P_+ by rising power.
    """

    activation: Activation = field(repr=False)
    degree: int
    jump: float
    root: float
    sharp: bool
    left: np.ndarray
    right: np.ndarray

    def excess(self, z: np.ndarray) -> np.ndarray:
        """g minus its two asymptotes, which change over at the root."""
        sides = np.where(z > self.root, _polynomial(self.right, z), _polynomial(self.left, z))
        return values(self.activation, z) - sides


def values(activation: Activation, z: np.ndarray) -> np.ndarray:
    """g(z)."""
    return _padded(_compiled, activation, z)


def slopes(activation: Activation, z: np.ndarray) -> np.ndarray:
    """g'(z)."""
    return _padded(_compiled_slope, activation, z)


def _padded(
    compiled: Callable[[Activation, jax.Array], jax.Array], activation: Activation, z: np.ndarray
) -> np.ndarray:
    """Padded to a power of two, so that a few compiled functions serve all shapes."""
    flat = np.ravel(z)
    padded = np.zeros(max(256, 1 << (max(len(flat), 1) - 1).bit_length()))
    padded[: len(flat)] = flat
    return np.asarray(compiled(activation, jnp.asarray(padded)))[: len(flat)].reshape(np.shape(z))


@partial(jax.jit, static_argnums=0)
def _compiled_slope(activation: Activation, z: jax.Array) -> jax.Array:
    return activation.slope(z)


@partial(jax.jit, static_argnums=0)
def _compiled(activation: Activation, z: jax.Array) -> jax.Array:
    return activation.fn(z)


def _polynomial(coefficients: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.polynomial.polynomial.polyval(z, coefficients)


def tail_of(activation: Activation) -> Tail | None:
    """The tail of g by its values far out; None where g is no polynomial there, or one polynomial."""
    for degree in range(4):
        left, right = (_fitted(activation, sign * _FAR, degree) for sign in (-1, 1))
        if left is None or right is None:
            continue
        change = right - left
        jump = float(change[degree])
        if abs(jump) < 1e-6:
            return None
        if degree == 0:
            root = _halfway(activation, 0.5 * float(left[0] + right[0]))
        else:
            root = float(-change[degree - 1] / (degree * jump))
            pure = jump * np.polynomial.polynomial.polypow([-root, 1.0], degree)
            if np.max(np.abs(pure - change)) > 1e-6 * abs(jump):
                return None
        tail = Tail(activation, degree, jump, root, False, left, right)
        near = root + np.concatenate([-np.geomspace(1e-3, 30, 30), np.geomspace(1e-3, 30, 30)])
        sharp = bool(np.max(np.abs(tail.excess(near))) < 1e-12 * 30**degree)
        return Tail(activation, degree, jump, root, sharp, left, right)
    return None


def _fitted(activation: Activation, z: np.ndarray, degree: int) -> np.ndarray | None:
    """Coefficients of the polynomial through g at z, if there is one of this degree."""
    told = values(activation, z)
    powers = np.vander(z / 60, degree + 1, increasing=True)
    weight = 1 / (np.abs(z) / 60) ** degree  # far values are large: fit them relatively
    solved = np.linalg.lstsq(powers * weight[:, None], told * weight, rcond=None)[0]
    size = max(float(np.max(np.abs(told * weight))), 1e-3)
    if np.max(np.abs(powers @ solved - told) * weight) > _ROUNDING * size:
        return None
    coefficients = solved / 60.0 ** np.arange(degree + 1)
    return np.where(np.abs(coefficients) < 1e-9, 0.0, coefficients)


def _halfway(activation: Activation, level: float) -> float:
    """Where a step is halfway, by bisection."""
    low, high = -60.0, 60.0
    rising = float(values(activation, np.array([high]))[0]) > level
    for _ in range(80):
        middle = 0.5 * (low + high)
        above = float(values(activation, np.array([middle]))[0]) > level
        low, high = (low, middle) if above == rising else (middle, high)
    root = 0.5 * (low + high)
    return 0.0 if abs(root) < 1e-12 else root


def inverse(tail: Tail, heights: np.ndarray) -> np.ndarray:
    """z with g(z) = heights for a monotone step, by vectorised bisection; NaN outside the range."""
    low, high = np.full(np.shape(heights), -40.0), np.full(np.shape(heights), 40.0)
    rising = tail.jump > 0
    for _ in range(70):
        middle = 0.5 * (low + high)
        above = (values(tail.activation, middle) > heights) == rising
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    share = (heights - tail.left[0]) / tail.jump
    return np.where((share > 0) & (share < 1), 0.5 * (low + high), np.nan)
