"""Do the data ask for one more unit? Size and power of the score test beside an information criterion.

Fits begin at the truth, so that only the comparison is measured, not the search for a network. Noise: equal,
of sd exp(.8 x_1), or Student's t with three degrees of freedom; n / p counts k (d + 1) + 1 parameters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import least_squares

from benchmarks import _pool
from benchmarks._table import Table
from onehidden import activations
from onehidden.activations import Activation
from onehidden.certify.score_test import ScoreTest, score_test
from onehidden.run import stream

NOISES = ("equal", "unequal", "t3")
ACTIVATIONS = ("relu", "tanh")
# (units of the null, n, d); "linear": the null is a linear function
NULLS = ((0, 400, 15), ("linear", 400, 8), (1, 200, 3), (1, 400, 8), (2, 400, 8), (2, 1000, 15))


def main(quick: bool) -> list[str]:
    runs = 10 if quick else 60
    lines: list[str] = []

    def measured(function, cells):
        return [(c, row) for c, row in _pool.run(function, cells) if "broke" not in row]

    say(lines, "Size: the null is true. Criterion: n log(loss) falls by more than (d + 2) log n.")
    cells = [(null, n, d, g, e, runs) for null, n, d in NULLS for g in ACTIVATIONS for e in NOISES]
    rows = measured(size_cell, cells)
    table = Table("noise", "runs", "p < .05", "p < .01", "p < .001", "criterion asks for a unit")
    for noise in NOISES:
        table.row(noise, *_shares([row for c, row in rows if c[4] == noise]))
    table.say("")
    lines += table.lines
    table = Table("null", "n", "d", "runs", "p < .05", "p < .01", "p < .001", "criterion asks for a unit")
    for null, n, d in NULLS:
        table.row(null, n, d, *_shares([row for c, row in rows if c[:3] == (null, n, d)]))
    lines += table.lines

    say(lines, "Power: two units, noise of .5 sd(signal); the second is dropped and the first refitted.")
    shares, sizes = (0.05, 0.1, 0.2), ((3, 10), (8, 10), (15, 10), (3, 30), (8, 30))
    cells = [
        (d, r, s, g, e, runs // 4) for d, r in sizes for s in shares for g in ACTIVATIONS for e in NOISES
    ]
    rows = measured(power_cell, cells)
    table = Table("noise", "n / p", "d", *(f"share {s}: p < .01, < .001, criterion" for s in shares))
    for noise in NOISES:
        for d, ratio in sizes:
            these = [[row for c, row in rows if c[:3] == (d, ratio, s) and c[4] == noise] for s in shares]
            table.row(noise, ratio, d, *(", ".join(_shares(part)[2:]) for part in these))
    lines += table.lines

    say(
        lines, "A unit of just the detectable share of var(y) is added to one unit (asked for: 90 % at .001)."
    )
    rows = measured(detectable_cell, [(g, e, runs) for g in ACTIVATIONS for e in NOISES])
    table = Table("noise", "activation", "detectable share, median", "found at .001")
    for (g, noise, _), row in rows:
        table.row(noise, g, float(np.median(row["detectable"])), f"{np.mean(row['found']):.2f}")
    lines += table.lines
    return lines


def say(lines: list[str], text: str) -> None:
    for line in ("", text, ""):
        print(line, flush=True)
        lines.append(line)


def _shares(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    p, more = (np.array([v for row in rows for v in row[key]]) for key in ("p", "criterion"))
    return str(len(p)), *(f"{np.mean(p < level):.3f}" for level in (0.05, 0.01, 0.001)), f"{more.mean():.3f}"


def size_cell(null: int | str, n: int, d: int, name: str, noise: str, runs: int) -> dict[str, Any]:
    g, out = activations.get(name), {"p": [], "criterion": []}
    for seed in range(runs):
        draw = stream(seed, "further unit benchmark", "size", str(null), n, d, noise)
        k = null if isinstance(null, int) else 0
        Z, units = draw.standard_normal((n, d)), teacher(draw, g, d, k)
        signal = predict(g, units, Z) if k else Z[:, 1] * (null == "linear")
        y = signal + 0.3 * (signal.std() or 1.0) * errors(draw, Z, noise)
        if k:
            J, r, units = fit(g, units, Z, y)
        else:
            J = np.column_stack([np.ones(n), Z]) if null == "linear" else np.ones((n, 1))
            r = y - J @ np.linalg.lstsq(J, y, rcond=None)[0]
        found = score_test(J, r, Z, g, True, seed)
        out["p"].append(found.p_value)
        # The linear part stays where it is: a lower bound of what the criterion would gain.
        target = y if null != "linear" else r
        larger = fit(g, with_unit(g, units, found, Z, r), Z, target)[1]
        out["criterion"].append(bool(criterion(r, larger, d) > 0))
    return out


def power_cell(d: int, ratio: int, share: float, name: str, noise: str, runs: int) -> dict[str, Any]:
    g, n, out = activations.get(name), ratio * (2 * (d + 1) + 1), {"p": [], "criterion": []}
    for seed in range(runs):
        draw = stream(seed, "further unit benchmark", "power", n, d, name, noise)
        Z, units = draw.standard_normal((n, d)), teacher(draw, g, d, 2)
        first, second = (predict(g, tuple(v[i : i + 1] for v in units), Z) for i in range(2))
        units[1][1] *= np.sqrt(share / (1 - share) * first.var() / second.var())
        signal = predict(g, units, Z)
        y = signal + 0.5 * signal.std() * errors(draw, Z, noise)
        J, r, _ = fit(g, tuple(v[:1] for v in units), Z, y)
        out["p"].append(score_test(J, r, Z, g, True, seed).p_value)
        out["criterion"].append(bool(criterion(r, fit(g, units, Z, y)[1], d) > 0))
    return out


def detectable_cell(name: str, noise: str, runs: int) -> dict[str, Any]:
    g, n, d, out = activations.get(name), 500, 6, {"detectable": [], "found": []}
    for seed in range(runs):
        draw = stream(seed, "further unit benchmark", "detectable", name, noise)
        Z, units = draw.standard_normal((n, d)), teacher(draw, g, d, 2)
        one, other = (predict(g, tuple(v[i : i + 1] for v in units), Z) for i in range(2))
        y = one + 0.5 * one.std() * errors(draw, Z, noise)
        J, r, _ = fit(g, tuple(v[:1] for v in units), Z, y)
        share = score_test(J, r, Z, g, True, seed, variance=float(y.var())).detectable
        J, r, _ = fit(g, tuple(v[:1] for v in units), Z, y + other * np.sqrt(share * y.var() / other.var()))
        out["detectable"].append(share)
        out["found"].append(bool(score_test(J, r, Z, g, True, seed).p_value < 1e-3))
    return out


Units = tuple[np.ndarray, np.ndarray, np.ndarray]  # weights (k, d), output (k,), bias (k,)


def teacher(draw: np.random.Generator, g: Activation, d: int, k: int) -> Units:
    a = draw.standard_normal((k, d))
    a *= (1.0 if g.homogeneity is not None else 2.0) / np.linalg.norm(a, axis=1, keepdims=True)
    return a, draw.choice([-1.0, 1.0], k), 0.5 * draw.standard_normal(k)


def predict(g: Activation, units: Units, Z: np.ndarray) -> np.ndarray:
    return g(Z @ units[0].T + units[2]) @ units[1]


def errors(draw: np.random.Generator, Z: np.ndarray, noise: str) -> np.ndarray:
    """(n,) errors of variance one."""
    if noise == "t3":
        return draw.standard_t(3, len(Z)) / np.sqrt(3)
    e = draw.standard_normal(len(Z))
    return e * np.exp(0.8 * Z[:, 0] - 0.64) if noise == "unequal" else e


def fit(g: Activation, units: Units, Z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, Units]:
    """Jacobian, residuals and units of the least squares from there, with biases and an intercept."""
    k, d = units[0].shape

    def parts(theta: np.ndarray) -> tuple[Units, float]:
        return (theta[: k * d].reshape(k, d), theta[k * d : k * d + k], theta[k * d + k : -1]), theta[-1]

    def residual(theta: np.ndarray) -> np.ndarray:
        there, c = parts(theta)
        return predict(g, there, Z) + c - y

    def jacobian(theta: np.ndarray) -> np.ndarray:
        (a, w, b), _ = parts(theta)
        t = Z @ a.T + b
        slope = g.derivative(t) * w
        moved = (slope[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
        return np.column_stack([moved, g(t), slope, np.ones(len(Z))])

    c = float(np.mean(y - predict(g, units, Z)))
    start = np.concatenate([units[0].ravel(), units[1], units[2], [c]])
    theta = least_squares(residual, start, jacobian, method="lm", xtol=1e-6, ftol=1e-7, max_nfev=60).x
    return jacobian(theta), residual(theta), parts(theta)[0]


def with_unit(g: Activation, units: Units, found: ScoreTest, Z: np.ndarray, r: np.ndarray) -> Units:
    """The units and the further one, its output by least squares for the residuals r."""
    f = g(Z @ found.direction + found.bias)
    f = f - f.mean()
    w = -(f @ r) / (f @ f) if len(units[1]) else (f @ r) / (f @ f)
    joined = ((units[0], found.direction[None]), (units[1], [w]), (units[2], [found.bias]))
    return tuple(np.concatenate([np.asarray(u, float), np.asarray(v, float)]) for u, v in joined)  # type: ignore


def criterion(smaller: np.ndarray, larger: np.ndarray, d: int) -> float:
    n = len(smaller)
    return n * float(np.log((smaller @ smaller) / (larger @ larger))) - (d + 2) * float(np.log(n))
