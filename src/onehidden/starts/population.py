"""Population: many networks of the width sought, descended together, whose units are bred with one another.

Where samples are few a descent ends in one of very many minima. Those hold true units long before one of
them holds all: children are made of the units of two parents that fit best together. A child takes the place
of the parent it is more like, if it is better, and nothing else is selected (deterministic crowding): a
population that keeps the best alone ends as copies of one network without a true unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, complete, refine, search_form
from onehidden.starts.descents import table_bytes
from onehidden.starts.flock import Flock, Herd, sorted_herd
from onehidden.starts.start import Start, descent_work

_NEAR = 1e-6  # share of var(y) from which a member is finished in double precision: single cannot tell more
_AGAIN = 0.1  # of the loss of the last one finished in vain that the next one must have
_PATIENCE = 15  # generations in which the median must fall ...
_WORTH = 1.0  # ... by so much of n log(loss); one whose median is that near its best has come together
_ROWS = 8  # rows a parameter that are looked at; the others are for the finish
_TABLE = 1 << 30  # bytes of the shared table at most
_TYPICAL = 40  # generations until an answer: iris with k = 10 took 7 to 60, breast-cancer 33 to 63
_SCALES = (1.0, 2.0, 0.5)  # lengths of random hyperplanes where these matter

Planes = Float[np.ndarray, "P k e"]


@dataclass(frozen=True)
class Population:
    """Generations of networks whose units are mixed.

    Attributes
    ----------
    members : networks of an island, an even number.
    founders : random networks descended for each member at the beginning; the best stay.
    steps : of each descent.
    islands : populations one after another; from the second on, the better half of each meets that of the one
        before.
    generations : of an island at most.
    guests : starts whose candidates, or candidates already there, that join the founders of every island.
    """

    members: int = 128
    founders: int = 4
    steps: int = 15
    islands: int = 3
    generations: int = 300
    guests: tuple[Start | Candidate, ...] = ()

    def __post_init__(self) -> None:
        if self.members < 4 or self.members % 2:
            raise ValueError(f"members must be an even number from 4 on, got {self.members}")
        for name in ("founders", "steps", "islands", "generations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, got {getattr(self, name)}")

    @property
    def name(self) -> str:
        return "population"

    def work(self, problem: Problem) -> float:
        """Operations of one island until it typically ends."""
        descents = self.members * (self.founders + _TYPICAL)
        return descents * descent_work(_some_rows(problem, Run()), self.steps)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """The best network of each island, refined; a fit to rounding ends it."""
        form, few = search_form(problem), _some_rows(problem, run)
        if table_bytes(form, few.n) > _TABLE:
            raise Refused(
                f"the population start holds all pairs of {problem.d} inputs on {few.n} rows, "
                "more than a gigabyte here: use start='wide'"
            )
        flock = Flock(few, form, self.members)
        guests, before = self._guests(problem, form, run), None
        for island in range(self.islands):
            here = run.at("island", island)
            if island and run.expired():
                return
            herd = self._founded(flock, guests, here)
            herd, found = self._evolved(problem, flock, herd, here)
            if before is not None and found is None and not run.expired():
                half = self.members // 2
                both = zip(herd.best(half), before.best(half), strict=True)
                herd = sorted_herd(*(np.concatenate(pair) for pair in both))
                herd, found = self._evolved(problem, flock, herd, here.at("meeting"))
            before = herd
            yield self._refined(problem, form, herd, here) if found is None else found
            if found is not None:
                return

    def _guests(self, problem: Problem, form: Form, run: Run) -> Planes:
        """Hyperplanes of the networks that other starts found."""
        met: list[Candidate] = []
        for number, one in enumerate(self.guests):
            met.extend([one] if isinstance(one, Candidate) else one.propose(problem, run.at("guest", number)))
        planes = [_planes(form, one.weights, one.bias) for one in met]
        return np.array(planes).reshape(-1, form.k, form.d + form.bias)

    def _founded(self, flock: Flock, guests: Planes, run: Run) -> Herd:
        """The best of random networks, after a descent, and the guests as they are."""
        rng = run.rng("founders", *run.path)
        fresh = _random(flock.form, rng, self.members * self.founders)
        herd = flock.descended(fresh, self.steps, run)
        if not len(guests):
            return herd.best(self.members)
        visiting = flock.descended(guests, 0, run)
        stay = herd.best(max(self.members - len(guests), 0))
        both = zip(stay, visiting.best(self.members), strict=True)
        return sorted_herd(*(np.concatenate(pair) for pair in both))

    def _evolved(self, problem: Problem, flock: Flock, herd: Herd, run: Run) -> tuple[Herd, Candidate | None]:
        """The herd after its generations, and the fit to rounding that it came to, if it did."""
        rng = run.rng("generations", *run.path)
        medians: list[float] = []
        tried = np.inf  # loss of the last member that was finished in vain
        size = len(herd.loss) // 2 * 2
        for generation in range(self.generations):
            best, median = float(herd.loss[0]), float(np.median(herd.loss))
            run.report(f"population, {flock.shared(herd):.1f} units shared", generation, best)
            if best <= min(_NEAR, _AGAIN * tried):
                found = self._refined(problem, flock.form, herd, run)
                if problem.rows.rounding.found(found.loss):
                    return herd, found
                tried = best
            medians.append(flock.n * np.log(max(median, 1e-300)))
            still = len(medians) > _PATIENCE and medians[-_PATIENCE - 1] - medians[-1] < _WORTH
            together = flock.n * np.log(max(median, 1e-300) / max(best, 1e-300)) < _WORTH
            if still or together or run.expired() or size < 2:
                break
            order = rng.permutation(size)
            a, b = order[: size // 2], order[size // 2 :]
            herd = flock.bred(herd, np.concatenate([a, b]), np.concatenate([b, a]), self.steps, run, rng)
        return herd, None

    def _refined(self, problem: Problem, form: Form, herd: Herd, run: Run) -> Candidate:
        """The best member after a descent in double precision on all rows."""
        plane = np.asarray(herd.planes[0], float)
        weights, bias = plane[:, : form.d], plane[:, form.d] if form.bias else np.zeros(form.k)
        theta = complete(problem, form, weights, bias)
        return replace(refine(problem, form, theta, run, "population"), student=True)


def _planes(form: Form, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return np.column_stack([weights, bias]) if form.bias else weights


def _random(form: Form, rng: np.random.Generator, count: int) -> Planes:
    """Random hyperplanes of networks, as random restarts draw them."""
    weights = rng.standard_normal((count, form.k, form.d)) / np.sqrt(form.d)
    if form.activation.homogeneity is None:
        weights = weights * np.resize(_SCALES, count)[:, None, None]
    bias = 0.5 * rng.standard_normal((count, form.k, 1))
    planes = np.concatenate([weights, bias], axis=2) if form.bias else weights
    return planes.astype(np.float32)


def _some_rows(problem: Problem, run: Run) -> Problem:
    """The problem on as many rows as tell its minima apart."""
    most = _ROWS * search_form(problem).size
    if problem.n <= most:
        return problem
    return problem.take(np.sort(run.rng("rows of a population").choice(problem.n, most, replace=False)))
