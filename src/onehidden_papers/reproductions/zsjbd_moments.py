"""[ZSJBD] slides: the third moment of a homogeneous activation, and strong convexity near the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onehidden import activations
from onehidden.network import OneHiddenNet
from onehidden.streams import stream
from onehidden_papers.lab.convexity import empirical_hessian
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.record import OPEN, Claim, Item, Row, Table, one_of

HOMOGENEOUS = ("relu", "squared_relu", "cubed_relu")
NICE, POOR = ("relu", "leaky_relu", "squared_relu", "tanh", "sigmoid", "erf"), ("linear", "quadratic")


@dataclass(frozen=True)
class Settings:
    """Sizes of the two runs: batches for the third moment, trials for the curvatures."""

    repeats: int = 400
    batch: int = 20_000
    trials: int = 20
    n: int = 4000
    units: int = 3
    condition: float = 2.0
    radius: float = 0.05  # of σ_k


SMALL = Settings(100, 10_000, 4)


def judge_fact(rows: Sequence[Row]) -> str:
    return one_of(all(row["largest deviation in standard errors"] <= row["allowed"] for row in rows))


FACT = Claim(
    "zsjbd-fact", "[ZSJBD] slides, Fact",
    "For q-homogeneous φ, E[y(x⊗x⊗x − x ⊗̃ I)] = Σ c v_i |w_i|^(q−3) w_i⊗w_i⊗w_i.",
    "Reproduced: no entry of the tensor is farther from the formula than what the largest of so many normal "
    "numbers exceeds once in 10 000; ReLU, ReLU² and ReLU³. Else not reproduced.",
    judge_fact,
)  # fmt: skip


def measure_fact(settings: Settings, seed: int) -> Table:
    """Measure with c = E[φ'''(z)] at unit norm: 0 for ReLU, 2φ(0) for ReLU², 3 for ReLU³."""
    from scipy.stats import norm

    d, repeats, n = 6, settings.repeats, settings.batch
    constants = {"relu": 0.0, "squared_relu": 2 / np.sqrt(2 * np.pi), "cubed_relu": 3.0}
    allowed = float(norm.isf(0.5e-4 / d**3))
    rows = []
    for name, q in zip(HOMOGENEOUS, (1, 2, 3), strict=True):
        draw = stream(seed, "paper", "zsjbd-fact", name)
        teacher = conditioned_teacher(d, settings.units, settings.condition, name, draw, signed=True)
        rng, means = stream(seed, "paper", "zsjbd-fact", "inputs", name), []
        for _ in range(repeats):
            X = rng.standard_normal((n, d))
            y = teacher.predict(X)
            first = X.T @ y / n
            cube = np.einsum("n,ni,nj,nk->ijk", y, X, X, X, optimize=True) / n
            eye = np.eye(d)
            cube -= np.einsum("i,jk->ijk", first, eye) + np.einsum("j,ik->ijk", first, eye)
            means.append(cube - np.einsum("k,ij->ijk", first, eye))
        W, v = teacher.weights, teacher.output
        scale = constants[name] * v * np.linalg.norm(W, axis=1) ** (q - 3)
        exact = np.einsum("a,ai,aj,ak->ijk", scale, W, W, W)
        error = np.std(means, axis=0, ddof=1) / np.sqrt(repeats)
        gap = np.abs(np.mean(means, axis=0) - exact) / error
        largest = (float(part.max()) for part in (np.abs(exact), error, gap))
        rows.append((name, q, constants[name], *largest, allowed))
    return Table(
        f"The third moment, d = {d}, k = {settings.units}",
        ("activation", "q", "c", "largest entry", "largest standard error",
         "largest deviation in standard errors", "allowed"),
        tuple(rows),
        (f"{repeats} batches of {n} samples; {d**3} entries each.",),
    )  # fmt: skip


def judge_convex(rows: Sequence[Row]) -> str:
    nice = [row for row in rows if row["activation"] in NICE]
    return one_of(all(row["smallest m_0"] > 0 for row in nice))


CONVEX = Claim(
    "zsjbd-convexity", "[ZSJBD] slides, theorem",
    "With P1–P3, n ≥ d·poly(k, λ)/ρ² and |W − W*| ≤ ρ²/poly the Hessian on the samples satisfies "
    "m_0 I ≤ ∇²f ≤ M_0 I with m_0 > 0.",
    "Reproduced: at random W within .05 σ_k (and n = 4000 > 100 kd) every Hessian of every activation with "
    "P1–P3 is positive definite. Else not reproduced.",
    judge_convex,
)  # fmt: skip
ORDER = Claim(
    "zsjbd-convexity-order", "[ZSJBD] slides, theorem",
    "m_0 = Θ(ρ(σ_k)/(κ²λ)) and M_0 = Θ(kσ_1^2p).",
    "Cannot be judged: a Θ without its constants fits any table of finitely many numbers; the ratios stand "
    "in the rows.",
    lambda rows: OPEN,
)  # fmt: skip


def measure_convex(settings: Settings, seed: int) -> Table:
    """Extreme curvatures on samples at W* and around it; linear and quadratic beside."""
    trials, n, k, condition = settings.trials, settings.n, settings.units, settings.condition
    rows = []
    for name in (*NICE, *POOR):
        low, high = [], []
        for trial in range(trials):
            draw = stream(seed, "paper", "zsjbd-convexity", name, trial)
            teacher = conditioned_teacher(8, k, condition, name, draw, signed=True)
            X = draw.standard_normal((n, 8))
            move = draw.standard_normal(teacher.weights.shape)
            W = teacher.weights + settings.radius * move / np.linalg.norm(move)  # σ_k = 1
            at = OneHiddenNet(W, teacher.output, activation=name)
            spectrum = np.linalg.eigvalsh(empirical_hessian(at, X, teacher.predict(X)))
            low.append(spectrum[0])
            high.append(spectrum[-1])
        g = activations.get(name)
        size = np.linspace(1, condition, k)
        reference = g.rho(1.0) / (condition**2 * float(np.prod(size)))
        ratio = float(min(low) / reference) if reference > 0 else "–"
        rows.append((name, trials, float(min(low)), float(max(high)), float(g.rho(1.0)), ratio))
    return Table(
        f"Curvatures of the squared loss near the truth, d = 8, k = {k}, κ = {condition:g}, n = {n}",
        ("activation", "trials", "smallest m_0", "largest M_0", "ρ(1)", "m_0 κ²λ/ρ"),
        tuple(rows),
        (f"W at distance {settings.radius} σ_k of W*, v = ±1; linear and quadratic lack P2.",),
    )


FACT_ITEM = Item(
    "zsjbd-fact", "[ZSJBD] slides", "The third moment of homogeneous activations.", (FACT,), measure_fact,
    default=SMALL, full=Settings(),
)  # fmt: skip
CONVEX_ITEM = Item(
    "zsjbd-convexity", "[ZSJBD] slides", "Strong convexity near the truth.", (CONVEX, ORDER), measure_convex,
    default=SMALL, full=Settings(),
)  # fmt: skip
