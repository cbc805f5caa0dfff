"""ρ(σ) of the slides of [ZSJBD], at σ = .1, 1, 10."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden import activations
from onehidden_papers.reproductions.record import Claim, Curves, Item, Row, Table, of, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# As printed. Squared ReLU: the slides print .27 σ; the definition scales as σ².
REPORTED: dict[str, tuple[Any, Any, Any]] = {
    "relu": (0.091, 0.091, 0.091),
    "leaky_relu": (0.089, 0.089, 0.089),
    "squared_relu": (".27σ", ".27σ", ".27σ"),
    "erf": (1.9e-4, 5.2e-2, 2.5e-5),
    "tanh": (1.8e-4, 4.9e-2, 5.1e-5),
    "linear": (0.0, 0.0, 0.0),
    "quadratic": (0.0, 0.0, 0.0),
}
PRINTED_DIGITS = 0.03  # two printed digits: 1.8 stands for 1.75 … 1.85
SQUARED = "squared_relu"


def judge(rows: Sequence[Row]) -> str:
    """Every printed number; what is printed as a formula has a claim of its own."""
    own = [row for row in rows if row["printed"] != "–" and row["activation"] != SQUARED]
    return one_of(
        all(abs(row["ours"] - row["printed"]) <= PRINTED_DIGITS * abs(row["printed"]) + 1e-12 for row in own)
    )


def judge_squared(power: int, rows: Sequence[Row]) -> str:
    own = of(rows, "activation", SQUARED)
    fits = [abs(row["ours"] / (0.27 * row["σ"] ** power) - 1) <= PRINTED_DIGITS for row in own]
    return one_of(all(fits))


def _squared(name: str, where: str, power: int) -> Claim:
    return Claim(
        name, where, f"Squared ReLU: ρ(σ) = .27 σ{'²' if power == 2 else ''}.",
        "Reproduced: within 3 % at σ = .1, 1 and 10. Else not reproduced.",
        partial(judge_squared, power),
    )  # fmt: skip


CLAIMS = (
    Claim(
        "zsjbd-rho", "[ZSJBD] slides, table of P2",
        "ρ(.1), ρ(1), ρ(10) of ReLU, leaky ReLU, erf, tanh, linear and quadratic activations.",
        "Reproduced: all 18 printed numbers within 3 % (two printed digits), a negative minimum counted as "
        "0. Else not reproduced.",
        judge,
    ),
    _squared("zsjbd-rho-squared", "[ZSJBD] slides, table of P2", 1),
    _squared("zsjbd-rho-squared-corrected", "[ZSJBD] slides, corrected", 2),
)  # fmt: skip


def measure(settings: None, seed: int) -> Table:
    """ρ as the definition gives it, negative values counted as 0, beside the printed table."""
    rows = []
    for name in (*REPORTED, "sigmoid", "softplus", "gelu", "cubed_relu", "abs"):
        g = activations.get(name)
        for i, sigma in enumerate((0.1, 1.0, 10.0)):
            printed = REPORTED.get(name, ("–",) * 3)[i]
            rows.append((name, sigma, printed, float(g.rho(sigma)), float(min(g.rho_terms(sigma)))))
    sigma = np.geomspace(0.01, 100, 41)
    curves = {
        name: (sigma, [activations.get(name).rho(s) for s in sigma])
        for name in ("relu", "leaky_relu", SQUARED, "tanh", "sigmoid", "erf")
    }
    return Table(
        "ρ(σ) of Property 2",
        ("activation", "σ", "printed", "ours", "min of the three terms"),
        tuple(rows),
        (
            "Squared ReLU: .2732 σ², where the slides print .27 σ.",
            "Quadratic: the printed definition gives −4σ², not the printed 0; ρ bounds an eigenvalue that is "
            "never negative, so a negative minimum counts as 0.",
        ),
        curves,
    )


def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
    axes = figure.subplots()
    for name, (sigma, values) in curves.items():
        axes.loglog(sigma, values, label=name)
    axes.set(xlabel="σ", ylabel="ρ(σ)", ylim=(1e-10, 1e2))
    axes.legend()


RHO = Item("zsjbd-rho", "[ZSJBD] slides", "ρ(σ) of Property 2.", CLAIMS, measure, draw)
