"""Bred: what several answers hold between them, made into one; true units recur in what starts find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import (
    Candidate,
    complete,
    fixed_columns,
    refine,
    rows_to_choose,
    search_form,
    unit_columns,
)
from onehidden.starts.prune import eliminate_backwards

FAMILIES = 2  # of answers that are bred with each other: candidates by turns
_WORTH = 0.5  # n log(loss) by which a child must be below its parents: else it is one of them


def bred(problem: Problem, parents: Sequence[Candidate], run: Run) -> Candidate:
    """The k units of all parents that fit best together, refined; the best parent where that is no better."""
    best = min(parents, key=lambda one: one.loss)
    if len(parents) < 2 or problem.rows.rounding.found(best.loss) or run.expired():
        return best
    form, few = search_form(problem), rows_to_choose(problem)
    weights = np.vstack([one.weights for one in parents])
    bias = np.concatenate([one.bias for one in parents])
    units = few.weighted(unit_columns(form, few.Z, weights, bias))
    kept = eliminate_backwards(
        units, few.weighted(fixed_columns(form, few.Z)), few.weighted(few.y), problem.k
    )
    theta = complete(problem, form, weights[kept], bias[kept])
    child = refine(problem, form, theta, run, best.origin)
    if not problem.behind(child.loss, best.loss) > _WORTH:
        return best
    return replace(child, student=best.student, bred=True)
