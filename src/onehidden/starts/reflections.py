"""Reflections: networks found as a point that two sets have in common, where every descent ends in a minimum.

Where rows are exact this finds units of kinked networks from fewer samples than any descent, and in less time
than students from many (``reflecting`` says how a step works).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.device import on_accelerator
from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, best_refined, search_form, some_rows
from onehidden.starts.flock import LOOKED, narrow
from onehidden.starts.offspring import shared_units
from onehidden.starts.pressure import Metric, lives, of_strength, of_weights, pressure
from onehidden.starts.reflecting import BOLD, STEADY, Mirror, Reflected, first_values, mirror, reflect
from onehidden.threads import free_cores

_ROWS = 4  # a parameter that are looked at: with so many 500 steps find all units (d = k = 20, equal outputs)
# Share of var(y) from which a member is descended from: all units of breast-cancer are there at 1e-6, of
# d = k = 20 at 1e-4, where a descent of some hundredths of a second saves two thousand steps ...
_NEAR = 1e-4
_AGAIN = 0.3  # ... and of the loss of the last one descended from in vain that the next one must have
_TOLD = 8  # times in a life that progress is told
_FINISHED = 3  # members without a fit to rounding that are descended from at the end
_CALL = 250  # steps between two looks at the clock ...
_CPU_CALL, _GPU_CALL = 5e9, 5e12  # ... and operations of them: some tenths of a second
# Chance a step that a member's weakest unit changes its sign, once in the steps to an answer. Of d = k = 20,
# both signs, 2.0 samples a weight, eight members of eight are right after 15 000 steps with 2.5e-4, four
# without; of d = k = 8 41 of 64 with 1e-4, 16 with 5e-4, 50 without.
_FLIP = 1e-4
_CPU_MEMBERS, _CPU_LEAST, _CPU_WORK = 16, 2, 3e11  # members on a CPU, and where all take more than this work
_GPU_MEMBERS, _GPU_VALUES = 1024, 1 << 24  # the same on an accelerator, and numbers of all members
_CPU_BYTES = 4 << 20  # of a batch on a CPU, five arrays a member
_BESIDE, _APART = (
    4,
    1,
)  # batches at least, and by how much their manners are apart: all four beside each other
_ALONE = 1e11  # operations below which one thread does: some seconds
_TYPICAL = 5000  # steps to an answer where there is one soon (d = k = 8 at 1.6 samples a parameter)

Temper = tuple[float, float]
Batch = tuple[jax.Array, jax.Array]  # values and signs of members, where they are computed


@dataclass(frozen=True)
class Reflections:
    """Relaxed reflections between what the rows say and what linear functions of the inputs can be.

    Attributes
    ----------
    steps : of all lives of a member together.
    members : networks at a time; None for 16 on a CPU, 2 where a step costs much, up to 1024 on a GPU.
    first : number of the first member: another one, other draws.
    """

    steps: int = 20_000
    members: int | None = None
    first: int = 0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.first < 0 or (self.members is not None and self.members < 1):
            raise ValueError(
                "steps and members must be 1 or more and first 0 or more, "
                f"got {self.steps}, {self.members} and {self.first}"
            )

    @property
    def name(self) -> str:
        return "reflections"

    def work(self, problem: Problem) -> float:
        """Operations until an answer typically comes; those that follow others have found nothing yet."""
        typical = self.steps if self.first else min(self.steps, _TYPICAL)
        return self.size(problem) * typical * step_work(problem)

    def size(self, problem: Problem) -> int:
        """Members for this problem."""
        if self.members is not None:
            return self.members
        if on_accelerator():
            values = (problem.k + 1) * min(problem.n, _most_rows(problem))
            return int(np.clip(_GPU_VALUES // values, _CPU_MEMBERS, _GPU_MEMBERS))
        return _CPU_LEAST if _CPU_MEMBERS * _TYPICAL * step_work(problem) > _CPU_WORK else _CPU_MEMBERS

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """The best network met, refined; a fit to rounding ends the search."""
        form = search_form(problem)
        if not kinked(form):
            raise Refused(
                f"reflections look for units |t| with one output, not {form.q} of {form.activation.name}"
            )
        few = some_rows(problem, _most_rows(problem), run.rng("rows of reflections"))
        with narrow():
            sides = mirror(few, form)
        back = np.asarray(sides.back, float)
        weights, strength = of_weights(few, form, back), of_strength(len(back))
        cores = 1 if on_accelerator() or self.work(problem) < _ALONE else free_cores()
        manners = [(weights, BOLD), (weights, STEADY), (strength, STEADY), (strength, BOLD)]
        members = _Members(form, sides, manners, self.size(problem), cores)
        yield self._found(problem, members, run.at("reflections", self.first))

    def _found(self, problem: Problem, members: _Members, run: Run) -> Candidate:
        rng, form = run.rng(*run.path), members.form
        call = int(np.clip(_call_work() / (members.batch * step_work(problem)), 1, _CALL))
        done, best = 0, Met.nothing(form)
        for number, life in enumerate(lives(self.steps)):
            members.born(rng, number)
            tried = np.inf
            for age in range(0, life, call):
                met = members.after(call, pressure(age, life), rng, run)
                best, lowest, done = best.with_best(met, _FINISHED), float(met.loss[0]), done + call
                if age % max(life // _TOLD, call) < call:
                    run.report(f"reflections, {members.shared(met)}", done, lowest)
                if lowest <= min(_NEAR, _AGAIN * tried):
                    found = best_refined(problem, form, met.planes[:1], run.at("step", done), self.name)
                    if problem.rows.rounding.found(found.loss):
                        return found
                    tried = lowest
                if run.expired():
                    return best_refined(problem, form, best.planes, run.at("last"), self.name)
        return best_refined(problem, form, best.planes, run.at("last"), self.name)


class Met(NamedTuple):
    """Networks on the way of members: hyperplanes (P, k, e) and mean squared residuals (P,), best first."""

    planes: np.ndarray
    loss: np.ndarray

    @classmethod
    def nothing(cls, form: Form) -> Met:
        return cls(np.zeros((0, form.k, form.d + form.bias), np.float32), np.zeros(0))

    def with_best(self, other: Met, count: int) -> Met:
        """The best so many of both."""
        loss = np.concatenate([self.loss, other.loss[:count]])
        order = np.argsort(loss, kind="stable")[:count]
        return Met(np.concatenate([self.planes, other.planes[:count]])[order], loss[order])


class _Members:
    """Networks on their way, in batches of one size that stay where they are computed.

    How many there are hangs on the problem alone, not on the cores that work on them: the answer is the same.
    """

    def __init__(
        self, form: Form, sides: Mirror, manners: list[tuple[Metric, Temper]], count: int, cores: int
    ) -> None:
        self.form, self.sides, self.manners, self.cores = form, sides, manners, cores
        number = min(max(-(-count // _in_batch(form, sides)), _BESIDE), count)
        self.batch = -(-count // number)
        self.count = number * self.batch
        self.batches: list[Batch] = []
        self.turn = 0

    def born(self, rng: np.random.Generator, turn: int) -> None:
        """All of them anew, in other manners than at the turn before."""
        values, signs = _drawn(self.sides, self.form.k, rng, self.count)
        parts = [slice(at, at + self.batch) for at in range(0, self.count, self.batch)]
        with narrow():
            self.batches = [(jnp.asarray(values[part]), jnp.asarray(signs[part])) for part in parts]
        self.turn = turn

    def after(self, steps: int, strain: float, rng: np.random.Generator, run: Run) -> Met:
        """Members after so many steps more, of those batches that the clock leaves time for."""
        flipped = rng.random((len(self.batches), self.batch)) < _FLIP * steps
        kept = [
            (jnp.asarray(metric.kept(strain), jnp.float32), jnp.asarray(temper, jnp.float32))
            for metric, temper in self.manners
        ]

        def one(number: int) -> Reflected:
            own = kept[(_APART * number + self.turn) % len(kept)]
            with narrow():  # waited for in its own thread
                return jax.block_until_ready(
                    reflect(
                        self.form,
                        self.sides,
                        *own,
                        *self.batches[number],
                        jnp.asarray(flipped[number]),
                        steps,
                    )
                )

        found: list[Reflected] = []
        with ThreadPoolExecutor(self.cores) as threads:
            for at in range(0, len(self.batches), self.cores):
                if at and run.expired():
                    break
                some = range(at, min(at + self.cores, len(self.batches)))
                found += threads.map(one, some) if self.cores > 1 else map(one, some)
        for number, batch in enumerate(found):
            self.batches[number] = self._without_lost(batch, rng)
        loss = np.concatenate([np.asarray(batch.loss) for batch in found])
        loss = np.where(np.isfinite(loss), loss, np.inf)
        order = np.argsort(loss, kind="stable")
        planes = np.concatenate([np.nan_to_num(np.asarray(batch.planes)) for batch in found])
        return Met(planes[order], loss[order])

    def _without_lost(self, batch: Reflected, rng: np.random.Generator) -> Batch:
        """The batch; members whose numbers overflowed are born anew."""
        lost = ~np.all(np.isfinite(np.asarray(batch.values)), axis=(1, 2))
        if not np.any(lost):
            return batch.values, batch.signs
        values, signs = np.array(batch.values), np.array(batch.signs)
        values[lost], signs[lost] = _drawn(self.sides, self.form.k, rng, int(np.sum(lost)))
        with narrow():
            return jnp.asarray(values), jnp.asarray(signs)

    def shared(self, met: Met) -> str:
        """How many units of the best member the next ones have, on average."""
        if len(met.planes) < 2:
            return "one member"
        with narrow():
            near = jnp.asarray(met.planes[: LOOKED + 1])
            shared = np.asarray(shared_units(self.form, self.sides.rows, near))[1:]
        return f"{shared.mean():.1f} of {self.form.k} units shared"


def _drawn(
    sides: Mirror, k: int, rng: np.random.Generator, count: int
) -> tuple[Float[np.ndarray, "P k+1 n"], Float[np.ndarray, "P k"]]:
    """Values and signs of members at their beginning."""
    values = first_values(sides, rng, count, k)
    return values, rng.choice(np.array([-1, 1], np.float32), (count, k))


def _call_work() -> float:
    return _GPU_CALL if on_accelerator() else _CPU_CALL


def kinked(form: Form) -> bool:
    """Whether the units of a search form are |t| but for a factor, with one output."""
    return form.outputs is None and form.activation.kinked and form.activation.homogeneity == 1


def step_work(problem: Problem) -> float:
    """Operations of a step of one member: two products with the basis, and some fifty a value."""
    rows = min(problem.n, _most_rows(problem))
    return rows * (problem.k + 1) * (4.0 * (problem.d + 1) + 50)


def _in_batch(form: Form, sides: Mirror) -> int:
    """Members at a time: as many as a cache holds on a CPU, all on an accelerator."""
    each = 5 * 4 * (form.k + 1) * len(sides.basis)
    return _GPU_MEMBERS if on_accelerator() else max(1, _CPU_BYTES // each)


def _most_rows(problem: Problem) -> int:
    return _ROWS * search_form(problem).freedom
