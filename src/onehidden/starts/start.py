"""What a start is: a choice with a name, its work in operations, and candidates on request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import Candidate


@runtime_checkable
class Start(Protocol):
    """Where to begin. ``Refused`` says that it cannot begin here."""

    @property
    def name(self) -> str:
        """What it is called in options, progress and records."""
        ...

    def work(self, problem: Problem) -> float:
        """Floating-point operations of all its candidates, roughly."""
        ...

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Candidates in the search coordinates of the problem, lazily; the clock is asked between them."""
        ...


def descent_work(problem: Problem, steps: int = 60) -> float:
    """Operations of one descent: steps times n p² for the normal equations and p³/3 for the solve."""
    p = problem.k * (problem.d + 1 + problem.bias)
    return steps * (2.0 * problem.n * p**2 + p**3 / 3)
