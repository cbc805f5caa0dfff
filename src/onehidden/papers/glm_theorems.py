"""[GLM] Theorems 2.1, 2.2, 2.6: analytic formulas against Monte Carlo, as printed and corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.objectives import GaussianDesigned, HermiteLoss, Objective, SquaredLoss
from onehidden.papers.fresh import random_rows, rotation
from onehidden.papers.record import Reproduction
from onehidden.streams import derived_seed, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = ("formula", "value", "Monte Carlo", "standard error", "deviation in standard errors", "agrees")
# Four standard errors: a true formula fails once in 16 000.
LIMIT = 4.0


def theorem_2_1(full: bool = False, seed: int = 0) -> Reproduction:
    """f = Σ_m σ_m² |Σ a*_i b*_i^{⊗m} − Σ a_i b_i^{⊗m}|² + const, with const = 0 (no noise)."""
    teacher, params = _skew(seed)
    loss = SquaredLoss()
    g = teacher.activation
    cosines = [U @ V.T for U, V in _pairs(teacher, params[1])]
    weights = [(teacher.output, teacher.output), (teacher.output, params[0]), (params[0], params[0])]

    def series(highest: int, sigma: Callable[[int], float]) -> float:
        return float(
            sum(
                sigma(m) ** 2
                * sum(c * (u @ Q**m @ v) for c, (u, v), Q in zip((1, -2, 1), weights, cosines, strict=True))
                for m in range(highest + 1)
            )
        )

    shifted = lambda m: g.hermite(m + 1)  # noqa: E731 - a formula that must fail
    formulas = [
        ("(2.3), orders up to 60", series(60, g.hermite)),
        ("closed form (pair kernels)", loss.population(params, teacher)),
        ("control: orders 2 and 4 alone", series(4, lambda m: g.hermite(m) if m in (2, 4) else 0.0)),
        ("control: coefficients shifted by one order", series(60, shifted)),
    ]
    return _compare(
        "glm-theorem-2.1",
        "Squared loss as a sum of tensor losses",
        loss,
        teacher,
        params,
        formulas,
        2,
        full,
        seed,
    )


def theorem_2_2(full: bool = False, seed: int = 0) -> Reproduction:
    """f' = σ_2² f_2 + σ_4² f_4 + const."""
    teacher, params = _skew(seed)
    loss = HermiteLoss((2, 4))
    constant = loss.population((teacher.output, teacher.weights), teacher)
    tensor = loss.value(params, teacher)
    formulas = [
        ("(2.6): σ_2² f_2 + σ_4² f_4 + const", tensor + constant),
        ("closed form", loss.population(params, teacher)),
        ("control: σ_2 f_2 + σ_4 f_4 + const (squares lost)", _unsquared(loss, params, teacher) + constant),
        ("control: without the constant", tensor),
    ]
    return _compare(
        "glm-theorem-2.2", "f' as two tensor losses", loss, teacher, params, formulas, 2, full, seed
    )


def theorem_2_6(full: bool = False, seed: int = 0) -> Reproduction:
    """G in closed form: constants √6 and 1/(2√6), not 2√6 and 1/√6."""
    d = 4
    truth = rotation(d, derived_seed(seed, "paper", "glm-theorem-2.6", "teacher"))
    teacher = OneHiddenNet(truth, np.linspace(1, 2, d))
    B = 0.8 * random_rows(1, d, d, derived_seed(seed, "paper", "glm-theorem-2.6", "point"))[0]
    mu, lam = 0.5, 1.0
    G = GaussianDesigned(mu, lam)
    Q = (B @ teacher.weights.T) ** 2
    pairs = teacher.output @ (np.sum(Q, axis=0) ** 2 - np.sum(Q**2, axis=0))
    own = np.sum(Q**2 @ teacher.output)
    s4 = abs(teacher.activation.hermite(4))
    penalty = lam * np.sum((np.sum(B**2, axis=1) - 1) ** 2)
    form = lambda a, b, sign=1: sign * s4 * (a * pairs - mu * b * own) + penalty  # noqa: E731
    formulas = [
        ("corrected: √6, 1/(2√6)", form(np.sqrt(6), 1 / (2 * np.sqrt(6)))),
        ("library population form", G.population(B, teacher)),
        ("as printed, (2.10): 2√6, 1/√6", form(2 * np.sqrt(6), 1 / np.sqrt(6))),
        ("control: sign of σ_4 left out", form(np.sqrt(6), 1 / (2 * np.sqrt(6)), -1)),
    ]
    return _compare("glm-theorem-2.6", "Closed form of G", G, teacher, B, formulas, 2, full, seed)


def _compare(
    name: str,
    title: str,
    objective: Objective,
    teacher: OneHiddenNet,
    params: np.ndarray | tuple[np.ndarray, np.ndarray],
    formulas: list[tuple[str, float]],
    right: int,
    full: bool,
    seed: int,
) -> Reproduction:
    """Rows for every formula; the first ``right`` must agree and the others must not."""
    repeats, n = (2000, 20_000) if full else (300, 10_000)
    rng = stream(seed, "paper", name, "inputs")
    values = []
    for _ in range(repeats):
        X = rng.standard_normal((n, teacher.n_inputs))
        values.append(objective.value(params, (X, teacher.predict(X))))
    mean, error = float(np.mean(values)), float(np.std(values) / np.sqrt(repeats))
    rows = []
    for label, value in formulas:
        deviation = abs(value - mean) / error
        rows.append((label, float(value), mean, error, float(deviation), bool(deviation <= LIMIT)))
    agreeing = [row[-1] for row in rows]
    good = all(agreeing[:right]) and not any(agreeing[right:])
    corrected = any("as printed" in label for label, _ in formulas)
    verdict = ("reproduced after correction" if corrected else "reproduced") if good else "not reproduced"
    return Reproduction(
        name,
        title,
        "[GLM] Theorem " + name.rsplit("-", 1)[1],
        COLUMNS,
        tuple(rows),
        verdict,
        (f"{repeats} batches of {n} samples, x ~ N(0, I), random parameters.",),
        lambda figure: _draw(figure, rows),
    )


def _skew(seed: int) -> tuple[OneHiddenNet, tuple[np.ndarray, np.ndarray]]:
    truth, B = (
        random_rows(1, 3, 4, derived_seed(seed, "paper", "skew", of))[0] for of in ("teacher", "point")
    )
    return OneHiddenNet(truth, np.array([1.0, 1.5, 2.0])), (np.array([1.0, 0.5, 2.0]), B)


def _pairs(teacher: OneHiddenNet, B: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(teacher.weights, teacher.weights), (teacher.weights, B), (B, B)]


def _unsquared(loss: HermiteLoss, params: tuple[np.ndarray, np.ndarray], teacher: OneHiddenNet) -> float:
    total = 0.0
    for m in (2, 4):
        one = HermiteLoss((m,)).value(params, teacher)
        total += one / abs(teacher.activation.hermite(m))
    return total


def _draw(figure: Figure, rows: list[tuple[str, float, float, float, float, bool]]) -> None:
    axes = figure.subplots()
    axes.barh(
        [row[0] for row in rows], [row[4] for row in rows], color=["C2" if row[5] else "C3" for row in rows]
    )
    axes.axvline(LIMIT, color="black", linestyle=":")
    axes.set(xlabel="deviation from Monte Carlo, standard errors", xscale="symlog")
