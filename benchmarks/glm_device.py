"""[GLM] at its own size, d = 50, on one accelerator: G, f' and ℓ2 with fresh samples each step.

``PYTHONPATH=src python -m benchmarks glm_device --store`` on a GPU machine; --quick rehearses at d = 10.
Each run is given the steps that its time budget pays for, measured on a short run first; seconds include
compilation.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from benchmarks._table import Table
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import GaussianDesigned, HermiteLoss, SquaredLoss
from onehidden.papers.fresh import FreshSampler, random_rows, rotation
from onehidden.solvers.stochastic import adam, cosine_decay, descend, sgd, staircase
from onehidden.streams import derived_seed


def timed(
    objective: Any, sampler: Any, starts: Any, optimiser_of: Any, budget: float, most: int, project: Any
) -> Any:
    """Steps for the budget, then the run: (descent, steps, seconds)."""

    def go(steps: int, every: int) -> Any:
        return descend(
            objective.value_and_grad, starts, optimiser=optimiser_of(steps), steps=steps, sampler=sampler,
            project=project, record_every=every,
        )  # fmt: skip

    pilot = 20
    go(pilot, pilot)
    clock = time.perf_counter()
    go(pilot, pilot)
    each = (time.perf_counter() - clock) / pilot
    every = max(20, most // 200)
    steps = int(np.clip(budget / each, most // 8, most)) // every * every
    clock = time.perf_counter()
    run = go(steps, every)
    return run, steps, time.perf_counter() - clock


def first_below(run: Any, truth: np.ndarray, bound: float, path: Any) -> tuple[list[float], list[Any]]:
    """Final honest error of each seed, and the first recorded step at or below the bound."""
    final, first = [], []
    for seed in range(len(path)):
        errors = [match(B, truth).honest_error for B in path[seed]]
        final.append(errors[-1])
        hits = [int(s) for s, e in zip(run.steps, errors, strict=True) if e <= bound]
        first.append(hits[0] if hits else "never")
    return final, first


def cosine(rate: float) -> Any:
    return lambda steps: adam(cosine_decay(rate, steps))


def main(quick: bool) -> list[str]:
    d, big, mid = (10, 8192, 4096) if quick else (50, 262_144, 8192)
    scale, share = (0.6, 6) if quick else (1.0, 1)
    print(f"backend: {jax.default_backend()}, {jax.devices()[0].device_kind}", flush=True)
    table = Table(
        "objective", "teacher", "batch", "labels", "aim", "honest error", "printed error",
        "first step at aim", "steps", "seconds", "ms a step",
    )  # fmt: skip
    truth = rotation(d, derived_seed(0, "benchmark", "glm device", "teacher"))
    identity, turned = (OneHiddenNet(A, np.ones(d)) for A in (np.eye(d), truth))
    G = GaussianDesigned(1.0, 5.0)
    f = HermiteLoss((2, 4))
    outputs = np.ones((1, d))
    rows = random_rows(1, d, d, derived_seed(0, "benchmark", "glm device", "start"))
    settings = [
        ("G", G, identity, "I", big, 2, rows, cosine(0.02), 15, 3000, 0.1),
        ("G", G, turned, "rotated", big, 2, rows, cosine(0.02), 15, 3000, 0.1),
        ("G", G, identity, "I", big, None, rows, cosine(0.002), 40, 12_000, 0.1),
        ("G", G, turned, "rotated", big, None, rows, cosine(0.002), 40, 12_000, 0.1),
        ("f'", f, identity, "I", mid, 1, (outputs, rows), cosine(0.003), 15, 60_000, 0.05),
        ("f'", f, turned, "rotated", mid, 1, (outputs, rows), cosine(0.003), 15, 60_000, 0.05),
        ("f'", f, identity, "I", mid, None, (outputs, rows), cosine(0.001), 30, 120_000, 0.05),
    ]
    for name, objective, teacher, who, n, control, start, rule, budget, most, aim in settings:
        sampler = FreshSampler(objective, teacher, n, control=control)
        run, steps, seconds = timed(
            objective, sampler, start, rule, budget * scale, most // share, objective.project
        )
        path = run.path[1] if isinstance(run.path, tuple) else run.path
        final, first = first_below(run, teacher.weights, aim, path)
        printed = match(path[0][-1], teacher.weights).printed_error
        labels = "raw" if control is None else f"degree {control} removed"
        table.row(
            name, who, n, labels, aim, final[0], printed, first[0], steps, seconds, 1e3 * seconds / steps
        )
    loss = SquaredLoss()
    rule = lambda steps: sgd(staircase(0.01, steps))  # noqa: E731
    starts = (
        np.ones((5, d)),
        random_rows(5, d, d, derived_seed(0, "benchmark", "glm device", "starts of the squared loss")),
    )
    run, steps, seconds = timed(
        loss, FreshSampler(loss, identity, 256), starts, rule, 20 * scale, 40_000 // share, None
    )
    final, _ = first_below(run, identity.weights, 0.1, run.path[1])
    stuck = f"stuck {sum(e > 0.1 for e in final)}/5, best {min(final):.3g}"
    printed = min(match(path[-1], identity.weights).printed_error for path in run.path[1])
    table.row("ℓ2", "I", 256, "raw", 0.1, stuck, printed, "", steps, seconds, 1e3 * seconds / steps)
    return table.lines
