"""[GLM] Fig. 4: stochastic gradient on G with fresh samples reaches a permutation of the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import GaussianDesigned
from onehidden.papers.fresh import FreshSampler, random_rows, rotation
from onehidden.papers.record import Reproduction
from onehidden.solvers.stochastic import adam, cosine_decay, descend
from onehidden.streams import derived_seed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACHED = 0.1


def fig4(full: bool = False, seed: int = 0) -> Reproduction:
    """Fig. 4: G, raw labels as printed, and with polynomials of degree ≤ 2 removed from y."""
    d, n = (50, 262_144) if full else (8, 8192)
    raw_steps, steps = (12_000, 1_500) if full else (400, 400)
    raw_rate, rate = (2e-3, 0.02) if full else (0.02, 0.03)
    mu, lam = 1.0, 5.0
    # As printed, without the sign of κ_4 (ReLU: −1), the pair term is maximised.
    settings = [
        ("as printed: raw labels, B* = I", None, False, None, "converges", raw_steps, raw_rate),
        ("degree 2 removed from y, B* = I", 2, False, None, "", steps, rate),
        ("control: B* rotated, degree 2 removed", 2, True, None, "", steps, rate),
        ("control: sign of κ_4 left out, degree 2 removed", 2, False, 1.0, "", steps, rate),
    ]
    rows, traces = [], {}
    for label, control, rotated, sign, reported, count, speed in settings:
        A = rotation(d, derived_seed(seed, "paper", "glm-fig4", "teacher")) if rotated else np.eye(d)
        teacher = OneHiddenNet(A, np.ones(d))
        G = GaussianDesigned(mu, lam, sign=sign)
        run = descend(
            G.value_and_grad,
            random_rows(1, d, d, derived_seed(seed, "paper", "glm-fig4", "start")),
            optimiser=adam(cosine_decay(speed, count)),
            steps=count,
            sampler=FreshSampler(G, teacher, n, control=control),
            seed=seed,
        )
        m = match(run.params[0], A)
        errors = [match(B, A).honest_error for B in run.path[0]]
        first = next((int(s) for s, e in zip(run.steps, errors, strict=True) if e <= REACHED), None)
        rows.append((label, reported, m.printed_error, m.honest_error, first if first else "never"))
        traces[label] = (run.steps, errors)
    if rows[0][3] <= REACHED:
        verdict = "reproduced"
    else:
        verdict = "reproduced after correction" if rows[1][3] <= REACHED else "not reproduced"
    return Reproduction(
        "glm-fig4",
        f"G on fresh samples, d = k = {d}, batch {n}",
        "[GLM] Fig. 4",
        ("run", "reported", "printed error", "honest error", f"steps to honest error {REACHED}"),
        tuple(rows),
        verdict,
        (
            f"μ = {mu}, λ = {lam}, Adam with cosine decay; the paper states neither rate nor weights.",
            "E[q(x) S_4(x)] = 0 for q of degree ≤ 2: removing such a q from y leaves the mean of G alone and "
            "takes away most of its noise.",
        ),
        lambda figure: draw_errors(figure, traces),
    )


def draw_errors(figure: Figure, traces: dict[str, tuple[np.ndarray, list[float]]]) -> None:
    """Honest error against steps, one curve a run."""
    axes = figure.subplots()
    for label, (steps, errors) in traces.items():
        axes.plot(steps, errors, label=label)
    axes.set(xlabel="steps", ylabel="honest error", ylim=(0, 1))
    axes.legend(fontsize="small")
