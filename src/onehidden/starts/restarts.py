"""Random restarts straight into Levenberg–Marquardt: cheap, and often enough for few or smooth units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, complete, refine, search_form
from onehidden.starts.start import descent_work

_STEPS = 100


@dataclass(frozen=True)
class Random:
    """Random hyperplanes, outputs by least squares, a descent.

    Attributes
    ----------
    restarts : how many at most. first : number of the first one: another one, other draws.
    """

    restarts: int = 4
    first: int = 0

    @property
    def name(self) -> str:
        return "random"

    def work(self, problem: Problem) -> float:
        return self.restarts * descent_work(problem, _STEPS)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        for attempt in range(self.first, self.first + self.restarts):
            if attempt > self.first and run.expired():
                return
            yield random_candidate(problem, run.at(attempt), attempt)


def random_candidate(problem: Problem, run: Run, attempt: int) -> Candidate:
    """One random start, refined; attempts differ in their draw and, for scale-bound g, in their scale."""
    rng = run.rng("restart", attempt)
    weights = rng.standard_normal((problem.k, problem.d)) / problem.d**0.5
    if problem.activation.homogeneity is None:
        weights = weights * (1.0, 2.0, 0.5)[attempt % 3]
    bias = 0.5 * rng.standard_normal(problem.k) * problem.bias
    form = search_form(problem)
    theta = complete(problem, form, weights, bias)
    return refine(problem, form, theta, run, "random restart", max_steps=_STEPS)
