"""Which other orientations of the units would the data bear? With noise, and more units than inputs, many."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from jaxtyping import Float

from onehidden.certify.local_fit import LocalFit
from onehidden.certify.ties import turned as turn
from onehidden.certify.ties import turned_polynomial
from onehidden.fit.form import Form
from onehidden.fit.polish import descend
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt
from onehidden.starts.candidate import complete, search_fit, search_form
from onehidden.starts.orientation import all_turns, skip_columns, turned

_UNTOLD = 1e-3  # p-value of a turn that changes nothing above which it is not excluded
_MOST_PARAMETERS = 300  # of a network whose turns are all looked at
_ALL = 10  # units up to which every pattern of turns is looked at
_TRIPLES = 24  # beyond, patterns that differ from the best in at most three, or two
_BEARABLE = 30.0  # chi-square above the best pattern's beyond which one is out of the question


def other_sides(problem: Problem, network: OneHiddenNet, most: int, run: Run) -> list[OneHiddenNet]:
    """Networks in x with some units of ``network`` turned around that the data might bear."""
    reflection = problem.activation.reflection
    if reflection is None or reflection.degree != 1 or problem.form.skip:
        return []  # nothing to tell, told by ``unseen_turns``, or beside a linear part a convention
    found = other_orientations(problem, problem.begin.inward(network), most, run)
    return [problem.begin.outward(net) for net in found]


def unseen_turns(
    local: LocalFit, covariance: Float[np.ndarray, "p p"]
) -> list[tuple[tuple[int, ...], OneHiddenNet]] | None:
    """Sets of units whose turning leaves a polynomial that the data cannot tell from zero; powers of ReLU.

    Turning a set S changes the function by a polynomial of the degree of g, with coefficients v(theta) of
    covariance V; v' V^-1 v is at most chi-square with len(v) degrees of freedom where that is nothing. Sets
    of a p-value above ``_UNTOLD`` are told, with the network turned; None where there are too many to ask.
    """
    from scipy.special import chdtrc

    form, inner = local.problem.form, local.inner
    reflection = form.activation.reflection
    if reflection is None or reflection.degree < 2:
        return []
    if form.size > _MOST_PARAMETERS:
        return None
    k, d = form.k, form.d
    if not form.bias:  # as ``Form.pack`` orders them, but for what no turn moves
        shown = slice(0, k * (d + form.q))
    else:
        shown = slice(0, k * (d + form.q + 1))
    covariance, lowest = covariance[shown, shown], 2 if form.skip else 1 if form.intercept else 0
    found = []
    for signs in _patterns(k):
        units = tuple(int(i) for i in np.flatnonzero(signs < 0))
        v, J = turned_polynomial(inner, units, lowest)
        J = J[:, shown]
        # What V does not know are squares of the errors of rows: parallel units have little else.
        rows = [np.trace(covariance[i * d : i * d + d, i * d : i * d + d]) for i in units]
        size = np.linalg.norm(inner.output[list(units)].reshape(len(units), -1), axis=1)
        squares = float(np.sum(size * rows)) ** 2
        spread = J @ covariance @ J.T
        statistic = float(v @ np.linalg.solve(spread + squares * np.eye(len(v)), v))
        rank = len(v)
        if chdtrc(rank, statistic) > _UNTOLD:
            centre = np.zeros(d)
            net = local.problem.end.outward(turn(inner, units, centre, form.intercept))
            found.append((units, net.canonical()))
    return found


def other_orientations(problem: Problem, net: OneHiddenNet, most: int, run: Run) -> list[OneHiddenNet]:
    """Networks with some units of ``net`` turned around that explain the linear part almost as well.

    Both are in the search coordinates. In the orientation-free form the skip beta is free and the turns s
    must reproduce it: beta = B s, B = h_1 (w_1 a_1, …, w_k a_k). Each pattern is judged by
    (beta - B s)' V^-1 (beta - B s), V the covariance of that difference at the fit.
    """
    form = search_form(problem)
    if not form.symmetrised:
        return []
    fit = search_fit(problem, form)
    start = complete(problem, form, net.weights, net.bias)
    solver = LevenbergMarquardt(max_steps=60, patience=6)
    theta = descend(solver, fit, start, run.at("free form"), "orientations", problem.numbers).theta
    hessian, _, loss = fit.normal_equations(theta)
    scale = 1 / np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    covariance = np.linalg.pinv(hessian * np.outer(scale, scale), rcond=1e-12, hermitian=True)
    covariance = covariance * np.outer(scale, scale) * loss / max(problem.numbers - form.freedom, 1)
    B, beta = skip_columns(form, theta)
    here = np.ones(problem.k)  # rows kept the orientation of the network found
    patterns = _patterns(problem.k)
    rough = np.linalg.inv(_spread(form, theta, covariance, here))
    gaps = beta - patterns @ B.T
    order = np.argsort(np.einsum("pi,ij,pj->p", gaps, rough, gaps))[: 20 * most]
    misfits = np.array([_misfit(form, theta, covariance, gaps[i], patterns[i]) for i in order])
    own = _misfit(form, theta, covariance, beta - B @ here, here)
    bearable = [i for i in np.argsort(misfits) if misfits[i] <= min(own, misfits.min()) + _BEARABLE]
    return [turned(form, theta, patterns[order[i]]) for i in bearable[:most]]


def _patterns(k: int) -> Float[np.ndarray, "m k"]:
    """(P, k) turns, the pattern of no turn left out."""
    if k <= _ALL:
        return all_turns(k)[1:]
    flips = [c for size in range(1, 4 if k <= _TRIPLES else 3) for c in combinations(range(k), size)]
    patterns = np.ones((len(flips), k))
    for row, flip in zip(patterns, flips, strict=True):
        row[list(flip)] = -1.0
    return patterns


def _spread(form: Form, theta: np.ndarray, covariance: np.ndarray, signs: np.ndarray) -> np.ndarray:
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


def _misfit(
    form: Form, theta: np.ndarray, covariance: np.ndarray, gap: np.ndarray, signs: np.ndarray
) -> float:
    return float(gap @ np.linalg.solve(_spread(form, theta, covariance, signs), gap))
