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

import numpy as np
from jaxtyping import Float

from onehidden import machine
from onehidden.fit.problem import Problem
from onehidden.fit.rounding import decimal_step
from onehidden.machine import on_accelerator
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, Start, cheap_descents, lift, search_form
from onehidden.starts.difference_map import DifferenceMap, kinked
from onehidden.starts.input_model import InputModel, span
from onehidden.starts.localised import Localised
from onehidden.starts.repair import rounds
from onehidden.starts.restarts import Population, Random
from onehidden.starts.tensor import Tensor
from onehidden.starts.wide import Thinned, Wide

Choice = str | Start | Sequence["str | Start"]


@dataclass(frozen=True)
class Case:
    """Size and noise of a problem, in the subspace of the units if known."""

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

    def many_samples(self) -> bool:
        """Whether there are at least five target values per weight, or units are not homogeneous."""
        return not self.few_samples()

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
    # Whether it searches inside the span of the units (k coordinates, not d) where T_2 shows it. Starts that
    # read directions from moments or a linear fit gain nothing from that.
    in_subspace: bool = True
    max_loss: float = float("inf")  # tried only while the best loss is at most this share of var(y)
    max_nominal_seconds: float = float("inf")  # nominal seconds: where its work takes more, it is left out

    def made(self, case: Case) -> Start:
        """Return the start of this row for a case."""
        return self.start if isinstance(self.start, Start) else self.start(case)


def _restarts(case: Case) -> Random:
    return Random(max(4, cheap_descents(case.problem)))


def _more_restarts(case: Case) -> Random:
    """Restarts at the end: many units in few dimensions need one in fifty, where a step costs little."""
    step = case.problem.n * case.parameters**2
    return Random(min(60, int(machine.NOMINAL * 0.05 / (step * (1 + rounds(case.problem))))), 100)


def _map(times: int, first_run: int) -> Callable[[Case], Start]:
    def made(case: Case) -> Start:
        most = 20_000 if first_run == 0 else 300_000
        return DifferenceMap(times * min(case.map_steps, most), first_run=first_run)

    return made


def _wide(
    multiple: int, steps: int = 12_000, rate: float = 1e-2, decay: float = 1e-3
) -> Callable[[Case], Start]:
    def made(case: Case) -> Start:
        return Wide(multiple * max(8 * case.problem.k, 64), steps, rate=rate, decay=decay)

    return made


def _thinned(case: Case) -> Start:
    start = Thinned(4 * max(8 * case.problem.k, 64))
    if start.work(case.problem) <= machine.worth(1500) or case.samples_per_weight < 3.75:
        return start
    # Minibatch noise costs accuracy; pruning rounds recover it where samples are not too few.
    return Thinned(2 * max(8 * case.problem.k, 64), batch=1024)


SCHEDULE: tuple[Row, ...] = (
    Row(_map(1, first_run=0), Case.map_applies),
    Row(_restarts, Case.small),
    Row(_map(13, first_run=1), Case.longer_map_applies, max_loss=0.1),
    Row(_thinned, Case.few_samples, max_nominal_seconds=1500),
    Row(_wide(1)),
    Row(_wide(2, 24_000, 5e-3)),
    Row(_wide(4, 40_000, 5e-3, 2e-3)),
    Row(_thinned, Case.many_samples, max_nominal_seconds=1500),
    Row(_restarts, Case.large),
    Row(_more_restarts, in_subspace=False, max_loss=0.1),
)

# The rows that a name stands for; ``options.STARTS`` lists the same names for ``--help``.
NAMES: dict[str, tuple[Row, ...]] = {
    "random": (Row(Random()),),
    "tensor": (Row(Tensor(copies=40), in_subspace=False),),
    "localised": (Row(Localised(copies=40), in_subspace=False),),
    "landscape": (Row(lambda case: theory_start("Landscape")(), in_subspace=False),),
    "difference_map": (Row(DifferenceMap()),),
    "wide": (Row(_wide(1)), Row(_wide(2, 24_000, 5e-3)), Row(_wide(4, 40_000, 5e-3, 2e-3))),
    "thinned": (Row(Thinned()),),
    "population": (Row(Population()),),
}
RENAMED = {"reflections": "difference_map"}
ACCEPTED = ("auto", *NAMES, *RENAMED)


