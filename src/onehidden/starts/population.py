"""Population: many networks of the width sought, descended together, whose units are bred with one another.

Where samples are few a descent ends in one of very many minima. Those hold true units long before one of
them holds all: children are made of the units of two parents, and descend for a while; the best that differ
are the next parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, best_refined, search_form, some_rows
from onehidden.starts.descents import table_bytes
from onehidden.starts.flock import Flock, Planes
from onehidden.starts.start import Start

_NEAR = 1e-6  # share of var(y) from which a member is finished in double precision: single tells little more
_AGAIN = 0.1  # of the loss of the last one finished in vain that the next one must have
_PATIENCE = 10  # generations in which the best must fall ...
_WORTH = 1.0  # ... by so much of n log(loss); parents whose median is that near the best have come together
_FRESH = 0.3  # of the mixed children that have one unit of nobody's
_ROWS = 8  # rows a parameter that are looked at; the others are for the finish
_TABLE = 1 << 30  # bytes of the shared table at most
_LEAST, _EACH, _MOST = 128, 96, 2048  # members: at least, a unit, at most (k = 10: 960, k = 20: 1920)
_PARENTS = 8  # one in so many of the members has children
_FINISHED = 3  # members of a population without a fit to rounding that are refined on all rows
_TYPICAL = 15  # generations until an answer: breast-cancer with k = 10 took 6 and 12, d = k = 20 took 8
_SCALES = (1.0, 2.0, 0.5)  # lengths of random hyperplanes where these matter


@dataclass(frozen=True)
class Manner:
    """How one population is bred.

    Attributes
    ----------
    pooled : whether a child is what fits best together of the units of both parents, or a mixture of them at
        random: the first finds an answer in a fifth of the steps where it does (breast-cancer, k = 10:
        120 000 and 215 000 against 1 000 000), the second keeps more families alive (d = k = 20 at 1.5
        samples a weight: exact after 8 generations, where the first ends without a true unit).
    steps : of each descent. founder_steps : of those of the first generation.
    """

    pooled: bool = True
    steps: int = 15
    founder_steps: int = 30


QUICK, PATIENT = Manner(), Manner(pooled=False, steps=60, founder_steps=60)


@dataclass(frozen=True)
class Population:
    """Generations of networks whose units are bred with one another.

    Attributes
    ----------
    members : networks of a population; None for 96 a unit, at least 128 and at most 2048.
    manners : of the populations, one after another.
    generations : of each at most.
    guests : starts whose candidates, or candidates already there, that join every first generation.
    """

    members: int | None = None
    manners: tuple[Manner, ...] = (QUICK, PATIENT)
    generations: int = 100
    guests: tuple[Start | Candidate, ...] = ()

    def __post_init__(self) -> None:
        if self.members is not None and self.members < _PARENTS:
            raise ValueError(f"members must be {_PARENTS} or more, or None, got {self.members}")
        if self.generations < 1 or not self.manners:
            raise ValueError("a population needs at least one manner and one generation")

    @property
    def name(self) -> str:
        return "population"

    def work(self, problem: Problem) -> float:
        """Operations of the first population until it typically ends."""
        p = problem.k * (problem.d + problem.bias)
        rows = min(problem.n, _most_rows(problem))
        steps = self.manners[0].founder_steps + _TYPICAL * self.manners[0].steps
        # The table of pairs of inputs is shared: a quarter of J'J written out.
        return self.size(problem) * steps * (0.5 * rows * p**2 + p**3 / 3)

    def size(self, problem: Problem) -> int:
        """Members of a population of this problem."""
        return int(np.clip(_EACH * problem.k, _LEAST, _MOST)) if self.members is None else self.members

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """The best network of each population, refined; a fit to rounding ends it."""
        form = search_form(problem)
        few = some_rows(problem, _most_rows(problem), run.rng("rows of a population"))
        if table_bytes(form, few.n) > _TABLE:
            raise Refused(
                f"the population start holds all pairs of {problem.d} inputs on {few.n} rows, "
                "more than a gigabyte here: use start='wide'"
            )
        flock, guests = Flock(few, form, self.size(problem)), self._guests(problem, form, run)
        for number, manner in enumerate(self.manners):
            if number and run.expired():
                return
            here = run.at("population", number)
            found = self._evolved(problem, flock, manner, guests, here)
            yield replace(found, student=True, bred=len(guests) > 0)
            if problem.rows.rounding.found(found.loss):
                return

    def _guests(self, problem: Problem, form: Form, run: Run) -> Planes:
        """Hyperplanes of the networks that other starts found."""
        met: list[Candidate] = []
        for number, one in enumerate(self.guests):
            met.extend([one] if isinstance(one, Candidate) else one.propose(problem, run.at("guest", number)))
        planes = [np.column_stack([one.weights, one.bias])[:, : form.d + form.bias] for one in met]
        return np.array(planes, np.float32).reshape(-1, form.k, form.d + form.bias)

    def _evolved(self, problem: Problem, flock: Flock, manner: Manner, guests: Planes, run: Run) -> Candidate:
        """The best network of one population."""
        size, rng = self.size(problem), run.rng(*run.path)
        fresh = _random(flock.form, rng, max(size - len(guests), 1))
        herd = flock.descended(np.concatenate([guests, fresh]), manner.founder_steps, run)
        bests: list[float] = []
        tried = np.inf  # loss of the last member that was finished in vain
        for generation in range(self.generations):
            parents = herd.distinct(max(size // _PARENTS, 2))
            best, median = float(parents.loss[0]), float(np.median(parents.loss))
            shared = f"{flock.shared(parents):.1f} of {flock.form.k} units shared"
            run.report(f"population, {shared}", generation, best)
            if best <= min(_NEAR, _AGAIN * tried):
                found = best_refined(
                    problem, flock.form, parents.planes[:1], run.at("generation", generation), "population"
                )
                if problem.rows.rounding.found(found.loss):
                    return found
                tried = best
            bests.append(flock.numbers * np.log(max(best, 1e-300)))
            still = len(bests) > _PATIENCE and bests[-_PATIENCE - 1] - bests[-1] < _WORTH
            together = flock.numbers * np.log(max(median, 1e-300) / max(best, 1e-300)) < _WORTH
            if still or together or run.expired():
                break
            pairs = _pairs(rng, size, len(parents.loss))
            if manner.pooled:
                children = flock.pooled(parents, pairs, run, rng)
            else:
                children = _with_strangers(flock.form, flock.mixed(parents, pairs, run, rng), rng)
            herd = parents.joined(flock.descended(children, manner.steps, run))
        last = herd.distinct(_FINISHED).planes
        return best_refined(problem, flock.form, last, run.at("last"), "population")


def _pairs(rng: np.random.Generator, count: int, parents: int) -> np.ndarray:
    """(count, 2) pairs of different parents."""
    first = rng.integers(parents, size=count)
    return np.column_stack([first, (first + 1 + rng.integers(max(parents - 1, 1), size=count)) % parents])


def _with_strangers(form: Form, children: Planes, rng: np.random.Generator) -> Planes:
    """Some of the children with one of their units replaced by a random one."""
    children = children.copy()
    chosen = np.flatnonzero(rng.random(len(children)) < _FRESH)
    children[chosen, rng.integers(form.k, size=len(chosen))] = _random(form, rng, len(chosen))[:, 0]
    return children


def _random(form: Form, rng: np.random.Generator, count: int) -> Planes:
    """Random hyperplanes of networks, as random restarts draw them."""
    weights = rng.standard_normal((count, form.k, form.d)) / np.sqrt(form.d)
    if form.activation.homogeneity is None:
        weights = weights * np.resize(_SCALES, count)[:, None, None]
    bias = 0.5 * rng.standard_normal((count, form.k, 1))
    planes = np.concatenate([weights, bias], axis=2) if form.bias else weights
    return planes.astype(np.float32)


def _most_rows(problem: Problem) -> int:
    return _ROWS * search_form(problem).size
