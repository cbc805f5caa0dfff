"""[GLM] Fig. 1 and 2: the squared loss at exact width, fresh samples, is stuck from every random start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import SquaredLoss
from onehidden.papers.fresh import FreshSampler, random_rows, rotation
from onehidden.papers.record import Reproduction
from onehidden.solvers.stochastic import Descent, adam, descend, sgd, staircase
from onehidden.streams import derived_seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# An honest error below this is the truth; the papers' runs stay above .1.
REACHED = 0.05
COLUMNS = ("run", "reported", "population loss", "printed error", "honest error", "stuck")


def fig1(full: bool = False, seed: int = 0) -> Reproduction:
    """Fig. 1: ReLU."""
    return _figure("glm-fig1", "relu", "sgd", full, seed)


def fig2(full: bool = False, seed: int = 0) -> Reproduction:
    """Fig. 2: sigmoid."""
    # Sigmoid curvatures are a hundred times smaller: Adam, so that a failure is not mere slowness.
    return _figure("glm-fig2", "sigmoid", "adam", full, seed)


def _figure(name: str, activation: str, method: str, full: bool, seed: int) -> Reproduction:
    d, steps = (50, 40_000) if full else (20, 4_000)
    loss = SquaredLoss(activation)
    runs, rows, stuck = {}, [], []
    for label, A, starts in (
        ("B* = I", np.eye(d), 5),
        ("control: B* rotated", rotation(d, derived_seed(seed, "paper", name, "teacher")), 2),
        ("control: started near the truth", np.eye(d), 2),
    ):
        teacher = OneHiddenNet(A, np.ones(d), activation=activation)
        B = random_rows(starts, d, d, derived_seed(seed, "paper", name, "starts"))
        near = label.endswith("truth")
        B = A + 0.5 * B if near else B
        run = _descend(loss, teacher, B, method, steps, seed)
        runs[label] = (run, teacher)
        for i in range(starts):
            a, found = run.params[0][i], run.params[1][i]
            m = match(found, A)
            value = loss.population((a, found), teacher)
            stuck.append((near, m.honest_error > REACHED))
            reported = "stuck" if label == "B* = I" else ""
            rows.append(
                (f"{label}, run {i + 1}", reported, value, m.printed_error, m.honest_error, stuck[-1][1])
            )
    random_stuck = all(s for near, s in stuck if not near)
    near_reached = not any(s for near, s in stuck if near)
    return Reproduction(
        name,
        f"Squared loss, {activation}, d = k = {d}, batch 256, {steps} fresh batches",
        "[GLM] Fig. " + name[-1],
        COLUMNS,
        tuple(rows),
        "reproduced" if random_stuck and near_reached else "not reproduced",
        (
            "Step size divided by 4 every eighth of the run from its half on; its first value is ours.",
            "The control near the truth shows that rate and length suffice where the landscape allows.",
        ),
        lambda figure: _draw(figure, runs),
    )


def _descend(
    loss: SquaredLoss, teacher: OneHiddenNet, B: np.ndarray, method: str, steps: int, seed: int
) -> Descent:
    rule = sgd if method == "sgd" else adam
    return descend(
        loss.value_and_grad,
        (np.ones(B.shape[:2]), B),
        optimiser=rule(staircase(0.01, steps)),
        steps=steps,
        sampler=FreshSampler(loss, teacher, 256),
        seed=seed,
    )


def _draw(figure: Figure, runs: dict[str, tuple[Descent, OneHiddenNet]]) -> None:
    left, right = figure.subplots(1, 2)
    for index, (label, (run, teacher)) in enumerate(runs.items()):
        for i in range(len(run.values)):
            name = label if i == 0 else None
            left.semilogy(run.steps, run.values[i], color=f"C{index}", alpha=0.7, label=name)
            errors = [match(B, teacher.weights).honest_error for B in run.path[1][i]]
            right.plot(run.steps, errors, color=f"C{index}", alpha=0.7)
    left.set(xlabel="steps", ylabel="loss on the batch")
    right.set(xlabel="steps", ylabel="honest error", ylim=(0, 1))
    left.legend(fontsize="small")
