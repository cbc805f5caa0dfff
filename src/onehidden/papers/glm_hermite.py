"""[GLM] Fig. 3: the loss restricted to Hermite orders 2 and 4 reaches the truth."""

from __future__ import annotations

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import HermiteLoss
from onehidden.papers.fresh import FreshSampler, random_rows, rotation
from onehidden.papers.glm_designed import draw_errors
from onehidden.papers.record import Reproduction
from onehidden.solvers.stochastic import adam, cosine_decay, descend
from onehidden.streams import derived_seed

REACHED = 0.05


def fig3(full: bool = False, seed: int = 0) -> Reproduction:
    """Fig. 3: f' with orders (2, 4) and ½|z|; labels as they are and centred."""
    d, n, steps, rate = (50, 8192, 100_000, 1e-3) if full else (6, 4096, 1200, 0.01)
    settings = [
        ("orders 2 and 4, raw labels, B* = I", HermiteLoss((2, 4)), None, False, "converges"),
        ("orders 2 and 4, degree 1 removed from y, B* = I", HermiteLoss((2, 4)), 1, False, ""),
        ("control: B* rotated, degree 1 removed", HermiteLoss((2, 4)), 1, True, ""),
        ("½|z|, raw labels, B* = I", HermiteLoss("even"), None, False, "works (footnote 11)"),
        ("control: order 4 alone, degree 2 removed", HermiteLoss((4,)), 2, False, ""),
    ]
    rows, traces = [], {}
    for label, loss, control, rotated, reported in settings:
        A = rotation(d, derived_seed(seed, "paper", "glm-fig3", "teacher")) if rotated else np.eye(d)
        teacher = OneHiddenNet(A, np.ones(d))
        run = descend(
            loss.value_and_grad,
            (np.ones((1, d)), random_rows(1, d, d, derived_seed(seed, "paper", "glm-fig3", "start"))),
            optimiser=adam(cosine_decay(rate, steps)),
            steps=steps,
            sampler=FreshSampler(loss, teacher, n, control=control),
            project=loss.project,
            seed=seed,
        )
        a, B = run.params[0][0], run.params[1][0]
        m = match(B, A)
        excess = loss.population((a, B), teacher) - loss.population((np.ones(d), A), teacher)
        rows.append((label, reported, excess, m.printed_error, m.honest_error, m.honest_error <= REACHED))
        traces[label] = (run.steps, [match(Bt, A).honest_error for Bt in run.path[1][0]])
    # Removing degree 1 leaves the mean objective as it is: it is the paper's objective with less noise.
    verdict = (
        "reproduced" if rows[0][-1] else "reproduced after correction" if rows[1][-1] else "not reproduced"
    )
    return Reproduction(
        "glm-fig3",
        f"f' on fresh samples, d = k = {d}, batch {n}, {steps} steps",
        "[GLM] Fig. 3",
        ("run", "reported", "loss above the optimum", "printed error", "honest error", "reached"),
        tuple(rows),
        verdict,
        (
            "Removing a polynomial of degree 1 from y changes f' by a constant only; raw labels carry their "
            "mean as noise and need a larger batch or more steps at the default size.",
            "Order 4 alone fails: order 2 is what keeps the rows apart.",
        ),
        lambda figure: draw_errors(figure, traces),
    )
