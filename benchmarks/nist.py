"""NIST's nonlinear reference problems that are one hidden layer, from default starts: certified digits.

``python -m benchmarks nist``. Of the 27 problems of the Statistical Reference Datasets twelve are one hidden
layer with one activation, some after a change of the input or with an activation of their own. Digits are the
log relative error of each parameter and of each standard error (``errors="classical"``), the least of a
problem; all certified values have eleven digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._nist import curve
from benchmarks._table import Table

Quantity = Callable[[oh.OneHiddenNet], np.ndarray]


def sum_of_exponentials(net: oh.OneHiddenNet) -> np.ndarray:
    """Outputs and rates, the slowest first; the intercept before them where there is one."""
    order = np.argsort(-net.weights[:, 0])
    pairs = np.column_stack([net.output[order], -net.weights[order, 0]])
    return pairs.ravel()


def offset_and_exponentials(net: oh.OneHiddenNet) -> np.ndarray:
    """The intercept, outputs and rates, the slowest first."""
    order = np.argsort(-net.weights[:, 0])
    return np.concatenate([[net.intercept], net.output[order], -net.weights[order, 0]])


def height_and_rate(net: oh.OneHiddenNet) -> np.ndarray:
    """Output and weight of one unit."""
    return np.array([net.output[0], net.weights[0, 0]])


def growth(net: oh.OneHiddenNet) -> np.ndarray:
    """b1, b2, b3 of b1 / (1 + exp(b2 - b3 x))."""
    return np.array([net.output[0], -net.bias[0], net.weights[0, 0]])


def peak(net: oh.OneHiddenNet) -> np.ndarray:
    """b1, b2, b3 of b1 / b2 exp(-((x - b3) / b2)^2 / 2)."""
    width = 1 / np.abs(net.weights[0, 0])
    return np.array([net.output[0] * width, width, -net.bias[0] / net.weights[0, 0]])


@dataclass(frozen=True)
class Posed:
    """A problem: units, activation, certified values with standard errors, and how they follow."""

    hidden: int
    activation: Any
    quantity: Quantity
    certified: tuple[tuple[float, float], ...]
    intercept: bool = False
    bias: bool = True
    data: str = ""  # of another problem
    logarithm: bool = False  # of x


ONE = {"bias": False}
PROBLEMS = {
    "Lanczos1": Posed(3, "exp", sum_of_exponentials, (
        (0.095100000027, 5.3347304234e-11), (1.0000000001, 2.7473038179e-10),
        (0.86070000013, 1.3576062225e-10), (3.0000000002, 3.3308253069e-10),
        (1.5575999998, 1.8815731448e-10), (5.0000000001, 1.1057500538e-10))),
    "Lanczos2": Posed(3, "exp", sum_of_exponentials, (
        (0.096251029939, 6.6770575477e-4), (1.0057332849, 3.3989646176e-3),
        (0.86424689056, 1.7185846685e-3), (3.0078283915, 4.1707005856e-3),
        (1.5529016879, 2.3744381417e-3), (5.00287981, 1.3958787284e-3))),
    "Lanczos3": Posed(3, "exp", sum_of_exponentials, (
        (0.086816414977, 0.017197908859), (0.95498101505, 0.097041624475),
        (0.84400777463, 0.041488663282), (2.9515951832, 0.10766312506),
        (1.5825685901, 0.058371576281), (4.9863565084, 0.034436403035))),
    "MGH17": Posed(2, "exp", offset_and_exponentials, (
        (0.37541005211, 2.0723153551e-3), (1.9358469127, 0.22031669222), (-1.4646871366, 0.22175707739),
        (0.01286753464, 4.4861358114e-4), (0.022122699662, 8.9471996575e-4)), intercept=True),
    "Misra1a": Posed(1, lambda t: 1 - jnp.exp(-t), height_and_rate, (
        (238.94212918, 2.7070075241), (5.5015643181e-4, 7.2668688436e-6)), **ONE),
    "Misra1b": Posed(1, lambda t: 1 - (1 + jnp.maximum(t, -1.0) / 2) ** -2, height_and_rate, (
        (337.99746163, 3.1643950207), (3.9039091287e-4, 4.2547321834e-6)), data="Misra1a", **ONE),
    "Misra1c": Posed(1, lambda t: 1 - (1 + 2 * jnp.maximum(t, -0.4)) ** -0.5, height_and_rate, (
        (636.42725809, 4.6638326572), (2.0813627256e-4, 1.7728423155e-6)), data="Misra1a", **ONE),
    "Misra1d": Posed(1, lambda t: t / (1 + jnp.maximum(t, -0.5)), height_and_rate, (
        (437.36970754, 3.6489174345), (3.0227324449e-4, 2.9334354479e-6)), data="Misra1a", **ONE),
    "BoxBOD": Posed(1, lambda t: 1 - jnp.exp(-t), height_and_rate, (
        (213.80940889, 12.354515176), (0.54723748542, 0.10455993237)), **ONE),
    "DanWood": Posed(1, "exp", height_and_rate, (
        (0.76886226176, 0.01828197386), (3.8604055871, 0.051726610913)), logarithm=True),
    "Rat42": Posed(1, "sigmoid", growth, (
        (72.462237576, 1.7340283401), (2.6180768402, 0.088295217536), (0.067359200066, 0.0034465663377))),
    "Eckerle4": Posed(1, "gaussian", peak, (
        (1.5543827178, 0.015408051163), (4.0888321754, 0.046803020753), (451.54121844, 0.046800518816))),
}  # fmt: skip
OTHERS = {
    "Gauss1, Gauss2, Gauss3": "an exponential beside two peaks: two activations in one layer",
    "Rat43, Bennett5": "a free exponent inside the activation",
    "ENSO": "three waves, of which one has a known frequency",
    "Roszman1": "an arc tangent of 1 / (x - b): not of a linear function",
    "Nelson": "a linear function times an exponential",
    "MGH10": "an exponential of 1 / (x + b)",
    "Chwirut1, Chwirut2, Kirby2, Hahn1, Thurber, MGH09": "ratios of functions",
}


def main(quick: bool) -> list[str]:
    table = Table(
        "problem", "rows", "units", "status", "digits of the worst parameter", "of the worst standard error",
        "seconds",
    )  # fmt: skip
    for (name,), row in _pool.run(digits_of, [(name,) for name in list(PROBLEMS)[: 3 if quick else None]]):
        posed = PROBLEMS[name]
        table.row(name, row["rows"], posed.hidden, row["status"], row["digits"], row["errors"], row["s"])
    left = Table("problems that are none", "why")
    for name, why in OTHERS.items():
        left.row(name, why)
    return [*table.lines, "", *left.lines]


def digits_of(name: str) -> dict[str, Any]:
    """Certified digits of one problem."""
    posed = PROBLEMS[name]
    x, y = curve(posed.data or name)
    X = (np.log(x) if posed.logarithm else x)[:, None]
    r = oh.recover(
        X, y, posed.hidden, activation=posed.activation, bias=posed.bias, intercept=posed.intercept,
        errors="classical", max_seconds=_pool.seconds(60.0),
    )  # fmt: skip
    found, certified = r.derive(posed.quantity), np.array(posed.certified)
    digits = (
        -np.log10(np.maximum(np.abs(mine / its - 1), 1e-11))
        for mine, its in zip((found.estimate, found.error), certified.T, strict=True)
    )
    worst, errors = (float(np.min(one)) for one in digits)
    return {
        "rows": len(y), "status": str(r.status), "digits": worst, "errors": errors, "s": r.seconds,
    }  # fmt: skip
