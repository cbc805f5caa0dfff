"""100 random starts of G, F and F_delta on exact moments, at weights inside the theorem's range."""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import least_squares

from benchmarks._table import Table
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import stream
from onehidden_papers.lab.descents import newton_descent
from onehidden_papers.objectives import GaussianDesigned, NonOrthogonal

D, C = 10, 0.01


def conditioned(k: int, d: int, condition: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of unit norm whose matrix has the given condition number (alternating scalings)."""
    U, V = (np.linalg.qr(rng.standard_normal((size, k)))[0] for size in (k, d))
    A = U @ np.diag(np.geomspace(condition, 1, k)) @ V.T
    for _ in range(2000):
        A /= np.linalg.norm(A, axis=1)[:, None]
        left, s, right = np.linalg.svd(A, full_matrices=False)
        if abs(s[0] / s[-1] - condition) < 1e-9 * condition:
            break
        A = left @ np.diag(s[-1] + (s - s[-1]) * (condition - 1) * s[-1] / (s[0] - s[-1])) @ right
    return A / np.linalg.norm(A, axis=1)[:, None]


def problem(kind: str, kappa: float, rng: np.random.Generator) -> tuple[OneHiddenNet, object]:
    """A teacher with outputs spread over [1, kappa] and the objective at the theorem's weights."""
    k = D if kind != "F_delta" else 6
    w = np.linspace(1, kappa, k)
    mu = C / kappa
    if kind == "G":
        rows = np.linalg.qr(rng.standard_normal((D, D)))[0]
        return OneHiddenNet(rows, w), GaussianDesigned(mu, kappa / C)
    rows = conditioned(k, D, 5.0, rng)
    return OneHiddenNet(rows, w), NonOrthogonal(mu, 1 / (C * w.min()), 0.0 if kind == "F" else 1e-6)


def rows_of(kind: str, params: np.ndarray) -> np.ndarray:
    return params if kind == "G" else NonOrthogonal.rows(params)


def polish(rows: np.ndarray, X: np.ndarray, y: np.ndarray) -> OneHiddenNet:
    """Orientations by least squares on |z| and z, then Levenberg–Marquardt on the squared loss."""
    A = rows / np.linalg.norm(rows, axis=1)[:, None]
    k, d = A.shape
    Z = X @ A.T
    even, *_ = np.linalg.lstsq(np.column_stack([np.abs(Z), X]), y, rcond=None)
    # y = Σ ½ w_i |z_i| + ½ Σ w_i s_i z_i: the linear part tells the signs.
    linear, *_ = np.linalg.lstsq((A * even[:k, None]).T, even[k:], rcond=None)
    A = A * np.where(linear < 0, -1, 1)[:, None]
    w, *_ = np.linalg.lstsq(np.maximum(X @ A.T, 0), y, rcond=None)

    def residual(p):
        return np.maximum(X @ p.reshape(k, d).T, 0).sum(axis=1) - y

    def jacobian(p):
        return ((X @ p.reshape(k, d).T > 0)[:, :, None] * X[:, None, :]).reshape(len(X), k * d)

    start = (A * np.maximum(w, 1e-3)[:, None]).ravel()
    fit = least_squares(residual, start, jacobian, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)
    return OneHiddenNet(fit.x.reshape(k, d), np.ones(k))


def main(quick: bool) -> list[str]:
    starts = 10 if quick else 100
    table = Table(
        "objective", "kappa*", "k", "starts", "honest error <= 1e-3", "worst honest error",
        "exact after polishing (1e-8)", "worst after", "seconds",
    )  # fmt: skip
    for kind in ("G", "F", "F_delta"):
        for kappa in (1.0, 3.0):
            drawn = {
                use: stream(7, "benchmark", "landscape starts", use) for use in ("teacher", "start", "inputs")
            }
            teacher, objective = problem(kind, kappa, drawn["teacher"])
            k = teacher.n_hidden
            points = drawn["start"].standard_normal((starts, k, D))
            points /= np.linalg.norm(points, axis=2, keepdims=True)
            clock = time.perf_counter()
            run = newton_descent(
                objective.function, points, objective.prepare(teacher), steps=1000, radius=0.2
            )
            seconds = time.perf_counter() - clock
            found = [rows_of(kind, B) for B in run]
            errors = np.array([match(rows, teacher.weights).honest_error for rows in found])
            X = drawn["inputs"].standard_normal((1000, D))
            y = teacher.predict(X)
            after = [match(polish(rows, X, y), teacher) for rows in found]
            worst = np.array([max(m.max_error, m.output_error) for m in after])
            table.row(
                kind, kappa, k, starts, f"{np.sum(errors <= 1e-3)}/{starts}", float(errors.max()),
                f"{np.sum(worst <= 1e-8)}/{starts}", float(worst.max()), seconds,
            )  # fmt: skip
    return table.lines
