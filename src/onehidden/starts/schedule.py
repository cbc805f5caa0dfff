"""The schedule: which starts are tried in which order, as a table of rows with a condition each.

A start is one file with one class, one entry in ``NAMES``, its name in ``options.STARTS`` and, if
``start="auto"`` should try it, one row of ``SCHEDULE``. Conditions are predicates of a ``Case``, a problem
as the schedule sees it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from onehidden import machine
from onehidden.fit.problem import Problem
from onehidden.fit.rounding import decimal_step
from onehidden.machine import on_accelerator
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, Start, cheap_descents, search_form
from onehidden.starts.difference_map import DifferenceMap, kinked
from onehidden.starts.restarts import Population, Random
from onehidden.starts.wide import Thinned, Wide

Choice = str | Start | Sequence["str | Start"]


@dataclass(frozen=True)
class Case:
    """Size and noise of a problem."""

    problem: Problem

    @property
    def parameters(self) -> int:
        """Weights and biases of the units."""
        return self.problem.k * (self.problem.d + 1)

    @property
    def samples_per_weight(self) -> float:
        """Target values per weight into or out of a unit."""
        problem = self.problem
        return problem.n_values / (problem.k * (problem.d + problem.form.q))

    def few_samples(self) -> bool:
        """Whether homogeneous units have under five target values per weight; smooth ones need no more."""
        return self.problem.activation.homogeneity is not None and self.samples_per_weight < 5

    def small(self) -> bool:
        """At most 450 parameters (300 when samples are few): random restarts are fast and usually succeed."""
        scarce = self.few_samples() and self.problem.k >= 8  # restarts seldom succeed (d = k = 20, n = 1000)
        return self.parameters <= (300 if scarce else 450)

    def large(self) -> bool:
        """Whether random restarts take longer, or seldom succeed."""
        return not self.small()

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


def always(case: Case) -> bool:
    """No condition."""
    return True


@dataclass(frozen=True)
class Row:
    """One row of the schedule."""

    start: Start | Callable[[Case], Start]  # what is tried, or a function of the case that makes it
    when: Callable[[Case], bool] = always  # the condition
    max_loss: float = float("inf")  # tried only while the best loss is at most this share of var(y)

    def made(self, case: Case) -> Start:
        """Return the start of this row for a case."""
        return self.start if isinstance(self.start, Start) else self.start(case)


def _restarts(case: Case) -> Random:
    return Random(max(4, cheap_descents(case.problem)))


SCHEDULE: tuple[Row, ...] = (
    Row(lambda case: DifferenceMap(min(case.map_steps, 20_000)), Case.map_applies),
    Row(_restarts, Case.small),
    Row(
        lambda case: DifferenceMap(13 * min(case.map_steps, 300_000), first_run=1),
        Case.longer_map_applies,
        max_loss=0.1,
    ),
    Row(Wide()),
    Row(_restarts, Case.large),
)

# The start that a name stands for; ``options.STARTS`` lists the same names for ``--help``.
NAMES: dict[str, Callable[[], Start]] = {
    "random": Random,
    "tensor": lambda: theory_start("Tensor")(copies=40),
    "localised": lambda: theory_start("Localised")(copies=40),
    "landscape": lambda: theory_start("Landscape")(),
    "difference_map": DifferenceMap,
    "wide": Wide,
    "thinned": Thinned,
    "population": Population,
}
RENAMED = {"reflections": "difference_map"}
ACCEPTED = ("auto", *NAMES, *RENAMED)


def planned(start: Choice, case: Case, schedule: tuple[Row, ...] = SCHEDULE) -> list[tuple[Start, float]]:
    """Return the starts of a choice (a name, an object, or a list of either) with their largest loss."""
    if isinstance(start, list | tuple):
        return [one for some in start for one in planned(some, case, schedule)]
    if isinstance(start, Start):
        return [(start, float("inf"))]
    if start == "auto":
        return [(row.made(case), row.max_loss) for row in schedule if row.when(case)]
    name = str(start)
    if name in RENAMED:
        warnings.warn(f"start={name!r} is now start={RENAMED[name]!r}", DeprecationWarning, stacklevel=2)
        name = RENAMED[name]
    return [(NAMES[name](), float("inf"))]


def theory_start(name: str) -> Any:
    """Import a name of the starts of the theory package, on which the tool does not depend."""
    return getattr(import_module("onehidden_papers.starts"), name)


def proposals(
    problem: Problem, start: Choice, run: Run, schedule: tuple[Row, ...] = SCHEDULE
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
            for candidate in one.propose(problem, run.at(f"{number}-{one.name}")):
                yield replace(candidate, number=count)
                count, lowest = count + 1, min(lowest, candidate.loss)
        except Refused as reason:  # no usable order, no clusters: the others may do
            refusal = reason
            run.report(f"{one.name} start refused", 0, float("nan"))
    if not count and refusal is not None:
        raise refusal


Plan = list[tuple[int, Start, float]]


def _fitting_first(plan: Plan, problem: Problem, run: Run) -> Plan:
    """Return the starts whose work fits into the budget first, at least one random restart.

    The whole budget decides, not what is left of it: the order does not depend on the clock.
    """
    if run.max_seconds is None or on_accelerator():
        return plan
    fits = [one for one in plan if run.within_whole_budget(one[1].work(problem))]
    rest = [one for one in plan if one not in fits]
    if not any(isinstance(start, Random) for _, start, _ in fits):  # the others may refuse
        fits.append((len(plan), Random(1, first=200), float("inf")))
    return [*fits, *rest]
