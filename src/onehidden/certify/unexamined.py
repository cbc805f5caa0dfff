"""The certificate of an answer for whose questions no time was left: it says so, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from onehidden.certify.certificate import Certificate
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.own_checks import columns_check
from onehidden.certify.patterns import CountPatterns
from onehidden.certify.units import UnitStatus, unit_of
from onehidden.checks import About, not_asked
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet


def certificate_work(problem: Problem) -> float:
    """Operations of the questions put to a network alone: J'J and the sandwich, eigenvalues and inverse.

    n p² and 10 p³: d = k = 50, n = 16 384 (2600 parameters) take 14 s by this count; measured on one thread
    beside other jobs, 21 s.
    """
    p = problem.form.size
    return p**2 * (problem.n + 10.0 * p)


def unexamined(network: OneHiddenNet, problem: Problem, noun: str = "sample") -> Certificate:
    """What is known of a network, in x, without its Jacobian: loss and shares. Errors are infinite."""
    network, form = network.canonical(), problem.form
    mean_square, numbers = problem.sums.loss(problem.theta(network)) / problem.numbers, problem.numbers
    seen = problem.at(network)
    share = seen.fold(partial(CountPatterns, seen.end.inward(network))).result().spread ** 2
    errors = ParameterRecord.unknown(network)
    units = tuple(
        replace(unit_of(network, errors, i, float(part)), status=UnitStatus.DOUBTFUL)
        for i, part in enumerate(share)
    )
    loss = mean_square * problem.end.variance
    why = "the time was up before any question could be put to the answer: allow more time"
    return Certificate(
        network,
        (not_asked("examined", 1.0, why, About.SEARCH), *columns_check(problem)),
        units,
        loss=loss,
        noise_variance=loss * numbers / max(numbers - form.freedom, 1),
        standard_errors=errors,
        curvature=np.zeros(0),
        mean_square=mean_square,
        exact=problem.rows.rounding.reproduces(mean_square),
        n=problem.n,
        freedom=form.freedom,
        noun=noun,
    )
