"""From samples in memory to an answer: at the width and under the activation asked for, or chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.questions import certify
from onehidden.families import Family
from onehidden.fit.coordinates import WhitenedScore
from onehidden.fit.input_model import InputModel
from onehidden.fit.noise import with_noise_of
from onehidden.fit.polish import polish
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.recovery.activation import choose_activation
from onehidden.recovery.constant import constant_answer
from onehidden.recovery.options import Options
from onehidden.recovery.search import Found, compared, search
from onehidden.recovery.width import choose_width
from onehidden.run import Run

_WORTH = 100.0  # n log(loss) by which another minimum may lie behind and still come to the fore

_WORTH = 100.0  # n log(loss) by which another minimum may lie behind and still come to the fore

_WORTH = 100.0  # n log(loss) by which another minimum may lie behind and still come to the fore

_WORTH = 100.0  # n log(loss) by which another minimum may lie behind and still come to the fore


def problem_of(
    samples: Samples,
    options: Options,
    family: Family | None = None,
    offset: Float[np.ndarray, " n"] | None = None,
) -> Problem:
    """The problem of these samples and options, with the family of y and an offset where there are any."""
    outputs = samples.y.shape[1] if samples.y.ndim == 2 else None
    around = samples.coordinates(options.bias)
    problem = Problem(samples, options.form(around.rank, outputs), around)
    if around.constant:
        return problem
    if family is not None:  # the network's output has units of its own
        level, scale = (0.0, 1.0) if outputs is None else (np.zeros(outputs), np.eye(outputs))
        around = replace(around, level=level, scale=scale)
        problem = replace(problem, around=around, family=family, offset=offset)
    given = options.score if isinstance(options.score, str) else WhitenedScore(options.score, problem.begin)
    return replace(problem, inputs=InputModel(problem.Z, given, options.seed, problem.begin))


def solve(problem: Problem, options: Options, run: Run) -> tuple[Found, Problem]:
    """The answer to a problem whose rows are in memory, and the problem with all that was learnt of y."""

    def find(problem: Problem, run: Run, tries: int | None) -> Found:
        if options.hidden is None:
            return choose_width(problem, options, run, tries)
        return search(problem, options, run, tries)

    if problem.around.constant:
        return constant_answer(problem)
    if options.activation == "auto":
        return choose_activation(problem, options, run, find)
    found = find(problem, run, None)
    if options.hidden is None:
        return found
    found = settled(found, problem, options, run)
    return compared(found, found.noise_known or problem, options, run)


def settled(found: Found, problem: Problem, options: Options, run: Run) -> Found:
    """The answer again after its residuals told what the noise is.

    Of several outputs the covariance of their noise; of the negative binomial family its alpha.
    """
    known = with_noise_of(found.certificate.network, problem)
    if known is problem or found.certificate.exact:
        return found
    again = polish(found.certificate.network, known, run.at("noise known"), near=True)
    met = tuple(
        polish(one.network, known, run.at("noise known", number), near=True)
        for number, one in enumerate(found.met)
        if problem.behind(found.certificate.mean_square, one.mean_square) < _WORTH
    )
    certificate = replace(
        certify(again.network, known, run, options.errors), compared=found.certificate.compared
    )
    return replace(found, certificate=certificate, met=met, noise_known=known)
