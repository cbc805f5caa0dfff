"""A target that is constant: nothing to recover, said as a result."""

from __future__ import annotations

import numpy as np

from onehidden.certify.certificate import Certificate
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import About, at_least
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.recovery.search import Found


def constant_answer(problem: Problem) -> Found:
    """The constant as a network whose units add nothing, marked not identifiable."""
    samples, k = problem.samples, problem.k
    d, level = samples.X.shape[1], float(samples.y.flat[0])
    weights = np.tile(np.eye(d)[0], (k, 1))
    network = OneHiddenNet(weights, np.zeros(k), np.zeros(k), level, problem.activation)
    check = at_least(
        "varying target", 0.0, 1e-14, "relative spread of y; a constant target shows no unit", About.UNITS
    )
    errors = ParameterRecord(np.full((k, d), np.inf), np.full(k, np.inf), np.full(k, np.inf), np.inf)
    reason = f"y is constant ({level:g}): there is nothing to recover from it"
    units = tuple(
        UnitVerdict(i, weights[i], 0.0, 0.0, (errors.weights[i], np.inf, np.inf), 0.0).undetermined(
            Cause.NOTHING, reason
        )
        for i in range(k)
    )
    certificate = Certificate(
        network,
        (check,),
        units,
        loss=0.0,
        noise_variance=0.0,
        standard_errors=errors,
        curvature=np.zeros(1),
        mean_square=0.0,
        exact=True,
        n=problem.n,
        freedom=problem.form.freedom,
    )
    return Found(certificate, "none")
