"""From samples in memory to an answer: at the width and under the activation asked for, or chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.families import Family
from onehidden.fit.coordinates import WhitenedScore
from onehidden.fit.input_model import InputModel
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.recovery.activation import choose_activation
from onehidden.recovery.constant import constant_answer
from onehidden.recovery.options import Options
from onehidden.recovery.search import Found, compared, search
from onehidden.recovery.width import choose_width
from onehidden.run import Run


def problem_of(
    samples: Samples,
    options: Options,
    family: Family | None = None,
    offset: Float[np.ndarray, " n"] | None = None,
    trials: Float[np.ndarray, " n"] | None = None,
) -> Problem:
    """The problem of these samples and options, with the family of y, offset and trials if there are any."""
    outputs = samples.y.shape[1] if samples.y.ndim == 2 else None
    around = samples.coordinates(options.bias)
    problem = Problem(samples, options.form(around.rank, outputs), around)
    if around.constant:
        return problem
    if family is not None:  # the network's output has units of its own
        level, scale = (0.0, 1.0) if outputs is None else (np.zeros(outputs), np.eye(outputs))
        around = replace(around, level=level, scale=scale)
        problem = replace(problem, around=around, family=family, offset=offset, trials=trials)
    given = options.score if isinstance(options.score, str) else WhitenedScore(options.score, problem.begin)
    return replace(problem, inputs=InputModel(problem.Z, given, options.seed, problem.begin))


def solve(problem: Problem, options: Options, run: Run) -> Found:
    """The answer to a problem whose rows are in memory."""

    def find(problem: Problem, run: Run, tries: int | None) -> Found:
        if options.hidden is None:
            return choose_width(problem, options, run, tries)
        return search(problem, options, run, tries)

    if problem.around.constant:
        return constant_answer(problem)
    if options.activation == "auto":
        return choose_activation(problem, options, run, find)
    found = find(problem, run, None)
    return found if options.hidden is None else compared(found, problem, options, run)
