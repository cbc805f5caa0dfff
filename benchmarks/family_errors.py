"""Coverage of 95 % intervals at several numbers of rows a parameter, and the checks of right answers.

A repetition draws a teacher (two units of three inputs, an intercept), inputs and y anew, descends from
near the truth and asks for the certificate of the network itself: no search. Coverage is that of all eleven
parameters of answers whose own checks let them be certified, and of the band of the mean at 200 new rows;
"over-dispersed" are negative binomial counts told to be Poisson, "unequal", "t3" and "skewed" kinds of normal
y's noise. "smooth" are the classical errors without what estimated kinks add; the error of a coverage is that
of repetitions drawn again. Set before the numbers were seen: the correction with the fewest constants that
covers 93.5 to 96.5 % on average over the cells.

``BENCH_SEEDS`` moves all seeds.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
from scipy.special import stdtrit

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks._truth import simulated
from benchmarks._verdict_kinds import noise
from benchmarks.families import _flat, descended, errors_at, near
from onehidden.certify.certificate import Status
from onehidden.certify.evaluate import certify
from onehidden.certify.local_fit import local_fit
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.solve import measured_on, problem_of, record
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream

FAMILIES = ("bernoulli", "binomial", "poisson", "negative_binomial", "gamma", "over-dispersed")
NORMAL = ("equal", "equal, tanh", "unequal", "t3", "skewed")  # kinds of noise of normal y, and an activation
ROWS = dict.fromkeys(NORMAL, (10, 30, 100)) | dict.fromkeys(FAMILIES, (60, 150))  # a parameter
SIZE = {"bernoulli": 2.2, "binomial": 1.5} | dict.fromkeys(NORMAL, 1.5)  # of the outputs
LEVEL = {"bernoulli": 0.0, "binomial": -0.2, "negative_binomial": 0.6, "over-dispersed": 0.6}


def main(quick: bool) -> list[str]:
    table = Table(
        "y", "rows a parameter", "repetitions", "own checks pass", "coverage", "rows", "outputs",
        "biases", "bands", "smooth", "what fails",
    )  # fmt: skip
    first, runs = (int(os.environ.get(f"BENCH_{name}", least)) for name, least in (
        ("SEEDS", "0"), ("RUNS", "4" if quick else "150")))  # fmt: skip
    cells = [(name, rows, first + i) for i in range(runs) for name in ROWS for rows in ROWS[name]]
    measured = _pool.run(trial, cells)
    for name, rows in dict.fromkeys(cell[:2] for cell in cells):
        mine = [row for cell, row in measured if cell[:2] == (name, rows) and "broke" not in row]
        right = [row for row in mine if row["certified"]]
        held, smooth = (np.array([row[key] for row in right]) for key in ("held", "smooth"))
        failed = Counter(check for row in mine if not row["certified"] for check in row["failed"])
        bands = np.array([[row["bands"]] for row in right])
        every = _with_error(held)
        shares = [f"{100 * np.mean(part):.1f} %" for part in (held[:, :6], held[:, 6:8], held[:, 8:10])]
        table.row(
            name, rows, len(mine), f"{100 * len(right) / len(mine):.0f} %", every, *shares,
            _with_error(bands), f"{100 * np.mean(smooth):.1f} %",
            ", ".join(f"{one} {n}" for one, n in failed.most_common(3)),
        )  # fmt: skip
    for what, names in (("normal y", NORMAL), ("families", FAMILIES)):
        mine = [row for cell, row in measured if cell[0] in names and row.get("certified")]
        held, bands = (
            _with_error(np.array([np.ravel(row[key]) for row in mine])) for key in ("held", "bands")
        )
        table.say(f"\nAll of {what}: coverage {held}, of bands {bands}; {len(mine)} answers.")
    return table.lines


def _with_error(held: np.ndarray) -> str:
    """The mean of shares that hold, one row a repetition, and its standard error, in per cent."""
    each = 100 * held.mean(axis=1)
    return f"{each.mean():.1f} ± {each.std(ddof=1) / np.sqrt(len(each)):.1f} %"


def drawn(name: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, oh.OneHiddenNet, dict[str, Any]]:
    """Inputs, y (successes of a binomial), the teacher, and what the library is told."""
    rng = stream(seed, "benchmark", "family errors", name, rows)
    A = rng.standard_normal((2, 3))
    while abs(A[0] @ A[1]) > 0.8 * np.linalg.norm(A[0]) * np.linalg.norm(A[1]):
        A = rng.standard_normal((2, 3))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    w = SIZE.get(name, 1.1) * np.array([1.0, -1.0]) * rng.uniform(0.8, 1.3, 2)
    g = "tanh" if "tanh" in name else "relu"
    net = oh.OneHiddenNet(A, w, 0.4 * rng.standard_normal(2), LEVEL.get(name, 0.3), g)
    X = rng.standard_normal(((9 if g == "relu" else 11) * rows, 3))
    if name in NORMAL:
        size = np.exp(0.6 * X[:, 0] - 0.36) if name == "unequal" else 1.0
        y = net.predict(X) + 0.5 * size * noise(rng, len(X), name)
        return X, y, net, {"family": "gaussian", "activation": g}
    eta, told = net.predict(X), "poisson" if name == "over-dispersed" else name
    if name in ("negative_binomial", "over-dispersed"):
        return X, simulated(oh.families.NegativeBinomial("log", 0.4), eta, rng), net, {"family": told}
    if name == "binomial":
        trials = rng.integers(3, 9, len(X)).astype(float)
        won = np.rint(trials * simulated(oh.families.get(name), eta, rng, 1.0, trials))
        return X, won, net, {"family": told, "trials": trials}
    phi = 0.3 if name == "gamma" else 1.0
    return X, simulated(oh.families.get(name), eta, rng, phi), net, {"family": told}


@in_double
def trial(name: str, rows: int, seed: int) -> dict[str, Any]:
    """Whether intervals hold the truth, with and without what kinks add, and which checks fail."""
    X, y, net, given = drawn(name, rows, seed)
    options = Options(hidden=2, family=given["family"], activation=given.get("activation", "relu"))
    target = read_target(X, y, None, options.family, None, None, given.get("trials"))
    problem = problem_of(target.samples, options, target.family, target.offset, target.trials)
    known, found = descended(problem, near(net, seed))
    certificate = certify(found, known, Run(0))
    local = local_fit(found, known.at(found))
    m, truth = oh.match(local.network, net.canonical()), net.canonical()
    pair, sign = m.permutation, m.signs
    turned = np.concatenate([np.repeat(sign, 3), sign, sign, [1.0]])  # of tanh: (a, b, w) to -(a, b, w)
    gap = np.abs(turned * _flat(local.network, pair) - _flat(truth, np.arange(2)))
    reach = float(stdtrit(local.n_values - local.freedom, 0.975))
    smooth = _flat(errors_at(local, local.curvature.covariance * local.variance), pair)
    r = record(certificate, "near", known.rows, options.to_dict(), Run(0), **measured_on(known, certificate))
    fresh = stream(seed, "benchmark", "family errors", "new rows").standard_normal((200, 3))
    low, high = r.predict_interval(fresh, of="mean")
    mean = net.predict(fresh)
    if given["family"] != "gaussian":
        mean = oh.families.get(given["family"]).mean(mean)
    return {
        "bands": float(np.mean((low <= mean) & (mean <= high))),
        "held": (gap <= reach * _flat(certificate.standard_errors, pair)).tolist(),
        "smooth": (gap <= reach * smooth).tolist(),
        "certified": certificate.status_if_comparisons_pass is Status.CONSISTENT,
        "failed": [check.name for check in certificate.own if not check.passed],
    }
