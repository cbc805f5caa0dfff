"""Size and power of the adequacy test beside an F-test on the same functions.

Teacher: one ReLU unit (or six) on 8 normal inputs, fitted by least squares from the truth; noise of standard
deviation 1, of sd proportional to exp(0.8 x1), Student's t with 3 degrees, centred exponential, or y rounded
to whole numbers. Sizes count rejections when nothing is missed, at 5, 1 and 0.1 %; power counts them at 1 %.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from scipy.special import fdtrc

from benchmarks import _pool
from benchmarks._table import Table
from onehidden import activations
from onehidden.certify.random_features import random_features
from onehidden.certify.residuals import adequacy, feature_count
from onehidden.fit.parametrisation import Parametrisation, residuals_and_jacobian
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden.run import Run, stream

D = 8
NOISES = ("equal", "unequal", "t3", "rounded", "skewed")
MISSED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "nothing": lambda X: np.zeros(len(X)),
    "0.4 x1 x2 x3": lambda X: 0.4 * X[:, 0] * X[:, 1] * X[:, 2],
    "0.3 x1 x2": lambda X: 0.3 * X[:, 0] * X[:, 1],
    "0.2 x1²": lambda X: 0.2 * X[:, 0] ** 2,
    "0.4 sin 3x1": lambda X: 0.4 * np.sin(3 * X[:, 0]),
    "0.6 unit": lambda X: 0.6 * np.maximum(X.sum(1) / np.sqrt(D) - 0.3, 0),
    "tree": lambda X: 0.7 * ((X[:, 0] > 0.2) & (X[:, 1] > -0.3)),
    "0.4 max": lambda X: 0.4 * X[:, :4].max(1),
}
REPETITIONS = 50  # in one process


def main(quick: bool) -> list[str]:
    return [*sizes(quick), "", *powers(quick)]


def sizes(quick: bool) -> list[str]:
    """Rejections when nothing is missed."""
    settings = (
        [(1, 100), (1, 300)] if quick else [(1, 40), (1, 100), (1, 300), (6, 300), (1, 1000), (1, 3000)]
    )
    table = Table("units", "rows", "noise", "samples", "5 %", "1 %", "0.1 %", "F-test 5 %", "F-test 1 %")
    cells = [
        (k, n, noise, "nothing", block)
        for k, n in settings
        for noise in NOISES
        for block in range(2 if quick or n > 1000 else 4 if n > 300 else 8)
    ]
    measured = _pool.run(trials, cells)
    for k, n in settings:
        for noise in NOISES:
            p, f = _pooled(measured, k, n, noise, "nothing")
            rates = [_rate(p, level) for level in (0.05, 0.01, 0.001)]
            table.row(k, n, noise, len(p), *rates, *(_rate(f, level) for level in (0.05, 0.01)))
    return table.lines


def powers(quick: bool) -> list[str]:
    """Rejections at 1 % when something is missed."""
    rows, noises = ((300,), NOISES[:1]) if quick else ((300, 1000), NOISES[:2])
    table = Table("noise", "missed", *(f"n = {n}" for n in rows), *(f"F-test, n = {n}" for n in rows))
    missed = [name for name in MISSED if name != "nothing"]
    cells = [
        (1, n, noise, name, b)
        for noise in noises
        for name in missed
        for n in rows
        for b in range(1 if quick else 2)
    ]
    measured = _pool.run(trials, cells)
    for noise in noises:
        for name in missed:
            pairs = [_pooled(measured, 1, n, noise, name) for n in rows]
            table.row(noise, name, *(_rate(p, 0.01) for p, _ in pairs), *(_rate(f, 0.01) for _, f in pairs))
    return table.lines


def trials(k: int, n: int, noise: str, missed: str, block: int) -> dict[str, list[float]]:
    """p-values of the test and of the F-test for a block of samples."""
    found = [trial(k, n, noise, missed, block * REPETITIONS + i) for i in range(REPETITIONS)]
    return {"p": [p for p, _ in found], "f": [f for _, f in found]}


@in_double
def trial(k: int, n: int, noise: str, missed: str, seed: int) -> tuple[float, float]:
    rng = stream(seed, "adequacy benchmark", k, n, noise)
    X, frame = rng.standard_normal((n, D)), np.linalg.qr(rng.standard_normal((D, D)))[0]
    form = Parametrisation(activations.get("relu"), D, k)
    theta = form.pack(frame[:k], np.full(k, 2.0), intercept=0.5)
    y = 2 * np.maximum(X @ frame[:k].T, 0).sum(1) + 0.5 + MISSED[missed](X) + _noise(noise, X, rng)
    y = np.round(y) if noise == "rounded" else y
    theta, r, J = _least_squares(form, theta, X, y)
    rows = Samples(X, y)
    problem = Problem(rows, form, rows.coordinates(True))
    weights, output, bias, _, intercept = form.unpack(theta)
    network = OneHiddenNet(weights, output, bias, intercept, form.activation)
    asked = adequacy(problem, problem.theta(network), Run(), seed=seed)
    return asked.p_value, _f_test(form, r, J, X, seed)


def _noise(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(X)
    if kind == "unequal":
        return rng.standard_normal(n) * np.exp(0.8 * X[:, 0] - 0.64)
    if kind == "t3":
        return rng.standard_t(3, n) / np.sqrt(3)
    if kind == "skewed":
        return rng.exponential(1.0, n) - 1
    return (0.3 if kind == "rounded" else 1.0) * rng.standard_normal(n)


def _least_squares(
    form: Parametrisation, theta: np.ndarray, X: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters, residuals and Jacobian after a few damped Gauss–Newton steps."""

    def at(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        r, J = residuals_and_jacobian(form, jnp.asarray(theta), X, y, np.ones(len(y)))
        return np.asarray(r), np.asarray(J)

    damping, (r, J) = 1e-3, at(theta)
    for _ in range(60):
        hessian = J.T @ J
        step = np.linalg.solve(hessian + damping * np.diag(np.diag(hessian) + 1e-9), -J.T @ r)
        tried = at(theta + step)
        gained = r @ r - tried[0] @ tried[0]
        if gained > 0:
            theta, (r, J), damping = theta + step, tried, damping / 5
        else:
            damping *= 4
        if 0 < gained < 1e-9 * (r @ r) or damping > 1e8:
            break
    return theta, r, J


def _f_test(form: Parametrisation, r: np.ndarray, J: np.ndarray, X: np.ndarray, seed: int) -> float:
    """p-value of the F-ratio of all functions of all looks together."""
    n = len(r)
    onto = np.linalg.svd(J, full_matrices=False)[0][:, : form.freedom]
    size = feature_count(n, n - form.freedom)
    F = np.hstack([look(X) for look in random_features(form.activation, np.zeros(D), size, seed)])
    for _ in range(2):
        F = F - onto @ (onto.T @ F)
    F /= np.linalg.norm(F, axis=0).clip(1e-9)
    value, vector = np.linalg.eigh(F.T @ F)
    kept = value > 1e-8 * value[-1]
    rank = int(kept.sum())
    drop = float(np.sum(((vector[:, kept] / np.sqrt(value[kept])).T @ (F.T @ r)) ** 2))
    free = n - form.freedom - rank
    return float(fdtrc(rank, free, (drop / rank) / ((r @ r - drop) / free)))


def _pooled(measured, *setting) -> tuple[np.ndarray, np.ndarray]:
    rows = [row for cell, row in measured if cell[:4] == setting and "broke" not in row]
    p, f = (np.array([v for row in rows for v in row[key]]) for key in ("p", "f"))
    return p, f


def _rate(p_values: np.ndarray, level: float) -> str:
    """Rejections with their standard error."""
    rate = float(np.mean(p_values < level)) if len(p_values) else float("nan")
    return f"{100 * rate:.3g} ± {100 * np.sqrt(max(rate, level) * (1 - rate) / max(len(p_values), 1)):.2g} %"
