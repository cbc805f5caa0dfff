"""Equivalent parametrisations: sets of units whose reversal together leaves the function as it is.

With g(-t) = parity g(t) + p(t) a reversed unit, (a, b, w) -> (-a, -b, parity w), leaves the polynomial
w p(-<a, x> - b). Reversing a set S changes the function by sum_S w_i p(-<a_i, x> - b_i): where that is zero
(up to the intercept, where it is free) a different network computes the same function, whatever the data, and
no Jacobian shows it. The sets are the 0/1 vectors in the null space of a matrix of polynomial coefficients.
With noise, and more units than inputs, many other orientations are not excluded: ``other_orientations``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from math import comb, factorial

import numpy as np
from jaxtyping import Float
from scipy.special import chdtrc

from onehidden.activations import Activation
from onehidden.certify import levels
from onehidden.certify.local_fit import LocalFit
from onehidden.certify.subset_sums import zero_subset_sums
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem, descend
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt
from onehidden.starts.candidate import (
    all_orientations,
    complete,
    oriented,
    search_fit,
    search_form,
    skip_columns,
)

# Noise-free fits that end exact have coefficients good to 5e-15 of the strongest (eight recoveries, n/p 3 to
# 70); 1e-8 leaves room for ill-conditioned ones. By chance k = 20 columns in 2 dimensions have
# 2^20 * (1e-8)^2 = 1e-10 sets this close; k = 30 columns in 1 dimension have several, which are reported.
EXACT = 1e-8


@dataclass(frozen=True)
class EquivalentSets:
    """The reversals that leave a function unchanged."""

    complete: bool  # every set was searched, or none has to be
    sets: tuple[tuple[int, ...], ...]  # units that can be reversed together; none inside another
    networks: tuple[
        OneHiddenNet, ...
    ]  # with each set reversed, canonical, without the change of a linear part
    convention: bool  # orientations are free altogether: a linear part absorbs every reversal
    reason: str

    @property
    def proved(self) -> bool:
        """Whether no other choice of orientations computes the same function."""
        return self.complete and not self.sets and not self.convention


def equivalent_sets(
    network: OneHiddenNet,
    *,
    centre: Float[np.ndarray, " d"] | None = None,
    spread: Float[np.ndarray, ...] | None = None,
    intercept: bool = True,
    linear: bool = False,
    tolerance: float = EXACT,
    most: int = 20,
) -> EquivalentSets:
    """Find the sets of units that, reversed together, leave the function as it is.

    ``centre`` (d,) and ``spread``, (d,) or a factor (d, d) of the covariance, are those of the inputs, x =
    centre + spread z: polynomials are compared in z, so the units of measurement do not matter. A free
    intercept or linear part absorbs constants or linear functions. ``tolerance`` is the error of a unit's
    coefficients as a share of the strongest unit's; at most ``most`` sets are reported.
    """
    g = network.activation
    if g.reversal is None:
        if _may_reverse(g):
            return EquivalentSets(False, (), (), False, f"no law for the reversal of {g.name} is known")
        return EquivalentSets(True, (), (), False, "a reversed unit is no unit of the same activation")
    if g.sign_free:
        reason = "a reversal changes nothing that canonical form does not fix"
        return EquivalentSets(True, (), (), False, reason)
    if linear and g.reversal.degree <= 1:
        reason = "a free linear part absorbs every reversal: orientations are a convention"
        return EquivalentSets(True, (), (), True, reason)
    white = _whitened(network, centre, spread)
    lowest = 2 if linear else 1 if intercept else 0
    columns = reversal_polynomials(white, lowest)
    found = zero_subset_sums(columns, tolerance, _opposite_pairs(white, tolerance), most)
    at = None if centre is None else np.asarray(centre, float)
    networks = tuple(reversed_units(network, chosen, at, intercept).canonical() for chosen in found.sets)
    if found.sets:
        reason = "units can be reversed together without changing the function"
    elif found.complete:
        reason = f"no set of units can be reversed: {found.reason}"
    else:
        reason = f"whether units can be reversed was not settled: {found.reason}"
    return EquivalentSets(found.complete, found.sets, networks, False, reason)


def _may_reverse(g: Activation, degree: int = 3, reach: float = 3.0) -> bool:
    """Whether g(-t) - g(t) or g(-t) + g(t) is a polynomial of so low a degree, for |t| up to ``reach``."""
    t = np.linspace(-reach, reach, 61)
    powers = np.vander(t / reach, degree + 1)
    for change in (g(-t) - g(t), g(-t) + g(t)):
        left = change - powers @ np.linalg.lstsq(powers, change, rcond=None)[0]
        if np.max(np.abs(left)) <= 1e-8 * np.max(np.abs(g(t))):
            return True
    return False


def reversed_units(
    network: OneHiddenNet,
    units: Sequence[int],
    centre: Float[np.ndarray, " d"] | None = None,
    intercept: bool = True,
) -> OneHiddenNet:
    """The network with these units reversed and the intercept moved by what they leave at ``centre``."""
    g = network.activation
    assert g.reversal is not None
    chosen = list(units)
    sign = np.ones(network.n_hidden)
    sign[chosen] = -1.0
    output = network.output.copy()
    output[chosen] *= g.reversal.parity
    t = network.bias if centre is None else network.bias + network.weights @ centre
    left = _binomial(g, 0, t)[chosen] @ network.output[chosen] if intercept else 0.0
    weights, bias = network.weights * sign[:, None], network.bias * sign
    return OneHiddenNet(weights, output, bias, network.intercept + left, g, network.linear)


def reversal_polynomials(network: OneHiddenNet, lowest: int = 1) -> Float[np.ndarray, "m k"]:
    """Coefficients of w_i p(-<a_i, x> - b_i), one column for each unit: what its reversal leaves behind.

    Monomials come by rising degree from ``lowest`` on, each scaled by the root of its multinomial coefficient
    (a rotation of x then leaves lengths as they are); for degree 1 a column is w_i a_i, up to the slope of p.
    Of several outputs those of one come after another.
    """
    g, output = network.activation, network.output.reshape(network.n_hidden, -1)
    assert g.reversal is not None
    blocks = [np.zeros((0, network.n_hidden))]
    for degree in range(lowest, g.reversal.degree + 1):
        index, root = _monomials(network.n_inputs, degree)
        power = root[:, None] * network.weights[:, index].prod(axis=2).T
        blocks += [power * w * _binomial(g, degree, network.bias) for w in output.T]
    return np.concatenate(blocks)


def reversal_jacobian(network: OneHiddenNet, lowest: int = 1) -> Float[np.ndarray, "m p"]:
    """Derivatives of ``reversal_polynomials``, each of its own unit: weights by rows, output, bias."""
    g, (k, d), q = network.activation, network.weights.shape, network.n_outputs
    assert g.reversal is not None
    output, units = network.output.reshape(k, q), np.arange(k)
    blocks = [np.zeros((0, k * (d + q + 1)))]
    for degree, o in product(range(lowest, g.reversal.degree + 1), range(q)):
        index, root = _monomials(d, degree)
        slope, rows = np.zeros((len(index), k * (d + q + 1))), np.arange(len(index))
        parts, factor = network.weights[:, index], _binomial(g, degree, network.bias)  # parts: (k, m, degree)
        for i, slot in product(range(k), range(degree)):
            others = root * np.delete(parts[i], slot, axis=1).prod(axis=1)
            np.add.at(slope, (rows, i * d + index[:, slot]), output[i, o] * factor[i] * others)
        power = root[:, None] * parts.prod(axis=2).T
        slope[:, k * d + units * q + o] = power * factor
        change = _binomial(g, degree, network.bias, derivative=True)
        slope[:, k * (d + q) + units] = power * output[:, o] * change
        blocks.append(slope)
    return np.concatenate(blocks)


def _monomials(d: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """(m, degree) which inputs each monomial multiplies, and the root of its multinomial coefficient."""
    every = list(combinations_with_replacement(range(d), degree))
    index = np.array(every, int).reshape(len(every), degree)
    repeats = [np.prod([factorial(c) for c in np.bincount(row)], initial=1.0) for row in index]
    return index, np.sqrt(factorial(degree) / np.array(repeats))


def _binomial(g: Activation, degree: int, b: np.ndarray, derivative: bool = False) -> np.ndarray:
    """The coefficient of s^degree in p(-s - b), or its derivative in b."""
    assert g.reversal is not None
    total = np.zeros_like(b)
    for q, c in enumerate(g.reversal.polynomial):
        power = q - degree
        if power >= derivative:
            term = power * b ** (power - 1) if derivative else b**power
            total = total + (-1) ** q * c * comb(q, degree) * term
    return total


def _whitened(network: OneHiddenNet, centre: np.ndarray | None, spread: np.ndarray | None) -> OneHiddenNet:
    """The same network as a function of z, x = centre + spread z, in the span of its rows."""
    bias = network.bias if centre is None else network.bias + network.weights @ np.asarray(centre, float)
    spread = np.ones(network.n_inputs) if spread is None else np.asarray(spread, float)
    weights = network.weights * spread if spread.ndim == 1 else network.weights @ spread
    weights = np.linalg.qr(weights.T)[1].T  # at most k coordinates; lengths and angles stay
    return OneHiddenNet(weights, network.output, bias, network.intercept, network.activation)


def _opposite_pairs(network: OneHiddenNet, tolerance: float) -> list[tuple[int, int]]:
    """Pairs of units that are each other's reversal to a hundred tolerances, such as |x| of two ReLU units.

    Reversing both gives the same network. Without such a pair inside, no reversed unit of a set is again in
    the set: the network is another.
    """
    g = network.activation
    assert g.reversal is not None
    A, b, w = network.weights, network.bias, network.output.reshape(network.n_hidden, -1)
    size = np.linalg.norm(np.column_stack([A, b]), axis=1)
    size = np.where(size > 0, size, 1.0)
    if g.homogeneity is not None:
        A, b, w = A / size[:, None], b / size, w * size[:, None] ** g.homogeneity
        size = np.ones(len(w))
    units, error, pairs = np.column_stack([A, b]), 100 * tolerance, []
    for i in range(len(w)):
        opposite = np.linalg.norm(units + units[i], axis=1) <= error * np.maximum(size, size[i])
        gap = np.max(np.abs(w - g.reversal.parity * w[i]), axis=1)
        alike = gap <= error * np.max(np.abs(w), initial=0.0)
        pairs += [(i, int(j)) for j in np.flatnonzero(opposite & alike) if j >= i]
    return pairs


def other_orientations(problem: Problem, network: OneHiddenNet, most: int, run: Run) -> list[OneHiddenNet]:
    """Networks in x with some units of ``network`` reversed that explain the linear part almost as well.

    In the orientation-free form the skip beta is free and the orientations s must reproduce it: beta = B s,
    B = h_1 (w_1 a_1, …, w_k a_k). Each pattern is judged by (beta - B s)' V^-1 (beta - B s), V the covariance
    of that difference at the fit. Reversals that leave a polynomial of higher degree are those of
    ``undetected_reversals``; beside a linear part orientations are a convention.
    """
    reversal, form = problem.activation.reversal, search_form(problem)
    if reversal is None or reversal.degree != 1 or problem.form.skip or not form.symmetrised:
        return []
    fit, net = search_fit(problem, form), problem.search_coordinates.inward(network)
    start = complete(problem, net.weights, net.bias)
    solver = LevenbergMarquardt(max_steps=60, patience=6)
    theta = descend(solver, fit, start, run.at("free form"), "orientations", problem.n_values).theta
    hessian, _, loss = fit.normal_equations(theta)
    scale = 1 / np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    covariance = np.linalg.pinv(hessian * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    covariance = covariance * np.outer(scale, scale) * loss / max(problem.n_values - form.freedom, 1)
    B, beta = skip_columns(form, theta)
    here = np.ones(problem.k)  # rows kept the orientation of the network found

    def misfit(signs: Float[np.ndarray, " k"]) -> float:
        gap = beta - B @ signs
        return float(gap @ np.linalg.solve(_spread(form, theta, covariance, signs), gap))

    patterns = _patterns(problem.k)
    rough = np.linalg.inv(_spread(form, theta, covariance, here))
    gaps = beta - patterns @ B.T
    order = np.argsort(np.einsum("pi,ij,pj->p", gaps, rough, gaps))[: 20 * most]
    misfits = np.array([misfit(patterns[i]) for i in order])
    bound = min(misfit(here), misfits.min()) + levels.ORIENTATION_SEARCH.value
    likely = [i for i in np.argsort(misfits) if misfits[i] <= bound]
    return [
        problem.search_coordinates.outward(oriented(form, theta, patterns[order[i]])) for i in likely[:most]
    ]


def undetected_reversals(
    local: LocalFit, covariance: Float[np.ndarray, "p p"], most_parameters: int = 300
) -> list[tuple[tuple[int, ...], OneHiddenNet]] | None:
    """Sets of units whose reversal leaves a polynomial that the data do not tell from zero; powers of ReLU.

    Reversing a set S changes the function by a polynomial of the degree of g. Its coefficients v(theta) have
    the covariance V = J C J', C that of the parameters, and v' V^-1 v is at most chi-square with len(v)
    degrees of freedom where the reversal changes nothing. Returns the sets that are not excluded and the
    networks with them reversed; None for too many parameters.
    """
    form, inner = local.problem.form, local.inner
    if form.size > most_parameters:
        return None
    k, d, q = form.k, form.d, form.q
    lowest = 2 if form.skip else 1 if form.intercept else 0
    # In the order of ``form.pack``; a reversal moves no other parameters.
    unit = np.concatenate([np.repeat(np.arange(k), d), np.repeat(np.arange(k), q), np.arange(k)])
    unit = unit[: k * (d + q + form.bias)]
    shown = slice(0, len(unit))
    covariance, each = covariance[shown, shown], reversal_polynomials(inner, lowest)
    jacobian = reversal_jacobian(inner, lowest)[:, shown]
    # V lacks the squares of the errors of rows: parallel units have little else.
    traces = np.diag(covariance)[: k * d].reshape(k, d).sum(axis=1)
    lacking = np.linalg.norm(inner.output.reshape(k, q), axis=1) * traces
    found = []
    for signs in _patterns(k):
        chosen = signs < 0
        v, J = each[:, chosen].sum(axis=1), jacobian * chosen[unit]
        V = J @ covariance @ J.T + np.sum(lacking[chosen]) ** 2 * np.eye(len(v))
        if chdtrc(len(v), float(v @ np.linalg.solve(V, v))) > levels.ORIENTATION.value:
            units = tuple(int(i) for i in np.flatnonzero(chosen))
            net = local.problem.fit_coordinates.outward(
                reversed_units(inner, units, np.zeros(d), form.intercept)
            )
            found.append((units, net.canonical()))
    return found


def _patterns(k: int, all_up_to: int = 10, triples_up_to: int = 24) -> Float[np.ndarray, "m k"]:
    """(P, k) orientations other than the present one; of many units those at most three, or two, away."""
    if k <= all_up_to:
        return all_orientations(k)[1:]
    flips = [c for size in range(1, 4 if k <= triples_up_to else 3) for c in combinations(range(k), size)]
    patterns = np.ones((len(flips), k))
    for row, flip in zip(patterns, flips, strict=True):
        row[list(flip)] = -1.0
    return patterns


def _spread(
    form: Parametrisation, theta: np.ndarray, covariance: np.ndarray, signs: np.ndarray
) -> np.ndarray:
    """V: covariance of beta - B s."""
    weights, output, _, _, _ = form.unpack(theta)
    d, k, q = form.d, form.k, form.q
    output, slope, each = output.reshape(k, q), form.activation.orientation_part[1], np.eye(q)
    gradient = np.zeros((d * q, len(theta)))
    for i in range(k):
        gradient[:, i * d : (i + 1) * d] = -slope * signs[i] * np.kron(np.eye(d), output[i][:, None])
        own = slice(k * d + i * q, k * d + (i + 1) * q)
        gradient[:, own] = -slope * signs[i] * np.kron(weights[i][:, None], each)
    place = form.places()[3]
    assert place is not None
    gradient[:, place] = np.eye(d * q)
    spread = gradient @ covariance @ gradient.T
    return spread + 1e-12 * np.trace(spread) / (d * q) * np.eye(d * q)
