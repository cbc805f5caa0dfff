"""Ablation: what each row of the schedule and each step of the search earns on fresh planted teachers.

Every problem is first solved by the whole schedule, which records the mechanisms that were entered and their
seconds. Each of these is then left out in turn on that problem; where a mechanism was not entered, or changed
nothing, leaving it out changes only the time and is not run. Seconds are of the processor, in one thread, so
that a busy machine does not change the outcome. A problem is solved when its loss is that of the minimum next
to the teacher, within 4 of n log(loss), or rounding where y has no noise.

``ABLATION_SECONDS`` bounds the processor time of all runs (default 2700), ``BENCH_ROWS`` is the folder of
finished rows; rows that are there are not measured again.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks._table import Table
from onehidden.fit.problem import Problem, optimise
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.search import search
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream
from onehidden.starts import DifferenceMap, Start, Wide
from onehidden.starts.candidate import Candidate
from onehidden.starts.repair import repaired
from onehidden.starts.schedule import SCHEDULE, Case, Entry, proposals

BUDGET = 12.0  # seconds of one run
SEEDS = 40

Mechanism = str
Row = dict[str, Any]


@dataclass(frozen=True)
class Regime:
    """A kind of planted teacher.

    Attributes
    ----------
    d, k, n : int
        Inputs, units, samples.
    noise : float
        Standard deviation of normal noise.
    outputs : int or None
        Number of outputs; None for a vector y.
    clusters : bool
        Whether the inputs form clusters.
    equal : bool
        Whether all output weights are 1 or -1.
    """

    d: int
    k: int
    n: int
    activation: str = "relu"
    noise: float = 0.0
    outputs: int | None = None
    family: str | None = None
    bias: bool = True
    clusters: bool = False
    equal: bool = False

    def drawn(self, seed: int) -> tuple[np.ndarray, np.ndarray, oh.OneHiddenNet]:
        """X, y and the teacher."""
        draw = stream(seed, "ablation", "teacher", repr(self))
        d, k, tail = self.d, self.k, () if self.outputs is None else (self.outputs,)
        weights = draw.standard_normal((k, d)) / np.sqrt(d)
        output = draw.choice([-1.0, 1.0], (k, *tail))
        if not self.equal:
            output = output * draw.uniform(0.5, 1.5, (k, *tail))
        if self.activation != "relu":
            weights = 1.5 * weights
        bias = 0.5 * draw.standard_normal(k) if self.bias else None
        net = oh.OneHiddenNet(weights, output, bias, np.zeros(tail)[()], self.activation)
        X = draw.standard_normal((self.n, d))
        if self.clusters:
            X = 0.6 * X + 1.5 * draw.choice([-1.0, 1.0], (self.n, 1)) * draw.standard_normal(d)
        eta = net.predict(X)
        if self.family == "poisson":
            return X, draw.poisson(np.exp(eta / np.std(eta))).astype(float), _scaled(net, 1 / np.std(eta))
        if self.family == "bernoulli":
            eta = 2 * eta / np.std(eta)
            return X, (draw.random(self.n) < 1 / (1 + np.exp(-eta))).astype(float), net
        return X, eta + self.noise * np.std(eta, axis=0) * draw.standard_normal(eta.shape), net


def _scaled(net: oh.OneHiddenNet, by: float) -> oh.OneHiddenNet:
    return oh.OneHiddenNet(net.weights, by * net.output, net.bias, by * net.intercept, net.activation)


REGIMES = {
    "noise-free": Regime(12, 12, 1500),
    "more units than inputs": Regime(4, 12, 1500),
    "few samples, 2.2 a weight": Regime(10, 8, 194),
    "few samples, 1.6 a weight": Regime(10, 8, 141),
    "few samples, equal outputs": Regime(14, 14, 420, bias=False, equal=True),
    "noise .3": Regime(8, 6, 1500, noise=0.3),
    "noise .1": Regime(6, 10, 2000, noise=0.1),
    "three outputs": Regime(8, 8, 400, noise=0.1, outputs=3),
    "poisson": Regime(5, 3, 2000, family="poisson"),
    "bernoulli": Regime(4, 2, 4000, family="bernoulli"),
    "large d = k": Regime(20, 20, 3000, bias=False, equal=True),
    "tanh": Regime(6, 8, 1500, "tanh", noise=0.1),
    "softplus": Regime(5, 6, 2000, "softplus"),
    "clusters": Regime(10, 8, 1500, clusters=True, bias=False),
    "one unit": Regime(200, 1, 1000, noise=0.5),
    "squared ReLU, 3 samples a weight": Regime(8, 8, 216, "squared_relu"),
    "three outputs, 2.5 samples a weight": Regime(10, 10, 108, outputs=3),
    "many inputs": Regime(100, 4, 3000, noise=0.3),
    "many inputs, few samples": Regime(50, 5, 375, bias=False, equal=True),
    "GELU, many units": Regime(8, 10, 2000, "gelu", noise=0.05),
    "twelve units in two inputs": Regime(2, 12, 3000, noise=0.02),
}


@dataclass
class Entered:
    """Mechanisms that a run entered: how often, and their seconds."""

    times: dict[Mechanism, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[Mechanism, float] = field(default_factory=lambda: defaultdict(float))

    def around(self, name: Mechanism, function: Callable[..., Any], given: int) -> Callable[..., Any]:
        """The function, whose calls count where they change the argument at this place."""

        def call(*arguments: Any) -> Any:
            begun = time.process_time()
            result = function(*arguments)
            self.seconds[name] += time.process_time() - begun
            self.times[name] += result is not arguments[given]
            return result

        return call


def label_of(row: Entry, case: Case) -> str:
    """What a row of the schedule is called in the table."""
    start = row.made(case)
    if isinstance(start, DifferenceMap):
        return "difference map" if start.first_run == 0 else "longer difference map"
    if isinstance(start, Wide):
        return f"wide, {start.steps} steps"
    return start.name if getattr(start, "first", 0) == 0 else f"further {start.name}"


def recording(start: Start, label: str, entered: Entered) -> Start:
    """The same start, of a subclass that records its candidates."""
    base = type(start)

    def propose(self: Any, problem: Problem, run: Run) -> Iterator[Candidate]:
        entered.times[label] += 1
        found = base.propose(self, problem, run)
        while True:
            begun = time.process_time()
            one = next(found, None)
            entered.seconds[label] += time.process_time() - begun
            if one is None:
                return
            yield one

    parts = {one.name: getattr(start, one.name) for one in fields(start)}  # type: ignore[arg-type]
    return type(base.__name__, (base,), {"propose": propose})(**parts)


def schedule(entered: Entered, out: Mechanism | None) -> tuple[Entry, ...]:
    """The rows of the schedule, recorded, without one."""

    def recorded(row: Entry) -> Callable[[Case], Start]:
        return lambda case: recording(row.made(case), label_of(row, case), entered)

    def stays(row: Entry) -> Callable[[Case], bool]:
        return lambda case: row.when(case) and label_of(row, case) != out

    return tuple(replace(row, start=recorded(row), when=stays(row)) for row in SCHEDULE)


def parts(entered: Entered, out: Mechanism | None) -> dict[str, Any]:
    """The parts of a search, recorded, without one mechanism."""

    def repair(problem: Problem, candidate: Candidate, run: Run) -> Candidate:
        return (
            candidate if out == "repair" else entered.around("repair", repaired, 1)(problem, candidate, run)
        )

    return {"propose": partial(proposals, schedule=schedule(entered, out)), "repair": repair}


def posed(regime: Regime, seed: int) -> tuple[Problem, Options, oh.OneHiddenNet]:
    """The problem of a teacher, what is asked, and the teacher."""
    X, y, truth = regime.drawn(seed)
    options = Options(
        hidden=regime.k, activation=regime.activation, bias=regime.bias, family=regime.family, seed=seed
    )
    target = read_target(X, y, None, options.family, options.link, None, None)
    return problem_of(target.samples, options, target.family, None, None), options, truth


@in_double
def measured(name: str, seed: int, out: Mechanism | None, start: str = "auto") -> Row:
    """One run, with a mechanism left out."""
    problem, options, truth = posed(REGIMES[name], seed)
    options = replace(options, start=start)
    entered = Entered()
    run = Run(seed, BUDGET, clock=time.process_time, began=time.process_time())
    found = search(problem, options, run, **parts(entered, out)).certificate
    seconds = run.seconds()
    best = optimise(truth, problem, Run(), warm=True)
    if REGIMES[name].noise or problem.family is not None:
        solved = problem.excess_deviance(best.mean_square, found.mean_square) <= 4.0
    else:
        solved = problem.rows.rounding.reproduces(found.mean_square)
    return {
        "solved": bool(solved),
        "seconds": seconds,
        "loss": found.mean_square,
        "best": best.mean_square,
        "times": dict(entered.times),
        "spent": dict(entered.seconds),
    }


def rows(limit: float, seeds: int) -> dict[tuple[str, int, str], Row]:
    """All rows, measured seed by seed until the time is up; key: regime, seed, what was left out."""
    folder = Path(os.environ.get("BENCH_ROWS", Path(__file__).parents[1] / "build" / "bench"))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "ablation.jsonl"
    found: dict[tuple[str, int, str], Row] = {}
    if file.exists():
        for line in file.read_text().splitlines():
            *key, row = json.loads(line)
            found[tuple(key)] = row
    begun = time.process_time()

    def get(name: str, seed: int, out: str) -> Row | None:
        key = (name, seed, out)
        if key not in found:
            if time.process_time() - begun > limit:
                return None
            start = "random" if out == "all but random" else "auto"
            row = measured(name, seed, out or None, start)
            found[key] = row
            with file.open("a") as stream_:
                stream_.write(json.dumps([*key, row]) + "\n")
        return found[key]

    for seed in range(seeds):
        for name in REGIMES:
            whole = get(name, seed, "")
            if whole is None:
                return found
            for out in sorted(one for one, times in whole["times"].items() if times):
                get(name, seed, out)
            get(name, seed, "all but random")
    return found


def main(quick: bool) -> list[str]:
    limit = float(os.environ.get("ABLATION_SECONDS", 60 if quick else 2700))
    found = rows(limit, 1 if quick else SEEDS)
    return table(found)


def table(found: dict[tuple[str, int, str], Row]) -> list[str]:
    """Solved with the whole schedule, and with each mechanism left out where it was entered."""
    whole = {key[:2]: row for key, row in found.items() if key[2] == ""}
    first = Table("regime", "problems", "solved", "seconds", "random alone: solved", "seconds")
    for name in REGIMES:
        here = [row for (one, _), row in whole.items() if one == name]
        alone = [row for key, row in found.items() if key[0] == name and key[2] == "all but random"]
        first.row(name, len(here), _solved(here), _mean(here), _solved(alone), _mean(alone))
    first.say("")
    second = Table(
        "left out", "regime", "entered in", "solved with", "solved without", "seconds with", "seconds without"
    )
    outs = sorted({key[2] for key in found} - {"", "all but random"})
    for out in outs:
        for name in REGIMES:
            pairs = [(whole[key[:2]], row) for key, row in found.items() if key[0] == name and key[2] == out]
            if pairs:
                kept, without = [a for a, _ in pairs], [b for _, b in pairs]
                second.row(
                    out, name, len(pairs), _solved(kept), _solved(without), _mean(kept), _mean(without)
                )
    return [*first.lines, *second.lines]


def _solved(some: list[Row]) -> int:
    return sum(row["solved"] for row in some)


def _mean(some: list[Row]) -> float:
    return float(np.mean([row["seconds"] for row in some])) if some else float("nan")
