"""The schedule: which starts are tried in which order, as a table of entries with a condition each.

A start is one file with one class, one line of ``starts.REGISTRY`` and, if ``start="auto"`` should try it,
one entry of ``SCHEDULE``. Conditions are predicates of a ``Case``, a problem as the schedule sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onehidden import machine, starts
from onehidden.fit.problem import Problem
from onehidden.fit.rounding import decimal_step
from onehidden.machine import on_accelerator
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, Start, cheap_descents, further_restarts, search_form
from onehidden.starts.difference_map import DifferenceMap, kinked
from onehidden.starts.restarts import Random
from onehidden.starts.wide import Wide

Choice = str | Start | Sequence["str | Start"]
Plan = list[tuple[int, Start, float]]  # number, start, the largest loss at which it is tried


@dataclass(frozen=True)
class Case:
    """Size and noise of a problem."""

    problem: Problem

    @property
    def samples_per_weight(self) -> float:
        """Target values per weight into or out of a unit."""
        problem = self.problem
        return problem.n_values / (problem.k * (problem.d + problem.form.q))

    def few_samples(self) -> bool:
        """Whether homogeneous units have under five target values per weight; smooth ones need no more."""
        return self.problem.activation.homogeneity is not None and self.samples_per_weight < 5

    def small(self) -> bool:
        """At most 450 parameters (300 when samples are few): random restarts are fast and usually succeed.

        Otherwise they take longer, or seldom succeed.
        """
        scarce = self.few_samples() and self.problem.k >= 8  # restarts seldom succeed (d = k = 20, n = 1000)
        return self.problem.k * (self.problem.d + 1) <= (300 if scarce else 450)

    def map_applies(self) -> bool:
        """Whether samples are few and without noise, units have one kink, and the map is not too slow."""
        exact = not self.problem.rows.rounding.noisy
        kink = kinked(search_form(self.problem))
        return exact and kink and self.few_samples() and self.map_steps >= 2000

    def longer_map_applies(self) -> bool:
        """Whether ``map_applies`` below 2.25 target values per weight and y has more than a few digits."""
        y = self.problem.samples.y
        measured = decimal_step(y) > 1e-3 * np.std(y)
        return self.map_applies() and self.samples_per_weight < 2.25 and not measured

    @cached_property
    def map_steps(self) -> int:
        """Steps of the difference map in fifty seconds."""
        start = DifferenceMap()
        return int(machine.worth(50) / (start.size(self.problem) * start.step_work(self.problem)))


@dataclass(frozen=True)
class Entry:
    """One start of the schedule."""

    start: Start | Callable[[Case], Start]  # what is tried, or a function of the case that makes it
    when: Callable[[Case], bool] = lambda _: True  # the condition
    max_loss: float = float("inf")  # tried only while the best loss is at most this share of var(y)

    def made(self, case: Case) -> Start:
        """Return the start of this entry for a case."""
        return self.start if isinstance(self.start, Start) else self.start(case)


def _restarts(case: Case) -> Random:
    if case.problem.form.labelled:  # no other start is tried
        return Random(40)
    return Random(max(4, cheap_descents(case.problem)))


def _more_restarts(case: Case) -> Random:
    return Random(further_restarts(case.problem), first=100)


SCHEDULE: tuple[Entry, ...] = (
    Entry(lambda case: DifferenceMap(min(case.map_steps, 20_000)), Case.map_applies),
    Entry(_restarts, Case.small),
    Entry(
        lambda case: DifferenceMap(13 * min(case.map_steps, 300_000), first_run=1),
        Case.longer_map_applies,
        max_loss=0.1,
    ),
    Entry(Wide()),
    Entry(_restarts, lambda case: not case.small()),
    Entry(_more_restarts),
)


def planned(start: Choice, case: Case, schedule: tuple[Entry, ...] = SCHEDULE) -> list[tuple[Start, float]]:
    """Return the starts of a choice (a name, an object, or a list of either) with their largest loss."""
    if isinstance(start, list | tuple):
        return [one for some in start for one in planned(some, case, schedule)]
    if isinstance(start, Start):
        return [(start, float("inf"))]
    if start == "auto":
        return [(entry.made(case), entry.max_loss) for entry in schedule if entry.when(case)]
    return [(starts.named(str(start)), float("inf"))]


def proposals(
    problem: Problem, start: Choice, run: Run, schedule: tuple[Entry, ...] = SCHEDULE
) -> Iterator[Candidate]:
    """Candidates of all planned starts, lazily and numbered, so that a certified one ends the work.

    A start of the schedule that cannot begin here is passed over; where nothing else began, its refusal is
    raised.
    """
    count, lowest, refusal = 0, np.inf, None
    plan = [(number, *one) for number, one in enumerate(planned(start, Case(problem), schedule))]
    if start == "auto":
        plan = _fitting_first(plan, problem, run)
    for number, one, max_loss in plan:
        if count and run.expired():  # however short the time, something is tried
            return
        if lowest > max_loss:
            continue
        try:
            if problem.form.structure is not None and not getattr(one, "takes_structure", False):
                raise Refused(
                    f"the start {one.name!r} knows no structure: use start='auto' or oh.starts.Random"
                )
            for candidate in one.propose(problem, run.at(f"{number}-{one.name}")):
                yield replace(candidate, number=count)
                count, lowest = count + 1, min(lowest, candidate.loss)
        except Refused as reason:  # no usable order, no clusters: the others may do
            refusal = reason
            run.report(f"{one.name} start refused", 0, float("nan"))
    if not count and refusal is not None:
        raise refusal


def _fitting_first(plan: Plan, problem: Problem, run: Run) -> Plan:
    """Return the starts whose work fits into the budget first, at least one random restart.

    The whole budget decides, not what is left of it: the order does not depend on the clock. Where nothing
    fits, starts of up to twice the work of one restart come before it.
    """
    if run.max_seconds is None or on_accelerator():
        return plan
    restart = Random(1, first=200)
    cheap = [one for one in plan if one[1].work(problem) <= 2 * restart.work(problem)]
    fits = [one for one in plan if run.within_whole_budget(one[1].work(problem))] or cheap
    rest = [one for one in plan if one not in fits]
    if not any(isinstance(start, Random) for _, start, _ in fits):  # the others may refuse
        fits.append((len(plan), restart, float("inf")))
    return [*fits, *rest]
