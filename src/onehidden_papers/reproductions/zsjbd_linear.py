"""Linear convergence of gradient descent with step 1/M_0 [ZSJBD, corollary]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from onehidden.streams import stream
from onehidden_papers.lab.convexity import empirical_hessian
from onehidden_papers.lab.descents import Descent, descend, linear_rate
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.record import Claim, Curves, Item, Row, Table, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMOOTH = ("squared_relu", "tanh", "sigmoid", "erf", "softplus")
CONTROL = "relu"  # P3(b) only: the corollary does not cover it


@dataclass(frozen=True)
class Settings:
    """Sizes of a run."""

    steps: int = 4000
    d: int = 10
    units: int = 3
    condition: float = 2.0
    n: int = 4000
    radius: float = 0.05  # of σ_k: inside the convex region of every activation here


def judge(rows: Sequence[Row]) -> str:
    own = [row for row in rows if row["activation"] != CONTROL]
    moved = Settings.radius  # the Hessian moves by so much along the way
    return one_of(
        all(row["measured rate"] <= row["1 - m_0/M_0"] + moved * row["m_0"] / row["M_0"] for row in own)
    )


CLAIM = Claim(
    "zsjbd-linear",
    "[ZSJBD] slides, corollary",
    "For smooth activations with P1–P3 one step W − ∇f/M_0 has |W† − W*|² ≤ (1 − m_0/M_0)|W − W*|².",
    "Reproduced: from a start at distance .05 σ_k the measured rate of |W − W*|² is at most 1 − m_0/M_0, m_0 "
    "and M_0 the extreme curvatures at W*, up to the 5 % that they move by on the way; for every smooth "
    "activation. Else not reproduced.",
    judge,
)


def measure(settings: Settings, seed: int) -> Table:
    """|W - W*|² a step against the corollary's 1 - m_0/M_0, both measured on the data at W*."""
    rows, curves = [], {}
    for name in (*SMOOTH, CONTROL):
        path, low, high = _descent(name, settings, seed)
        rate, end = linear_rate(path.distances**2), float(path.distances[-1] / path.distances[0])
        rows.append((name, low, high, 1 - low / high, float(rate), end))
        thin = slice(None, None, max(1, len(path.distances) // 100))
        curves[name] = (np.arange(len(path.distances))[thin], path.distances[thin])
    return Table(
        "Linear convergence of gradient descent",
        ("activation", "m_0", "M_0", "1 - m_0/M_0", "measured rate", "end / start"),
        tuple(rows),
        (
            f"d = {settings.d}, k = {settings.units}, κ = {settings.condition:g}, n = {settings.n}, v = ±1 "
            f"held, start at distance {settings.radius:g} σ_k, m_0 and M_0 the extreme eigenvalues of the "
            "Hessian on the data at W*.",
            "The theorem's own constants are not stated; ReLU, not smooth, stands beside as a control.",
        ),
        curves,
    )


def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    for name, (steps, distances) in curves.items():
        axes.semilogy(steps, distances, label=name)
    axes.set(xlabel="step", ylabel="|W - W*| in the Frobenius norm")
    axes.legend()


def _descent(name: str, settings: Settings, seed: int) -> tuple[Descent, float, float]:
    random = stream(seed, "paper", "zsjbd-linear", "teacher")
    teacher = conditioned_teacher(settings.d, settings.units, settings.condition, name, random, signed=True)
    X = stream(seed, "paper", "zsjbd-linear", "inputs").standard_normal((settings.n, settings.d))
    y = teacher.predict(X)
    spectrum = np.linalg.eigvalsh(empirical_hessian(teacher, X, y))
    move = stream(seed, "paper", "zsjbd-linear", "start").standard_normal(teacher.weights.shape)
    move *= settings.radius / np.linalg.norm(move)  # σ_k = 1
    path = descend(
        replace(teacher, weights=teacher.weights + move), X, y, smoothness=float(spectrum[-1]),
        truth=teacher.weights, steps=settings.steps, tolerance=1e-28,
    )  # fmt: skip
    return path, float(spectrum[0]), float(spectrum[-1])


LINEAR = Item(
    "zsjbd-linear", "[ZSJBD] corollary", "Linear convergence of gradient descent.", (CLAIM,), measure, draw,
    Settings(2000), Settings(),
)  # fmt: skip
