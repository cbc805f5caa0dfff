"""Linear: units along the least-squares direction and the leading directions of what it leaves.

In whitened inputs the least-squares direction is the first score moment, E[y z] = sum_i w_i kappa_{1,i} a_i
(Stein's identity for Gaussian inputs, close to it for others): with one unit in hundreds of inputs it is
nearly that unit, where a random hyperplane is nearly orthogonal to it. A second unit, or an even one, shows
in E[r (z z' - I)], r what the linear fit leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import (
    Candidate,
    fixed_columns,
    refine_in_two,
    rows_to_choose,
    search_form,
    unit_columns,
)
from onehidden.starts.prune import eliminate_backwards
from onehidden.starts.repair import leading_second
from onehidden.starts.start import descent_work

_OFFSETS = (-1.0, -0.5, 0.0, 0.5, 1.0)  # biases of units that are tried, in whitened inputs
_LENGTHS = (0.5, 1.0, 2.0)  # lengths, where these matter


@dataclass(frozen=True)
class Linear:
    """Hyperplanes along the first moment of y and the leading ones of its second, then a descent."""

    @property
    def name(self) -> str:
        return "linear"

    def work(self, problem: Problem) -> float:
        return 2.0 * problem.n * problem.d**2 + descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        form = search_form(problem)
        directions = leading_directions(problem)
        free = form.symmetrised or problem.activation.sign_free
        directions = directions if free else np.vstack([directions, -directions])
        lengths = _LENGTHS if problem.activation.homogeneity is None else (1.0,)
        offsets = _OFFSETS if problem.bias else (0.0,)
        weights = np.vstack([length * directions for length in lengths for _ in offsets])
        bias = np.concatenate([np.full(len(directions), length * b) for length in lengths for b in offsets])
        some = rows_to_choose(problem)
        columns = some.weighted(unit_columns(form, some.Z, weights, bias))
        always = some.weighted(fixed_columns(form, some.Z))
        kept = eliminate_backwards(columns, always, some.weighted(some.y), problem.k)
        yield refine_in_two(problem, form, weights[kept], bias[kept], run, "linear")


def leading_directions(problem: Problem) -> Float[np.ndarray, "m d"]:
    """Directions of length one: the least-squares one, the k leading ones of the rest, sums and differences.

    Two units of one plane are seldom along its axes; sums and differences with the first are at 45 degrees.
    """
    Z, root = problem.Z, problem.weighted(np.ones(problem.n))
    target = problem.weighted(problem.y)
    design = root[:, None] * np.column_stack([np.ones(problem.n), Z])
    coefficient = np.linalg.lstsq(design, target, rcond=None)[0]
    value, vector = leading_second(problem, target - design @ coefficient)
    leading = vector[:, np.argsort(-np.abs(value))[: problem.k]].T
    slopes = coefficient[1:].reshape(problem.d, -1).T  # one an output
    firsts = slopes / np.maximum(np.linalg.norm(slopes, axis=1, keepdims=True), np.finfo(float).tiny)
    sums = [sign * leading + first for first in firsts for sign in (1, -1)]
    found = np.vstack([firsts, leading, *sums])
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.maximum(length, np.finfo(float).tiny))[length[:, 0] > 1e-6]
