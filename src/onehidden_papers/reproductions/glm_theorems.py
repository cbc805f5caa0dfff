"""[GLM] Theorems 2.1, 2.2, 2.6: analytic formulas against Monte Carlo, as printed and corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.streams import derived_seed, stream
from onehidden_papers.objectives import GaussianDesigned, HermiteLoss, Objective, SquaredLoss
from onehidden_papers.reproductions.experiment import (
    COMPARED,
    LIMIT,
    agree,
    compared,
    draw_deviations,
    random_rows,
    rotation,
)
from onehidden_papers.reproductions.record import Claim, Item, Table


@dataclass(frozen=True)
class Settings:
    """Monte Carlo batches of a run."""

    repeats: int = 2000
    n: int = 20_000


DEFAULT = Settings(300, 10_000)


def _claim(name: str, where: str, says: str, formula: str) -> Claim:
    return Claim(
        name, where, says,
        f"Reproduced: “{formula}” lies within {LIMIT:g} standard errors of Monte Carlo and every formula "
        "that must fail (control) outside. Else not reproduced.",
        partial(agree, formula),
    )  # fmt: skip


SERIES, TENSORS = "(2.3), orders up to 60", "(2.6): σ_2² f_2 + σ_4² f_4 + const"
RIGHT, PRINTED = "corrected: √6, 1/(2√6)", "as printed, (2.10): 2√6, 1/√6"


def theorem_2_1(settings: Settings, seed: int) -> Table:
    """Compare f = Σ_m σ_m² |Σ a*_i b*_i^{⊗m} − Σ a_i b_i^{⊗m}|² + const, with const = 0 (no noise)."""
    teacher, params = _skew(seed)
    loss = SquaredLoss()
    g = teacher.activation
    A, B = teacher.weights, params[1]
    cosines = [A @ A.T, A @ B.T, B @ B.T]
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
        (SERIES, series(60, g.hermite)),
        ("closed form (pair kernels)", loss.population(params, teacher)),
        ("control: orders 2 and 4 alone", series(4, lambda m: g.hermite(m) if m in (2, 4) else 0.0)),
        ("control: coefficients shifted by one order", series(60, shifted)),
    ]
    title = "Squared loss as a sum of tensor losses"
    return _compare("glm-theorem-2.1", title, loss, teacher, params, formulas, settings, seed)


def theorem_2_2(settings: Settings, seed: int) -> Table:
    """Compare f' = σ_2² f_2 + σ_4² f_4 + const."""
    teacher, params = _skew(seed)
    loss = HermiteLoss((2, 4))
    constant = loss.population((teacher.output, teacher.weights), teacher)
    tensor = loss.value(params, teacher)
    formulas = [
        (TENSORS, tensor + constant),
        ("closed form", loss.population(params, teacher)),
        ("control: σ_2 f_2 + σ_4 f_4 + const (squares lost)", _unsquared(loss, params, teacher) + constant),
        ("control: without the constant", tensor),
    ]
    return _compare(
        "glm-theorem-2.2", "f' as two tensor losses", loss, teacher, params, formulas, settings, seed
    )


def theorem_2_6(settings: Settings, seed: int) -> Table:
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
        (RIGHT, form(np.sqrt(6), 1 / (2 * np.sqrt(6)))),
        ("library population form", G.population(B, teacher)),
        (PRINTED, form(2 * np.sqrt(6), 1 / np.sqrt(6))),
        ("control: sign of σ_4 left out", form(np.sqrt(6), 1 / (2 * np.sqrt(6)), -1)),
    ]
    return _compare("glm-theorem-2.6", "Closed form of G", G, teacher, B, formulas, settings, seed)


def _compare(
    name: str,
    title: str,
    objective: Objective,
    teacher: OneHiddenNet,
    params: np.ndarray | tuple[np.ndarray, np.ndarray],
    formulas: list[tuple[str, float]],
    settings: Settings,
    seed: int,
) -> Table:
    """Every formula beside the mean of the objective over fresh batches."""
    repeats, n = settings.repeats, settings.n
    rng = stream(seed, "paper", name, "inputs")
    values = []
    for _ in range(repeats):
        X = rng.standard_normal((n, teacher.n_inputs))
        values.append(objective.value(params, (X, teacher.predict(X))))
    mean, error = float(np.mean(values)), float(np.std(values) / np.sqrt(repeats))
    rows = tuple(compared(label, value, mean, error) for label, value in formulas)
    return Table(
        title, COMPARED, rows, (f"{repeats} batches of {n} samples, x ~ N(0, I), random parameters.",)
    )


def _skew(seed: int) -> tuple[OneHiddenNet, tuple[np.ndarray, np.ndarray]]:
    truth, B = (
        random_rows(1, 3, 4, derived_seed(seed, "paper", "skew", of))[0] for of in ("teacher", "point")
    )
    return OneHiddenNet(truth, np.array([1.0, 1.5, 2.0])), (np.array([1.0, 0.5, 2.0]), B)


def _unsquared(loss: HermiteLoss, params: tuple[np.ndarray, np.ndarray], teacher: OneHiddenNet) -> float:
    total = 0.0
    for m in (2, 4):
        one = HermiteLoss((m,)).value(params, teacher)
        total += one / abs(teacher.activation.hermite(m))
    return total


THEOREM_2_1 = Item(
    "glm-theorem-2.1", "[GLM] Theorem 2.1", "The squared loss as a sum of tensor losses.",
    (
        _claim(
            "glm-theorem-2.1", "[GLM] Theorem 2.1, (2.3); Theorem A.4",
            "f = Σ_m σ_m² |Σ a*_i b*_i^⊗m − Σ a_i b_i^⊗m|² + const for unit rows, x ~ N(0, I).", SERIES,
        ),
    ),
    theorem_2_1, draw_deviations, DEFAULT, Settings(),
)  # fmt: skip
THEOREM_2_2 = Item(
    "glm-theorem-2.2", "[GLM] Theorem 2.2", "f' as two tensor losses.",
    (
        _claim(
            "glm-theorem-2.2", "[GLM] Theorem 2.2, (2.6); Theorem A.4",
            "f' = σ_2² f_2 + σ_4² f_4 + const for unit rows, x ~ N(0, I).", TENSORS,
        ),
    ),
    theorem_2_2, draw_deviations, DEFAULT, Settings(),
)  # fmt: skip
THEOREM_2_6 = Item(
    "glm-theorem-2.6", "[GLM] Theorem 2.6", "Closed form of G, as printed and corrected.",
    (
        _claim(
            "glm-theorem-2.6", "[GLM] Theorem 2.6, (2.10); Theorems A.5, A.6, Lemmas A.8, A.9",
            "G in closed form with the constants 2√6|σ_4| and |σ_4|μ/√6.", PRINTED,
        ),
        _claim(
            "glm-theorem-2.6-corrected", "[GLM] Theorem 2.6, corrected",
            "G in closed form with the constants √6|σ_4| and |σ_4|μ/(2√6).", RIGHT,
        ),
    ),
    theorem_2_6, draw_deviations, DEFAULT, Settings(),
)  # fmt: skip