def planned(start: Choice, case: Case, schedule: tuple[Row, ...] = SCHEDULE) -> list[tuple[Start, Row]]:
    """Return the starts of a choice with their rows: a name, an object, or a list of either."""
    if isinstance(start, list | tuple):
        return [one for some in start for one in planned(some, case, schedule)]
    if isinstance(start, Start):
        return [(start, Row(start, in_subspace=False))]
    if start == "auto":
        rows = [(row.made(case), row) for row in schedule if row.when(case)]
        return [
            (one, row)
            for one, row in rows
            if one.work(case.problem) <= machine.worth(row.max_nominal_seconds)
        ]
    name = str(start)
    if name in RENAMED:
        warnings.warn(f"start={name!r} is now start={RENAMED[name]!r}", DeprecationWarning, stacklevel=2)
        name = RENAMED[name]
    return [(row.made(case), row) for row in NAMES[name]]


def theory_start(name: str) -> type[Start]:
    """Import the class of a start of the theory package, on which the tool does not depend."""
    return getattr(import_module("onehidden_papers.landscape"), name)


def proposals(
    problem: Problem, start: Choice, run: Run, schedule: tuple[Row, ...] = SCHEDULE
) -> Iterator[Candidate]:
    """Candidates of all planned starts, lazily and numbered, so that a certified one ends the work.

    A start of the schedule that cannot begin here is passed over; where nothing else began, its refusal is
    raised.
    """
    basis = _span(problem, start)
    within = problem if basis is None else problem.within(basis)
    count, lowest, refusal = 0, np.inf, None
    plan = list(enumerate(planned(start, Case(within), schedule)))
    if start == "auto":
        plan = _fitting_first(plan, problem, within, run)
    for number, (one, row) in plan:
        if count and run.expired():  # however short the time, something is tried
            return
        if lowest > row.max_loss:
            continue
        where = within if row.in_subspace else problem
        try:
            for candidate in one.propose(where, run.at(f"{number}-{one.name}")):
                candidate, count = replace(candidate, number=count), count + 1
                lowest = min(lowest, candidate.loss)
                yield candidate if where is problem or basis is None else lift(candidate, basis)
        except Refused as reason:  # no usable order, no clusters: the others may do
            refusal = reason
            run.report(f"{one.name} start refused", 0, float("nan"))
    if not count and refusal is not None:
        raise refusal


def _fitting_first(
    plan: list[tuple[int, tuple[Start, Row]]], problem: Problem, within: Problem, run: Run
) -> list[tuple[int, tuple[Start, Row]]]:
    """Return the starts whose work fits into the budget first, at least one random restart.

    The whole budget decides, not what is left of it: the order does not depend on the clock.
    """
    if run.max_seconds is None or on_accelerator():
        return plan
    fits, rest = [], []
    for one in plan:
        start, row = one[1]
        work = start.work(within if row.in_subspace else problem)
        (fits if run.within_whole_budget(work) else rest).append(one)
    if not any(isinstance(start, Random) for _, (start, _) in fits):  # the others may refuse
        start = Random(1, first=200)
        fits.append((len(plan), (start, Row(start))))
    return [*fits, *rest]


def _span(problem: Problem, start: Choice) -> Float[np.ndarray, "d k"] | None:
    """Return the span of the units where T_2 shows it and a step inside it costs a quarter at most.

    ``auto`` fits no input model for it.
    """
    inputs = problem.input_model
    if not isinstance(inputs, InputModel) or problem.d + 1 < 2 * (problem.k + 1):
        return None
    asked = list(start) if isinstance(start, list | tuple) else [start]
    rows = [row for one in asked if isinstance(one, str) for row in NAMES.get(RENAMED.get(one, one), ())]
    known = "auto" in asked and (inputs.gaussian or inputs.given)
    return span(problem) if known or any(row.in_subspace for row in rows) else None
