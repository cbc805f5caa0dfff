"""The best linear function of the inputs: least squares, or the maximum of a family's likelihood."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet

_STEPS = 50  # of Fisher scoring at most; convex, so that 5 to 10 do
_ENOUGH = 1e-6  # change of the deviance at which it has ended


def linear_network(problem: Problem, inputs: bool = True) -> OneHiddenNet:
    """The linear function as a network, in x, whose units add nothing; without ``inputs`` a constant."""
    if problem.family is None:
        return _solved(problem, inputs)
    samples = problem.samples
    level = problem.family.start(samples.y, samples.weight)
    if problem.offset is not None:
        level = level - float(np.average(problem.offset, weights=samples.weight))
    best = _network(problem, np.zeros((samples.X.shape[1], *samples.y.shape[1:])), level)
    loss = float(np.sum(problem.losses(best)))
    for _ in range(_STEPS):
        whole, share = _solved(problem.at(best), inputs), 1.0
        while share > 1e-3:  # a step that goes too far is taken by half
            tried = _between(best, whole, share)
            now = float(np.sum(problem.losses(tried)))
            if np.isfinite(now) and now <= loss:
                break
            share /= 2
        else:
            break
        best, gain, loss = tried, loss - now, now
        if gain < _ENOUGH:
            break
    return best


def _solved(problem: Problem, inputs: bool) -> OneHiddenNet:
    """Weighted least squares, in the weights of each output or in the information of each row."""
    samples = problem.samples
    centred = samples.X - problem.around.shift
    columns = [np.ones((problem.n, 1)), *([centred] if inputs else [])]
    design, y = np.hstack(columns), samples.y.reshape(problem.n, -1)
    weight = samples.weight
    if weight is not None and weight.ndim == 3:
        solved = _coupled(design, y, weight)
    else:
        own = np.ones((problem.n, 1)) if weight is None else weight.reshape(problem.n, -1)
        found = [
            np.linalg.lstsq(root[:, None] * design, root * target, rcond=1e-12)[0]
            for root, target in zip(np.broadcast_to(np.sqrt(own), y.shape).T, y.T, strict=True)
        ]
        solved = np.array(found).T
    solved = np.pad(solved, ((0, centred.shape[1] + 1 - len(solved)), (0, 0)))
    solved = solved.reshape(len(solved), *samples.y.shape[1:])
    slope, level = solved[1:], solved[0] - problem.around.shift @ solved[1:]
    return _network(problem, slope, level)


def _coupled(
    design: Float[np.ndarray, "n m"], y: Float[np.ndarray, "n q"], weight: Float[np.ndarray, "n q q"]
) -> Float[np.ndarray, "m q"]:
    """Coefficients whose residuals are orthogonal to the design in the information of the rows."""
    m, q = design.shape[1], y.shape[1]
    gram = np.zeros((m, q, m, q))
    for a in range(q):
        for b in range(q):
            gram[:, a, :, b] = (design * weight[:, a, b, None]).T @ design
    toward = design.T @ np.einsum("nab,nb->na", weight, y)
    return np.linalg.lstsq(gram.reshape(m * q, m * q), toward.ravel(), rcond=1e-12)[0].reshape(m, q)


def _network(problem: Problem, slope: np.ndarray, level: np.ndarray | float) -> OneHiddenNet:
    k, d = problem.k, len(slope)
    nothing = np.zeros((k, *np.shape(slope)[1:]))
    return OneHiddenNet(np.tile(np.eye(d)[0], (k, 1)), nothing, None, level, problem.activation, slope)


def _between(a: OneHiddenNet, b: OneHiddenNet, share: float) -> OneHiddenNet:
    """Of two linear functions, so much of the way from the first to the second."""
    level = a.intercept + share * (b.intercept - a.intercept)
    slope = a.linear + share * (b.linear - a.linear)
    return OneHiddenNet(a.weights, a.output, a.bias, level, a.activation, slope)
