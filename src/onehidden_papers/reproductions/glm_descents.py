"""[GLM] Fig. 1–4: stochastic gradient on fresh samples, with the squared loss, f' and G."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import optax

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import derived_seed
from onehidden_papers.lab.stochastic import adam, cosine_decay, descend, sgd
from onehidden_papers.objectives import GaussianDesigned, HermiteLoss, Objective, SquaredLoss
from onehidden_papers.reproductions import experiment
from onehidden_papers.reproductions.experiment import REACHED, reached
from onehidden_papers.reproductions.record import (
    FAILED,
    OPEN,
    REPRODUCED,
    Curves,
    Row,
    Rows,
    one_of,
    sizes_of,
)

Rule = Callable[[float | optax.Schedule], optax.GradientTransformation]


@dataclass(frozen=True)
class Run:
    """One line of a figure: what is minimised, for which truth, and how."""

    label: str
    objective: Objective
    steps: int
    rate: float | optax.Schedule  # a number: from there along half a cosine
    rotated: bool = False  # B* a random rotation, else I
    control: int | None = None  # degree removed from y
    starts: int = 0  # several random starts; 0: one, whose label has no number
    near: bool = False  # started near the truth
    rule: Rule = sgd


def descents(
    runs: Sequence[Run], settings: Any, seed: int, about: Callable[..., float]
) -> tuple[Rows, Curves]:
    """Descend from every start of every run; outputs move too where the objective takes them.

    ``about`` computes the second column from a run, its parameters (a, B) and the teacher.
    """
    d, rows, curves = settings.d, [], {}
    seed_of = lambda use: derived_seed(seed, "paper", settings.name, use)  # noqa: E731
    for run in runs:
        A = experiment.rotation(d, seed_of("teacher")) if run.rotated else np.eye(d)
        teacher = OneHiddenNet(A, np.ones(d), activation=run.objective.activation)
        B = experiment.random_rows(run.starts or 1, d, d, seed_of("starts" if run.starts else "start"))
        B = A + 0.5 * B if run.near else B
        schedule = cosine_decay(run.rate, run.steps) if isinstance(run.rate, float) else run.rate
        pairs = not isinstance(run.objective, GaussianDesigned)
        found = descend(
            run.objective.value_and_grad,
            (np.ones(B.shape[:2]), B) if pairs else B,
            optimiser=run.rule(schedule),
            steps=run.steps,
            sampler=experiment.fresh_sampler(run.objective, teacher, settings.batch, run.control),
            project=run.objective.project,
            seed=seed_of("batches"),
        )
        outputs, paths = found.path if pairs else (np.ones(found.path.shape[:3]), found.path)
        for i, (a, path) in enumerate(zip(outputs, paths, strict=True), start=1):
            # Rows driven to infinity count as rows that all point along the diagonal.
            finite = [B if np.all(np.isfinite(B)) else np.full((d, d), d**-0.5) for B in path]
            label = f"{run.label}, run {i}" if run.starts else run.label
            curves[label] = found.steps, experiment.honest_errors(finite, A)
            last, value = match(finite[-1], A), about(run, (np.asarray(a)[-1], path[-1]), teacher)
            rows.append((label, value, last.printed_error, last.honest_error))
    return rows, curves


NEAR = "control: started near the truth"


def judge_stuck(rows: Sequence[Row]) -> str:
    """Stuck from every random start, while rate and length suffice from a start near the truth."""
    random = [row["honest error"] for row in rows if row["run"].startswith("B* = I")]
    near = [row["honest error"] for row in rows if row["run"].startswith(NEAR)]
    if not near or max(near) > REACHED:
        return OPEN
    return REPRODUCED if len(random) >= sizes_of("glm-fig1").starts and min(random) > REACHED else FAILED


@cache
def printed_schedule(steps: int, rate: float = 0.01) -> optax.Schedule:
    """Return the schedule of the text, compressed to ``steps``; one object a length, to share compilations.

    Of 70 000 steps: divided by 4 every 5000 after 10 000, below 1e-9 in the last 5000; no rate is stated.
    """
    cuts = {round((10_000 + 5_000 * i) * steps / 70_000): 0.25 for i in range(12)}
    return optax.piecewise_constant_schedule(rate, cuts)


def squared_loss(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Minimise the squared loss from random starts, for a rotated truth, and from near the truth."""
    loss, schedule = SquaredLoss(settings.activation), printed_schedule(settings.steps)
    run = partial(
        Run,
        objective=loss,
        steps=settings.steps,
        rate=schedule,
        rule={"sgd": sgd, "adam": adam}[settings.rule],
    )
    runs = [
        run("B* = I", starts=settings.starts),
        run("control: B* rotated", rotated=True, starts=2),
        run(NEAR, starts=2, near=True),
    ]
    return descents(runs, settings, seed, lambda _, *point: loss.population(*point))


def hermite(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Minimise f' with orders (2, 4) and ½|z|."""
    steps, rate, both = settings.steps, settings.rate, HermiteLoss((2, 4))
    runs = [
        Run("orders 2 and 4, raw labels, B* = I", both, steps, rate),
        Run("control: orders 2 and 4, raw labels, B* rotated", both, steps, rate, rotated=True),
        Run("½|z|, raw labels, B* = I", HermiteLoss("even"), steps, rate),
    ]
    return descents(runs, settings, seed, lambda run, *_: run.steps)


LEAN_G = "degree 2 removed from y, B* = I"
UNSIGNED_G = "control: sign of κ_4 left out, degree 2 removed"


def designed(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """G on raw labels, and with polynomials of degree ≤ 2 removed from y."""
    rate, short, fast = settings.rate, settings.lean_steps, settings.lean_rate
    signed, unsigned = (GaussianDesigned(settings.mu, settings.lam, sign=sign) for sign in (None, 1.0))
    runs = [
        Run("raw labels, B* = I", signed, settings.steps, rate),
        Run(LEAN_G, signed, short, fast, control=2),
        Run(UNSIGNED_G, unsigned, short // 3, fast, control=2),
        Run("control: raw labels, B* rotated", signed, settings.steps, rate, rotated=True),
    ]
    return descents(runs, settings, seed, lambda run, *_: run.steps)


def judge_sign(rows: Sequence[Row]) -> str:
    return one_of(reached(rows, UNSIGNED_G) != reached(rows, LEAN_G) == REPRODUCED)
