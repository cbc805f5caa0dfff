"""[ZSJBD]: activations with P1, P2, P3; Hessian, third moment, descent near the truth; the tensor start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from onehidden import activations
from onehidden.activations import Activation
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.recovery import recover
from onehidden.run import stream
from onehidden_papers.activation_properties import rho_terms, standard_normal_nodes
from onehidden_papers.lab.descents import descend, empirical_hessian, linear_rate
from onehidden_papers.laws import standard_normal
from onehidden_papers.moments import MomentPass
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.reproductions.experiment import map_cells
from onehidden_papers.reproductions.record import Curves, Row, Rows, of, one_of, printed, sizes_of

# Which activations have P1, P2, P3(a), P3(b)

COLUMNS = ("P1", "P2", "P3a", "P3b", "P1,2,3")


def judge_properties(rows: Sequence[Row]) -> str:
    found = [row["printed"] for row in rows if row["printed"] != "–"]
    return one_of(len(found) == len(printed("zsjbd-properties")) and set(found) == {"same"})


def properties(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Decide every property from values of g' and hold it beside the printed table."""
    rows = []
    for name in activations.names(compared=True):
        found = activations.get(name).properties()
        ours = tuple(bool(found[c]) for c in COLUMNS)
        known = printed("zsjbd-properties").get(name)
        same = "–" if known is None else "same" if known == ours else "differs"
        rows.append((name, *("yes" if v else "no" for v in ours), same))
    return rows, {}


# ρ(σ) of Property 2, at σ = .1, 1, 10

PRINTED_DIGITS = 0.03  # two printed digits: 1.8 stands for 1.75 … 1.85
SQUARED = "squared_relu"


def judge_rho(rows: Sequence[Row]) -> str:
    """Every printed number; what is printed as a formula has a claim of its own."""
    own = [row for row in rows if row["printed"] != "–" and row["activation"] != SQUARED]
    return one_of(
        all(abs(row["ours"] - row["printed"]) <= PRINTED_DIGITS * abs(row["printed"]) + 1e-12 for row in own)
    )


def judge_squared(rows: Sequence[Row], power: int) -> str:
    own = of(rows, "activation", SQUARED)
    fits = [abs(row["ours"] / (0.27 * row["σ"] ** power) - 1) <= PRINTED_DIGITS for row in own]
    return one_of(all(fits))


