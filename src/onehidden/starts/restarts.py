"""Descents from random hyperplanes, and a population of them recombined.

``Random`` is cheap, and often enough for few or smooth units.

``Population``: where samples are few a descent ends in one of very many minima. Those hold true units long
before one of them holds all. A child is the units of two parents that fit best together, and descends for
some steps; the best networks of different losses are the next parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, descent_work, refine
from onehidden.starts.repair import best_units


@dataclass(frozen=True)
class Random:
    """Random hyperplanes with least-squares outputs, then a descent.

    Parameters
    ----------
    restarts : int
        Number of candidates at most.
    first : int
        Number of the first one; another number draws other hyperplanes.
    steps : int
        Steps of a descent at most.
    scales : tuple of float
        Lengths of the hyperplanes, in turn, where the length of a unit matters.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> start = oh.starts.Random(restarts=8)
    >>> found = oh.recover(X, np.abs(X[:, 0]), hidden=1, activation="abs", bias=False, start=start)
    >>> found.origin
    'random restart'
    """

    name: ClassVar[str] = "random"
    restarts: int = 4
    first: int = 0
    steps: int = 100
    scales: tuple[float, ...] = (1.0, 2.0, 0.5)

    def work(self, problem: Problem) -> float:
        """Operations of all descents."""
        return self.restarts * descent_work(problem, self.steps)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """One candidate a restart."""
        for number in range(self.first, self.first + self.restarts):
            if number > self.first and run.expired():
                return
            rng = run.rng("restart", number)
            weights = rng.standard_normal((problem.k, problem.d)) / problem.d**0.5
            if problem.activation.homogeneity is None:
                weights = weights * self.scales[number % len(self.scales)]
            bias = 0.5 * rng.standard_normal(problem.k) * problem.bias
            yield refine(problem, weights, bias, run.at(number), "random restart", max_steps=self.steps)


@dataclass(frozen=True)
class Population:
    """Generations of networks whose units are recombined.

    Parameters
    ----------
    members : int
        Networks of a generation.
    generations : int
        Generations at most.
    steps : int
        Steps of a descent in each generation.
    pool : float
        Share of both parents' units that a child is chosen from, drawn anew for every child.
    """

    name: ClassVar[str] = "population"
    members: int = 64
    generations: int = 40
    steps: int = 20
    pool: float = 0.8

    def __post_init__(self) -> None:
        if self.members < 8 or self.generations < 1:
            raise ValueError(
                "a population needs 8 members or more and one generation or more, "
                f"got {self.members} and {self.generations}"
            )

    def work(self, problem: Problem) -> float:
        """Operations until it typically ends, after fifteen generations."""
        return 15 * self.members * descent_work(problem, self.steps)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the best network of all generations, refined.

        The generations end at a fit to rounding, where the parents have one loss, or where the best has not
        improved by a thousandth in ten.
        """
        first = Random(self.members, steps=self.steps).propose(problem, run.at("members"))
        alive, history = sorted(first, key=_loss), list[float]()
        for generation in range(self.generations):
            parents, best = distinct(alive, self.members // 4), alive[0].loss
            run.report("population", generation, best)
            history.append(best)
            stalled = len(history) > 10 and best > (1 - 1e-3) * history[-11]
            done = problem.rows.rounding.found(best) or len(parents) < 2
            if done or stalled or run.expired():
                break
            here = run.at("generation", generation)
            alive = sorted([*parents, *self._children(problem, parents, here)], key=_loss)
        found = refine(problem, alive[0].weights, alive[0].bias, run.at("last"), "population")
        yield replace(found, overparameterised=True)

    def _children(self, problem: Problem, parents: list[Candidate], run: Run) -> Iterator[Candidate]:
        rng = run.rng(*run.path)
        for number in range(self.members):
            if run.expired():
                return
            pair = [parents[i] for i in rng.choice(len(parents), 2, replace=False)]
            count = max(problem.k + 1, round(self.pool * 2 * problem.k))
            drawn = rng.permutation(2 * problem.k)[:count]
            weights = np.vstack([one.weights for one in pair])[drawn]
            bias = np.concatenate([one.bias for one in pair])[drawn]
            kept = best_units(problem, weights, bias, problem.k)
            here = run.at(number)
            yield refine(problem, weights[kept], bias[kept], here, "population", max_steps=self.steps)


def distinct(candidates: list[Candidate], count: int, apart: float = 1e-4) -> list[Candidate]:
    """Return the first so many, best first, whose losses differ by this share."""
    kept = candidates[:1]
    for one in candidates[1:]:
        if len(kept) < count and one.loss > (1 + apart) * kept[-1].loss:
            kept.append(one)
    return kept


def _loss(candidate: Candidate) -> float:
    return candidate.loss if np.isfinite(candidate.loss) else np.inf
