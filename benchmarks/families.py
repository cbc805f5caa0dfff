"""Families of y: errors against the Cramér–Rao bound, coverage, size of the tests, bands around predictions.

A repetition draws inputs and y anew from one teacher, descends from units near the true ones (turned by about
six degrees) and asks for the certificate: what is measured is the estimate and what is said of it, not the
search, which ``outputs`` measures. Bounds are written apart from the library.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks._truth import simulated
from onehidden.certify.certificate import Certificate
from onehidden.certify.errors import ParameterRecord, standard_errors
from onehidden.certify.evaluate import certify
from onehidden.certify.local_fit import LocalFit, local_fit
from onehidden.families import Family
from onehidden.fit.problem import Problem, optimise
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.solve import measured_on, problem_of, record
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream

Drawn = tuple[np.ndarray, np.ndarray, oh.OneHiddenNet, Family]

# family, outputs (classes less one), inputs, units, rows, repetitions, repetitions if quick
LARGE = {
    "poisson": ("poisson", 1, 40, 5, 100_000, 200, 2),
    "bernoulli": ("bernoulli", 1, 40, 5, 100_000, 200, 2),
    "two classes": ("bernoulli", 1, 20, 5, 50_000, 200, 2),
    "ten classes": ("softmax", 9, 20, 5, 50_000, 48, 1),
    "negative binomial": ("negative_binomial", 1, 6, 2, 5000, 400, 10),
    "gamma": ("gamma", 1, 6, 2, 5000, 400, 10),
    "three outputs": ("gaussian", 3, 6, 2, 1000, 400, 10),
}
SMALL = ("gaussian", "poisson", "bernoulli", "negative_binomial", "gamma", "softmax")
ALPHA, PHI, NOISE = 0.5, 0.25, 0.3


def main(quick: bool) -> list[str]:
    parts = {"bands": bands, "sizes": sizes, "errors": errors}
    asked = os.environ.get("BENCH_PARTS", " ".join(parts)).split()
    return [line for name in asked for line in [*parts[name](quick), ""]]


def errors(quick: bool) -> list[str]:
    """One row a family: error against the bound, coverage."""
    table = Table(
        "y", "d", "k", "n", "mean of y", "repetitions", "RMSE / CRB, pooled", "coverage of 95 %",
        "the same, robust errors", "s a fit", "s of errors",
    )  # fmt: skip
    most = {name: case[-1] if quick else case[-2] for name, case in LARGE.items()}
    # Even parts of all cases in turn: a run that is cut short has measured each.
    cells = sorted(
        ((name, i) for name in LARGE for i in range(most[name])), key=lambda cell: cell[1] / most[cell[0]]
    )
    measured = _pool.run(trial, cells)
    for name, (_, _, d, k, n, *_) in LARGE.items():
        mine = [row for cell, row in measured if cell[0] == name and "broke" not in row]
        if not mine:
            continue
        error, bound = (np.array([row[key] for row in mine]) for key in ("error", "bound"))
        pooled = float(np.sqrt(np.mean((error / bound) ** 2)))
        covered, robust = (100 * np.mean([row[key] for row in mine]) for key in ("in", "in_robust"))
        table.row(
            name, d, k, n, f"{np.mean([row['mean'] for row in mine]):.2f}", len(mine), pooled,
            f"{covered:.1f} %", f"{robust:.1f} %", f"{np.median([row['fit'] for row in mine]):.1f}",
            f"{np.median([row['asked'] for row in mine]):.1f}",
        )  # fmt: skip
    return table.lines


def sizes(quick: bool) -> list[str]:
    """Size of the test for something missed at 5 %, and of the spread of y at 1 %; wrong families told."""
    table = Table("y", "fitted as", "repetitions", "missed at 5 %", "spread of y told at 1 %")
    pairs = [(name, name) for name in SMALL] + [("poisson", "gaussian"), ("negative_binomial", "poisson")]
    cells = [(true, fitted, i) for i in range(_runs(quick, 600)) for true, fitted in pairs]
    measured = _pool.run(question, cells)
    for true, fitted in pairs:
        mine = [row for cell, row in measured if cell[:2] == (true, fitted) and "broke" not in row]
        if mine:
            asked = [row["p"] for row in mine if row["p"] is not None]
            missed = f"{100 * np.mean(np.array(asked) < 0.05):.1f} %" if asked else "not asked"
            told = [row["told"] for row in mine if row["told"] is not None]
            spread = f"{100 * np.mean(told):.1f} %" if told else "cannot be asked"
            table.row(true, fitted, len(mine), missed, spread)
    return table.lines


def bands(quick: bool) -> list[str]:
    """Coverage of bands around predictions at new rows, and the size of the test of an idle input."""
    table = Table("y", "repetitions", "mean in its band", "new observation in its band", "idle input at 5 %")
    names = ("gaussian", "poisson", "gamma", "linear")
    cells = [(name, i) for i in range(_runs(quick, 1000)) for name in names]
    measured = _pool.run(band, cells)
    for name in names:
        mine = [row for cell, row in measured if cell[0] == name and "broke" not in row]
        if mine:
            shares = [f"{100 * np.mean([row[key] for row in mine]):.1f} %" for key in ("mean", "new", "idle")]
            table.row(name, len(mine), *shares)
    table.say("At 200 new rows each. A band of counts covers at least its level: they are whole numbers.")
    return table.lines


def _runs(quick: bool, most: int) -> int:
    return int(os.environ.get("BENCH_RUNS", 40 if quick else most))


def teacher(name: str, q: int, d: int, k: int, idle: bool = False) -> oh.OneHiddenNet:
    """One network a family and size, of outputs that make neither y nor its noise extreme.

    Counts of many inputs are rare, of mean .3; of few inputs and rows their mean is above one.
    """
    rng = stream(0, "benchmark", "families", "teacher", name, q, d, k)
    A = rng.standard_normal((k, d))
    A[:, -1] = 0.0 if idle else A[:, -1]
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    sign = np.where(np.arange(k) % 2, -1.0, 1.0)
    size = {"bernoulli": 2.0, "softmax": 2.0, "gaussian": 1.0}.get(name, 0.9)
    w = size * sign[:, None] * rng.uniform(0.7, 1.3, (k, q)) * np.sign(rng.standard_normal((k, q)))
    w[:, 0] = np.abs(w[:, 0]) * sign
    level = {"poisson": -2.05 if d > 10 else 0.3, "bernoulli": -0.3, "softmax": 0.0}.get(name, 0.3)
    b, c = 0.3 * rng.standard_normal(k), np.full(q, level)
    return oh.OneHiddenNet(A, w if q > 1 else w[:, 0], b, c if q > 1 else level)


def drawn(name: str, q: int, d: int, k: int, n: int, seed: int, idle: bool = False) -> Drawn:
    """Correlated normal inputs (neighbours .5), y, the teacher and its family."""
    net = teacher(name, q, d, k, idle)
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    X = stream(seed, "benchmark", "families", "inputs").standard_normal((n, d)) @ root.T
    rng, eta = stream(seed, "benchmark", "families", "noise"), net.predict(X)
    options = {"classes": q + 1} if name == "softmax" else {"alpha": ALPHA} if "negative" in name else {}
    family = oh.families.get(name, **options)
    phi = PHI if name == "gamma" else NOISE**2
    return X, simulated(family, eta, rng, phi), net, family


def near(net: oh.OneHiddenNet, seed: int) -> oh.OneHiddenNet:
    """The network with its units moved by a tenth of their length."""
    move = stream(seed, "benchmark", "families", "start").standard_normal(net.weights.shape)
    weights = net.weights + 0.1 * move / np.sqrt(net.n_inputs)
    return oh.OneHiddenNet(weights, net.output, net.bias, net.intercept, net.activation, net.linear)


def posed(name: str, X: np.ndarray, y: np.ndarray, k: int, linear: bool = False) -> Problem:
    """The problem as recover() poses it."""
    options = Options(hidden=k, linear=linear, family=name)
    labels = np.where(y.sum(axis=1) > 0, 1 + np.argmax(y, axis=1), 0) if name == "softmax" else y
    target = read_target(X, labels, None, options.family, None, None, None)
    return problem_of(target.samples, options, target.family, target.offset)


def descended(problem: Problem, start: oh.OneHiddenNet) -> tuple[Problem, oh.OneHiddenNet]:
    """The end of the descent, with the noise known."""
    found = optimise(start, problem, Run(0)).network
    known = problem.with_noise_of(found)
    if known is not problem:
        found = optimise(found, known, Run(0), warm=True).network
    return known, found


def answered(problem: Problem, start: oh.OneHiddenNet, kind: str = "auto") -> tuple[Problem, Certificate]:
    """Descended and certified."""
    known, found = descended(problem, start)
    return known, certify(found, known, Run(0), kind)


def errors_at(local: LocalFit, covariance: np.ndarray) -> ParameterRecord:
    """Standard errors in x of parameters with this covariance in z."""
    form, coordinates = local.problem.form, local.problem.fit_coordinates
    return standard_errors(covariance, local.curvature.undetermined, form, coordinates)


@in_double
def trial(name: str, seed: int) -> dict[str, Any]:
    """Errors, bounds and whether intervals cover, for every parameter of one repetition."""
    family, q, d, k, n, *_ = LARGE[name]
    X, y, net, law = drawn(family, q, d, k, n, seed)
    problem = posed(family, X, y, k)
    began = time.perf_counter()
    known, network = descended(problem, near(net, seed))
    fitted = time.perf_counter()
    local = local_fit(network, known.at(network))
    pair = oh.match(local.network, net).permutation
    own, robust = (_flat(errors_at(local, local.covariance(kind)), pair) for kind in (False, True))
    asked = time.perf_counter()
    found = _flat(local.network, pair) - _flat(net, np.arange(k))
    bound = cramer_rao(net, X, law)
    return {
        "error": found.tolist(),
        "bound": bound.tolist(),
        "in": float(np.mean(np.abs(found) <= 1.96 * own)),
        "in_robust": float(np.mean(np.abs(found) <= 1.96 * robust)),
        "mean": float(np.mean(y)),
        "fit": fitted - began,
        "asked": asked - fitted,
    }


@in_double
def question(true: str, fitted: str, seed: int) -> dict[str, Any]:
    """The p-value of something missed, and whether the spread of y is called wrong."""
    q, n = (2, 1500) if true == "softmax" else (1, 1000)
    X, y, net, _ = drawn(true, q, 4, 2, n, seed)
    start = near(net, seed)
    if fitted != true:
        start = oh.OneHiddenNet(start.weights, start.output * y.mean(), start.bias, y.mean())
    _, certificate = answered(posed(fitted, X, y, 2), start)
    fit, spread = (
        next((one for one in certificate.own if one.name == name), None) for name in ("fit", "spread of y")
    )
    told = None if spread is None and true == fitted else bool(spread and not spread.passed)
    if spread is not None and not spread.evaluated:
        told = None
    return {"p": fit.value if fit is not None and fit.evaluated else None, "told": told}


@in_double
def band(name: str, seed: int) -> dict[str, Any]:
    """Whether bands hold the truth at new rows, and whether an idle input is called used."""
    family = "gaussian" if name == "linear" else name
    d, k, n = 5, 2, 600
    X, y, net, law = drawn(family, 1, d, k, n, seed, idle=True)
    if name == "linear":
        net = oh.OneHiddenNet(net.weights, net.output, net.bias, net.intercept, linear=[0.5, -0.3, 0, 0.2, 0])
        y = y + X @ net.linear
    known, certificate = answered(posed(family, X, y, k, name == "linear"), near(net, seed))
    options = Options(hidden=k, linear=name == "linear", family=family).to_dict()
    r = record(certificate, "near the truth", known.rows, options, Run(0), **measured_on(known, certificate))
    fresh = drawn(family, 1, d, k, 200, seed + 1_000_000, idle=True)
    X, y = fresh[0], fresh[1] + (fresh[0] @ net.linear if name == "linear" else 0.0)
    mean = law.mean(net.predict(X))
    low, high = r.predict_interval(X, of="mean")
    new_low, new_high = r.predict_interval(X, of="observation")
    return {
        "mean": float(np.mean((low <= mean) & (mean <= high))),
        "new": float(np.mean((new_low <= y) & (y <= new_high))),
        "idle": float(r.input_test().p_value[-1] < 0.05),
    }


def cramer_rao(net: oh.OneHiddenNet, X: np.ndarray, family: Family) -> np.ndarray:
    """Standard deviations no unbiased estimate can beat, in the order of ``_flat``; rows at unit norm."""
    (k, d), q = net.weights.shape, net.n_outputs
    w, eta = net.output.reshape(k, q), net.predict(X)
    information = 0.0
    for at in range(0, len(X), 4096):
        x, part = X[at : at + 4096], eta[at : at + 4096]
        t = x @ net.weights.T + net.bias
        on, units = (t > 0).astype(float), np.maximum(t, 0)
        slopes = on[:, None, :] * w.T  # (n, q, k)
        eye = np.eye(q)
        J = np.concatenate(
            [
                (slopes[..., None] * x[:, None, None, :]).reshape(len(x), q, -1),
                (units[:, None, :, None] * eye[:, None, :]).reshape(len(x), q, -1),
                slopes,
                np.broadcast_to(eye, (len(x), q, q)),
            ],
            axis=2,
        )
        information = information + np.einsum(
            "nap,nab,nbr->pr", J, _information(family, part), J, optimize=True
        )
    constraints = np.zeros((k, information.shape[0]))
    for i in range(k):
        constraints[i, i * d : (i + 1) * d] = net.weights[i]
    N = np.linalg.svd(constraints)[2][k:].T
    covariance = N @ np.linalg.inv(N.T @ information @ N) @ N.T
    return np.sqrt(np.diag(covariance))


def _information(family: Family, eta: np.ndarray) -> np.ndarray:
    """(n, q, q) Fisher information of eta, from the textbook formulas."""
    eta = eta.reshape(len(eta), -1)
    if family.name == "softmax":
        p = np.exp(eta) / (1 + np.exp(eta).sum(axis=1, keepdims=True))
        return p[:, :, None] * np.eye(p.shape[1]) - p[:, :, None] * p[:, None, :]
    p = 1 / (1 + np.exp(-eta))
    own = {
        "gaussian": np.full_like(eta, 1 / NOISE**2),
        "poisson": np.exp(eta),
        "bernoulli": p * (1 - p),
        "negative_binomial": np.exp(eta) / (1 + ALPHA * np.exp(eta)),
        "gamma": np.full_like(eta, 1 / PHI),
    }[family.name]
    return own[:, :, None] * np.eye(eta.shape[1])


def _flat(part: Any, order: np.ndarray) -> np.ndarray:
    """Rows, outputs, biases and intercept of a network or of its errors, units in this order."""
    return np.concatenate(
        [part.weights[order].ravel(), part.output[order].ravel(), part.bias[order], np.ravel(part.intercept)]
    )
