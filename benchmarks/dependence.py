"""Size and power of the test of dependent neighbours, by permutation of the residuals.

Residuals are those of a fit of intercept, three inputs and two ReLU units with known rows (6 parameters);
of rare events those of a logistic regression, divided by their standard deviation. Noise: equal, of sd
exp(0.8 x1), Student's t with 3 degrees, centred lognormal(1.5), events of 3 %. Rows stand in a random order
or are sorted by x1. "Chi-square" is the law that the sum of all squares has for many rows of light tails.

Set before the numbers were seen: the sum takes only positive correlations if with both signs rows sorted by
an input are refused in more than 2 % at level .01; the size must not exceed .02 at .01 in any cell of 1000
samples. Power: AR(1) noise, rows in groups of five with a shared part of a fifth of the variance, a drift.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, expit

from benchmarks import _pool
from benchmarks._table import Table
from onehidden.certify.dependence import dependence_p_value
from onehidden.run import stream

NOISES = ("equal", "unequal", "t3", "lognormal", "rare events")
ROWS = (10, 40, 150, 600, 3000)
SAMPLES = 250  # in one process
DEPENDENT = ("AR(1) .3", "groups of 5", "drift")


def main(quick: bool) -> list[str]:
    return [*sizes(quick), "", *powers(quick)]


def sizes(quick: bool) -> list[str]:
    """Rejections of independent rows."""
    blocks, rows = (1, ROWS[:3]) if quick else (4, ROWS)
    columns = ("5 %", "1 %", "chi-square 5 %", "chi-square 1 %")
    table = Table("noise", "order", "rows", "samples", *columns)
    cells = [
        (noise, order, n, block)
        for noise in NOISES
        for order in ("random", "sorted")
        for n in rows
        if n > 10 or noise not in ("rare events",)
        for block in range(blocks)
    ]
    measured = _pool.run(trials, cells)
    for cell in dict.fromkeys(cell[:3] for cell in cells):
        mine = [row for at, row in measured if at[:3] == cell and "broke" not in row]
        p, chi = (np.array([v for row in mine for v in row[name]]) for name in ("p", "chi"))
        rates = [float(np.mean(q <= level)) for q in (p, chi) for level in (0.05, 0.01)]
        table.row(*cell, len(p), *rates)
    return table.lines


def powers(quick: bool) -> list[str]:
    """Rejections at 1 % of rows that depend on those before."""
    table = Table("dependence", "rows", "samples", "1 %", "chi-square 1 %")
    cells = [(kind, "random", n, 0) for kind in DEPENDENT for n in (ROWS[1:3] if quick else ROWS[1:])]
    for (kind, _, n, _), row in _pool.run(trials, cells):
        rates = [float(np.mean(np.array(row[name]) <= 0.01)) for name in ("p", "chi")]
        table.row(kind, n, len(row["p"]), *rates)
    return table.lines


def trials(noise: str, order: str, n: int, block: int) -> dict[str, list[float]]:
    """p-values of a block of samples."""
    found = [trial(noise, order, n, block * SAMPLES + i) for i in range(SAMPLES)]
    return {"p": [p for p, _ in found], "chi": [chi for _, chi in found]}


def trial(noise: str, order: str, n: int, seed: int) -> tuple[float, float]:
    r = residuals(noise, order, n, stream(seed, "dependence benchmark", noise, order, n))
    return dependence_p_value(r), chi_square(r)


def residuals(noise: str, order: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Residuals of a fit to a sample, in the order of its rows."""
    X = rng.standard_normal((n, 3))
    X = X[np.argsort(X[:, 0])] if order == "sorted" else X
    units = np.maximum(X @ np.array([[0.6, -0.3], [0.8, 0.2], [0.0, 0.9]]) + [0.3, -0.4], 0)
    design = np.column_stack([np.ones(n), X, units])
    if noise == "rare events":
        design = design[:, :4]
        y = (rng.random(n) < expit(-3.9 + 0.8 * X[:, 0])).astype(float)
        theta = np.append(-3.5, np.zeros(3))
        for _ in range(12):  # ridge of 1e-2: few events may be separable
            p = expit(design @ theta)
            information = (design * (p * (1 - p))[:, None]).T @ design + 1e-2 * np.eye(4)
            theta = theta + np.clip(np.linalg.solve(information, design.T @ (y - p) - 1e-2 * theta), -2, 2)
        p = expit(design @ theta)
        return (y - p) / np.sqrt(p * (1 - p))
    y = _noise(noise, X, rng)
    return y - design @ np.linalg.lstsq(design, y, rcond=None)[0]


def _noise(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(X)
    e = rng.standard_normal(n)
    if kind == "unequal":
        return e * np.exp(0.8 * X[:, 0])
    if kind == "t3":
        return rng.standard_t(3, n)
    if kind == "lognormal":
        return rng.lognormal(0, 1.5, n) - np.exp(1.125)
    if kind == "AR(1) .3":
        for i in range(1, n):
            e[i] += 0.3 * e[i - 1]
    if kind == "groups of 5":
        e = np.sqrt(0.8) * e + np.sqrt(0.2) * np.repeat(rng.standard_normal(-(-n // 5)), 5)[:n]
    if kind == "drift":
        e += np.linspace(-0.5, 0.5, n)
    return e


def chi_square(r: np.ndarray, lags: int = 5) -> float:
    """The p-value of the sum of all squares by its chi-square law."""
    total = 0.0
    for lag in range(1, lags + 1):
        product = r[lag:] * r[:-lag]
        total += float(product.sum() ** 2 / (product**2).sum())
    return float(chdtrc(lags, total))