def rho(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """ρ as the definition gives it, negative values counted as 0, beside the printed table."""
    rows = []
    known = printed("zsjbd-rho")
    for name in (*known, "sigmoid", "softplus", "gelu", "cubed_relu", "abs"):
        g = activations.get(name)
        for i, sigma in enumerate((0.1, 1.0, 10.0)):
            stands = known.get(name, ("–",) * 3)[i]
            rows.append((name, sigma, stands, float(g.rho(sigma)), min(rho_terms(g.derivative, sigma))))
    sigma = np.geomspace(0.01, 100, 41)
    curves = {
        name: (sigma, [activations.get(name).rho(s) for s in sigma])
        for name in ("relu", "leaky_relu", SQUARED, "tanh", "sigmoid", "erf")
    }
    return rows, curves


# Two examples where local strong convexity fails: g(z) = z and g(z) = z², W* = I, v = 1

# Dimension of the null space for k = d = 4: Σ a_i = 0 leaves d² − d; antisymmetric matrices d(d−1)/2.
NULL = {"linear": 12, "quadratic": 6}


def judge_degenerate(rows: Sequence[Row], name: str) -> str:
    """Ask for the predicted null space alone; activations with P2 have none."""
    (own,) = of(rows, "activation", name)
    others = [row for row in rows if row["activation"] not in NULL]
    return one_of(
        own["null directions"] == own["expected"]
        and own["defect of the null space"] < 1e-8
        and all(row["null directions"] == 0 for row in others)
    )


def degenerate(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Smallest eigenvalue and null space of the expected Hessian, with activations that have P2 beside."""
    rows, d = [], 4
    for name in ("linear", "quadratic", "relu", "squared_relu", "tanh", "sigmoid", "erf"):
        values, vectors = np.linalg.eigh(hessian_at_unit_rows(activations.get(name), d))
        null = int(np.sum(values <= 1e-12 * values[-1]))
        defect = 0.0
        if name in NULL:
            directions = vectors[:, :null].T.reshape(null, d, d)  # rows are a_j
            left = directions.sum(axis=1) if name == "linear" else directions + directions.transpose(0, 2, 1)
            defect = float(np.max(np.abs(left)))
        rows.append((name, float(values[0]), float(values[-1]), null, NULL.get(name, 0), defect))
    return rows, {}


def hessian_at_unit_rows(g: Activation, d: int) -> np.ndarray:
    """Expected Hessian at W = I, v = 1, x ~ N(0, I): blocks E[g'(x_i) g'(x_j) x x'] of independent x_i."""
    z, weight = standard_normal_nodes()
    slope = g.derivative(z)
    mean, first, second = (np.sum(weight * slope * z**q) for q in range(3))
    H = np.zeros((d, d, d, d))
    for i, j in product(range(d), repeat=2):
        if i == j:
            own = np.full(d, np.sum(weight * slope**2))
            own[i] = np.sum(weight * slope**2 * z**2)
        else:
            own = np.full(d, mean**2)
            own[[i, j]] = mean * second
            H[i, i, j, j] = H[i, j, j, i] = first**2
        H[i, :, j, :] += np.diag(own)
    return H.reshape(d * d, d * d)


# The third moment of a homogeneous activation, and strong convexity near the truth

HOMOGENEOUS = ("relu", "squared_relu", "cubed_relu")
NICE, POOR = ("relu", "leaky_relu", "squared_relu", "tanh", "sigmoid", "erf"), ("linear", "quadratic")


def _teacher(settings: Any, d: int, name: str, rng: np.random.Generator) -> OneHiddenNet:
    return conditioned_teacher(d, settings.units, settings.condition, name, rng, signed=True)


def _moved(teacher: OneHiddenNet, radius: float, rng: np.random.Generator) -> OneHiddenNet:
    """Return the network at that distance from a teacher, in units of σ_k = 1, in a random direction."""
    move = rng.standard_normal(teacher.weights.shape)
    return replace(teacher, weights=teacher.weights + radius * move / np.linalg.norm(move))


def judge_fact(rows: Sequence[Row]) -> str:
    return one_of(all(row["largest deviation in standard errors"] <= row["allowed"] for row in rows))


def third_moment(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Measure with c = E[φ'''(z)] at unit norm: 0 for ReLU, 2φ(0) for ReLU², 3 for ReLU³."""
    from scipy.stats import norm

    d, repeats, n = 6, settings.repeats, settings.batch
    law = standard_normal(d)  # whose S_3 is x⊗x⊗x − x ⊗̃ I
    constants = {"relu": 0.0, "squared_relu": 2 / np.sqrt(2 * np.pi), "cubed_relu": 3.0}
    allowed = float(norm.isf(0.5e-4 / d**3))
    rows = []
    for name, q in zip(HOMOGENEOUS, (1, 2, 3), strict=True):
        draw = stream(seed, "paper", "zsjbd-fact", name)
        teacher = _teacher(settings, d, name, draw)
        rng, total = stream(seed, "paper", "zsjbd-fact", "inputs", name), MomentPass(law, (3,))
        for _ in range(repeats):
            X = rng.standard_normal((n, d))
            total.update((X, teacher.predict(X)))
        moments = total.result()
        W, v = teacher.weights, teacher.output
        scale = constants[name] * v * np.linalg.norm(W, axis=1) ** (q - 3)
        exact = np.einsum("a,ai,aj,ak->ijk", scale, W, W, W)
        error = moments.standard_error(3)
        gap = np.abs(moments[3] - exact) / error
        largest = (float(part.max()) for part in (np.abs(exact), error, gap))
        rows.append((name, q, constants[name], *largest, allowed))
    return rows, {}


def judge_convex(rows: Sequence[Row]) -> str:
    nice = [row for row in rows if row["activation"] in NICE]
    return one_of(all(row["smallest m_0"] > 0 for row in nice))


def convexity(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Extreme curvatures on samples at W* and around it; linear and quadratic beside."""
    trials, n, k, condition = settings.trials, settings.n, settings.units, settings.condition
    rows = []
    for name in (*NICE, *POOR):
        low, high = [], []
        for trial in range(trials):
            draw = stream(seed, "paper", "zsjbd-convexity", name, trial)
            teacher = _teacher(settings, 8, name, draw)
            X = draw.standard_normal((n, 8))
            at = _moved(teacher, settings.radius, draw)
            spectrum = np.linalg.eigvalsh(empirical_hessian(at, X, teacher.predict(X)))
            low.append(spectrum[0])
            high.append(spectrum[-1])
        g = activations.get(name)
        size = np.linspace(1, condition, k)
        reference = g.rho(1.0) / (condition**2 * float(np.prod(size)))
        ratio = float(min(low) / reference) if reference > 0 else "–"
        rows.append((name, trials, float(min(low)), float(max(high)), float(g.rho(1.0)), ratio))
    return rows, {}


# Linear convergence of gradient descent with step 1/M_0

SMOOTH = ("squared_relu", "tanh", "sigmoid", "erf", "softplus")
CONTROL = "relu"  # P3(b) only: the corollary does not cover it


def judge_linear(rows: Sequence[Row]) -> str:
    own = [row for row in rows if row["activation"] != CONTROL]
    moved = sizes_of("zsjbd-linear").radius  # the Hessian moves by so much along the way
    return one_of(
        all(row["measured rate"] <= row["1 - m_0/M_0"] + moved * row["m_0"] / row["M_0"] for row in own)
    )


def linear(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """|W - W*|² a step against the corollary's 1 - m_0/M_0, both measured on the data at W*."""
    rows, curves, d = [], {}, 10
    for name in (*SMOOTH, CONTROL):
        seeded = {use: stream(seed, "paper", "zsjbd-linear", use) for use in ("teacher", "inputs", "start")}
        teacher = _teacher(settings, d, name, seeded["teacher"])
        X = seeded["inputs"].standard_normal((settings.n, d))
        y = teacher.predict(X)
        spectrum = np.linalg.eigvalsh(empirical_hessian(teacher, X, y))
        low, high = float(spectrum[0]), float(spectrum[-1])
        path = descend(
            _moved(teacher, settings.radius, seeded["start"]), X, y, smoothness=high, steps=settings.steps
        )
        far = np.linalg.norm(path - teacher.weights, axis=(1, 2))
        rows.append((name, low, high, 1 - low / high, linear_rate(far**2), float(far[-1] / far[0])))
        thin = slice(None, None, max(1, len(far) // 100))
        curves[name] = (np.arange(len(far))[thin], far[thin])
    return rows, curves


# Success of the tensor start over d and n: ICML Fig. 1(a)


def judge_rates(rows: Sequence[Row]) -> str:
    """No cell clearly below its reported rate: both rates are shares of few trials."""
    return one_of(all(not below(row) for row in rows if row["reported"] != "–"))


def below(row: Row, reported_trials: int = 10) -> bool:
    """Whether ours lies more than three standard errors of the difference below the reported rate."""
    known, ours, trials = float(row["reported"]), float(row["ours"]), int(row["trials"])
    share = (known * reported_trials + ours * trials) / (reported_trials + trials)
    error = np.sqrt(share * (1 - share) * (1 / reported_trials + 1 / trials))
    return ours < known - 3 * error


def judge_overall(rows: Sequence[Row]) -> str:
    """Every d succeeds at the largest n of the table, at 90 samples per input or fewer."""
    top = max(row["n"] for row in rows)
    last = [row for row in rows if row["n"] == top]
    return one_of(all(row["ours"] >= 0.9 and row["signs right"] >= 0.9 for row in last))


def trial(d: int, n: int, seed: int) -> tuple[float, float]:
    """Return the worst row error of one recovery, and whether every sign of v is right."""
    paper = sizes_of("zsjbd-icml-grid")
    random = stream(seed, "paper", "zsjbd-icml-grid", "teacher", d, n)
    teacher = conditioned_teacher(d, paper.units, paper.condition, paper.activation, random, signed=True)
    X = stream(seed, "paper", "zsjbd-icml-grid", "inputs", d, n).standard_normal((n, d))
    found = recover(
        X, teacher.predict(X), paper.units, activation=paper.activation, bias=False, intercept=False,
        start="tensor", seed=seed,
    ).network  # fmt: skip
    m = match(found, teacher)
    paired = found.output[m.permutation] if np.all(m.permutation >= 0) else np.zeros(paper.units)
    return m.max_error, float(np.all(np.sign(paired) == np.sign(teacher.output)))


def success_rates(
    sizes: Any, seed: int, run: Callable[[int, int, int], tuple[float, float]] = trial
) -> tuple[Rows, Curves]:
    """Success means every row within 1 %, rows at unit norm, as the figure counts it."""
    known, paper, rows = printed("zsjbd-icml-grid"), sizes_of("zsjbd-icml-grid"), []
    cells = list(product(sizes.sizes, sizes.dimensions))
    found = map_cells(run, [(d, n, 1000 * seed + t) for n, d in cells for t in range(sizes.trials)])
    for (n, d), values in zip(cells, np.reshape(found, (len(cells), sizes.trials, 2)), strict=True):
        reported = known[n][paper.dimensions.index(d)] if n in known else "–"
        errors, signs = values.T
        rate = float(np.mean(errors <= paper.success))
        rows.append((n, d, reported, rate, float(np.mean(signs)), float(errors.max()), sizes.trials))
    return rows, {}
