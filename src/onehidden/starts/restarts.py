"""Descents from random hyperplanes, and a population of them recombined.

``Random`` is cheap, and often enough for few or smooth units.

``Population``: where samples are few a descent ends in one of very many minima. Those hold true units long
before one of them holds all. A child is the units of two parents that fit best together, and descends for
some steps; the best networks of different losses are the next parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
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
    takes_structure: ClassVar[bool] = True
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
            if problem.form.free is not None:
                weights, bias = problem.form.free.drawn(rng)
            yield refine(problem, weights, bias, run.at(number), "random restart", max_steps=self.steps)


@dataclass(frozen=True, eq=False)
class Near:
    """A descent from a network that other rows gave.

    Parameters
    ----------
    network : OneHiddenNet
        The network, in x.
    """

    name: ClassVar[str] = "near"
    takes_structure: ClassVar[bool] = True
    network: OneHiddenNet = field(repr=False)

    def work(self, problem: Problem) -> float:
        """Operations of the descent."""
        return descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """One candidate."""
        inner = problem.search_coordinates.inward(self.network)
        yield refine(problem, inner.weights, inner.bias, run, "the rows that chose inputs")


@dataclass(frozen=True)
class Population:
    """Generations of networks whose units are recombined; a quarter of each are parents of the next.

    Parameters
    ----------
    members : int
        Networks of a generation.
    generations : int
        Generations at most.
    steps : int
        Steps of a descent in each generation.
    """

    name: ClassVar[str] = "population"
    members: int = 64
    generations: int = 40
    steps: int = 20

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
        """Yield the best network of all generations, refined."""
        alive = list(Random(self.members, steps=self.steps).propose(problem, run.at("members")))
        for generation in range(self.generations):
            parents = distinct(alive, self.members // 4)
            run.report("population", generation, parents[0].loss)
            done = problem.rows.rounding.found(parents[0].loss) or len(parents) < 2
            if done or run.expired():
                break
            here = run.at("generation", generation)
            alive = [*parents, *(self._child(problem, parents, here.at(i)) for i in range(self.members))]
        best = distinct(alive, 1)[0].network
        found = refine(problem, best.weights, best.bias, run.at("last"), "population")
        yield replace(found, overparameterised=True)

    def _child(self, problem: Problem, parents: list[Candidate], run: Run) -> Candidate:
        """Return the best k of four fifths of the units of two parents, drawn anew for every child."""
        rng, k = run.rng(*run.path), problem.k
        pair = [parents[i].network for i in rng.choice(len(parents), 2, replace=False)]
        drawn = rng.permutation(2 * k)[: max(k + 1, round(1.6 * k))]
        weights = np.vstack([one.weights for one in pair])[drawn]
        bias = np.concatenate([one.bias for one in pair])[drawn]
        kept = best_units(problem, weights, bias, k)
        return refine(problem, weights[kept], bias[kept], run, "population", max_steps=self.steps)


def distinct(candidates: list[Candidate], count: int, apart: float = 1e-4) -> list[Candidate]:
    """Return so many of the best, best first, whose losses differ by this share."""
    ranked = sorted(candidates, key=lambda one: one.loss if np.isfinite(one.loss) else np.inf)
    kept = ranked[:1]
    for one in ranked[1:]:
        if len(kept) < count and one.loss > (1 + apart) * kept[-1].loss:
            kept.append(one)
    return kept
