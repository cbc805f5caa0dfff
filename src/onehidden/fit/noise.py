"""What the residuals of an answer tell of the noise: the covariance between outputs, a family's own numbers.

With Y = network + E C^(1/2) the outputs times C^(-1/2) have independent noise of one size: generalised least
squares is least squares in other units of y, and a network there is a network here with other outputs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.fit.form import roots, weighed
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet

_LEAST = (
    1e-8  # of the largest eigenvalue of the covariance: outputs that are functions of others have no noise
)


def with_noise_of(network: OneHiddenNet, problem: Problem) -> Problem:
    """The problem that knows the noise about a network, in x; itself where there is nothing to know."""
    samples = problem.samples
    if problem.family is not None:
        eta = network.predict(samples.X) + problem.offsets
        family = problem.family.estimated(samples.y, eta, samples.weight)
        return problem if family == problem.family else replace(problem, family=family)
    if problem.form.outputs is None or (samples.weight is not None and samples.weight.ndim > 1):
        return problem
    residual = weighed(roots(samples.weight, samples.n), network.predict(samples.X) - samples.y)
    covariance = residual.T @ residual / max(samples.n - problem.form.freedom / problem.form.q, 1)
    value, vector = np.linalg.eigh(covariance)
    value = np.maximum(value, _LEAST * value[-1])
    # Of the determinant it had: -2 log-likelihood is n q log(mean square) in these units as in the old ones.
    before = float(np.linalg.slogdet(problem.around.scale)[1])
    size = np.exp((before - 0.5 * float(np.sum(np.log(value)))) / len(value))
    scale = size * np.sqrt(value)[:, None] * vector.T
    return replace(problem, around=replace(problem.around, scale=scale))
