"""Other networks that compute the same function: sets of units that can be turned around together.

With g(-t) = parity g(t) + p(t) a unit turned around, (a, b, w) -> (-a, -b, parity w), leaves behind the
polynomial w p(-<a, x> - b). Turning a set S changes the function by sum_S w_i p(-<a_i, x> - b_i): where that
is zero (up to the intercept, where it is free) a different network computes the same function, whatever the
data, and no Jacobian sees it. The sets are the 0/1 vectors in the null space of a matrix of polynomial
coefficients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import comb, factorial

import numpy as np
from jaxtyping import Float

from onehidden.activations import Activation
from onehidden.certify.zero_sums import zero_sums
from onehidden.network import OneHiddenNet

# Noise-free fits that end exact have coefficients good to 5e-15 of the strongest (eight recoveries: clips, a
# hat, a star, random networks, ReLU and its square, n/p 3 to 70); 1e-8 leaves room for ill-conditioned ones.
# By chance k = 20 columns in 2 dimensions have 2^20 * (1e-8)^2 = 1e-10 sets this close; k = 30 columns in 1
# dimension have several, and they are reported: they fit to that tolerance.
EXACT = 1e-8
_MIRROR = 100.0  # times the tolerance: units this close to each other's mirror image are mirror images


@dataclass(frozen=True)
class Ties:
    """What turning units around leaves unchanged.

    Attributes
    ----------
    complete : every set was searched (or none has to be).
    sets : units that can be turned together, as they stand in the network asked about; none inside another.
    networks : the network with each of these sets turned, in canonical form. With a free linear part they
        lack the change of it, the linear coefficients of ``turned_polynomial``.
    convention : the sides are free altogether (a linear part absorbs every turn): no search can fix them.
    reason : one sentence.
    """

    complete: bool
    sets: tuple[tuple[int, ...], ...]
    networks: tuple[OneHiddenNet, ...]
    convention: bool
    reason: str

    @property
    def proved(self) -> bool:
        """That no other set of sides computes the same function."""
        return self.complete and not self.sets and not self.convention


def ties(
    network: OneHiddenNet,
    *,
    centre: Float[np.ndarray, " d"] | None = None,
    spread: Float[np.ndarray, ...] | None = None,
    intercept: bool = True,
    linear: bool = False,
    tolerance: float = EXACT,
    most: int = 20,
) -> Ties:
    """Sets of units that, turned around together, leave the function as it is.

    Parameters
    ----------
    centre, spread : of the inputs, x = centre + spread z: means and standard deviations (d,), or a factor
        (d, d) of the covariance. Polynomials are compared in z, so the units of measurement do not matter.
    intercept, linear : whether the model has a free intercept and a free linear part, which absorb constants
        and linear functions.
    tolerance : error of a unit's coefficients, as a share of the strongest unit's.
    most : sets reported at most.
    """
    g = network.activation
    if g.reflection is None:
        return Ties(False, (), (), False, f"no law for {g.name} turned around is known")
    if g.sign_free:
        return Ties(True, (), (), False, "turning a unit changes nothing that canonical form does not fix")
    if linear and g.reflection.degree <= 1:
        return Ties(True, (), (), True, "a free linear part absorbs every turn: sides are a convention")
    white = _in_spread(network, centre, spread)
    lowest = 2 if linear else 1 if intercept else 0
    found = zero_sums(_coefficients(white, lowest), tolerance, _mirror_pairs(white, tolerance), most)
    at = None if centre is None else np.asarray(centre, float)
    networks = tuple(turned(network, chosen, at, intercept).canonical() for chosen in found.sets)
    if found.sets:
        reason = "units can be turned around together without changing the function"
    elif found.complete:
        reason = f"no set of units can be turned around: {found.reason}"
    else:
        reason = f"whether units can be turned around was not settled: {found.reason}"
    return Ties(found.complete, found.sets, networks, False, reason)


def turned(
    network: OneHiddenNet,
    units: Sequence[int],
    centre: Float[np.ndarray, " d"] | None = None,
    intercept: bool = True,
) -> OneHiddenNet:
    """The network with these units turned around and the intercept moved by what they leave at ``centre``."""
    g = network.activation
    assert g.reflection is not None
    chosen = list(units)
    sign = np.ones(network.n_hidden)
    sign[chosen] = -1.0
    output = network.output.copy()
    output[chosen] *= g.reflection.parity
    t = network.bias if centre is None else network.bias + network.weights @ centre
    left = _binomial(g, 0, t)[chosen] @ network.output[chosen] if intercept else 0.0
    weights, bias = network.weights * sign[:, None], network.bias * sign
    return OneHiddenNet(weights, output, bias, network.intercept + left, g, network.linear)


def turned_polynomial(
    network: OneHiddenNet, units: Sequence[int], lowest: int = 1
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m p"]]:
    """Coefficients v of sum_S w_i p(-<a_i, x> - b_i) and their Jacobian in the parameters.

    With C the covariance of the parameters and V = J C J', v' V^+ v is chi-square with rank(V) degrees of
    freedom where turning S changes nothing. Monomials come by rising degree from ``lowest`` on, each scaled
    by the root of its multinomial coefficient (a rotation of x then leaves |v| as it is).

    Returns
    -------
    coefficients : (m,), for degree 1 the vector sum_S w_i a_i itself (up to the slope of p); of several
        outputs those of one after another.
    jacobian : (m, p), p = k d + k q + k: weights by rows, output, bias (columns of zeros for units outside
        S).
    """
    g = network.activation
    if g.reflection is None:
        raise ValueError(f"no law for {g.name} turned around is known")
    (k, d), q = network.weights.shape, network.n_outputs
    output, size = network.output.reshape(k, q), k * d + k * q + k
    values, slopes = [np.zeros(0)], [np.zeros((0, size))]
    for degree, o in product(range(lowest, g.reflection.degree + 1), range(q)):
        index, root = _monomials(d, degree)
        factor, change = (
            _binomial(g, degree, network.bias),
            _binomial(g, degree, network.bias, derivative=True),
        )
        value, slope = np.zeros(len(index)), np.zeros((len(index), size))
        rows = np.arange(len(index))
        for i in units:
            parts = network.weights[i][index]  # (m, degree)
            power, w = root * parts.prod(axis=1), output[i, o]
            value += w * factor[i] * power
            for slot in range(degree):
                others = root * np.delete(parts, slot, axis=1).prod(axis=1)
                np.add.at(slope, (rows, i * d + index[:, slot]), w * factor[i] * others)
            slope[:, k * d + i * q + o] = factor[i] * power
            slope[:, k * d + k * q + i] = w * change[i] * power
        values.append(value)
        slopes.append(slope)
    return np.concatenate(values), np.concatenate(slopes)


def _coefficients(network: OneHiddenNet, lowest: int) -> np.ndarray:
    """(m, k) column i: the coefficients of w_i p(-<a_i, x> - b_i), within the span of the rows a_i."""
    g = network.activation
    assert g.reflection is not None
    A = np.linalg.qr(network.weights.T)[1].T  # at most k coordinates; lengths and angles stay
    blocks = []
    for degree in range(lowest, g.reflection.degree + 1):
        index, root = _monomials(A.shape[1], degree)
        for output in network.output.reshape(len(A), -1).T:
            strength = output * _binomial(g, degree, network.bias)
            blocks.append(root[:, None] * A[:, index].prod(axis=2).T * strength)
    return np.concatenate(blocks)


def _monomials(d: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """(m, degree) which inputs each monomial multiplies, and the root of its multinomial coefficient."""
    every = list(combinations_with_replacement(range(d), degree))
    index = np.array(every, int).reshape(len(every), degree)
    repeats = [np.prod([factorial(c) for c in np.bincount(row)], initial=1.0) for row in index]
    return index, np.sqrt(factorial(degree) / np.array(repeats))


def _binomial(g: Activation, degree: int, b: np.ndarray, derivative: bool = False) -> np.ndarray:
    """The coefficient of s^degree in p(-s - b), or its derivative in b."""
    assert g.reflection is not None
    total = np.zeros_like(b)
    for q, c in enumerate(g.reflection.polynomial):
        power = q - degree
        if power >= derivative:
            term = power * b ** (power - 1) if derivative else b**power
            total = total + (-1) ** q * c * comb(q, degree) * term
    return total


def _in_spread(network: OneHiddenNet, centre: np.ndarray | None, spread: np.ndarray | None) -> OneHiddenNet:
    """The same network as a function of z, x = centre + spread z."""
    bias = network.bias if centre is None else network.bias + network.weights @ np.asarray(centre, float)
    spread = np.ones(network.n_inputs) if spread is None else np.asarray(spread, float)
    weights = network.weights * spread if spread.ndim == 1 else network.weights @ spread
    return OneHiddenNet(weights, network.output, bias, network.intercept, network.activation)


def _mirror_pairs(network: OneHiddenNet, tolerance: float) -> list[tuple[int, int]]:
    """Pairs of units that turn into each other (|x| of two ReLU units): turning both gives the same network.

    Without such a pair inside, no turned unit of a set is again in the set: the network turned is another.
    """
    g = network.activation
    assert g.reflection is not None
    A, b, w = network.weights, network.bias, network.output.reshape(network.n_hidden, -1)
    size = np.linalg.norm(np.column_stack([A, b]), axis=1)
    size = np.where(size > 0, size, 1.0)
    if g.homogeneity is not None:
        A, b, w = A / size[:, None], b / size, w * size[:, None] ** g.homogeneity
        size = np.ones(len(w))
    units = np.column_stack([A, b])
    error = _MIRROR * tolerance
    pairs = []
    for i in range(len(w)):
        opposite = np.linalg.norm(units + units[i], axis=1) <= error * np.maximum(size, size[i])
        gap = np.max(np.abs(w - g.reflection.parity * w[i]), axis=1)
        alike = gap <= error * np.max(np.abs(w), initial=0.0)
        pairs += [(i, int(j)) for j in np.flatnonzero(opposite & alike) if j >= i]
    return pairs
