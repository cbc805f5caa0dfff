"""Equivalent parametrisations: sets of units whose reversal together leaves the function as it is.

With g(-t) = parity g(t) + p(t) a reversed unit, (a, b, w) -> (-a, -b, parity w), leaves the polynomial
w p(-<a, x> - b). Reversing a set S changes the function by sum_S w_i p(-<a_i, x> - b_i): where that is zero
(up to the intercept, where it is free) a different network computes the same function, whatever the data, and
no Jacobian shows it. The sets are the 0/1 vectors in the null space of a matrix of values of polynomials.
With noise, and more units than inputs, many other orientations are not excluded: ``other_orientations``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

from onehidden.activations import Activation, ReversalIdentity
from onehidden.certify import levels
from onehidden.certify.local_fit import root_of_inverse
from onehidden.certify.subset_sums import zero_subset_sums
from onehidden.checks import About, Check, at_most, not_evaluated
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem, descend
from onehidden.network import OneHiddenNet
from onehidden.run import Run, stream
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


class EquivalentSets(NamedTuple):
    """The reversals that leave a function unchanged."""

    complete: bool  # every set was searched, or none has to be
    reason: str
    sets: tuple[tuple[int, ...], ...] = ()  # units that can be reversed together; none inside another
    networks: tuple[OneHiddenNet, ...] = ()  # with each reversed, canonical, a linear part left as it is


def equivalent_sets(
    network: OneHiddenNet,
    *,
    centre: Any = 0.0,
    spread: Any = 1.0,
    intercept: bool = True,
    linear: bool = False,
    tolerance: float = EXACT,
    most: int = 20,
) -> EquivalentSets:
    """Find the sets of units that, reversed together, leave the function as it is.

    ``centre``, a number or (d,), and ``spread``, that or a factor (d, d) of the covariance, are those of the
    inputs, x = centre + spread z: polynomials are compared in z, so the units of measurement do not matter.
    A free intercept or linear part absorbs constants or linear functions. ``tolerance`` is the error of a
    unit's coefficients as a share of the strongest unit's; at most ``most`` sets are reported.
    """
    g = network.activation
    if g.reversal is None and _may_reverse(g):
        return EquivalentSets(False, f"no law for the reversal of {g.name} is known")
    if g.reversal is None or g.sign_free:
        return EquivalentSets(True, "a reversal changes nothing that canonical form does not fix")
    if linear and g.reversal.degree <= 1:
        reason = "a free linear part absorbs every reversal: orientations are a convention"
        return EquivalentSets(True, reason)
    # The same network as a function of z, in the span of its rows: at most k coordinates.
    weights = network.weights @ spread if np.ndim(spread) == 2 else network.weights * spread
    weights = np.linalg.qr(weights.T)[1].T
    bias = network.bias + network.weights @ np.broadcast_to(centre, network.n_inputs)
    white = OneHiddenNet(weights, network.output, bias, network.intercept, g)
    columns = reversal_columns(white, 1 if linear else 0 if intercept else -1)
    found = zero_subset_sums(columns, tolerance, _opposite_pairs(white, tolerance), most)
    networks = tuple(reversed_units(network, chosen, centre, intercept).canonical() for chosen in found.sets)
    if found.sets:
        reason = "units can be reversed together without changing the function"
    elif found.complete:
        reason = f"no set of units can be reversed: {found.reason}"
    else:
        reason = f"whether units can be reversed was not settled: {found.reason}"
    return EquivalentSets(found.complete, reason, found.sets, networks)


def orientation_check(found: EquivalentSets, name: str) -> Check:
    """The check that no units can be reversed together."""
    if not found.complete and not found.sets:
        return not_evaluated(name, 0.0, found.reason, About.UNITS)
    advice = "sets of units that can be reversed together without changing the function"
    return at_most(name, float(len(found.sets)), 0.0, f"{advice}: {found.reason}", About.UNITS)


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
    network: OneHiddenNet, units: Sequence[int], centre: Any = 0.0, intercept: bool = True
) -> OneHiddenNet:
    """The network with these units reversed and the intercept moved by what they leave at ``centre``."""
    chosen = list(units)
    sign = np.ones(network.n_hidden)
    sign[chosen] = -1.0
    output = network.output.copy()
    output[chosen] *= _reversal(network).parity
    t = network.bias + network.weights @ np.broadcast_to(centre, network.n_inputs)
    left = _left(network, t)[chosen] @ network.output[chosen] if intercept else 0.0
    weights, bias = network.weights * sign[:, None], network.bias * sign
    return OneHiddenNet(weights, output, bias, network.intercept + left, network.activation, network.linear)


def reversal_columns(network: OneHiddenNet, absorbed: int = 0) -> Float[np.ndarray, "m k"]:
    """w_i p(-<a_i, x> - b_i), one column for each unit: what its reversal leaves, at normal points.

    They are twice as many as such a polynomial has coefficients. Polynomials of degree ``absorbed`` are taken
    out, none for -1. Of several outputs those of one come after another.
    """
    degree, d = _reversal(network).degree, network.n_inputs
    m = 2 * comb(d + degree, degree) + 10
    Z = stream(0, "points of reversals").standard_normal((m, d))
    left = _left(network, Z @ network.weights.T + network.bias)
    if absorbed >= 0:
        design = np.column_stack([np.ones(m), Z])[:, : 1 + d * absorbed]
        left = left - design @ np.linalg.lstsq(design, left, rcond=None)[0]
    output = network.output.reshape(network.n_hidden, -1)
    return np.concatenate([left * w for w in output.T]) / np.sqrt(m)


def _left(network: OneHiddenNet, t: Float[np.ndarray, "... k"]) -> Float[np.ndarray, "... k"]:
    """p(-t), what reversed units leave at these arguments for an output of one."""
    return np.polynomial.polynomial.polyval(-t, _reversal(network).polynomial)


def _reversal(network: OneHiddenNet) -> ReversalIdentity:
    assert network.activation.reversal is not None
    return network.activation.reversal


def _opposite_pairs(network: OneHiddenNet, tolerance: float) -> list[tuple[int, int]]:
    """Pairs of units that are each other's reversal to a hundred tolerances, such as |x| of two ReLU units.

    Reversing both gives the same network. Without such a pair inside, no reversed unit of a set is again in
    the set: the network is another.
    """
    network = network.canonical(ordered=False, turned=False)
    units, w = np.column_stack([network.weights, network.bias]), network.output.reshape(network.n_hidden, -1)
    size, error = np.linalg.norm(units, axis=1), 100 * tolerance
    opposite = cdist(units, -units) <= error * np.maximum.outer(size, size)
    alike = cdist(w, _reversal(network).parity * w, "chebyshev") <= error * np.max(np.abs(w), initial=0.0)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(opposite & alike))]


def other_orientations(problem: Problem, network: OneHiddenNet, most: int, run: Run) -> list[OneHiddenNet]:
    """Networks in x with some units of ``network`` reversed that may explain the rows almost as well.

    Beside a linear part orientations are a convention where reversals leave linear functions. In the
    orientation-free form the skip beta is free and the orientations s must reproduce it: beta = B s, B = h_1
    (w_1 a_1, …, w_k a_k). Each pattern is judged by (beta - B s)' V^-1 (beta - B s), V the covariance of that
    difference.
    """
    reversal = problem.activation.reversal
    if reversal is None or reversal.degree < 1 or problem.form.structure is not None:
        return []
    if reversal.degree > 1:
        return _with_least_left(problem, network, most)
    if problem.form.skip:
        return []
    form = search_form(problem)
    fit, net = search_fit(problem, form), problem.search_coordinates.inward(network)
    start = complete(problem, net.weights, net.bias)
    solver = LevenbergMarquardt(10, damping=1e-6, patience=3)
    theta, _ = descend(solver, fit, start, run.at("free form"), "orientations", problem.n_values)
    hessian, _, loss = fit.normal_equations(theta)
    root = root_of_inverse(hessian) * np.sqrt(loss / max(problem.n_values - form.freedom, 1))
    B, beta = skip_columns(form, theta)

    def misfit(signs: Float[np.ndarray, " k"]) -> float:
        gap = beta - B @ signs
        return float(gap @ np.linalg.solve(_spread(form, theta, root, signs), gap))

    here = np.ones(problem.k)  # rows kept the orientation of the network found
    patterns = _patterns(problem.k)
    rough, gaps = np.linalg.inv(_spread(form, theta, root, here)), beta - patterns @ B.T
    order = np.argsort(np.einsum("pi,ij,pj->p", gaps, rough, gaps))[: 20 * most]
    misfits = np.array([misfit(patterns[i]) for i in order])
    bound = min(misfit(here), misfits.min()) + levels.ORIENTATION_SEARCH.value
    likely = [i for i in np.argsort(misfits) if misfits[i] <= bound]
    outward = problem.search_coordinates.outward
    return [outward(oriented(form, theta, patterns[order[i]])) for i in likely[:most]]


def _with_least_left(problem: Problem, network: OneHiddenNet, most: int) -> list[OneHiddenNet]:
    """Those whose reversals leave the smallest polynomials over whitened inputs."""
    around = problem.search_coordinates
    columns = reversal_columns(around.inward(network), 1 if problem.form.skip else 0)
    reverses = _patterns(problem.k) < 0
    left = np.linalg.norm(columns @ reverses.T, axis=0)
    chosen = [reverses[i] for i in np.argsort(left)[:most]]
    return [reversed_units(network, np.flatnonzero(units).tolist(), around.shift) for units in chosen]


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
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    root: Float[np.ndarray, "p p"],
    signs: Float[np.ndarray, " k"],
) -> Float[np.ndarray, "m m"]:
    """V: covariance of beta - B s, from a root of that of the parameters."""
    weights, output, _, _, _ = form.unpack(theta)
    moved_weights, moved_output, _, place, _ = form.places()
    slope, rows = -form.activation.orientation_part[1] * signs, form.d * form.q
    by_weights = np.einsum("i,ax,ib->abix", slope, np.eye(form.d), output.reshape(form.k, form.q))
    by_output = np.einsum("i,ia,by->abiy", slope, weights, np.eye(form.q))
    gradient = np.zeros((rows, len(theta)))
    gradient[:, moved_weights], gradient[:, moved_output] = (
        one.reshape(rows, -1) for one in (by_weights, by_output)
    )
    gradient[:, place] = np.eye(rows)
    half = gradient @ root
    spread = half @ half.T
    return spread + 1e-12 * np.trace(spread) / len(spread) * np.eye(len(spread))
